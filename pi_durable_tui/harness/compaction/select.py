"""What is summarized and what is kept, and the text that the summary is made of (rules CO-1, CO-3). PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from pi_durable_tui.harness.compaction.checkpoint import Reason
from pi_durable_tui.harness.compaction.estimate import CHARS_PER_TOKEN, context_tokens, entry_tokens, fitted
from pi_durable_tui.harness.requests.context import LEFT_OUT, with_edits
from pi_durable_tui.harness.settings import Compaction
from pi_durable_tui.records.codec import encode
from pi_durable_tui.records.entry import ASSISTANT, SYSTEM, USER, Edit, Entry
from pi_durable_tui.records.messages import AssistantMessage, SystemMessage, Text, ToolCall, ToolResultMessage, UserMessage

UNKNOWN_WINDOW_TOKENS = 128_000
SHORT_CHARS = 400
"""Of a result or an argument: so much is never cut for being long."""

INSTRUCTIONS = """\
Below is the older part of a conversation between a user and you, a coding agent. It will be replaced by your summary, and you will go on
working from the summary alone. Write it so that nothing needed is lost: what the user wants (in their words where it matters), what was
decided and why, what was done and found out, the state of files and commands, what failed, and what is still to do. Name files, functions
and exact error texts. Do not answer the conversation; only summarize it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """`summarized` becomes a summary, `kept` follows it. Both as the model reads them."""

    summarized: tuple[Entry, ...]
    kept: tuple[Entry, ...]


def kept_tokens(entries: Sequence[Entry], window_tokens: int, settings: Compaction, reason: Reason) -> int:
    """How much of the newest part is not summarized, in estimated tokens; a person who asks for a summary wants to see it happen, so then it is less.

    The settings speak of tokens as the provider counts them; where it counted more than the estimate says, as for scripts that are not
    Latin, less is kept by the same factor.
    """
    fit, counted = fitted(settings, window_tokens).keep_tokens, context_tokens(entries)
    wanted = min(fit, counted // 4) if reason == "manual" else fit
    estimated = _estimated(entries)
    return wanted * estimated // counted if estimated < counted else wanted


def frees_enough(entries: Sequence[Entry], window_tokens: int, settings: Compaction) -> bool:
    """Whether a summary beside the run is worth its request now.

    Where instructions and tools alone fill much of a small window, there would be one in every turn, for a few words each. What is freed is
    measured as the provider counts, which for some scripts is several times the estimate.
    """
    cut = select_cut(entries, keep_tokens=kept_tokens(entries, window_tokens, settings, "threshold"))
    if cut is None:
        return False
    freed = sum(entry_tokens(entry) for entry in cut.summarized if entry.head is None)
    return freed * context_tokens(entries) >= fitted(settings, window_tokens).background_tokens // 2 * _estimated(entries)


def _estimated(entries: Sequence[Entry]) -> int:
    return sum(entry_tokens(entry) for entry in with_edits(entries))


def select_cut(entries: Sequence[Entry], *, keep_tokens: int) -> Cut | None:
    """Where to cut a context, in the order the model reads it; None: there is nothing to compact.

    The cut stands before an input or an answer that the model reads, never between a call and its result, and leaves at least one of them.
    """
    entries = with_edits(entries)
    starts = _starts(entries)
    kept, cut = 0, len(entries)
    for index in range(len(entries) - 1, 0, -1):
        kept += entry_tokens(entries[index])
        if kept > keep_tokens and cut < len(entries):
            break
        if index in starts:
            cut = index
    summarized = tuple(entry for entry in entries[:cut] if entry.kind != SYSTEM)
    if cut == len(entries) or not any(entry.head is None for entry in summarized):
        return None
    return Cut(summarized=summarized, kept=tuple(entries[cut:]))


def _starts(entries: Sequence[Entry]) -> frozenset[int]:
    """Before which entries a cut may stand. A text of an extension may come while calls run: their results follow it, and belong before it."""
    starts: set[int] = set()
    due: set[str] = set()
    for index, entry in enumerate(entries):
        message = entry.message
        is_start = entry.kind in {USER, ASSISTANT} and entry.head is None
        if isinstance(message, AssistantMessage):
            if message.stop_reason in LEFT_OUT:
                continue
            due = {call.id for call in message.tool_calls}
            starts |= {index} if is_start else set()
        elif isinstance(message, ToolResultMessage):
            due.discard(message.tool_call_id)
        elif is_start and not due:
            starts.add(index)
    return frozenset(starts)


def shortened_results(kept: Sequence[Entry], *, keep_tokens: int) -> tuple[Edit, ...]:
    """Edits that cut the middle out of results which alone would fill half of what may be kept; short ones stay whole in the smallest context."""
    limit_chars = max(SHORT_CHARS, keep_tokens * CHARS_PER_TOKEN // 2)
    return tuple(edit for entry in kept if (edit := _shortened(entry, limit_chars)) is not None)


def _shortened(entry: Entry, limit_chars: int) -> Edit | None:
    message = entry.message
    if not isinstance(message, ToolResultMessage):
        return None
    text = middle_out(message.text, limit_chars)
    if text == message.text:
        return None
    short = ToolResultMessage(tool_call_id=message.tool_call_id, tool_name=message.tool_name, content=(Text(text=text),), is_error=message.is_error)
    return Edit(entry_id=entry.id, action="replace", message=short)


def middle_out(text: str, limit_chars: int) -> str:
    """The head and the tail of a text that is too long, with a note of what was left out; the text itself where that saves nothing."""
    half = max(1, limit_chars // 2)
    cut = f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"
    return cut if len(text) > limit_chars and len(cut) < len(text) else text


def transcript(entries: Sequence[Entry], *, limit_chars: int) -> str:
    """The conversation as text, at most about `limit_chars` long: long results are cut first, then the middle of the whole."""
    per_entry = max(SHORT_CHARS, limit_chars // 8)
    return middle_out("\n\n".join(part for entry in entries if (part := _told(entry, per_entry))), limit_chars)


def files_touched(entries: Sequence[Entry]) -> tuple[str, ...]:
    """The paths that calls named, in order of first mention."""
    paths: dict[str, None] = {}
    for entry in entries:
        calls = entry.message.tool_calls if isinstance(entry.message, AssistantMessage) else ()
        for call in calls:
            path = call.arguments.get("path")
            if isinstance(path, str):
                paths[path] = None
        stored = entry.data.get("files") if entry.data is not None and entry.head is not None else None
        if isinstance(stored, list):
            paths |= dict.fromkeys(str(path) for path in stored)
    return tuple(paths)


def _told(entry: Entry, limit_chars: int) -> str:
    message = entry.message
    match message:
        case None | SystemMessage():
            return ""
        case UserMessage():
            text = "".join(part.text if isinstance(part, Text) else "[image]" for part in message.content)
            return f"{'Summary so far' if entry.head is not None else 'User'}: {middle_out(text, limit_chars * 4)}"
        case AssistantMessage():
            parts = [part.text for part in message.content if isinstance(part, Text)]
            parts += [f"[calls {part.name} {middle_out(encode(part.arguments), limit_chars)}]" for part in message.content if isinstance(part, ToolCall)]
            return f"Agent: {' '.join(parts)}"
        case ToolResultMessage():
            return f"Result of {message.tool_name}: {middle_out(message.text, limit_chars)}"
        case _:
            assert_never(message)
