"""What the core scenario of the crash tests meets outside of its store: a provider, tools, an extension, and what a person has seen.

All of it outlives every life. What acts for a life that crashed does nothing more (`ControlledStorage.alive`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from pi_durable_tui.harness.compaction.select import INSTRUCTIONS
from pi_durable_tui.harness.ports import Replay
from pi_durable_tui.library import (
    AssistantMessage,
    Completed,
    Extension,
    Finished,
    ManualClock,
    ModelEvent,
    ModelFailed,
    ModelInfo,
    ModelRequest,
    TaskDefinition,
    TaskRuntime,
    Text,
    TextDelta,
    Tool,
    ToolCallDelta,
    ToolContext,
    ToolResult,
    ToolResultMessage,
    Usage,
    UsageReport,
)
from tests.support.controlled_storage import ControlledStorage

REQUEST_USAGE = Usage(input_tokens=100, output_tokens=10)
"""What each answer costs."""

FIRST, STEER, FOLLOW, OTHER_WAY = "do the work", "and mind the gap", "now the other thing", "try it another way"
UNSAFE = ("c2", "c3", "c4")
"""The calls of `touch`."""

RACE, WINNER = "race", "winner"
RACERS = 5


class Arguments(msgspec.Struct, frozen=True):
    """Which call it is."""

    call: str


@dataclass(slots=True)
class World:
    """What lies outside of the store: the log of effects, what a person saw acknowledged, and every request that reached the provider."""

    effects: list[tuple[str, str]] = field(default_factory=list)  # (call, start or end)
    acknowledged: dict[str, int] = field(default_factory=dict)  # request id -> submission
    made: dict[str, int] = field(default_factory=dict)  # what else a person was told of: "race" and "summary" -> task, "fork" -> conversation
    newest_seen: int = 0  # the newest commit that observers were told of
    requests: list[ModelRequest] = field(default_factory=list)
    served: Usage = Usage()  # what the provider has told so far that it will charge
    failed_once: bool = False
    memos_read: list[str] = field(default_factory=list)  # what the racers for a memo have read

    def copy(self) -> World:
        """One that goes on by itself."""
        return replace(
            self,
            effects=list(self.effects),
            acknowledged=dict(self.acknowledged),
            made=dict(self.made),
            requests=list(self.requests),
            memos_read=list(self.memos_read),
        )

    @property
    def answers(self) -> list[ModelRequest]:
        """The requests for an answer."""
        return [request for request in self.requests if not wants_summary(request)]

    @property
    def summaries(self) -> list[ModelRequest]:
        """The requests for a summary."""
        return [request for request in self.requests if wants_summary(request)]


@dataclass(frozen=True, slots=True)
class Life:
    """One process: what it acts on the world through.

    Attributes:
        number: Counted from 0.
        begun: By call: set once it has begun to act, in this life or an earlier one.
    """

    number: int
    world: World
    storage: ControlledStorage
    clock: ManualClock
    begun: defaultdict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    def __post_init__(self) -> None:
        for call, _what in self.world.effects:
            self.begun[call].set()


def wants_summary(request: ModelRequest) -> bool:
    """Whether it asks for a summary, not for an answer."""
    return words(request).startswith(INSTRUCTIONS)


def words(request: ModelRequest) -> str:
    """All that a request says, calls and results with their ids."""
    parts: list[str] = []
    for message in request.messages:
        parts += [message.tool_call_id] if isinstance(message, ToolResultMessage) else []
        parts += [part.text for part in message.content if isinstance(part, Text)]
        parts += [call.id for call in message.tool_calls] if isinstance(message, AssistantMessage) else []
    return " ".join(parts)


class Provider:
    """A model that answers by what it is asked, so that it goes on sensibly after any crash (ModelGateway)."""

    def __init__(self, life: Life) -> None:
        self._life = life

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        await self._life.storage.alive()
        self._life.world.requests.append(request)
        for event in self._answer(request):
            await self._life.clock.sleep_ms(60)
            if isinstance(event, UsageReport):
                self._life.world.served += event.usage
            yield event

    async def info(self, model: str) -> ModelInfo:
        return ModelInfo(context_window_tokens=100_000)

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...

    def _answer(self, request: ModelRequest) -> Sequence[ModelEvent]:
        said = words(request)
        known = set(re.findall(r"\bc\d\b", said))  # the calls that it reads of, be it in a summary
        tokens = [TextDelta(f"r{len(request.messages)}w{number} ") for number in range(4)]
        used = UsageReport(REQUEST_USAGE)
        if wants_summary(request):
            return [TextDelta(f"gist of {' '.join(sorted(known))}"), used, Finished("stop")]
        if OTHER_WAY in said:
            calls = [] if "c4" in known else [_call(0, "c4", "touch")]
        elif "c1" not in known:
            if not self._life.world.failed_once:
                self._life.world.failed_once = True
                return [tokens[0], ModelFailed(reason="overloaded", message="503", retryable=True)]
            calls = [_call(0, "c1", "look"), _call(1, "c2", "touch")]
        else:
            calls = [] if "c3" in known else [_call(0, "c3", "touch")]
        if calls:
            return [*tokens, *calls, used, Finished("toolUse")]
        return [*tokens, TextDelta("final: " + said[-20:]), used, Finished("stop")]


def _call(key: int, call_id: str, name: str) -> ToolCallDelta:
    return ToolCallDelta(key, call_id, name, json.dumps({"call": call_id}))


def tools(life: Life) -> list[Tool]:
    """`touch` must not run twice, `look` may."""

    async def act(call: str, what: str) -> None:
        await life.storage.alive()
        life.world.effects.append((call, what))
        life.begun[call].set()

    async def execute(arguments: Arguments, context: ToolContext) -> ToolResult:
        await act(arguments.call, "start")
        context.output(f"{arguments.call} works\n")
        await life.clock.sleep_ms(1_100)
        await act(arguments.call, "end")
        return ToolResult(content=(Text(text=f"{arguments.call} did it"),))

    def tool(name: str, replay: Replay) -> Tool:
        return Tool(name=name, description=name, arguments=Arguments, execute=execute, title=lambda given: f"{name} {given.call}", replay=replay)

    return [tool("look", "safe"), tool("touch", "unsafe")]


def racing(life: Life) -> Extension:
    """A task in which many write one memo, each a text that no other and no other life writes, and a late one once it has slept."""

    async def write(runtime: TaskRuntime, who: str) -> None:
        read = await runtime.memo(WINNER, f"{who} of life {life.number}")
        await life.storage.alive()
        life.world.memos_read.append(str(read))

    async def racer(runtime: TaskRuntime, number: int) -> None:
        for _ in range(number % 3):
            await asyncio.sleep(0)
        await write(runtime, f"racer {number}")

    async def go(runtime: TaskRuntime) -> None:
        await asyncio.gather(*(racer(runtime, number) for number in reversed(range(RACERS))))
        await runtime.sleep_until(life.clock.now_ms() + 330, {"phase": "late"})

    async def late(runtime: TaskRuntime) -> None:
        await write(runtime, "a late one")
        await runtime.end(Completed(value=runtime.recall(WINNER)))

    return Extension(name=RACE, tasks=(TaskDefinition(kind=RACE, phases={"go": go, "late": late}),))
