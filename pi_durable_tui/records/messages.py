"""What a model reads and writes, free of any provider's form. Stored inside entries; keys are camelCase in JSON."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from pi_durable_tui.records.json import JsonObject


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all stored values: immutable, compared by value, camelCase in JSON, defaults left out."""


class Text(Record, frozen=True, tag="text"):
    """Plain text or Markdown."""

    text: str


class Thinking(Record, frozen=True, tag="thinking"):
    """Reasoning of a model; `signature` goes back byte for byte to the provider it came from."""

    text: str
    signature: str | None = None
    redacted: bool = False


class Image(Record, frozen=True, tag="image"):
    """A picture; `data` is base64."""

    mime_type: str
    data: str


class ToolCall(Record, frozen=True, tag="toolCall"):
    """A call the model asks for.

    `arguments` is always an object, so that history stays valid for every provider. What could not be parsed stands raw in
    `malformed` (then `arguments` is empty), and the call is answered with an error instead of being run.
    """

    id: str
    name: str
    arguments: JsonObject
    malformed: str | None = None


Content: TypeAlias = Text | Image

ATTACHED = "Attached "
"""How a text part begins that brings a file along with a person's message; it is never the first part."""

AssistantContent: TypeAlias = Text | Thinking | ToolCall

StopReason: TypeAlias = Literal["stop", "toolUse", "length", "error", "aborted", "deferred"]


class Usage(Record, frozen=True):
    """Tokens and money of one request. `input_tokens` holds the cached ones too, each token counted once."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None  # None: the price is unknown

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            cost_usd=sum(costs) if costs else None,
        )


class Problem(Record, frozen=True):
    """Why something failed, as a value for the transcript: a stable code and a text for people."""

    reason: str
    message: str = ""


class SystemMessage(Record, frozen=True, tag_field="role", tag="system"):
    """Instructions."""

    content: tuple[Text, ...]


class UserMessage(Record, frozen=True, tag_field="role", tag="user"):
    """What a person (or a summary standing for people) said."""

    content: tuple[Content, ...]


class AssistantMessage(Record, frozen=True, tag_field="role", tag="assistant"):
    """One answer of a model, whole or cut off; `stop_reason` says which."""

    content: tuple[AssistantContent, ...]
    model: str
    stop_reason: StopReason
    usage: Usage | None = None
    problem: Problem | None = None

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in the order the model made them."""
        return tuple(part for part in self.content if isinstance(part, ToolCall))

    @property
    def text(self) -> str:
        """The text parts joined; thinking and calls left out."""
        return "".join(part.text for part in self.content if isinstance(part, Text))


class ToolResultMessage(Record, frozen=True, tag_field="role", tag="toolResult"):
    """The answer to exactly one tool call."""

    tool_call_id: str
    tool_name: str
    content: tuple[Content, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text parts joined by newlines."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
