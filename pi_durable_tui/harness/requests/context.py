"""The model's context, derived from the transcript (rule CX-1). PURE.

Whatever happened to the transcript (kills, aborts, forks, compactions), what comes out here is valid for every provider: each call
has exactly one result, right behind it and in call order; no result stands alone; no two calls share an id; roles alternate and a
user begins; no text is blank (how a result without output is said is up to the gateway); the system prompt keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar, assert_never

import msgspec

from pi_durable_tui.harness.requests.assembly import free_id
from pi_durable_tui.records.entry import THOUGHTS_REFUSED, Edit, Entry
from pi_durable_tui.records.messages import AssistantMessage, Message, SystemMessage, Text, Thinking, ToolCall, ToolResultMessage, UserMessage

LEFT_OUT = frozenset({"aborted", "error", "deferred"})
"""Answers with these stop reasons are for people, not for the model."""

LOST_RESULT = "[error] No result of this call was recorded."
"""The text of a result that has to be made up, because a call without one is refused by providers."""

BEGINNING = "(The beginning of this conversation is left out.)"
"""What a user says where a context would begin with an answer, which providers refuse."""

GO_ON = "(Go on.)"
"""What a user says where a request would end with an answer, or hold nothing to answer, which providers refuse."""

Spoken = TypeVar("Spoken", SystemMessage, UserMessage, AssistantMessage)

Results: TypeAlias = dict[tuple[int, str], list[ToolResultMessage]]
"""By the place of the answer and the id of its call, in the order they came."""


def derive(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """The messages to send.

    Args:
        entries: From the newest head marker through the cutoff, in the order of `in_order`.
    """
    messages = [message for entry in with_edits(_without_refused_thoughts(entries)) if (message := entry.message) is not None]
    results = _results(messages)
    taken: set[str] = set()
    ordered: list[Message] = []
    for place, message in enumerate(messages):
        match message:
            case ToolResultMessage():
                continue
            case AssistantMessage():
                answer = _readable(message) if message.stop_reason not in LEFT_OUT else None
                ordered += _with_results(answer, place, results, taken) if answer is not None else ()
            case SystemMessage():
                ordered += [said] if (said := _readable(message)) is not None else []
            case UserMessage():
                ordered += [said] if (said := _readable(message)) is not None else []
            case _:
                assert_never(message)
    return tuple(_beginning_with_a_user(_merged(_with_system_first(ordered))))


def to_be_answered(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """What was derived, with something to answer at its end also when edits or a blank handover have taken that away."""
    last = next((message for message in reversed(messages) if not isinstance(message, SystemMessage)), None)
    is_asking = isinstance(last, UserMessage | ToolResultMessage)
    return messages if is_asking else (*messages, UserMessage(content=(Text(text=GO_ON),)))


def in_order(entries: Sequence[Entry], marker: Entry | None) -> tuple[Entry, ...]:
    """The entries as the model shall read them: a summary stands before what was kept, though it was written after it.

    What was kept may hold an older summary, written while more was kept. It is part of the newest one, so it is not read again, whatever an
    edit makes of it; its own edits, which the newest one does not repeat, still count.

    Args:
        entries: From the marker's head through the cutoff, ids growing; the marker is among them.
        marker: The newest head marker; None in a context that starts with the conversation.
    """
    if marker is None or marker.head is None or marker.head >= marker.id:
        return tuple(entries)
    older = frozenset(entry.id for entry in entries if entry.id != marker.id and entry.head is not None and entry.head < entry.id)
    return (marker, *(_without(older, entry) for entry in entries if entry.id != marker.id))


def _without(summaries: frozenset[int], entry: Entry) -> Entry:
    """The entry without its message when it is one of these summaries, and without edits that would bring one of them back."""
    edits = tuple(edit for edit in entry.edits if edit.entry_id not in summaries)
    if entry.id in summaries:
        return msgspec.structs.replace(entry, message=None, edits=edits)
    return entry if len(edits) == len(entry.edits) else msgspec.structs.replace(entry, edits=edits)


def with_edits(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """The entries as the model reads them: the newest edit of each applied, entries without anything for the model left out."""
    edits = {edit.entry_id: edit for entry in sorted(entries, key=lambda each: each.id) for edit in entry.edits}
    read = (entry if entry.id not in edits else msgspec.structs.replace(entry, message=_replacement(edits[entry.id])) for entry in entries)
    return tuple(entry for entry in read if entry.message is not None)


def _without_refused_thoughts(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Thoughts that stand before the newest refusal are left out: sent again they would be refused again (CASE-B9)."""
    refused = max((entry.id for entry in entries if entry.kind == THOUGHTS_REFUSED), default=0)
    return [msgspec.structs.replace(entry, message=_without_thoughts(entry.message)) if entry.id < refused else entry for entry in entries]


def _without_thoughts(message: Message | None) -> Message | None:
    if not isinstance(message, AssistantMessage):
        return message
    return msgspec.structs.replace(message, content=tuple(part for part in message.content if not isinstance(part, Thinking)))


def _replacement(edit: Edit) -> Message | None:
    return edit.message if edit.action == "replace" else None


def _readable(message: Spoken) -> Spoken | None:
    """The message without blank texts; None when nothing is left that a model can read."""
    kept = tuple(part for part in message.content if not isinstance(part, Text) or part.text.strip())
    if all(isinstance(part, Thinking) for part in kept):
        return None
    return message if len(kept) == len(message.content) else msgspec.structs.replace(message, content=kept)


def _results(messages: Sequence[Message]) -> Results:
    """Which result belongs to which call. Ids may come again in later answers: a result belongs to the newest answer before it."""
    answers: dict[str, int] = {}
    results: Results = {}
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.stop_reason not in LEFT_OUT:
            answers |= {call.id: place for call in message.tool_calls}
        elif isinstance(message, ToolResultMessage) and message.tool_call_id in answers:
            results.setdefault((answers[message.tool_call_id], message.tool_call_id), []).append(message)
    return results


def _with_results(message: AssistantMessage, place: int, results: Results, taken: set[str]) -> list[Message]:
    """An answer and one result for each of its calls; where an id was used before, both get another one."""
    ids = [free_id(call.id, taken) for call in message.tool_calls]
    found = [_result(call, results.get((place, call.id), [])) for call in message.tool_calls]
    if ids == [call.id for call in message.tool_calls]:
        return [message, *found]
    own = iter(ids)
    content = tuple(msgspec.structs.replace(part, id=next(own)) if isinstance(part, ToolCall) else part for part in message.content)
    renamed = [msgspec.structs.replace(result, tool_call_id=call_id) for result, call_id in zip(found, ids, strict=True)]
    return [msgspec.structs.replace(message, content=content), *renamed]


def _result(call: ToolCall, recorded: list[ToolResultMessage]) -> ToolResultMessage:
    if recorded:
        return recorded.pop(0)
    return ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(Text(text=LOST_RESULT),), is_error=True)


def _with_system_first(messages: list[Message]) -> list[Message]:
    """The first instructions are written when there is something to answer, so they stand behind it; providers want them in front."""
    first = next((index for index, message in enumerate(messages) if isinstance(message, SystemMessage)), 0)
    return [messages[first], *messages[:first], *messages[first + 1 :]] if messages else []


def _merged(messages: Iterable[Message]) -> list[Message]:
    """Neighbouring messages of one role become one, since some providers want roles to alternate.

    Of the earlier of two answers only the text stays: its thoughts may be of another model, and only the newest ones must go back.
    """
    merged: list[Message] = []
    for message in messages:
        match (merged[-1] if merged else None, message):
            case (UserMessage() as last, UserMessage()):
                merged[-1] = UserMessage(content=(*last.content, *message.content))
            case (AssistantMessage() as last, AssistantMessage()):
                text = (part for part in last.content if not isinstance(part, Thinking))
                merged[-1] = msgspec.structs.replace(message, content=(*text, *message.content))
            case _:
                merged.append(message)
    return merged


def _beginning_with_a_user(messages: list[Message]) -> list[Message]:
    first = next((index for index, message in enumerate(messages) if not isinstance(message, SystemMessage)), None)
    if first is None or not isinstance(messages[first], AssistantMessage):
        return messages
    return [*messages[:first], UserMessage(content=(Text(text=BEGINNING),)), *messages[first:]]
