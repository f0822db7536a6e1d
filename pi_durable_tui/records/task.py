"""A durable state machine with a checkpoint: the only way work gets done (durable.md, section 5).

The life of a task is the table `TRANSITIONS`; whoever replaces a task record goes through `moved`, so an illegal step raises
and changes nothing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from pi_durable_tui.errors import InternalError
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import Problem, Record

Checkpoint: TypeAlias = JsonObject
"""`{"phase": name, …}`: where a task goes on, and with what."""

WaitPolicy: TypeAlias = Literal["allSettled", "failFast"]


class Completed(Record, frozen=True, tag_field="type", tag="completed"):
    """Ended with a value."""

    value: Json = None


class Failed(Record, frozen=True, tag_field="type", tag="failed"):
    """Ended without what was asked; the reason is part of the story (a tool error, a model error)."""

    problem: Problem


class Aborted(Record, frozen=True, tag_field="type", tag="aborted"):
    """Ended because somebody asked for it."""

    value: Json = None


class Orphaned(Record, frozen=True, tag_field="type", tag="orphaned"):
    """Ended by abort while its definition was missing (rule TK-8)."""


class Faulted(Record, frozen=True, tag_field="type", tag="faulted"):
    """Ended by a bug or a broken promise of its handler."""

    message: str
    detail: JsonObject | None = None


Outcome: TypeAlias = Completed | Failed | Aborted | Orphaned | Faulted


class Pending(Record, frozen=True, tag_field="status", tag="pending"):
    """Ready to run from its checkpoint."""

    checkpoint: Checkpoint


class Running(Record, frozen=True, tag_field="status", tag="running"):
    """A handler is at work in some process, or was when it died."""

    checkpoint: Checkpoint


class Waiting(Record, frozen=True, tag_field="status", tag="waiting"):
    """Resumes when every task of `on` is terminal."""

    checkpoint: Checkpoint
    on: tuple[int, ...]
    policy: WaitPolicy = "allSettled"


class Sleeping(Record, frozen=True, tag_field="status", tag="sleeping"):
    """Resumes at `until` (milliseconds since 1970 UTC); None: only when somebody answers it (a question to a person)."""

    checkpoint: Checkpoint
    until: int | None


class Completing(Record, frozen=True, tag_field="status", tag="completing"):
    """Finished, but work below it has not drained yet (rule TK-14)."""

    outcome: Outcome


class Terminal(Record, frozen=True, tag_field="status", tag="terminal"):
    """Ended for good."""

    outcome: Outcome


TaskState: TypeAlias = Pending | Running | Waiting | Sleeping | Completing | Terminal
TaskStatus: TypeAlias = Literal["pending", "running", "waiting", "sleeping", "completing", "terminal"]

TRANSITIONS: dict[TaskStatus, frozenset[TaskStatus]] = {
    "pending": frozenset({"running", "completing", "terminal"}),
    "running": frozenset({"running", "pending", "waiting", "sleeping", "completing", "terminal"}),
    "waiting": frozenset({"pending", "completing", "terminal"}),
    "sleeping": frozenset({"pending", "completing", "terminal"}),
    "completing": frozenset({"terminal"}),
    "terminal": frozenset(),
}
"""Which status may follow which. A running task may stay running with another checkpoint: that is progress."""


class Task(Record, frozen=True):
    """One unit of work. Replaced whole on every change (rule ST-4)."""

    id: int
    kind: str
    conversation_id: int
    input: JsonObject
    state: TaskState
    created_at_ms: int
    version: int = 1
    owner: int | None = None  # task id; None: owned by its conversation
    background: bool = False
    memos: dict[str, Json] | None = None
    restarts: int | None = None
    abort_at_ms: int | None = None  # the durable mark of an abort (rule TK-15)
    started_at_ms: int | None = None
    ended_at_ms: int | None = None

    @property
    def status(self) -> TaskStatus:
        """The tag of its state."""
        return status_of(self.state)

    @property
    def is_live(self) -> bool:
        """True until it is terminal."""
        return not isinstance(self.state, Terminal)

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Where it goes on; None once it is completing or terminal."""
        return None if isinstance(self.state, Completing | Terminal) else self.state.checkpoint

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None while it has not."""
        return self.state.outcome if isinstance(self.state, Completing | Terminal) else None


def status_of(state: TaskState) -> TaskStatus:
    """The tag of a state as stored."""
    tag = type(state).__struct_config__.tag
    return msgspec.convert(tag, TaskStatus)


def moved(task: Task, state: TaskState, *, at_ms: int) -> Task:
    """The task in another state, with the fields that follow from it.

    A new checkpoint clears `restarts` (rule TK-11). A terminal record drops checkpoint, memos, restarts and the abort mark
    and gets its end time (rule TK-9). The first run stamps the start time.

    Raises:
        InternalError: The table does not allow the step. Nothing changed.
    """
    before, after = task.status, status_of(state)
    if after not in TRANSITIONS[before]:
        raise InternalError(f"task {task.id} cannot go from {before} to {after}")
    changes: dict[str, object] = {"state": state}
    if isinstance(state, Terminal):
        changes |= {"memos": None, "restarts": None, "abort_at_ms": None, "ended_at_ms": at_ms}
    elif isinstance(state, Running | Waiting | Sleeping | Pending) and state.checkpoint != task.checkpoint:
        changes["restarts"] = None
    if isinstance(state, Running) and task.started_at_ms is None:
        changes["started_at_ms"] = at_ms
    return msgspec.structs.replace(task, **changes)
