"""What stands on the screen, as values, and how stored records become them (rules TU-1, TU-5, TU-6). PURE: records in, rows out.

Each row holds safe text only (rule SA-1); how it looks is decided in draw/.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from pi_durable_tui.records.entry import COMMAND, COMPACTION, LOST, NOTICE, REPAIRED, RESET, THOUGHTS_REFUSED, USER, StoredEntry
from pi_durable_tui.records.messages import ATTACHED, AssistantMessage, Content, Image, Problem, Text, Thinking, ToolResultMessage, UserMessage
from pi_durable_tui.tui.foreign.colors import Colored, Span, colored
from pi_durable_tui.tui.foreign.images import image_words
from pi_durable_tui.tui.safe_text import overwritten, safe_line, safe_text

if TYPE_CHECKING:
    from pi_durable_tui.harness.live import Failure, ToolSlot
    from pi_durable_tui.harness.view import ConversationView
    from pi_durable_tui.records.json import Json, JsonObject

Tone: TypeAlias = Literal["info", "good", "warn", "bad"]
ToolStatus: TypeAlias = Literal["pending", "asking", "running", "done", "failed", "interrupted", "stopped"]
TAIL_CHARS = 20_000
WHOLE_CHARS, WHOLE_LINES = 4_000, 30
"""What a person said is shown whole up to here; of more only the beginning, until it is unfolded: pastes have megabytes."""
_QUEUED_CHARS = 1_000


class UserRow(Struct, frozen=True, kw_only=True):
    """What a person said."""

    key: str
    text: str


class AnswerRow(Struct, frozen=True, kw_only=True):
    """Markdown of a model. `is_open`: more may come."""

    key: str
    text: str
    is_open: bool = False


class ThinkingRow(Struct, frozen=True, kw_only=True):
    """Reasoning of a model; folded to one line."""

    key: str
    text: str
    is_open: bool = False


class ToolRow(Struct, frozen=True, kw_only=True):
    """One call.

    Attributes:
        output: Its result or, while it runs, the end of its output; `colors` are parts of it.
        dropped_chars: How much of a running output was cut off in front of `output`.
        amount: How much there is of it when the number of lines of `output` does not tell, or "".
        diff: A unified diff, or ""; `added_lines` and `removed_lines` count the whole change, `is_diff_cut` says that `diff` is not the whole.
        path: The file it is about, or "".
        remarks: What the harness says about the result.
        is_own: A person ran it, to see what it says.
    """

    key: str
    name: str
    title: str
    status: ToolStatus
    started_at_ms: int | None
    duration_ms: int | None = None
    output: str = ""
    colors: tuple[Span, ...] = ()
    dropped_chars: int = 0
    amount: str = ""
    diff: str = ""
    added_lines: int = 0
    removed_lines: int = 0
    is_diff_cut: bool = False
    path: str = ""
    exit_code: int | None = None
    remarks: tuple[str, ...] = ()
    is_own: bool = False


class RetryRow(Struct, frozen=True, kw_only=True):
    """A failed attempt that will be made again at `until_ms`."""

    key: str
    attempt: int
    until_ms: int
    reason: str


class MarkRow(Struct, frozen=True, kw_only=True):
    """A line about what happened: interrupted, failed, resumed. `is_seam`: drawn as a rule across."""

    key: str
    tone: Tone
    text: str
    is_seam: bool = False


class SummaryRow(Struct, frozen=True, kw_only=True):
    """A compaction: `head` says what was summarized, `text` is the summary (Markdown), which is folded away."""

    key: str
    head: str
    text: str


Row: TypeAlias = UserRow | AnswerRow | ThinkingRow | ToolRow | RetryRow | MarkRow | SummaryRow
FoldedRow: TypeAlias = UserRow | ToolRow | ThinkingRow | SummaryRow
"""Rows that may show more when they are unfolded."""


class QueuedRow(Struct, frozen=True, kw_only=True):
    """A message that waits for the run (queued) or for the person, because the run failed (held), or has just been handed to the run (delivered)."""

    submission_id: int
    text: str
    mode: str
    state: Literal["queued", "held", "delivered"]


class Notice(Struct, frozen=True, kw_only=True):
    """Something the program itself says, once; not part of the transcript. Foreign text is allowed: it is made safe when drawn.

    Attributes:
        text: What has happened; further lines are what can be done about it.
        passing: It tells of a summary being made, and goes when that is over.
    """

    tone: Tone
    text: str
    passing: bool = False


def can_unfold(row: Row) -> TypeGuard[FoldedRow]:
    """Whether there is more of a row to show. PURE."""
    if isinstance(row, UserRow):
        return len(row.text) > WHOLE_CHARS or row.text.count("\n") >= WHOLE_LINES
    return isinstance(row, ToolRow | ThinkingRow | SummaryRow)


def queued_rows(view: ConversationView) -> tuple[QueuedRow, ...]:
    """Messages that wait, oldest first, after those that were handed to the run while it was going on (rule TU-12)."""
    run = view.live.run
    delivered = [
        QueuedRow(submission_id=one.id, text=safe_line(content_text(one.content)[:_QUEUED_CHARS]), mode=one.mode, state="delivered")
        for one in view.submissions
        if run is not None and one.status == "placed" and one.at_ms > run.started_at_ms and one.mode != "write" and one.kind == USER
    ]
    state: Literal["queued", "held"] = "queued" if view.is_busy else "held"
    waiting = [
        QueuedRow(submission_id=item.submission_id, text=safe_line(content_text(item.content)[:_QUEUED_CHARS]), mode=item.mode, state=state)
        for item in view.inbox.items
        if item.is_typed
    ]
    return (*delivered, *waiting)


def entry_rows(stored: StoredEntry) -> tuple[Row, ...]:
    """The rows of one entry; none for what is not for people (instructions, plain notes)."""
    entry = stored.entry
    key = f"entry-{entry.id}"
    match entry.message:
        case _ if entry.kind == COMMAND:
            return (command_row(key, entry.data or {}),)
        case _ if entry.kind == LOST:
            return (MarkRow(key=key, tone="warn", text=safe_line(_string((entry.data or {}).get("message")))),)
        case UserMessage(content=content) if entry.kind == NOTICE:
            return (notice_row(key, content_text(content), entry.data or {}),)
        case UserMessage(content=content) if entry.kind == COMPACTION:
            text = content_text(content).strip().removeprefix("<summary>").removesuffix("</summary>")
            return (SummaryRow(key=key, head=_summary_head(entry.data or {}), text=safe_text(text).strip("\n")),)
        case UserMessage(content=content):
            return (UserRow(key=key, text=safe_text(content_text(content))),)
        case AssistantMessage() as message:
            return tuple(_answer_rows(key, message))
        case ToolResultMessage() as message:
            return (result_row(key, message, entry.data or {}),)
        case _ if entry.kind == RESET:
            return (MarkRow(key=key, tone="info", text="The model starts afresh here", is_seam=True),)
        case _ if entry.kind == REPAIRED:
            return (MarkRow(key=key, tone="warn", text=f"Repaired at opening: {safe_line(_string((entry.data or {}).get('message')))}"),)
        case _ if entry.kind == THOUGHTS_REFUSED:
            why = safe_line(_string((entry.data or {}).get("message")))
            return (MarkRow(key=key, tone="warn", text=f"The provider refused earlier thinking: asked again without it ({why})"),)
        case _:
            return ()


def _summary_head(data: JsonObject) -> str:
    """What a compaction took out of the model's context."""
    entries, tokens, files = _integer(data.get("entriesSummarized")), _integer(data.get("tokensBefore")), len(_list(data.get("files")))
    what = f"of {entries} {'entry' if entries == 1 else 'entries'}" if entries is not None else "of what came before"
    facts = [f"{tokens:,} tokens before"] if tokens is not None else []
    facts += [f"{files} file{'' if files == 1 else 's'} touched"] if files else []
    return " · ".join((f"Summary {what}", *facts))


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
            yield MarkRow(key=f"{key}-end", tone="bad", text=_with_next_step(problem_text(message.problem), reason))
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
    images = [image_words(part.mime_type, part.data) for part in message.content if isinstance(part, Image)]
    codes = {_string(item.get("code")) for item in diagnostics}
    task_id, shown = data.get("taskId"), _output(output)
    return ToolRow(
        key=f"tool-{task_id}" if isinstance(task_id, int) else key,
        name=safe_line(message.tool_name, max_cells=40),
        title=safe_line(_title(message.tool_name, _string(data.get("title")), arguments)),
        status=_result_status(message, codes),
        started_at_ms=_integer(data.get("startedAtMs")),
        duration_ms=_integer(data.get("durationMs")) if "blocked" not in codes else None,  # it never ran: only a person took so long to answer
        output=shown.text,
        colors=shown.spans,
        amount=safe_line(_amount(details, images)),
        diff=safe_text(_string(details.get("diff"))),
        added_lines=_integer(details.get("added")) or 0,
        removed_lines=_integer(details.get("removed")) or 0,
        is_diff_cut=details.get("diffCut") is True,
        path=safe_line(_string(arguments.get("path"))),
        exit_code=_integer(details.get("exitCode")),
        remarks=tuple(safe_line(text) for text in (*remarks, *images)),
    )


def command_row(key: str, data: JsonObject) -> ToolRow:
    """The row of a command that a person ran: its output stands open."""
    row = _data_row(key, data)
    remarks = row.remarks if data.get("shown") is True else (*row.remarks, "the model does not see this")
    return replace(row, is_own=True, remarks=remarks)


def notice_row(key: str, text: str, data: JsonObject) -> Row:
    """The row of what the program told the model: how work in the background ended, or one line."""
    if "taskId" in data:
        return _data_row(key, data)
    return MarkRow(key=key, tone="info", text=safe_line(text.strip("[]")))


def _data_row(key: str, data: JsonObject) -> ToolRow:
    """The row of what a tool did outside of a round of calls."""
    output = _string(data.get("output"))
    result = ToolResultMessage(tool_call_id="", tool_name=_string(data.get("name")), content=(Text(text=output),), is_error=data.get("isError") is True)
    return result_row(key, result, data)


def slot_row(slot: ToolSlot, *, is_own: bool = False) -> ToolRow:
    """The row of a call, or of a person's own command, that has no result yet."""
    shown = _output(slot.output[-TAIL_CHARS:])
    return ToolRow(
        key=f"tool-{slot.task_id}",
        name=safe_line(slot.name, max_cells=40),
        title=safe_line(slot.title),
        status=slot.status,
        started_at_ms=slot.started_at_ms,
        is_own=is_own,
        output=shown.text,
        colors=shown.spans,
        dropped_chars=slot.output_dropped_chars + max(0, len(slot.output) - TAIL_CHARS),
        path=safe_line(_string(slot.arguments.get("path"))),
    )


def failure_row(failure: Failure) -> MarkRow:
    """Why the last run ended without an answer."""
    if failure.reason in ("aborted", "interrupted"):
        return MarkRow(key="failure", tone="warn", text="Stopped" if failure.reason == "aborted" else "Interrupted")
    text = problem_text(Problem(reason=failure.reason, message=failure.message))
    return MarkRow(key="failure", tone="bad", text=_with_next_step(text, failure.reason))


def compaction_failure_row(failure: Failure) -> MarkRow:
    """Why the last summary was not made; the context is as it was."""
    why = problem_text(Problem(reason=failure.reason, message=failure.message))
    return MarkRow(key="compaction-failure", tone="bad", text=f"The summary was not made: {why}")


def content_text(content: Sequence[Content]) -> str:
    """The text parts joined by newlines; of an attached file only its name; a picture that stands alone is named."""
    texts = [part.text if isinstance(part, Text) else f"[{image_words(part.mime_type, part.data)}]" for part in typed(content)]
    return "\n".join([*texts, *(part.text.partition("\n")[0].rstrip(":") for part in content[1:] if _is_attached(part))])


def typed(content: Sequence[Content]) -> tuple[Content, ...]:
    """A message without the files that came along with it, which come along again when it is sent again."""
    with_files = any(_is_attached(part) for part in content[1:])
    return tuple(part for index, part in enumerate(content) if index == 0 or not (_is_attached(part) or (with_files and isinstance(part, Image))))


def _is_attached(part: Content) -> TypeGuard[Text]:
    return isinstance(part, Text) and part.text.startswith(ATTACHED)


def _result_status(message: ToolResultMessage, codes: set[str]) -> ToolStatus:
    if codes & {"interrupted", "restart_limit"}:
        return "interrupted"
    if "aborted" in codes:
        return "stopped"
    return "failed" if message.is_error else "done"


def _output(text: str) -> Colored:
    shown = colored(overwritten(text))
    kept = shown.text.rstrip("\n")
    return Colored(kept, tuple((start, min(end, len(kept)), style) for start, end, style in shown.spans if start < len(kept)))


def problem_text(problem: Problem | None) -> str:
    """A problem as one safe line: what was said of it, else its code."""
    return safe_line(problem.message or problem.reason) if problem is not None else "Failed"


def _with_next_step(text: str, reason: str) -> str:
    """What ended a run, what is true now, and what a person can do."""
    choice = "/model chooses a model, any message then tries again" if reason == "no_model" else "any message tries again, /model chooses another model"
    return f"{text.removesuffix('.')}. What you wrote is stored: {choice}."


def _title(name: str, title: str, arguments: JsonObject) -> str:
    """What a call is about; one that was refused before anybody named it is known by its path or command."""
    return title if title not in ("", name) else _string(arguments.get("path")) or _string(arguments.get("command"))


def _amount(details: JsonObject, images: Sequence[str]) -> str:
    """What a result is when the number of its lines does not tell; "" when it does."""
    if isinstance(details.get("background"), int):
        return "started in the background"
    return " · ".join(images) if images else _size(_integer(details.get("outputBytes"))) if details.get("outputPath") else ""


def _size(size_bytes: int | None) -> str:
    """Of an output that is kept elsewhere, because only its start and its end are shown; "" for none."""
    if size_bytes is None:
        return ""
    return f"{size_bytes / 1_000_000:.1f} MB" if size_bytes >= 1_000_000 else f"{size_bytes / 1000:.1f} KB"


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
