"""The core scenario of the crash tests, and how it is lived through life by life: each life has an event loop of its own and ends by a crash or at the end.

A crash freezes (`ControlledStorage`), and the loop of that life is never run again: no `finally` runs that a killed process would not
run. What a person has seen acknowledged, and what tools did to the world, outlives every life (`crash_world`).

Three inputs (a steering one, a follow-up), two rounds of tools (two at a time, then one), one request that the provider fails once, answers
as numbered words. Beside the first round many race for one memo; beside the second the old part is summarized, then the chat is forked, and
the fork does work of its own while its parent goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import gc
import hashlib
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, assert_never

import msgspec

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.errors import SessionFailed
from pi_durable_tui.harness.conversation import Conversation, SubmitMode
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.records.commit import Batch, Commit
from pi_durable_tui.records.messages import Usage
from pi_durable_tui.records.task import Running
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.memory import Contents, MemoryStorage
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.controlled_storage import ControlledStorage, Moment
from tests.support.crash_world import FIRST, FOLLOW, OTHER_WAY, RACE, STEER, Life, Provider, World, racing, tools
from tests.support.harness_oracle import held
from tests.support.harness_rig import Folder
from tests.support.harness_world import Backend, Even
from tests.support.sometimes import happened

TITLE = "the work"
_DEAD: list[object] = []
"""Tasks of lives that crashed: collecting one runs the clean-ups that a killed process never runs."""

Failure = Literal["failed", "stored, then failed"]
"""The process lives, and its storage says that a commit failed: what is stored, nobody in it can know."""

Crash = tuple[int, Moment | Failure]


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
        cut_off: How many tasks of a kind were asking a model when that happened, over all lives but the newest.
        used_in_vain: What summaries that were cut off then had used, as far as the store knew, by task and attempt.
        die: What a crash does at once, where the process is one that may die; None: freeze.
    """

    path: Path  # where the store lies now: after a crash this is a copy of what it left
    backend: Backend
    world: World = field(default_factory=World)
    batches: list[Batch] = field(default_factory=list)
    contents: Contents = field(default_factory=Contents)
    now_ms: int = 1_700_000_000_000
    entropy: SeededEntropy = field(default_factory=lambda: SeededEntropy(1))
    effects_at_crash: list[tuple[str, str]] = field(default_factory=list)
    is_opening: bool = False
    crashes: int = 0
    cut_off: Counter[str] = field(default_factory=Counter)
    used_in_vain: dict[tuple[int, object], Usage] = field(default_factory=dict)
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

    def branch(self, path: Path) -> History:
        """The same up to here, to go on with in another way; this one stays as it is."""
        contents = Contents()
        if self.backend == "memory":
            asyncio.run(_replay(self.batches, MemoryStorage(contents)))
        else:
            shutil.copytree(self.path, path)
        return dataclasses.replace(
            self,
            path=path,
            world=self.world.copy(),
            batches=list(self.batches),
            contents=contents,
            entropy=copy.deepcopy(self.entropy),
            cut_off=Counter(self.cut_off),
            used_in_vain=dict(self.used_in_vain),
        )

    def left(self) -> bytes:
        """What the next life begins with, as a digest to compare."""
        world = self.world
        seen = (world.effects, world.acknowledged, world.made, len(world.requests), world.served, world.failed_once, world.memos_read)
        lives = (self.backend, self.now_ms, self.crashes, self.cut_off)
        return hashlib.sha256(msgspec.json.encode((lives, self.batches, seen))).digest()

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
            _forget(loop)
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
        inner = await self.open_store(clock)
        await self._look_back(inner)
        storage = ControlledStorage(Even(inner), die=self.die)
        match crash:
            case (commit, "failed" | "stored, then failed" as failure):
                storage.fail_at(commit, stored=failure != "failed")
            case (commit, moment):
                storage.crash_at(commit, moment)
            case None:
                pass
        life = asyncio.ensure_future(self._live(Life(self.crashes, self.world, storage, clock)))
        ready: Any = asyncio.get_running_loop()._ready
        for _turn in range(40_000):
            if life.done():
                life.result()
                if storage.failed and crash is not None and storage.calls.count("commit") > crash[0]:
                    raise AssertionError("something was committed after a commit of which nobody knows whether it is stored")
                return storage, not storage.failed
            if storage.crashed.is_set():
                await self._bury(storage)
                return storage, False
            await asyncio.sleep(0)
            if not ready and (gap_ms := clock.next_wake_ms()) is not None:
                clock.advance(gap_ms)
        raise AssertionError("this life neither crashed nor ended")

    async def _look_back(self, storage: Storage) -> None:
        """What the life before was cut off at."""
        now = await held(storage)
        asking = {task.id: task for task in now.tasks.values() if isinstance(task.state, Running) and asks_model(task.checkpoint)}
        self.cut_off += Counter(task.kind for task in asking.values())
        for run in (run for live in now.live.values() for run in live.compactions if run.task_id in asking):
            attempt = (asking[run.task_id].checkpoint or {}).get("attempt", 1)
            self.used_in_vain[run.task_id, attempt] = run.usage or Usage()

    async def _bury(self, storage: ControlledStorage) -> None:
        """Go on with the files as they are now: closing them would write what a killed process does not."""
        if self.backend != "memory":
            kept = self.path.with_name(f"{self.path.name}-killed")
            shutil.copytree(self.path, kept)
            self.path = kept
        await storage.inner.close()

    async def _live(self, life: Life) -> None:
        """From the opening to a clean close, be it that all work has ended or that the storage failed."""
        self.is_opening = True
        with contextlib.suppress(SessionFailed):
            harness = await self._open(life)
            self.is_opening = False
            with contextlib.suppress(SessionFailed):
                await Person(life, harness).work()
            await harness.close()
        await life.storage.close()

    async def _open(self, life: Life) -> Harness:
        harness = await Harness.open(
            life.storage,
            models=Provider(life),
            clock=life.clock,
            entropy=self.entropy,
            environment=lambda _id, agent: Folder(agent.cwd),
            tools=tools(life),
            extensions=[racing(life)],
        )

        def see(commit: Commit) -> None:
            self.world.newest_seen = commit.seq

        harness.session.subscribe(see)
        return harness


def _forget(loop: asyncio.AbstractEventLoop) -> None:
    """Keep the tasks of a loop that will not run again, where asyncio does not go through them at every later life."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        asyncio._unregister_task(task)
    loop.set_exception_handler(lambda _loop, _context: None)  # nobody shall hear of those that are pending when they are collected
    _DEAD.append(tasks)


def collect_dead_lives() -> None:
    """Free the memory of all lives that crashed. Call it when their stores have been judged: what their clean-ups do reaches nobody then."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _unraisable: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _DEAD.clear()
            gc.collect()
    finally:
        sys.unraisablehook = hook


async def _replay(batches: list[Batch], storage: Storage) -> None:
    for batch in batches:
        await storage.commit(batch)


def asks_model(checkpoint: Any) -> bool:
    """Whether a task is at a phase in which a model answers."""
    return checkpoint is not None and checkpoint.get("phase") in {"request", "summarize"}


@dataclass(frozen=True, slots=True)
class Person:
    """Who works with the program in one life: goes on with what is there, and does again what was neither acknowledged nor is on the screen."""

    life: Life
    harness: Harness

    async def work(self) -> None:
        """Hand everything in, and wait for the end of it all."""
        chat = await self._chat()
        await self.harness.resume()
        await self._hand_in(chat, FIRST, "followUp")
        await self._begun("c1", chat)
        await self._hand_in(chat, STEER, "steer")
        await self._hand_in(chat, FOLLOW, "followUp")
        race = await self._once("race", self._found_task(RACE), lambda: self.harness.start_task(chat.id, RACE, {}, {"phase": "go"}, background=True))
        await self._begun("c3", chat)
        summary = await self._once("summary", self._found_task("pi.compaction"), lambda: chat.compact("the gap"))
        await self.harness.ended(summary)
        await chat.set_agent(title=TITLE)
        fork = await self.harness.conversation(await self._once("fork", self._found_fork(chat), lambda: self._fork(chat)))
        await self._hand_in(fork, OTHER_WAY, "followUp")
        await chat.idle()
        await fork.idle()
        await self.harness.ended(race)
        for request, submission_id in self.life.world.acknowledged.items():
            await (fork if request == OTHER_WAY else chat).withdraw(submission_id)  # what waits behind a run that was given up

    async def _chat(self) -> Conversation:
        """The first chat, made unless there is one."""
        chats = (await self.harness.session.storage.conversations()).items
        if chats:
            return await self.harness.conversation(chats[0].id)
        return await self.harness.create_conversation(Agent(model="test/model", approval="all", cwd="work"))

    async def _hand_in(self, chat: Conversation, text: str, mode: SubmitMode) -> None:
        if text not in self.life.world.acknowledged:
            submission = await chat.submit(text, mode=mode, request_id=text)
            await self.life.storage.alive()
            self.life.world.acknowledged[text] = submission.id

    async def _begun(self, call: str, chat: Conversation) -> None:
        """Return once the call acts; a run that was cut off too often ends before, and one that was cut off there never lets it act."""
        waits = [asyncio.ensure_future(self.life.begun[call].wait()), asyncio.ensure_future(chat.settled(self.life.world.acknowledged[FIRST]))]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _once(self, what: str, found: Awaitable[int | None], make: Callable[[], Awaitable[int]]) -> int:
        """Make something that has no request id, unless it is there; its id."""
        made = await found or await make()
        await self.life.storage.alive()
        self.life.world.made[what] = made
        return made

    async def _found_task(self, kind: str) -> int | None:
        return next((task.id for task in (await self.harness.session.storage.tasks(kind=kind)).items), None)

    async def _found_fork(self, chat: Conversation) -> int | None:
        chats = (await self.harness.session.storage.conversations()).items
        return next((each.id for each in chats if each.parent is not None and each.parent.conversation_id == chat.id), None)

    async def _fork(self, chat: Conversation) -> int:
        return (await self.harness.fork(chat.id)).id
