"""A model that says what was recorded: `playback/NAME` (rule CL-5: it needs no key and no network).

It plays `model.jsonl`, one event per line, grouped by request. Which request of a conversation it is, is counted where it survives a
kill (`Progress`), so that a run that is killed and continued goes on with the next request, as a real provider would. Which of the
story's conversations somebody is in is told by the first request, and stays so. A request that
does not fit the recording fails with words that say what differs; nothing is ever guessed or skipped.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import ConfigError
from pi_durable_tui.harness.ports import (
    FailureReason,
    Finished,
    ModelEvent,
    ModelFailed,
    ModelInfo,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageReport,
)
from pi_durable_tui.records.codec import encode
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import Message, SystemMessage, Text, ToolResultMessage, Usage, UserMessage

ARGUMENT_PIECE_CHARS = 24
WINDOW_TOKENS = 200_000


class Progress(Protocol):
    """Which requests were started, kept where it survives a kill."""

    def started(self) -> Sequence[tuple[str, str | None]]:
        """(provider-facing session id, the story's conversation that answered it or None) of every request, in order."""
        ...

    def note(self, session_id: str, conversation: str | None) -> None:
        """One more was started; returns once that is noted."""
        ...


class RequestLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="request"):
    """The following lines answer request `number`, from 1, of a conversation. The rest is a light check of what was asked.

    Attributes:
        conversation: A name for it: "" is the chat; a subagent, a fork and the making of summaries have their own, counted for themselves.
        last: Who spoke last in the request.
        contains: Texts that the last user message, or the tool results since the last answer, must hold.
    """

    number: int
    conversation: str = ""
    last: Literal["user", "toolResult"] | None = None
    contains: tuple[str, ...] = ()


class ThinkingLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="thinking"):
    """Reasoning, word by word, each after `each_ms`; the first after `after_ms` more."""

    text: str
    after_ms: int = 0
    each_ms: int = 0


class TextLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="text"):
    """Text of the answer, word by word, each after `each_ms`; the first after `after_ms` more."""

    text: str
    after_ms: int = 0
    each_ms: int = 0


class CallLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="call"):
    """A tool call. Its arguments come as pieces of JSON text, each after `each_ms`; `raw` instead of them is no JSON, or not all of it."""

    key: int
    id: str
    name: str
    arguments: JsonObject = msgspec.field(default_factory=dict[str, Json])
    raw: str | None = None
    after_ms: int = 0
    each_ms: int = 0


class UsageLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="usage"):
    """Tokens of this request."""

    input_tokens: int
    output_tokens: int


class FinishLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="finish"):
    """The answer is complete."""

    reason: Literal["stop", "toolUse", "length"]
    after_ms: int = 0


class FailLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="fail"):
    """The request fails."""

    reason: FailureReason
    message: str
    retryable: bool = False
    after_ms: int = 0


class StallLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag="stall"):
    """Nothing more comes until the request is closed: the moment in which a story is killed or stopped."""


Step: TypeAlias = ThinkingLine | TextLine | CallLine | UsageLine | FinishLine | FailLine | StallLine
END = (FinishLine, FailLine, StallLine)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is expected of one request, and the answer to it."""

    expect: RequestLine
    steps: tuple[Step, ...]


def parse(text: str, where: str) -> tuple[Request, ...]:
    """The requests of a `model.jsonl`, in order. Empty lines are skipped. PURE.

    Args:
        text: The whole file.
        where: Its name, for errors.

    Raises:
        ConfigError: A line is no such event, numbers of a conversation are not 1, 2, 3 …, or an answer does not end with finish, fail or stall; names the line.
    """
    found: list[tuple[RequestLine, list[Step]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            event = msgspec.json.decode(line, type=RequestLine | Step)
        except msgspec.DecodeError as error:
            raise _broken(where, number, str(error)) from error
        if isinstance(event, RequestLine):
            following = 1 + sum(expect.conversation == event.conversation for expect, _ in found)
            if event.number != following:
                raise _broken(where, number, f"request {event.number} where {following} should come")
            found.append((event, []))
        elif not found or (found[-1][1] and isinstance(found[-1][1][-1], END)):
            raise _broken(where, number, "an event outside of an answer")
        else:
            found[-1][1].append(event)
    for expect, steps in found:
        if not steps or not isinstance(steps[-1], END):
            raise ConfigError(f"The answer to request {expect.number} in {where} has no end.", hint="End it with a finish, fail or stall line.")
    return tuple(Request(expect=expect, steps=tuple(steps)) for expect, steps in found)


def text_of(requests: Sequence[Request]) -> str:
    """The text of a `model.jsonl` with these requests; `parse` gives them back. PURE."""
    lines = [line for request in requests for line in (request.expect, *request.steps)]
    return "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines)


def fitting(requests: Sequence[Request], request: ModelRequest, started: Sequence[tuple[str, str | None]], name: str) -> Request | str:
    """The recorded request that this one is; a text: why there is none. PURE.

    Args:
        requests: Of the story.
        started: Who asked before: (session id, the story's conversation that answered).
        name: Of the story.
    """
    number = 1 + sum(session_id == request.session_id for session_id, _ in started)
    recorded = [item for item in requests if item.expect.number == number]
    known = next((conversation for session_id, conversation in started if session_id == request.session_id and conversation is not None), None)
    if known is None:  # of several that fit, one that nobody else is in
        taken = {conversation for _, conversation in started}
        recorded = sorted(recorded, key=lambda item: item.expect.conversation in taken)
    else:
        recorded = [item for item in recorded if item.expect.conversation == known]
    found = next((item for item in recorded if difference(item.expect, request) is None), None)
    if found is not None:
        return found
    if not recorded:
        return f"The recorded session {name} ends here: it has no request {number}. To go on, choose another model."
    return f"Request {number} is not the one that was recorded in {name}: {difference(recorded[0].expect, request)}."


def difference(expect: RequestLine, request: ModelRequest) -> str | None:
    """In what `request` is not the recorded one; None when it fits. PURE."""
    spoken = [message for message in request.messages if not isinstance(message, SystemMessage)]
    if expect.last is not None and not _spoke_last(spoken, expect.last):
        return f"the last message should be of {expect.last}"
    said = _last_said(spoken)
    missing = next((part for part in expect.contains if part not in said), None)
    return None if missing is None else f"{missing!r} is missing in what was said last: {said[-300:]!r}"


class PlaybackModel:
    """The gateway to recorded models (ModelGateway).

    Args:
        name: Of the recorded session, for messages.
        requests: From `parse`.
        progress: Counts started requests, durably.
        clock: Paces the answer.
        window_tokens: How much it says it can read.
    """

    def __init__(self, *, name: str, requests: tuple[Request, ...], progress: Progress, clock: Clock, window_tokens: int = WINDOW_TOKENS) -> None:
        self._window_tokens = window_tokens
        self._name = name
        self._requests = requests
        self._progress = progress
        self._clock = clock

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        recorded = fitting(self._requests, request, self._progress.started(), self._name)
        self._progress.note(request.session_id, None if isinstance(recorded, str) else recorded.expect.conversation)
        if isinstance(recorded, str):
            yield self._refusal(recorded)
            return
        for step in recorded.steps:
            if isinstance(step, StallLine):
                await asyncio.get_running_loop().create_future()
            for after_ms, event in events(step):
                if after_ms:
                    await self._clock.sleep_ms(after_ms)
                yield event

    async def info(self, model: str) -> ModelInfo:  # noqa: ARG002 - all recorded models are alike
        return ModelInfo(context_window_tokens=self._window_tokens, max_output_tokens=32_000, thinking_levels=("off", "low", "medium", "high"))

    async def warm_up(self) -> None:
        return None

    async def close(self) -> None:
        return None

    def _refusal(self, message: str) -> ModelFailed:
        return ModelFailed(reason="invalid_request", message=message, retryable=False)


def events(step: Step) -> Iterator[tuple[int, ModelEvent]]:
    """What a line yields, each with the milliseconds to wait before it. PURE."""
    match step:
        case TextLine():
            yield from ((wait_ms, TextDelta(piece)) for wait_ms, piece in _paced(_words(step.text), step.after_ms, step.each_ms))
        case ThinkingLine():
            yield from ((wait_ms, ThinkingDelta(piece)) for wait_ms, piece in _paced(_words(step.text), step.after_ms, step.each_ms))
        case CallLine():
            yield step.after_ms, ToolCallDelta(step.key, id=step.id, name=step.name)
            yield from ((step.each_ms, ToolCallDelta(step.key, arguments=piece)) for piece in _pieces(encode(step.arguments) if step.raw is None else step.raw))
        case UsageLine():
            yield 0, UsageReport(Usage(input_tokens=step.input_tokens, output_tokens=step.output_tokens, cost_usd=0.0))
        case FinishLine():
            yield step.after_ms, Finished(step.reason)
        case FailLine():
            yield step.after_ms, ModelFailed(reason=step.reason, message=step.message, retryable=step.retryable)
        case StallLine():
            return


def _paced(pieces: list[str], after_ms: int, each_ms: int) -> Iterator[tuple[int, str]]:
    for index, piece in enumerate(pieces):
        yield each_ms + (after_ms if index == 0 else 0), piece


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def _pieces(text: str) -> list[str]:
    return [text[start : start + ARGUMENT_PIECE_CHARS] for start in range(0, len(text), ARGUMENT_PIECE_CHARS)]


def _spoke_last(spoken: Sequence[Message], who: Literal["user", "toolResult"]) -> bool:
    kinds: Mapping[str, type[Message]] = {"user": UserMessage, "toolResult": ToolResultMessage}
    return bool(spoken) and isinstance(spoken[-1], kinds[who])


def _last_said(spoken: Sequence[Message]) -> str:
    """The text of the last user message, or of the tool results since the last answer."""
    said: list[str] = []
    for message in reversed(spoken):
        if isinstance(message, UserMessage) and not said:
            return "\n".join(part.text for part in message.content if isinstance(part, Text))
        if not isinstance(message, ToolResultMessage):
            break
        said.append(message.text)
    return "\n".join(reversed(said))


def _broken(where: str, number: int, what: str) -> ConfigError:
    return ConfigError(f"Line {number} of {where} is not an event of a recorded model: {what}.", hint="sessions/README.md describes the format.")
