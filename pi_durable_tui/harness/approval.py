"""Whether a call may be carried out: what an approver is asked, what it answers, and the permissions it is told of (rule TU-19).

The meaning of rules belongs to the approver (`pi_durable_tui/permissions`); here they are only stored, with who made them and when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Access, Effects
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import Record
from pi_durable_tui.records.modes import ApprovalMode

Decision: TypeAlias = Literal["allow", "ask", "deny"]

APPROVALS: dict[ApprovalMode, dict[Access, Decision]] = {
    "ask": {"read": "allow", "edit": "ask", "command": "ask"},
    "edits": {"read": "allow", "edit": "allow", "command": "ask"},
    "all": {"read": "allow", "edit": "allow", "command": "allow"},
    "plan": {"read": "allow", "edit": "deny", "command": "deny"},
}
"""What each approval mode says to each kind of access (rule TU-19)."""

PLAN_ONLY = "The user allows reading only for now (approval mode plan), so this was not run. Say what you would do instead."


class Rule(Record, frozen=True):
    """A standing permission or prohibition.

    Attributes:
        kind: What `text` names: the first words of a command; a whole command, exactly; a folder (ends with "/") or file; a tool.
    """

    kind: Literal["command", "exact", "path", "tool"]
    text: str
    decision: Decision = "allow"


class Granted(Record, frozen=True):
    """A rule that was made, by whom and when. `id` names it for revoking."""

    id: int
    rule: Rule
    by: str
    at_ms: int


class Grants(Record, frozen=True):
    """`pidurable.permissions`: the rules of a session, oldest first. A session is one directory's, so they hold for all chats in it."""

    granted: tuple[Granted, ...] = ()


PERMISSIONS = Definition(kind="pidurable.permissions", scope="session")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A call about to be carried out.

    Attributes:
        arguments: Exactly what would be carried out.
        effects: What it would touch; None when its tool cannot tell.
        rules: The stored rules.
    """

    agent: Agent
    tool: str
    access: Access
    arguments: JsonObject
    effects: Effects | None
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What to do with a call.

    Attributes:
        reason: For `ask`: why it is asked, "" when the mode says all. For `deny`: what the model is told.
        rule: For `ask`: the rule that the answer "always" would make; None when there is none to offer.
    """

    decision: Decision
    reason: str = ""
    rule: Rule | None = None


Approver: TypeAlias = Callable[[ApprovalRequest], Verdict]
"""Decides about a call. Pure: the same request gives the same verdict."""


def by_mode(request: ApprovalRequest) -> Verdict:
    """The approver that looks at the approval mode and the kind of access only. PURE."""
    decision = APPROVALS[request.agent.approval][request.access]
    return Verdict(decision=decision, reason=PLAN_ONLY if decision == "deny" else "")


def grants_of(value: JsonObject | None) -> Grants:
    """The stored permissions. PURE."""
    return from_json(value or {}, Grants)


def rule_text(rule: Rule) -> str:
    """A rule as people read it. PURE."""
    what = {
        "command": f"commands that begin with: {rule.text}",
        "exact": f"exactly this command: {rule.text}",
        "path": f"changes to files in {rule.text}" if rule.text.endswith("/") else f"changes to {rule.text}",
        "tool": f"the tool {rule.text}",
    }[rule.kind]
    return f"{rule.decision} {what}"
