"""One answer put together from the chunks of a stream, as a state machine without I/O.

Chunks come in the OpenAI form, as LiteLLM hands them on from any provider. Providers differ in how they tell parallel calls apart: some
repeat an index with another id, some leave ids out, some send one id twice. The rules here give each call its own key and its own id
and never mix the arguments of two calls (CASE-B7). Text is cleaned on the way: a surrogate pair that was split over two pieces is joined,
a lone half becomes U+FFFD (CASE-B10).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, cast

from pi_durable_tui.harness.ports import Finished, ModelEvent, ModelFailed, TextDelta, ThinkingDelta, ToolCallDelta
from pi_durable_tui.models.forms import ENCRYPTED
from pi_durable_tui.records.json import REPLACEMENT, clean_text

Channel = Literal["text", "thinking"] | int
"""Where a piece of text belongs: the answer, the reasoning, or the arguments of the call with this key."""

INCOMPLETE = ModelFailed(reason="connection", message="The answer ended without a finish reason: it is incomplete.", retryable=True)
_NOTHING: Mapping[str, Any] = MappingProxyType({})

FILTERED = ModelFailed(reason="invalid_request", message="The provider's content filter ended the answer.", retryable=False)


@dataclass(slots=True)
class _Call:
    """A call as far as it came. `given_id` is the provider's; "" when it gave none."""

    key: int
    index: int
    given_id: str
    has_name: bool = False
    arguments: list[str] = field(default_factory=list[str])

    @property
    def is_complete(self) -> bool:
        """True when the arguments are a whole JSON object: what comes now cannot be their continuation."""
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except ValueError:
            return False


class Assembly:
    """The answer so far. Feed it each chunk, then end it once.

    Args:
        new_id: Gives an id for a call that came without one of its own.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._calls: list[_Call] = []
        self._ids: set[str] = set()
        self._halves: dict[Channel, str] = {}
        self._finish_reason: str | None = None
        self._has_begun = False

    @property
    def has_finish_reason(self) -> bool:
        """True once the provider has said why the answer ends; only usage may follow."""
        return self._finish_reason is not None

    def feed(self, chunk: Mapping[str, Any]) -> list[ModelEvent]:
        """The events of one chunk, in the order thinking, text, calls; [] for a chunk that says nothing new."""
        choice = next(iter(_objects(chunk.get("choices"))), _NOTHING)
        delta = next(iter(_objects([choice.get("delta")])), _NOTHING)
        events: list[ModelEvent] = [*self._thinking(delta), *self._text(delta.get("content")), *_encrypted(delta)]
        for piece in _objects(delta.get("tool_calls")):
            events.extend(self._call(piece))
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        self._has_begun = self._has_begun or bool(events)
        return events

    def flush(self) -> list[ModelEvent]:
        """What was held back: halves of pairs that never came whole. Call it once, before the last event, however the answer ends."""
        halves, self._halves = self._halves, {}
        return [self._event(channel, REPLACEMENT) for channel in halves]

    def incomplete(self, base_url: str | None) -> ModelFailed:
        """Why the answer does not count, though the stream ended in peace: no reason came, or nothing at all that is an answer.

        Args:
            base_url: Where a person has sent the request; None: to the provider's own address.
        """
        if self._has_begun:
            return INCOMPLETE
        where = f"The server at {base_url}" if base_url is not None else "The provider"
        advice = " Is that its address, which often ends in /v1?" if base_url is not None else ""
        return ModelFailed(reason="connection", message=f"{where} answered without a word that is an answer.{advice}", retryable=True)

    def outcome(self) -> Finished | ModelFailed:
        """How the answer ended, once the stream is over."""
        match self._finish_reason:
            case None:
                return INCOMPLETE
            case "length":
                return Finished("length")
            case "content_filter":
                return FILTERED
            case _:
                return Finished("toolUse" if self._calls else "stop")  # some say "stop" although calls came

    # ------------------------------------------------------------------------------------------------------------- pieces

    def _text(self, content: object) -> list[ModelEvent]:
        piece = self._clean("text", content) if isinstance(content, str) else ""
        return [TextDelta(piece)] if piece else []

    def _thinking(self, delta: Mapping[str, Any]) -> list[ModelEvent]:
        blocks = _objects(delta.get("thinking_blocks"))
        if not blocks:
            piece = self._clean("thinking", delta.get("reasoning_content") or "")
            return [ThinkingDelta(piece)] if piece else []
        events: list[ModelEvent] = []
        for block in blocks:
            if block.get("type") == "redacted_thinking":
                events.append(ThinkingDelta("", signature=block.get("data") or "", redacted=True))
                continue
            piece = self._clean("thinking", block.get("thinking") or "")
            signature = block.get("signature") or None
            if piece or signature:
                events.append(ThinkingDelta(piece, signature=signature))
        return events

    def _call(self, piece: Mapping[str, Any]) -> list[ModelEvent]:
        function = next(iter(_objects([piece.get("function")])), _NOTHING)
        name, given_id, index = clean_text(function.get("name") or ""), clean_text(piece.get("id") or ""), piece.get("index") or 0
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        call = self._continued(index, given_id, name, arguments)
        events: list[ModelEvent] = []
        if call is None:
            call = _Call(key=len(self._calls), index=index, given_id=given_id)
            self._calls.append(call)
            call.has_name = bool(name)
            events.append(ToolCallDelta(call.key, id=self._own_id(given_id), name=name))
        elif name and not call.has_name:
            call.has_name = True
            events.append(ToolCallDelta(call.key, name=name))
        text = self._clean(call.key, arguments)
        if text:
            call.arguments.append(text)
            events.append(ToolCallDelta(call.key, arguments=text))
        return events

    def _continued(self, index: int, given_id: str, name: str, arguments: str) -> _Call | None:
        """The call that a piece belongs to; None: it begins a new one."""
        same_index = [call for call in self._calls if call.index == index]
        if given_id and any(call.given_id for call in same_index):
            # A call is named by its index and id together: another id at the same index is another call.
            same_index = [call for call in same_index if call.given_id == given_id]
        if not same_index:
            return None
        call = same_index[-1]
        # An id and name said again may repeat what is known, or begin a second call: it is a second one when the first is whole already.
        begins_again = bool(name) and bool(arguments.strip()) and call.has_name and call.is_complete
        return None if begins_again else call

    def _own_id(self, given_id: str) -> str:
        chosen = given_id if given_id and given_id not in self._ids else self._new_id()
        self._ids.add(chosen)
        return chosen

    def _clean(self, channel: Channel, piece: str) -> str:
        """The piece without lone surrogates; a first half at its end is held back for the next piece of the channel."""
        if not piece:
            return ""
        piece = self._halves.pop(channel, "") + piece
        if "\ud800" <= piece[-1] <= "\udbff":
            self._halves[channel] = piece[-1]
            piece = piece[:-1]
        return clean_text(piece)

    def _event(self, channel: Channel, text: str) -> ModelEvent:
        match channel:
            case "text":
                return TextDelta(text)
            case "thinking":
                return ThinkingDelta(text)
            case key:
                return ToolCallDelta(key, arguments=text)


def _encrypted(delta: Mapping[str, Any]) -> list[ModelEvent]:
    """Thoughts in OpenAI's responses form: their ciphertext comes at the end, each as a block of its own that goes back as it is."""
    contents = (item.get("encrypted_content") for item in _objects(delta.get("reasoning_items")))
    return [ThinkingDelta("", signature=f"{ENCRYPTED}{content}", redacted=True) for content in contents if isinstance(content, str) and content]


def _objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; [] for anything else."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]
