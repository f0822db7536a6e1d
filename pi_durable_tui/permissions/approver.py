"""PURE. The approver: mode, standing permissions, paths and commands put together (rules TU-19, SA-12, SA-13).

In this order: the mode `plan` denies everything but reading; a prohibition denies, and a wish to be asked asks, in every other mode;
the mode `all` allows the rest, sensitive files included; then sensitive and secret files ask; then permissions and the mode allow.
"""

from __future__ import annotations

from collections.abc import Sequence

from pi_durable_tui.harness.approval import ApprovalRequest, Approver, Rule, Verdict, by_mode
from pi_durable_tui.harness.ports import Effects
from pi_durable_tui.permissions import commands
from pi_durable_tui.permissions.paths import is_inside, secret, sensitive

ALLOW = Verdict(decision="allow")


def approver(own: Sequence[str] = (), *, home: str | None = None) -> Approver:
    """The approver of a program.

    Args:
        own: Its own folders, absolute, links resolved.
        home: The person's home, likewise: who searches all of it searches their keys, too. None: there is none.
    """
    folders = tuple(own)

    def approve(request: ApprovalRequest) -> Verdict:
        plain, effects = by_mode(request), request.effects
        if plain.decision == "deny":
            return plain
        said = _standing(request)
        if said is not None:
            return said
        if request.agent.approval == "all":
            return ALLOW
        if request.access == "read":
            return _reading(request, effects.reads if effects is not None else (), home)
        if effects is not None and effects.command is not None:
            return _command(effects.command, effects, request.rules)
        if effects is not None and effects.paths:
            return _paths(request, effects, folders)
        return _tool(request)

    return approve


def _standing(request: ApprovalRequest) -> Verdict | None:
    """What prohibitions and wishes to be asked say; a prohibition wins, whichever part of the call it is about."""
    about = [rule for rule in request.rules if _is_about(rule, request)]
    found = [commands.by_rule(rule) for decision in ("deny", "ask") for rule in about if rule.decision == decision]
    if request.effects is not None and request.effects.command is not None:
        told = commands.standing(request.effects.command, request.rules)
        found += [told] if told is not None else []
    return min(found, key=lambda verdict: verdict.decision != "deny", default=None)


def _is_about(rule: Rule, request: ApprovalRequest) -> bool:
    if rule.kind == "tool":
        return rule.text == request.tool
    paths = request.effects.paths if request.effects is not None else ()
    return any(_reaches(rule, path) for path in paths)


def _reaches(rule: Rule, path: str) -> bool:
    return rule.kind == "path" and (path.startswith(rule.text) if rule.text.endswith("/") else path == rule.text)


def _command(command: str, effects: Effects, rules: Sequence[Rule]) -> Verdict:
    """A shell command. A permission was given for the working directory; elsewhere the same words may mean something else."""
    verdict = commands.permitted(command, rules)
    if verdict.decision == "allow" and not is_inside(effects.directory, effects.root):
        return Verdict(decision="ask", reason=f"It would run outside of the working directory, in {effects.directory}.")
    return verdict


def _reading(request: ApprovalRequest, paths: Sequence[str], home: str | None) -> Verdict:
    """Reading is free, but for what holds keys and logins; who works in a folder above those can permit the tool that goes through it."""
    whole = Rule(kind="tool", text=request.tool)
    for path in paths:
        why = secret(path)
        if why is not None:
            return Verdict(decision="ask", reason=f"Reading {path} is always asked about: {why}.")
        if home is not None and is_inside(home, path) and whole not in request.rules:
            return Verdict(decision="ask", reason=f"Your keys and logins are below {path}.", rule=whole)
    return ALLOW


def _paths(request: ApprovalRequest, effects: Effects, own: Sequence[str]) -> Verdict:
    """A call that changes files: the first of them that must be asked about decides."""
    permissions = [rule for rule in request.rules if rule.decision == "allow"]
    by_itself = by_mode(request).decision == "allow"
    for path in effects.paths:
        why = sensitive(path, own)
        if why is not None:
            return Verdict(decision="ask", reason=f"{path} is always asked about: {why}.")
        inside = is_inside(path, effects.root)
        if any(_reaches(rule, path) for rule in permissions) or (inside and by_itself):
            continue
        folder = effects.root if inside else path.rpartition("/")[0]
        reason = "" if inside else f"{path} lies outside of the working directory."
        return Verdict(decision="ask", reason=reason, rule=Rule(kind="path", text=folder.rstrip("/") + "/"))
    return ALLOW


def _tool(request: ApprovalRequest) -> Verdict:
    """A call that does not say what it would touch: only a permission for its tool covers it."""
    rule = Rule(kind="tool", text=request.tool)
    return ALLOW if rule in request.rules else Verdict(decision="ask", rule=rule)
