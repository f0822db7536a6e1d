"""One answer put together from the pieces of its stream. PURE: no I/O, no clock.

The pieces are copied as they come; what `message` returns never changes afterwards (FB-42).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import msgspec

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.harness.ports import TextDelta, ThinkingDelta, ToolCallDelta
from pi_durable_tui.records.json import JsonObject, clean_text, strict
from pi_durable_tui.records.messages import AssistantContent, AssistantMessage, Problem, StopReason, Text, Thinking, ToolCall, Usage


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Thought:
    pieces: list[str] = field(default_factory=list[str])
    signature: str | None = None
    redacted: bool = False


@dataclass(slots=True)
class Assembly:
    """The answer so far. Blank text is no part of it (CASE-B6)."""

    model: str
    usage: Usage | None = None
    _parts: list[list[str] | _Thought | _Call] = field(default_factory=list["list[str] | _Thought | _Call"])
    _calls: dict[int, _Call] = field(default_factory=dict[int, _Call])

    @property
    def is_empty(self) -> bool:
        """True while nothing a person or a tool could use has come."""
        return not self.message("aborted", is_partial=True).content

    def add(self, piece: TextDelta | ThinkingDelta | ToolCallDelta) -> None:
        """Take one more piece."""
        match piece:
            case TextDelta(text=""):
                pass  # it would cut a thought in two
            case TextDelta():
                self._text().append(piece.text)
            case ThinkingDelta():
                self._think(piece)
            case ToolCallDelta():
                self._call(piece)

    def message(self, stop_reason: StopReason, *, problem: Problem | None = None, is_partial: bool = False) -> AssistantMessage:
        """The answer as it stands.

        Args:
            is_partial: More may come: the arguments of calls are not parsed yet, their text stands in `malformed`.
        """
        taken: set[str] = set()
        parts = (_content(part, taken, is_partial=is_partial) for part in self._parts)
        content = tuple(part for part in parts if not _is_blank(part))
        return AssistantMessage(content=content, model=self.model, stop_reason=stop_reason, usage=self.usage, problem=problem)

    def _text(self) -> list[str]:
        if not self._parts or not isinstance(self._parts[-1], list):
            self._parts.append([])
        last = self._parts[-1]
        assert isinstance(last, list)  # just seen to
        return last

    def _think(self, piece: ThinkingDelta) -> None:
        last = self._parts[-1] if self._parts else None
        if not isinstance(last, _Thought) or last.signature is not None or last.redacted != piece.redacted:
            last = _Thought(redacted=piece.redacted)
            self._parts.append(last)
        last.pieces.append(piece.text)
        last.signature = piece.signature if piece.signature is not None else last.signature

    def _call(self, piece: ToolCallDelta) -> None:
        call = self._calls.get(piece.key)
        if call is None:
            call = self._calls[piece.key] = _Call()
            self._parts.append(call)
        call.id = call.id or piece.id
        call.name += piece.name
        call.pieces.append(piece.arguments)


def _content(part: list[str] | _Thought | _Call, taken: set[str], *, is_partial: bool) -> AssistantContent:
    match part:
        case list():
            return Text(text=clean_text("".join(part)))
        case _Thought():
            return Thinking(text=clean_text("".join(part.pieces)), signature=part.signature, redacted=part.redacted)
        case _Call():
            call_id = free_id(clean_text(part.id), taken)
            raw = clean_text("".join(part.pieces))
            if is_partial:
                return ToolCall(id=call_id, name=clean_text(part.name), arguments={}, malformed=raw)
            arguments = parsed_arguments(raw)
            return ToolCall(id=call_id, name=clean_text(part.name), arguments=arguments or {}, malformed=raw if arguments is None else None)


def _is_blank(part: AssistantContent) -> bool:
    match part:
        case Text():
            return not part.text.strip()
        case Thinking():
            return not part.text.strip() and part.signature is None
        case ToolCall():
            return False


def free_id(call_id: str, taken: set[str]) -> str:
    """An id that is not among `taken` and now is: ids of calls may be missing or come twice, and providers refuse that."""
    wanted = call_id or "call"
    free = wanted if call_id and wanted not in taken else next(f"{wanted}_{n}" for n in range(len(taken) + 2) if f"{wanted}_{n}" not in taken)
    taken.add(free)
    return free


def with_own_ids(message: AssistantMessage) -> AssistantMessage:
    """The answer with an id of its own for each call, whatever became of them in other hands: by it a call is told from the others."""
    taken: set[str] = set()
    content = tuple(msgspec.structs.replace(part, id=free_id(part.id, taken)) if isinstance(part, ToolCall) else part for part in message.content)
    return msgspec.structs.replace(message, content=content)


def parsed_arguments(raw: str) -> JsonObject | None:
    """The arguments object of a call; empty text is an empty object; None: not a JSON object."""
    if not raw.strip():
        return {}
    try:
        # Not msgspec: it refuses an escaped half of a surrogate pair, which models do write and `strict` mends (CASE-B10).
        value = strict(json.loads(raw, parse_constant=_refuse))
    except (ValueError, BadRequest, RecursionError):  # no JSON, or no JSON of ours: an infinity, a number or a nesting without end
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> float:
    raise ValueError(constant)
