"""The model's context, derived from the transcript (rule CX-1). PURE.

Whatever happened to the transcript (kills, aborts, forks, compactions), what comes out here is valid for every provider: each call
has exactly one result, right behind it and in call order; no result stands alone; user messages do not follow each other; nothing
is empty; the system prompt keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from pi_durable_tui.records.entry import Edit, Entry
from pi_durable_tui.records.messages import AssistantMessage, Message, SystemMessage, Text, Thinking, ToolResultMessage, UserMessage

LEFT_OUT = frozenset({"aborted", "error", "deferred"})
"""Answers with these stop reasons are for people, not for the model."""

LOST_RESULT = "[error] No result of this call was recorded."
"""The text of a result that has to be made up, because a call without one is refused by providers."""


def derive(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """The messages to send.

    Args:
        entries: From the newest head marker's first entry through the cutoff, ids growing.
    """
    messages = list(_edited(entries))
    results = [message for message in messages if isinstance(message, ToolResultMessage)]
    ordered: list[Message] = []
    for message in messages:
        match message:
            case ToolResultMessage():
                continue
            case AssistantMessage():
                ordered += _answer_with_results(message, results)
            case SystemMessage() | UserMessage():
                ordered += [message] if _has_content(message) else []
    return tuple(_merged(_with_system_first(ordered)))


def in_order(entries: Sequence[Entry], marker: Entry | None) -> tuple[Entry, ...]:
    """The entries as the model shall read them: a summary stands before what was kept, though it was written after it.

    Args:
        entries: From the marker's head through the cutoff, ids growing; the marker is among them.
        marker: The newest head marker; None in a context that starts with the conversation.
    """
    if marker is None or marker.head is None or marker.head >= marker.id:
        return tuple(entries)
    return (marker, *(entry for entry in entries if entry.id != marker.id))


def _with_system_first(messages: list[Message]) -> list[Message]:
    """The first instructions are written when the first input is answered, so they stand behind it; providers want them in front."""
    first = next((index for index, message in enumerate(messages) if not isinstance(message, UserMessage)), None)
    if first is None or not isinstance(messages[first], SystemMessage):
        return messages
    return [messages[first], *messages[:first], *messages[first + 1 :]]


def _edited(entries: Sequence[Entry]) -> Iterable[Message]:
    """Messages with the newest edit of each entry applied."""
    edits = {edit.entry_id: edit for entry in entries for edit in entry.edits}
    for entry in entries:
        edit = edits.get(entry.id)
        message = entry.message if edit is None else _replacement(edit)
        if message is not None:
            yield message


def _replacement(edit: Edit) -> Message | None:
    return edit.message if edit.action == "replace" else None


def _answer_with_results(message: AssistantMessage, results: list[ToolResultMessage]) -> list[Message]:
    """An answer and the results of its calls, which are taken out of `results`; empty when the model should not see the answer."""
    if message.stop_reason in LEFT_OUT or not _has_content(message):
        return []
    return [_without_blanks(message), *(_take_result(call.id, call.name, results) for call in message.tool_calls)]


def _take_result(call_id: str, name: str, results: list[ToolResultMessage]) -> ToolResultMessage:
    for index, result in enumerate(results):
        if result.tool_call_id == call_id:
            return results.pop(index)
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=(Text(text=LOST_RESULT),), is_error=True)


def _has_content(message: SystemMessage | UserMessage | AssistantMessage) -> bool:
    return any(not isinstance(part, Thinking) and not (isinstance(part, Text) and not part.text.strip()) for part in message.content)


def _without_blanks(message: AssistantMessage) -> AssistantMessage:
    kept = tuple(part for part in message.content if not (isinstance(part, Text) and not part.text.strip()))
    return message if kept == message.content else msgspec.structs.replace(message, content=kept)


def _merged(messages: Iterable[Message]) -> list[Message]:
    """Neighbouring user messages become one, since some providers want roles to alternate."""
    merged: list[Message] = []
    for message in messages:
        last = merged[-1] if merged else None
        if isinstance(message, UserMessage) and isinstance(last, UserMessage):
            merged[-1] = UserMessage(content=(*last.content, *message.content))
        else:
            merged.append(message)
    return merged
