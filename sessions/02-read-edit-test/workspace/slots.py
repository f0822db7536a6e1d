"""Free time between meetings. Times are minutes since midnight."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of time; `end` is not part of it."""

    start: int
    end: int


def free_spans(day: Span, meetings: list[Span]) -> list[Span]:
    """The parts of `day` that no meeting covers, in order."""
    free: list[Span] = []
    cursor = day.start
    for meeting in sorted(meetings):
        if meeting.start > cursor:
            free.append(Span(cursor, meeting.start))
        cursor = meeting.end
    if cursor < day.end:
        free.append(Span(cursor, day.end))
    return free
