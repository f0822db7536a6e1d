"""The built-in documents of a conversation: their shapes and definitions (durable.md, section 13).

Values are stored as plain camelCase JSON; these records read and write them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from pi_durable_tui.records.document import Definition, Op
from pi_durable_tui.records.entry import USER
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import AssistantMessage, Content, Problem, Record, Usage
from pi_durable_tui.records.modes import ApprovalMode, ThinkingLevel


class Budget(Record, frozen=True):
    """What one run of a conversation may use, beside the limits that hold for all; None: no own limit (rule SA-14)."""

    max_turns: int | None = None
    max_tokens: int | None = None  # read and written
    max_cost_usd: float | None = None


class Agent(Record, frozen=True):
    """`pi.agent`: who answers in this conversation. `tools` None: all that are installed; `budget` None: no own limits."""

    model: str | None = None
    thinking: ThinkingLevel = "off"
    approval: ApprovalMode = "ask"
    instructions: str = ""
    cwd: str = ""
    tools: tuple[str, ...] | None = None
    extensions: tuple[str, ...] | None = None
    title: str = ""
    budget: Budget | None = None


class Run(Record, frozen=True):
    """The turns from an input to its final answer.

    Attributes:
        task_id: The generation's.
        used_ms: How long it has worked, over all processes that worked on it; counted only under a limit on time.
        limit: Why it is being ended: it has used what it was given (rule SA-14).
    """

    task_id: int
    started_at_ms: int
    submissions: tuple[int, ...] = ()
    turn: int = 1
    used_ms: int = 0
    limit: Problem | None = None


class RetryWait(Record, frozen=True):
    """A failed attempt; the next one starts at `until_ms`."""

    attempt: int
    until_ms: int
    problem: Problem


class Generation(Record, frozen=True):
    """One model request: its attempt (from 1) and what has come so far."""

    task_id: int
    attempt: int
    started_at_ms: int
    message: AssistantMessage | None = None
    retry: RetryWait | None = None


class ToolSlot(Record, frozen=True):
    """One running call. `question` is the id of the open question about it, `in_doubt` that an end unknown is being asked about."""

    task_id: int
    call_id: str
    name: str
    arguments: JsonObject
    title: str
    status: Literal["pending", "asking", "running"]
    started_at_ms: int
    output: str = ""
    output_dropped_chars: int = 0  # cut from the front of `output`
    question: int | None = None
    question_details: JsonObject | None = None
    subagent: int | None = None  # the task of the subagent that does the work
    conversation: int | None = None  # and its conversation


class Failure(Record, frozen=True):
    """`runFailure`: why the last run ended without an answer; stays until the next one starts."""

    reason: str
    task_id: int
    attempt: int
    at_ms: int
    message: str = ""


class CompactionRun(Record, frozen=True):
    """A summary being made; `is_blocking`: the run waits for it. `usage`: what its request has used so far and `pi.usage` does not count yet."""

    task_id: int
    started_at_ms: int
    reason: Literal["manual", "overflow", "threshold"]
    is_blocking: bool = False
    usage: Usage | None = None


class Live(Record, frozen=True):
    """`pi.live`: what is going on in the conversation. `tools` is in call order."""

    run: Run | None = None
    generation: Generation | None = None
    tools: tuple[ToolSlot, ...] = ()
    run_failure: Failure | None = None
    commands: tuple[ToolSlot, ...] = ()  # what a person runs beside the agent
    background: tuple[ToolSlot, ...] = ()  # calls that go on behind their results (rule TO-10)
    compactions: tuple[CompactionRun, ...] = ()
    compaction_failure: Failure | None = None


class InboxItem(Record, frozen=True):
    """A queued submission. `kind` is that of the entry it becomes."""

    submission_id: int
    mode: Literal["followUp", "steer", "write"]
    content: tuple[Content, ...]
    at_ms: int
    kind: str = USER

    @property
    def is_typed(self) -> bool:
        """Whether a person handed it in: only that can be taken back."""
        return self.kind == USER and self.mode != "write"


class Inbox(Record, frozen=True):
    """`pi.inbox`: queued submissions in order of their ids."""

    items: tuple[InboxItem, ...] = ()


class Provider(Record, frozen=True):
    """`pi.provider`: the UUIDv7 this conversation shows to providers (rule GE-9)."""

    session_id: str = ""


class UsageTotals(Record, frozen=True):
    """`pi.usage`: per model and per tool what was used over all attempts; `context_tokens` is the size of the newest request and answer."""

    models: dict[str, Usage] = msgspec.field(default_factory=dict[str, Usage])
    tools: dict[str, Usage] = msgspec.field(default_factory=dict[str, Usage])
    context_tokens: int = 0


class Draft(Record, frozen=True):
    """`pidurable.draft`: what stands in the composer and has not been sent (rule TU-10)."""

    text: str = ""
    cursor: int = 0  # characters from the start


def _quiet(value: Json, _ops: list[Op], deltas: int) -> bool:
    """Write a base when nothing is going on, so that older revisions can be reclaimed (FB-16), or when the chain grows long."""
    idle = isinstance(value, dict) and not any(value.get(name) for name in ("run", "tools", "commands", "background"))
    return idle or deltas >= 512


AGENT = Definition(kind="pi.agent", scope="conversation", history="rewindable", fork="asOf")
LIVE = Definition(kind="pi.live", scope="conversation", checkpoint_when=_quiet)
INBOX = Definition(kind="pi.inbox", scope="conversation")
PROVIDER = Definition(kind="pi.provider", scope="conversation")
USAGE = Definition(kind="pi.usage", scope="conversation")
DRAFT = Definition(kind="pidurable.draft", scope="conversation")

BUILT_IN = (AGENT, LIVE, INBOX, PROVIDER, USAGE, DRAFT)
