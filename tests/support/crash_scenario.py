"""The core scenario of the crash tests, and how it is lived through life by life: each life has an event loop of its own and ends by a crash or at the end.

A crash freezes (`ControlledStorage`), and the loop of that life is never run again: no `finally` runs that a killed process would not
run. What a person has seen acknowledged, and what tools did to the world, outlives every life.

Three inputs (a steering one, a follow-up), two rounds of tools (two at a time, then one), one request that the provider fails once, answers
as numbered words.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, assert_never

import msgspec

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.errors import SessionFailed
from pi_durable_tui.harness.conversation import Conversation, SubmitMode
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import (
    Finished,
    ModelEvent,
    ModelFailed,
    ModelInfo,
    ModelRequest,
    Replay,
    TextDelta,
    Tool,
    ToolCallDelta,
    ToolContext,
    ToolResult,
    UsageReport,
)
from pi_durable_tui.records.commit import Batch, Commit
from pi_durable_tui.records.messages import Text, ToolResultMessage, Usage, UserMessage
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.memory import Contents, MemoryStorage
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.controlled_storage import ControlledStorage, Moment
from tests.support.harness_rig import Folder
from tests.support.harness_world import Backend
from tests.support.sometimes import happened

REQUEST_USAGE = Usage(input_tokens=100, output_tokens=10)
"""What each answer costs."""

FIRST, STEER, FOLLOW = "do the work", "and mind the gap", "now the other thing"
_DEAD: list[object] = []
"""Tasks of lives that crashed: collecting one would run the clean-ups that a killed process never runs."""

Failure = Literal["failed", "stored, then failed"]
"""The process lives, and its storage says that a commit failed: what is stored, nobody in it can know."""

Crash = tuple[int, Moment | Failure]


class Arguments(msgspec.Struct, frozen=True):
    """Which call it is."""

    call: str


@dataclass(slots=True)
class World:
    """What lies outside of the store: the log of effects, what a person saw acknowledged, and every request that reached the provider."""

    effects: list[tuple[str, str]] = field(default_factory=list)  # (call, start or end)
    acknowledged: dict[str, int] = field(default_factory=dict)  # request id -> submission
    newest_seen: int = 0  # the newest commit that observers were told of
    requests: list[ModelRequest] = field(default_factory=list)
    served: Usage = Usage()  # what the provider has told so far that it will charge
    failed_once: bool = False


class Provider:
    """A model that answers by what it is asked, so that it goes on sensibly after any crash (ModelGateway)."""

    def __init__(self, world: World, clock: ManualClock, storage: ControlledStorage) -> None:
        self._world = world
        self._clock = clock
        self._storage = storage

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        await self._storage.alive()
        self._world.requests.append(request)
        for event in self._answer(request):
            await self._clock.sleep_ms(60)
            if isinstance(event, UsageReport):
                self._world.served += event.usage
            yield event

    async def info(self, model: str) -> ModelInfo:
        return ModelInfo(context_window_tokens=100_000)

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...

    def _answer(self, request: ModelRequest) -> Sequence[ModelEvent]:
        results = sum(isinstance(message, ToolResultMessage) for message in request.messages)
        said = " ".join(part.text for message in request.messages if isinstance(message, UserMessage) for part in message.content if isinstance(part, Text))
        words = [TextDelta(f"r{len(request.messages)}w{number} ") for number in range(4)]
        used = UsageReport(REQUEST_USAGE)
        if results == 0:
            if not self._world.failed_once:
                self._world.failed_once = True
                return [words[0], ModelFailed(reason="overloaded", message="503", retryable=True)]
            return [*words, _call(0, "c1", "look"), _call(1, "c2", "touch"), used, Finished("toolUse")]
        if results == 2:
            return [*words, _call(0, "c3", "touch"), used, Finished("toolUse")]
        return [*words, TextDelta("final: " + said[-20:]), used, Finished("stop")]


def _call(key: int, call_id: str, name: str) -> ToolCallDelta:
    return ToolCallDelta(key, call_id, name, json.dumps({"call": call_id}))


@dataclass(slots=True)
class History:
    """One run of the scenario over its lives.

    Attributes:
        world: What is not in the store.
        batches: Every batch that was stored, in order.
        contents: What a memory store holds.
        now_ms: When the next life begins.
        effects_at_crash: What tools had done when the newest life ended by a crash.
        is_opening: The newest life has not come further than to open the session.
        crashes: How many lives ended by one, or by a storage that failed.
        die: What a crash does at once, where the process is one that may die; None: freeze.
    """

    path: Path  # where the store lies now: after a crash this is a copy of what it left
    backend: Backend
    world: World = field(default_factory=World)
    batches: list[Batch] = field(default_factory=list)
    contents: Contents = field(default_factory=Contents)
    now_ms: int = 1_700_000_000_000
    effects_at_crash: list[tuple[str, str]] = field(default_factory=list)
    is_opening: bool = False
    crashes: int = 0
    die: Callable[[], None] | None = None

    async def open_store(self, clock: ManualClock) -> Storage:
        """The store as it is now."""
        match self.backend:
            case "memory":
                return MemoryStorage(self.contents)
            case "sqlite":
                return await open_sqlite(self.path / "session.sqlite", clock=clock, inline=True, synchronous="normal")
            case "jsonl":
                return await open_jsonl(self.path / "session.jsonl", clock=clock, inline=True, fsync=False)
            case _:
                assert_never(self.backend)

    def live(self, crash: Crash | None = None) -> bool:
        """Live until the crash or, when it does not come on the way, to the end of all work and a clean close. True: to the end.

        Args:
            crash: (commit of this life, counted from 1; where around it).
        """
        clock = ManualClock(self.now_ms + 1)
        loop = asyncio.new_event_loop()
        try:
            storage, came_to_end = loop.run_until_complete(self._drive(clock, crash))
        finally:
            _DEAD.append(asyncio.all_tasks(loop))
            loop.close()  # what is pending stays so
        self.batches += storage.batches
        self.now_ms = clock.now_ms()
        if not came_to_end and self.is_opening and self.crashes:
            happened("a second crash while opening")
        if not came_to_end:
            self.effects_at_crash = list(self.world.effects)
        self.crashes += not came_to_end
        return came_to_end

    async def _drive(self, clock: ManualClock, crash: Crash | None) -> tuple[ControlledStorage, bool]:
        storage = ControlledStorage(await self.open_store(clock), die=self.die)
        match crash:
            case (commit, "failed" | "stored, then failed" as failure):
                storage.fail_at(commit, stored=failure != "failed")
            case (commit, moment):
                storage.crash_at(commit, moment)
            case None:
                pass
        life = asyncio.ensure_future(self._life(storage, clock))
        for turn in range(40_000):
            if life.done():
                life.result()
                if storage.failed and crash is not None and storage.calls.count("commit") > crash[0]:
                    raise AssertionError("something was committed after a commit of which nobody knows whether it is stored")
                return storage, not storage.failed
            if storage.crashed.is_set():
                await self._bury(storage)
                return storage, False
            await asyncio.sleep(0)
            if turn % 30 == 29 and (gap_ms := clock.next_wake_ms()) is not None:
                clock.advance(gap_ms)
        raise AssertionError("this life neither crashed nor ended")

    async def _bury(self, storage: ControlledStorage) -> None:
        """Go on with the files as they are now: closing them would write what a killed process does not."""
        if self.backend != "memory":
            kept = self.path.with_name(f"{self.path.name}-killed")
            shutil.copytree(self.path, kept)
            self.path = kept
        await storage.inner.close()

    async def _life(self, storage: ControlledStorage, clock: ManualClock) -> None:
        """From the opening to a clean close, be it that all work has ended or that the storage failed."""
        self.is_opening = True
        with contextlib.suppress(SessionFailed):
            harness = await self._open(storage, clock, is_working := asyncio.Event())
            self.is_opening = False
            with contextlib.suppress(SessionFailed):
                await self._work(storage, harness, is_working)
            await harness.close()
        await storage.close()

    async def _open(self, storage: ControlledStorage, clock: ManualClock, is_working: asyncio.Event) -> Harness:
        if self.world.effects:
            is_working.set()
        harness = await Harness.open(
            storage,
            models=Provider(self.world, clock, storage),
            clock=clock,
            entropy=SeededEntropy(1),
            environment=lambda _id, agent: Folder(agent.cwd),
            tools=_tools(self.world, storage, clock, is_working),
        )

        def see(commit: Commit) -> None:
            self.world.newest_seen = commit.seq

        harness.session.subscribe(see)
        return harness

    async def _work(self, storage: ControlledStorage, harness: Harness, is_working: asyncio.Event) -> None:
        """What a person does: open the chat, go on, hand in what is not acknowledged yet, wait for the end."""
        chats = await harness.chats()
        if chats:
            chat = await harness.conversation(chats[0].conversation_id)
        else:
            chat = await harness.create_conversation(Agent(model="test/model", approval="all", cwd="work"))
        await harness.resume()
        await self._hand_in(storage, chat, FIRST, "followUp")
        waits = [asyncio.ensure_future(is_working.wait()), asyncio.ensure_future(chat.settled(self.world.acknowledged[FIRST]))]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)  # a run that was cut off too often ends before it has worked
        for wait in waits:
            wait.cancel()
        await self._hand_in(storage, chat, STEER, "steer")
        await self._hand_in(storage, chat, FOLLOW, "followUp")
        await chat.idle()
        for submission_id in self.world.acknowledged.values():
            await chat.withdraw(submission_id)  # what waits behind a run that was given up

    async def _hand_in(self, storage: ControlledStorage, chat: Conversation, text: str, mode: SubmitMode) -> None:
        if text not in self.world.acknowledged:
            submission = await chat.submit(text, mode=mode, request_id=text)
            await storage.alive()
            self.world.acknowledged[text] = submission.id


def _tools(world: World, storage: ControlledStorage, clock: ManualClock, is_working: asyncio.Event) -> list[Tool]:
    """`touch` must not run twice, `look` may. A tool of a dead process does nothing more."""

    async def act(call: str, what: str) -> None:
        await storage.alive()
        world.effects.append((call, what))
        is_working.set()

    async def execute(arguments: Arguments, context: ToolContext) -> ToolResult:
        await act(arguments.call, "start")
        context.output(f"{arguments.call} works\n")
        await clock.sleep_ms(1_100)
        await act(arguments.call, "end")
        return ToolResult(content=(Text(text=f"{arguments.call} did it"),))

    def tool(name: str, replay: Replay) -> Tool:
        return Tool(name=name, description=name, arguments=Arguments, execute=execute, title=lambda given: f"{name} {given.call}", replay=replay)

    return [tool("look", "safe"), tool("touch", "unsafe")]
