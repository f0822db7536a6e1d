"""How large a context is. PURE.

What the provider counted is taken where there is a count; the rest is estimated, since asking a tokenizer would need the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, assert_never

from pi_durable_tui.harness.requests.context import LEFT_OUT, with_edits
from pi_durable_tui.harness.settings import Compaction
from pi_durable_tui.records.codec import encode
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.messages import AssistantMessage, Image, Message, Text, Thinking, ToolCall

CHARS_PER_TOKEN = 4
IMAGE_TOKENS = 1_500

Pressure: TypeAlias = Literal["none", "background", "blocking"]


def message_tokens(message: Message) -> int:
    """An estimate of one message, rounded up."""
    chars = 0
    for part in message.content:
        match part:
            case Text() | Thinking():
                chars += len(part.text)
            case ToolCall():
                chars += len(part.name) + len(encode(part.arguments))
            case Image():
                chars += IMAGE_TOKENS * CHARS_PER_TOKEN
            case _:
                assert_never(part)
    return -(-chars // CHARS_PER_TOKEN)


def entry_tokens(entry: Entry) -> int:
    """An estimate of what an entry adds to the context; answers that were cut off add nothing."""
    return 0 if entry.message is None or _is_left_out(entry.message) else message_tokens(entry.message)


def _is_left_out(message: Message) -> bool:
    return isinstance(message, AssistantMessage) and message.stop_reason in LEFT_OUT


def context_tokens(entries: Sequence[Entry]) -> int:
    """The size of a context, in the order the model reads it.

    The newest answer with a count says what everything up to it took, unless a summary was made after it.
    """
    entries = with_edits(entries)
    newest_marker = max((entry.id for entry in entries if entry.head is not None), default=-1)
    for index in range(len(entries) - 1, -1, -1):
        message = entries[index].message
        if isinstance(message, AssistantMessage) and message.usage is not None and message.usage.input_tokens and entries[index].id > newest_marker:
            counted = message.usage.input_tokens + (0 if _is_left_out(message) else message.usage.output_tokens)
            return counted + sum(entry_tokens(entry) for entry in entries[index + 1 :])
    return sum(entry_tokens(entry) for entry in entries)


def fitted(settings: Compaction, window_tokens: int) -> Compaction:
    """The settings for a window: in a small one none of the amounts may take more than a quarter."""
    most = window_tokens // 4
    return Compaction(
        enabled=settings.enabled,
        reserve_tokens=min(settings.reserve_tokens, most),
        keep_tokens=min(settings.keep_tokens, most),
        background_tokens=min(settings.background_tokens, most),
    )


def pressure(tokens: int, window_tokens: int | None, settings: Compaction) -> Pressure:
    """Whether a context of that size should be compacted before the next request, beside it, or not yet (rule CO-2)."""
    if not settings.enabled or window_tokens is None:
        return "none"
    limits = fitted(settings, window_tokens)
    if tokens > window_tokens - limits.reserve_tokens:
        return "blocking"
    return "background" if tokens > window_tokens - limits.reserve_tokens - limits.background_tokens else "none"
