"""A conversation's rows, kept from view to view (rules TU-1, TU-9). PURE: views in, rows out.

Rows of entries never change, so the same entry gives the same object, and the cost of a new view is that of what is new in it.
Closing the app and opening it again gives equal rows, with one exception that is meant: the seam, which tells where a run was
resumed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import Struct

from pi_durable_tui.records.entry import USER
from pi_durable_tui.records.messages import AssistantMessage, Text, Thinking, ToolResultMessage
from pi_durable_tui.records.submission import Unanswered
from pi_durable_tui.tui.rows import (
    AnswerRow,
    MarkRow,
    RetryRow,
    Row,
    ThinkingRow,
    compaction_failure_row,
    entry_rows,
    failure_row,
    problem_text,
    result_row,
    slot_row,
)
from pi_durable_tui.tui.safe_text import SafeStream, safe_line

if TYPE_CHECKING:
    from pi_durable_tui.harness.live import Generation
    from pi_durable_tui.harness.view import ConversationView
    from pi_durable_tui.records.entry import StoredEntry

TOLD_ENTRIES = 200
"""So many of the newest entries are looked through for the input that was stopped: those that every view holds."""


class Rows(Struct, frozen=True, kw_only=True):
    """All rows, and how they differ from the result before.

    Attributes:
        rows: Top to bottom. Owned by the projection: read it before the next call.
        changed_from: Rows before this index are the same objects as before, at the same place (after `prepended` moved them).
        prepended: How many rows were put in front.
    """

    rows: Sequence[Row]
    changed_from: int
    prepended: int = 0


@dataclass(slots=True)
class _LiveText:
    """One growing text, made safe piece by piece."""

    raw: str = ""
    safe: str = ""
    stream: SafeStream = field(default_factory=SafeStream)

    def grown(self, raw: str) -> str:
        if not raw.startswith(self.raw):
            self.raw, self.safe, self.stream = "", "", SafeStream()
        self.safe += self.stream.feed(raw[len(self.raw) :])
        self.raw = raw
        return self.safe


class Projection:
    """Keeps the rows of one conversation.

    Args:
        seam: Safe or foreign text of the line that says what happened before this opening; "" for none.
    """

    def __init__(self, *, seam: str = "") -> None:
        self._rows: list[Row] = []
        self._settled = 0  # so many of them are of entries (and the seam), the others of live work
        self._first_id: int | None = None  # the oldest entry that has rows
        self._view_first_id: int | None = None  # the oldest one of the views themselves
        self._last_id = -1
        self._owners: list[int] = []  # the entry of each settled row
        self._seam = MarkRow(key="seam", tone="info", text=safe_line(seam), is_seam=True) if seam else None
        self._seam_seq: int | None = None
        self._before_seam: frozenset[object] = frozenset()
        self._live_texts: dict[tuple[int, int, int, int], _LiveText] = {}
        self._last_turn: StoredEntry | None = None  # the newest input or answer that has rows
        self._first_turn: StoredEntry | None = None  # the oldest one
        self._view_entries: Sequence[StoredEntry] = ()

    @property
    def first_id(self) -> int | None:
        """The oldest entry that is known; None before the first one. An older page ends before it."""
        return self._first_id

    def apply(self, view: ConversationView) -> Rows:
        """The rows of `view`. Views come in the order of their commits and belong to one conversation."""
        if self._seam_seq is None:
            self._seam_seq, self._before_seam = view.seq, frozenset(_work(view))
        old_live = self._rows[self._settled :]
        del self._rows[self._settled :]
        changed_from = self._add_entries(view)
        live = self._live_rows(view)
        known = {row.key: row for row in old_live}
        live = [known[row.key] if known.get(row.key) == row else row for row in live]
        if changed_from == self._settled:
            changed_from += _common(old_live, live)
        self._rows += live
        return Rows(rows=self._rows, changed_from=changed_from)

    def prepend(self, entries: Sequence[StoredEntry]) -> Rows:
        """Put an older page in front; entries not older than the first known one are left out."""
        older = [stored for stored in entries if self._first_id is None or stored.entry.id < self._first_id]
        rows: list[tuple[int, Row]] = []
        turn: StoredEntry | None = None
        for stored in older:
            rows += [(owner, row) for owner, row in _unanswered(turn, stored)]
            rows += [(stored.entry.id, row) for row in entry_rows(stored)]
            turn = stored if _is_turn(stored) else turn
        rows += _unanswered(turn, self._first_turn)
        self._first_turn = next(filter(_is_turn, older), self._first_turn)
        if entries:
            self._first_id = min(stored.entry.id for stored in entries)
        self._rows[:0] = [row for _, row in rows]
        self._owners[:0] = [entry_id for entry_id, _ in rows]
        self._settled += len(rows)
        return Rows(rows=self._rows, changed_from=len(self._rows), prepended=len(rows))

    @property
    def older_rows(self) -> int:
        """How many rows there are of entries that the view does not hold: of pages put in front, and of what it has let go."""
        return bisect_left(self._owners, self._view_first_id) if self._view_first_id is not None else 0

    def drop_older(self) -> Rows:
        """Forget the rows of what the view does not hold; they can be fetched again. Memory is then that of the view alone."""
        dropped = self.older_rows
        del self._rows[:dropped], self._owners[:dropped]
        self._settled -= dropped
        if dropped:
            self._first_id = self._view_first_id
            self._first_turn = next(filter(_is_turn, self._view_entries), None)
        return Rows(rows=self._rows, changed_from=len(self._rows), prepended=-dropped)

    def _add_entries(self, view: ConversationView) -> int:
        """Append the rows of entries that are new; returns the index of the first one added or moved."""
        entries = view.entries
        if not entries:
            return self._settled
        self._view_first_id, self._view_entries = entries[0].entry.id, entries
        if self._view_first_id > self._last_id:  # the first one, or so much came between two views that what lies between is not known here
            self._rows, self._owners, self._settled, self._first_id = [], [], 0, self._view_first_id
            self._last_turn = self._first_turn = None
        changed_from = self._settled
        start = len(entries)
        while start and entries[start - 1].entry.id > self._last_id:
            start -= 1
        for stored in entries[start:]:
            for owner, row in _unanswered(self._last_turn, stored):
                self._rows.append(row)
                self._owners.append(owner)
            if _is_turn(stored):
                self._last_turn, self._first_turn = stored, self._first_turn or stored
            if self._seam is not None and stored.seq > (self._seam_seq or 0) and not _is_interruption(stored):
                self._rows.append(self._seam)
                self._owners.append(stored.entry.id)
                self._seam = None
            rows = entry_rows(stored)
            self._rows += rows
            self._owners += [stored.entry.id] * len(rows)
        self._last_id = entries[-1].entry.id
        self._settled = len(self._rows)
        return changed_from

    def _live_rows(self, view: ConversationView) -> list[Row]:
        rows = [*self._generation_rows(view.live.generation), *(slot_row(slot) for slot in view.live.tools)]
        rows += [slot_row(slot, is_own=True) for slot in view.live.commands]
        if view.live.run_failure is not None and not view.is_busy and not _tells_failure(view.entries[-1:]):
            rows.append(failure_row(view.live.run_failure))
        if _is_stopped(view):
            rows.append(MarkRow(key="stopped", tone="warn", text="Stopped"))
        if view.live.compaction_failure is not None:
            rows.append(compaction_failure_row(view.live.compaction_failure))
        if self._seam is None:
            return rows
        is_old = self._before_seam.issuperset(_work(view))
        return [*rows, self._seam] if is_old else [self._seam, *rows]

    def _generation_rows(self, generation: Generation | None) -> list[Row]:
        if generation is None:
            self._live_texts.clear()
            return []
        rows: list[Row] = []
        parts = generation.message.content if generation.message is not None else ()
        for index, part in enumerate(parts):
            place = (generation.task_id, generation.attempt, generation.started_at_ms, index)
            key, is_open = f"live-{index}", index == len(parts) - 1
            match part:
                case Text(text=text) if text:
                    rows.append(AnswerRow(key=key, text=self._grown(place, text), is_open=is_open))
                case Thinking(text=text) if text.strip():
                    rows.append(ThinkingRow(key=key, text=self._grown(place, text), is_open=is_open))
                case _:
                    pass
        if generation.retry is not None:
            retry = generation.retry
            rows.append(RetryRow(key=f"retry-{retry.attempt}", attempt=retry.attempt, until_ms=retry.until_ms, reason=problem_text(retry.problem)))
        return rows

    def _grown(self, place: tuple[int, int, int, int], raw: str) -> str:
        for stale in [known for known in self._live_texts if known[:3] != place[:3]]:
            del self._live_texts[stale]
        return self._live_texts.setdefault(place, _LiveText()).grown(raw)


def _work(view: ConversationView) -> Iterable[object]:
    """What is going on, as values that tell one piece of work from another."""
    generation = view.live.generation
    if generation is not None:
        yield generation.task_id, generation.attempt, generation.started_at_ms
    for slot in view.live.tools:
        yield slot.task_id


def _is_turn(stored: StoredEntry) -> bool:
    """Something was asked, or answered."""
    return _is_input(stored) or isinstance(stored.entry.message, AssistantMessage)


def _is_input(stored: StoredEntry) -> bool:
    """Somebody handed it in, and a run was to answer it."""
    return stored.entry.kind == USER and "submissionId" in (stored.entry.data or {})


def _unanswered(before: StoredEntry | None, stored: StoredEntry | None) -> Iterable[tuple[int, Row]]:
    """The mark of an input after which nothing was said before the next one came, and the entry it belongs to.

    Why its run failed is told while it is the newest one; from then on at least that it did. Inputs placed by one commit share an answer.
    """
    if before is None or stored is None or not _is_input(before) or not _is_input(stored) or before.seq == stored.seq:
        return ()
    return ((before.entry.id, MarkRow(key=f"entry-{before.entry.id}-unanswered", tone="warn", text="No answer came to this")),)


def _is_interruption(stored: StoredEntry) -> bool:
    message = stored.entry.message
    if isinstance(message, AssistantMessage):
        return message.problem is not None and message.problem.reason == "interrupted"
    return isinstance(message, ToolResultMessage) and result_row("", message, stored.entry.data or {}).status == "interrupted"


def _tells_failure(last: Sequence[StoredEntry]) -> bool:
    """The newest entry already says why the run ended."""
    message = last[0].entry.message if last else None
    return isinstance(message, AssistantMessage) and message.stop_reason in ("error", "aborted")


def _is_stopped(view: ConversationView) -> bool:
    """The newest input was stopped, and no entry since says so."""
    if view.is_busy:
        return False
    for stored in reversed(view.entries[-TOLD_ENTRIES:]):
        submission_id = (stored.entry.data or {}).get("submissionId")
        if submission_id is not None:
            ended = (one.state for one in view.submissions if one.id == submission_id)
            return any(isinstance(state, Unanswered) and state.problem.reason == "aborted" for state in ended)
        if entry_rows(stored) and not isinstance(stored.entry.message, ToolResultMessage) and not _calls(stored.entry.message):
            return False  # something was said or done after it; instructions and notes, which have no rows, are neither
    return False


def _calls(message: object) -> bool:
    """An answer that only made calls: what came of them follows it."""
    return isinstance(message, AssistantMessage) and message.stop_reason == "toolUse"


def _common(old: Sequence[Row], new: Sequence[Row]) -> int:
    count = 0
    for before, after in zip(old, new, strict=False):
        if before is not after:
            break
        count += 1
    return count
