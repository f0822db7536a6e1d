"""Where a transcript can be forked: at the end of each of its turns (rule TU-15, CASE-F4). PURE.

A turn is what a person said and everything that came of it. A fork takes the turn whole; of one that is still going on it takes
what stands up to the last place at which no call is open, so that the new chat starts with nothing half done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pi_durable_tui.records.entry import COMPACTION, NOTICE, StoredEntry
from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage, UserMessage
from pi_durable_tui.tui.rows import content_text

_OURS = frozenset({COMPACTION, NOTICE})  # the model reads them as a person's messages, and no person said them


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPoint:
    """A turn.

    Attributes:
        entry_id: The last entry that a fork here takes along.
        said_id: The entry of what the person said.
        said, answered: Foreign texts; `answered` is the last answer of the turn, "" when there is none.
        is_whole: All of the turn comes along.
    """

    entry_id: int
    said_id: int
    at_ms: int
    said: str
    answered: str
    is_whole: bool


def fork_points(entries: Sequence[StoredEntry]) -> tuple[ForkPoint, ...]:
    """The turns of a transcript, oldest first. `entries`: ids growing."""
    starts = [index for index, stored in enumerate(entries) if isinstance(stored.entry.message, UserMessage) and stored.entry.kind not in _OURS]
    ends = [*starts[1:], len(entries)][: len(starts)]
    return tuple(_point(entries[start:end]) for start, end in zip(starts, ends, strict=True))


def _point(turn: Sequence[StoredEntry]) -> ForkPoint:
    open_calls: set[str] = set()
    last, answered = turn[0], ""
    for stored in turn:
        message = stored.entry.message
        if isinstance(message, AssistantMessage):
            open_calls |= {call.id for call in message.tool_calls} if message.stop_reason in ("toolUse", "length") else set()
            answered = message.text.strip() or answered
        elif isinstance(message, ToolResultMessage):
            open_calls.discard(message.tool_call_id)
        if not open_calls:
            last = stored
    said = turn[0].entry.message
    return ForkPoint(
        entry_id=last.entry.id,
        said_id=turn[0].entry.id,
        at_ms=turn[0].entry.at_ms,
        said=content_text(said.content) if isinstance(said, UserMessage) else "",
        answered=answered,
        is_whole=last is turn[-1],
    )


def point_at(points: Sequence[ForkPoint], entry_id: int) -> ForkPoint | None:
    """The turn that the entry belongs to; None: there is none."""
    return next((point for point in reversed(points) if point.said_id <= entry_id), None)
