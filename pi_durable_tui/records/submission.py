"""What somebody handed to a conversation, with a status that can be waited for (rules SU-1 to SU-7).

Its life is the table `TRANSITIONS`; whoever replaces a submission goes through `moved`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import structs

from pi_durable_tui.errors import InternalError
from pi_durable_tui.records.codec import encode
from pi_durable_tui.records.entry import USER
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import Content, Problem, Record

Mode: TypeAlias = Literal["followUp", "steer", "write"]
"""followUp: after the run; steer: after the current tool round; write: an entry the model is not asked about."""


class Queued(Record, frozen=True, tag_field="status", tag="queued"):
    """Stored, waiting for a boundary."""


class Placed(Record, frozen=True, tag_field="status", tag="placed"):
    """In the transcript as `entry_id`; the run works on it."""

    entry_id: int


class Done(Record, frozen=True, tag_field="status", tag="done"):
    """Answered. `answer_entry_id` is the final answer (None for a write)."""

    entry_id: int
    answer_entry_id: int | None = None


class Unanswered(Record, frozen=True, tag_field="status", tag="unanswered"):
    """Ended without an answer; `problem.reason` is stable: interrupted, model_error, no_model, aborted, withdrawn."""

    problem: Problem
    entry_id: int | None = None


SubmissionState: TypeAlias = Queued | Placed | Done | Unanswered

TRANSITIONS: dict[str, frozenset[str]] = {
    "queued": frozenset({"placed", "done", "unanswered"}),  # done at once: a write, which nobody has to answer
    "placed": frozenset({"done", "unanswered"}),
    "done": frozenset(),
    "unanswered": frozenset(),
}
"""Which status may follow which."""


class Submission(Record, frozen=True):
    """One input or write. Replaced whole when its state changes (rule ST-4)."""

    id: int
    conversation_id: int
    mode: Mode
    content: tuple[Content, ...]
    digest: str  # of mode and content, so that a reused request id with other content is noticed (rule SU-2)
    at_ms: int
    state: SubmissionState
    request_id: str | None = None
    kind: str = USER  # kind of the entry it becomes
    data: JsonObject | None = None  # goes into the data of that entry

    @property
    def status(self) -> str:
        """queued, placed, done or unanswered."""
        return status_of(self.state)

    @property
    def is_open(self) -> bool:
        """True until it is done or unanswered."""
        return isinstance(self.state, Queued | Placed)


def status_of(state: SubmissionState) -> str:
    """The tag of a state as stored."""
    return str(type(state).__struct_config__.tag)


def moved(submission: Submission, state: SubmissionState) -> Submission:
    """The submission in another state.

    Raises:
        InternalError: The table does not allow the step. Nothing changed.
    """
    before, after = submission.status, status_of(state)
    if after not in TRANSITIONS[before]:
        raise InternalError(f"submission {submission.id} cannot go from {before} to {after}")
    return structs.replace(submission, state=state)


def content_digest(mode: Mode, content: Sequence[Content]) -> str:
    """What tells two submissions apart: the mode and the content (rule SU-2)."""
    text = encode([mode, *(encode(part) for part in content)])
    return hashlib.sha256(text.encode()).hexdigest()
