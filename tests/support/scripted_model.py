"""A model that says what a test tells it to, one script per request, and keeps what it was sent. It passes the gateway's contract."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pi_durable_tui.clock import Clock
from pi_durable_tui.harness.ports import (
    Deferred,
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
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import Usage


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing comes for a while of the test's clock."""

    duration_ms: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing comes until the test sets the event, or ever."""

    event: asyncio.Event = field(default_factory=asyncio.Event)


Step: TypeAlias = ModelEvent | Pause | Hold

USED = Usage(input_tokens=100, output_tokens=10)


def say(text: str, *, usage: Usage | None = USED) -> tuple[Step, ...]:
    """A whole answer of plain text."""
    return (TextDelta(text), *((UsageReport(usage),) if usage is not None else ()), Finished("stop"))


def call(*calls: tuple[str, JsonObject], text: str = "", ids: Sequence[str] = ()) -> tuple[Step, ...]:
    """A whole answer that calls tools; ids are c1, c2 … unless given."""
    names = list(ids) or [f"c{n}" for n in range(1, len(calls) + 1)]
    deltas = [ToolCallDelta(n, names[n], name, json.dumps(arguments)) for n, (name, arguments) in enumerate(calls)]
    return (*((TextDelta(text),) if text else ()), *deltas, UsageReport(USED), Finished("toolUse"))


def fail(reason: str = "server", *, retryable: bool = True, message: str = "it broke", retry_after_ms: int | None = None) -> tuple[Step, ...]:
    """A failed request."""
    return (ModelFailed(reason=reason, message=message, retryable=retryable, retry_after_ms=retry_after_ms),)  # type: ignore[arg-type]


class ScriptedModel:
    """A gateway that plays `scripts` in order.

    Attributes:
        requests: What was sent, in order.
        sent: The steps that reached the harness, per request.
        is_closed: Set by `close`.
    """

    def __init__(self, clock: Clock, *scripts: Sequence[Step]) -> None:
        self.requests: list[ModelRequest] = []
        self.sent: list[list[Step]] = []
        self.is_closed = False
        self._clock = clock
        self._scripts = [list(script) for script in scripts]
        self._played = 0
        self._others: dict[str, list[list[Step]]] = {}

    def then(self, *scripts: Sequence[Step]) -> None:
        """Add scripts for further requests."""
        self._scripts += [list(script) for script in scripts]

    def when(self, first_input: str, *scripts: Sequence[Step]) -> None:
        """Add scripts for the conversation that begins with this input, whatever the others ask meanwhile."""
        self._others.setdefault(first_input, []).extend(list(script) for script in scripts)

    def _script(self, request: ModelRequest) -> list[Step]:
        own = next((self._others[text] for role, text in texts(request) if role == "user" and text in self._others), None)
        if own is not None:
            assert own, f"another request of that conversation was not expected: {request.messages[-1]}"
            return own.pop(0)
        self._played += 1
        assert self._played <= len(self._scripts), f"request {len(self.requests)} was not expected: {request.messages[-1]}"
        return self._scripts[self._played - 1]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        sent: list[Step] = []
        self.sent.append(sent)
        for step in self._script(request):
            match step:
                case Pause():
                    await self._clock.sleep_ms(step.duration_ms)
                case Hold():
                    await step.event.wait()
                case TextDelta() | ThinkingDelta() | ToolCallDelta() | UsageReport() | Finished() | ModelFailed() | Deferred():
                    sent.append(step)
                    yield step

    async def info(self, model: str) -> ModelInfo:
        return ModelInfo(context_window_tokens=100_000)

    async def warm_up(self) -> None:
        return None

    async def close(self) -> None:
        self.is_closed = True


def texts(request: ModelRequest) -> list[tuple[str, Json]]:
    """A request as (role, text) pairs, for comparing whole requests at a glance."""
    return [
        (str(type(message).__struct_config__.tag), "".join(getattr(part, "text", f"<{type(part).__name__}>") for part in message.content))
        for message in request.messages
    ]


class Noted:
    """The requests of a recorded model that were started, as the file keeps them (tests/playback/test_folder.py)."""

    def __init__(self, started: int = 0) -> None:
        self.lines: list[tuple[str, str | None]] = [("s", "")] * started

    def started(self) -> list[tuple[str, str | None]]:
        return self.lines

    def note(self, session_id: str, conversation: str | None) -> None:
        self.lines.append((session_id, conversation))
