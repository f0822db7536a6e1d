"""What some provider refuses in a request, as one pure function over our own messages: the strictest of all of them at once.

`tests/support/model_strictness.py` judges the same one step later, in the form that goes over the wire.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from pi_durable_tui.records.json import strict
from pi_durable_tui.records.messages import AssistantMessage, Message, SystemMessage, Text, Thinking, ToolCall, ToolResultMessage, UserMessage

FINISHED = frozenset({"stop", "toolUse", "length"})


def violations(messages: Sequence[Message]) -> list[str]:
    """Everything in a request that a provider would answer with HTTP 400, each with the place of its message."""
    spoken = [message for message in messages if not isinstance(message, SystemMessage)]
    found = [*_frame(spoken), *_alternation(messages), *_rounds(messages), *_ids(messages)]
    for place, message in enumerate(messages):
        found += [f"{place}: {problem}" for problem in _content(message)]
    return found


def _frame(spoken: Sequence[Message]) -> Iterator[str]:
    if not spoken:
        yield "there is no message"
        return
    if not isinstance(spoken[0], UserMessage):
        yield "the first message is not a user's"
    if isinstance(spoken[-1], AssistantMessage):
        yield "the last message is an answer"


def _alternation(messages: Sequence[Message]) -> Iterator[str]:
    for place, (left, right) in enumerate(itertools.pairwise(messages), 1):
        if isinstance(left, UserMessage | AssistantMessage) and type(left) is type(right):
            yield f"{place}: two messages of one role follow each other"


def _rounds(messages: Sequence[Message]) -> Iterator[str]:
    """Behind an answer stand the results of its calls and nothing else, in the order of the calls."""
    due: list[str] = []
    for place, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            if not due or due.pop(0) != message.tool_call_id:
                yield f"{place}: a result that is not the next one due"
            continue
        if due:
            yield f"{place}: calls without a result: {due}"
        due = [call.id for call in message.tool_calls] if isinstance(message, AssistantMessage) else []
    if due:
        yield f"calls without a result: {due}"


def _ids(messages: Sequence[Message]) -> Iterator[str]:
    ids = [call.id for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls]
    if not all(ids):
        yield "a call has no id"
    if len(set(ids)) != len(ids):
        yield "two calls have the same id"


def _content(message: Message) -> Iterator[str]:
    if isinstance(message, ToolResultMessage):
        return  # a result may be empty: its gateway says so in words
    if any(isinstance(part, Text) and not part.text.strip() for part in message.content):
        yield "a blank text"
    if all(isinstance(part, Thinking) for part in message.content):
        yield "nothing to read"
    if not isinstance(message, AssistantMessage):
        return
    if message.stop_reason not in FINISHED:
        yield f"an answer that was {message.stop_reason}"
    for part in message.content:
        if isinstance(part, ToolCall) and (not isinstance(part.arguments, dict) or strict(part.arguments) != part.arguments):
            yield "arguments that are no JSON object"
