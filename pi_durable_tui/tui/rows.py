"""A view as rows: what stands on the screen, from the top to the bottom (rules TU-1, TU-5, TU-6). PURE: view in, rows out.

Each row holds safe text only (rule SA-1); how it looks is decided in paint.py. Rows of entries never change, so a `Projection`
keeps them: the same entry gives the same object, and the cost of a new view is that of what is new in it. Closing the app and
opening it again gives equal rows, with one exception that is meant: the seam, which tells where a run was resumed (rule TU-9).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pi_durable_tui.harness.live import Failure, Generation, ToolSlot
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.entry import COMPACTION, RESET, StoredEntry
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import AssistantMessage, Content, Image, Problem, Text, Thinking, ToolResultMessage, UserMessage
from pi_durable_tui.tui.safe_text import SafeStream, overwritten, safe_line, safe_text, without_colors

Tone: TypeAlias = Literal["info", "good", "warn", "bad"]
ToolStatus: TypeAlias = Literal["pending", "asking", "running", "done", "failed", "interrupted", "stopped"]
TAIL_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRow:
    """What a person said."""

    key: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """Markdown of a model. `is_open`: more may come."""

    key: str
    text: str
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingRow:
    """Reasoning of a model; folded to one line."""

    key: str
    text: str
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One call.

    Attributes:
        output: Its result or, while it runs, the end of its output.
        dropped_chars: How much of a running output was cut off in front of `output`.
        diff: A unified diff, or ""; `added_lines` and `removed_lines` count the whole change, `is_diff_cut` says that `diff` is not the whole.
        path: The file it is about, or "".
        remarks: What the harness says about the result.
    """

    key: str
    name: str
    title: str
    status: ToolStatus
    started_at_ms: int | None
    duration_ms: int | None = None
    output: str = ""
    dropped_chars: int = 0
    diff: str = ""
    added_lines: int = 0
    removed_lines: int = 0
    is_diff_cut: bool = False
    path: str = ""
    exit_code: int | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRow:
    """A failed attempt that will be made again at `until_ms`."""

    key: str
    attempt: int
    until_ms: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRow:
    """A line about what happened: interrupted, failed, resumed. `is_seam`: drawn as a rule across."""

    key: str
    tone: Tone
    text: str
    is_seam: bool = False


Row: TypeAlias = UserRow | AnswerRow | ThinkingRow | ToolRow | RetryRow | MarkRow


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRow:
    """A message that waits (queued) or has just been handed to the run (delivered)."""

    submission_id: int
    text: str
    mode: str
    state: Literal["queued", "delivered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something the program itself says, once; not part of the transcript. Foreign text is allowed: it is made safe when drawn."""

    tone: Tone
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
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
        self._older = 0  # rows of pages fetched before the view's own entries
        self._seam = MarkRow(key="seam", tone="info", text=safe_line(seam), is_seam=True) if seam else None
        self._seam_seq: int | None = None
        self._before_seam: frozenset[object] = frozenset()
        self._live_texts: dict[tuple[int, int, int, int], _LiveText] = {}

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
        rows = [row for stored in entries if self._first_id is None or stored.entry.id < self._first_id for row in entry_rows(stored)]
        if rows or entries:
            self._first_id = min(stored.entry.id for stored in entries)
        self._rows[:0] = rows
        self._settled += len(rows)
        self._older += len(rows)
        return Rows(rows=self._rows, changed_from=len(self._rows), prepended=len(rows))

    def drop_older(self) -> Rows:
        """Forget the pages put in front; they can be fetched again. Memory is then that of the view alone."""
        dropped, self._older = self._older, 0
        del self._rows[:dropped]
        self._settled -= dropped
        if dropped:
            self._first_id = self._view_first_id
        return Rows(rows=self._rows, changed_from=len(self._rows), prepended=-dropped)

    def _add_entries(self, view: ConversationView) -> int:
        """Append the rows of entries that are new; returns the index of the first one added or moved."""
        entries = view.entries
        if not entries:
            return self._settled
        if self._first_id is None:
            self._first_id = self._view_first_id = entries[0].entry.id
        changed_from = self._settled
        start = len(entries)
        while start and entries[start - 1].entry.id > self._last_id:
            start -= 1
        for stored in entries[start:]:
            if self._seam is not None and stored.seq > (self._seam_seq or 0) and not _is_interruption(stored):
                self._rows.append(self._seam)
                self._seam = None
            self._rows += entry_rows(stored)
        self._last_id = entries[-1].entry.id
        self._settled = len(self._rows)
        return changed_from

    def _live_rows(self, view: ConversationView) -> list[Row]:
        rows = [*self._generation_rows(view.live.generation), *(slot_row(slot) for slot in view.live.tools)]
        if view.live.run_failure is not None and not view.is_busy and not _tells_failure(view.entries[-1:]):
            rows.append(failure_row(view.live.run_failure))
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
            rows.append(RetryRow(key=f"retry-{retry.attempt}", attempt=retry.attempt, until_ms=retry.until_ms, reason=_problem(retry.problem)))
        return rows

    def _grown(self, place: tuple[int, int, int, int], raw: str) -> str:
        for stale in [known for known in self._live_texts if known[:3] != place[:3]]:
            del self._live_texts[stale]
        return self._live_texts.setdefault(place, _LiveText()).grown(raw)


def queued_rows(view: ConversationView) -> tuple[QueuedRow, ...]:
    """Messages that wait, oldest first, after those that were handed to the run while it was going on (rule TU-12)."""
    run = view.live.run
    delivered = [
        QueuedRow(submission_id=one.id, text=safe_line(content_text(one.content)), mode=one.mode, state="delivered")
        for one in view.submissions
        if run is not None and one.status == "placed" and one.at_ms > run.started_at_ms and one.mode != "write"
    ]
    waiting = [
        QueuedRow(submission_id=item.submission_id, text=safe_line(content_text(item.content)), mode=item.mode, state="queued")
        for item in view.inbox.items
        if item.mode != "write"
    ]
    return (*delivered, *waiting)


def entry_rows(stored: StoredEntry) -> tuple[Row, ...]:
    """The rows of one entry; none for what is not for people (instructions, plain notes)."""
    entry = stored.entry
    key = f"entry-{entry.id}"
    match entry.message:
        case UserMessage(content=content) if entry.kind == COMPACTION:
            return (
                MarkRow(key=key, tone="info", text="Summary of what came before", is_seam=True),
                AnswerRow(key=f"{key}-0", text=safe_text(content_text(content))),
            )
        case UserMessage(content=content):
            return (UserRow(key=key, text=safe_text(content_text(content))),)
        case AssistantMessage() as message:
            return tuple(_answer_rows(key, message))
        case ToolResultMessage() as message:
            return (result_row(key, message, entry.data or {}),)
        case _ if entry.kind == RESET:
            return (MarkRow(key=key, tone="info", text="The model starts afresh here", is_seam=True),)
        case _:
            return ()


def _answer_rows(key: str, message: AssistantMessage) -> Iterable[Row]:
    for index, part in enumerate(message.content):
        match part:
            case Text(text=text) if text.strip():
                yield AnswerRow(key=f"{key}-{index}", text=safe_text(text))
            case Thinking(text=text) if text.strip():
                yield ThinkingRow(key=f"{key}-{index}", text=safe_text(text))
            case _:
                pass
    reason = message.problem.reason if message.problem is not None else ""
    match message.stop_reason:
        case "aborted":
            text = "Interrupted here: the program ended while this was being written" if reason == "interrupted" else "Stopped"
            yield MarkRow(key=f"{key}-end", tone="warn", text=text)
        case "error":
            yield MarkRow(key=f"{key}-end", tone="bad", text=_problem(message.problem))
        case "length":
            yield MarkRow(key=f"{key}-end", tone="warn", text="Cut off at the model's output limit")
        case _:
            pass


def result_row(key: str, message: ToolResultMessage, data: JsonObject) -> ToolRow:
    """The row of a finished call."""
    details = _object(data.get("details"))
    arguments = _object(data.get("arguments"))
    texts = [part.text for part in message.content if isinstance(part, Text)]
    output = "\n".join(text for text in texts if not text.startswith("<harness>"))
    harness = [_harness_words(text) for text in texts if text.startswith("<harness>")]
    diagnostics = [_object(item) for item in _list(data.get("diagnostics"))]
    remarks = [words for item in diagnostics if (words := _string(item.get("message")))] or harness
    images = [f"image {part.mime_type}, {len(part.data) * 3 // 4:,} bytes" for part in message.content if isinstance(part, Image)]
    codes = {_string(item.get("code")) for item in diagnostics}
    task_id = data.get("taskId")
    return ToolRow(
        key=f"tool-{task_id}" if isinstance(task_id, int) else key,
        name=safe_line(message.tool_name, max_cells=40),
        title=safe_line(_string(data.get("title"))),
        status=_result_status(message, codes),
        started_at_ms=_integer(data.get("startedAtMs")),
        duration_ms=_integer(data.get("durationMs")),
        output=_output(output),
        diff=safe_text(_string(details.get("diff"))),
        added_lines=_integer(details.get("added")) or 0,
        removed_lines=_integer(details.get("removed")) or 0,
        is_diff_cut=details.get("diffCut") is True,
        path=safe_line(_string(arguments.get("path"))),
        exit_code=_integer(details.get("exitCode")),
        remarks=tuple(safe_line(text) for text in (*remarks, *images)),
    )


def slot_row(slot: ToolSlot) -> ToolRow:
    """The row of a call that has no result yet."""
    return ToolRow(
        key=f"tool-{slot.task_id}",
        name=safe_line(slot.name, max_cells=40),
        title=safe_line(slot.title),
        status=slot.status,
        started_at_ms=slot.started_at_ms,
        output=_output(slot.output[-TAIL_CHARS:]),
        dropped_chars=slot.output_dropped_chars + max(0, len(slot.output) - TAIL_CHARS),
        path=safe_line(_string(slot.arguments.get("path"))),
    )


def failure_row(failure: Failure) -> MarkRow:
    """Why the last run ended without an answer."""
    if failure.reason in ("aborted", "interrupted"):
        return MarkRow(key="failure", tone="warn", text="Stopped" if failure.reason == "aborted" else "Interrupted")
    return MarkRow(key="failure", tone="bad", text=_problem(Problem(reason=failure.reason, message=failure.message)))


def content_text(content: Sequence[Content]) -> str:
    """The text parts joined by newlines; a picture is named."""
    return "\n".join(part.text if isinstance(part, Text) else f"[image {part.mime_type}]" for part in content)


def _result_status(message: ToolResultMessage, codes: set[str]) -> ToolStatus:
    if codes & {"interrupted", "restart_limit"}:
        return "interrupted"
    if "aborted" in codes:
        return "stopped"
    return "failed" if message.is_error else "done"


def _output(text: str) -> str:
    return safe_text(without_colors(overwritten(text))).rstrip("\n")


def _work(view: ConversationView) -> Iterable[object]:
    """What is going on, as values that tell one piece of work from another."""
    generation = view.live.generation
    if generation is not None:
        yield generation.task_id, generation.attempt, generation.started_at_ms
    for slot in view.live.tools:
        yield slot.task_id


def _is_interruption(stored: StoredEntry) -> bool:
    message = stored.entry.message
    if isinstance(message, AssistantMessage):
        return message.problem is not None and message.problem.reason == "interrupted"
    return isinstance(message, ToolResultMessage) and result_row("", message, stored.entry.data or {}).status == "interrupted"


def _tells_failure(last: Sequence[StoredEntry]) -> bool:
    """The newest entry already says why the run ended."""
    message = last[0].entry.message if last else None
    return isinstance(message, AssistantMessage) and message.stop_reason in ("error", "aborted")


def _problem(problem: Problem | None) -> str:
    if problem is None:
        return "Failed"
    return safe_line(f"{problem.message} ({problem.reason})" if problem.message else problem.reason)


def _common(old: Sequence[Row], new: Sequence[Row]) -> int:
    count = 0
    for before, after in zip(old, new, strict=False):
        if before is not after:
            break
        count += 1
    return count


def _harness_words(text: str) -> str:
    return text.removeprefix("<harness>").removesuffix("</harness>").strip()


def _string(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: Json) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
