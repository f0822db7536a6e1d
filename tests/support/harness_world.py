"""A session that lives through many processes in one: opened, killed and closed at will, with a provider and tools that outlive it.

Each life of the process has an event loop of its own. A kill freezes the storage (`ControlledStorage`) and the loop is never run again:
no `finally` runs that a killed process would not run. Everything is deterministic: the same acts on two backends make the same records.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.harness.compaction.select import INSTRUCTIONS
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.ports import (
    Deferred,
    Delegation,
    Finished,
    ModelEvent,
    ModelFailed,
    ModelInfo,
    ModelRequest,
    Reconciled,
    TextDelta,
    Tool,
    ToolCallDelta,
    ToolContext,
    ToolResult,
    UsageReport,
)
from pi_durable_tui.harness.settings import Settings
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.records.messages import Text, Usage
from pi_durable_tui.storage.contents import Contents
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.controlled_storage import ControlledStorage, Moment
from tests.support.harness_oracle import Known
from tests.support.harness_rig import Folder

T = TypeVar("T")

Backend: TypeAlias = Literal["memory", "sqlite", "jsonl"]
PlainKind: TypeAlias = Literal["text", "slow", "look", "touch", "put", "two", "three", "unknown", "malformed", "fail", "fatal", "overflow", "later"]
FamilyKind: TypeAlias = Literal["lost", "turns", "sub", "subs", "behind", "serve"]
AnswerKind: TypeAlias = PlainKind | FamilyKind
CALLS: dict[AnswerKind, tuple[str, ...]] = {
    "look": ("look",),
    "touch": ("touch",),
    "put": ("put",),
    "two": ("look", "touch"),
    "three": ("touch", "look", "put"),
    "unknown": ("nothing",),
    "turns": ("turn", "touch", "turn"),
    "sub": ("sub",),
    "subs": ("sub", "behind", "touch"),
    "behind": ("behind",),
    "serve": ("serve", "look"),
}
"""Which tools an answer of a kind calls: look is safe to run again, touch is not, put can be asked about; turn is as touch, and makes its round
run in turn; sub and behind are for subagents, behind and serve go on behind their results."""
HANDED_ON = frozenset({"sub", "behind", "serve"})
USED = UsageReport(Usage(input_tokens=100, output_tokens=10))
MOST_TURNS = 20_000
_DEAD: list[object] = []
"""What was killed is kept: a collected coroutine would run the clean-ups that a killed process never runs."""


class Killed(Exception):
    """The process died while it was at this."""


class Arguments(msgspec.Struct, frozen=True):
    """Which call it is."""

    call: str


COMMIT_TURNS = 6


class Even:
    """A storage whose commits all take the same number of turns of the event loop, so that what runs beside them runs alike everywhere."""

    def __init__(self, inner: Storage) -> None:
        self._inner = inner

    async def commit(self, batch: Batch) -> int:
        job = asyncio.ensure_future(self._inner.commit(batch))
        for _ in range(COMMIT_TURNS):
            await asyncio.sleep(0)
        assert job.done(), "a commit takes more turns than that"
        return job.result()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@dataclass(slots=True)
class World:
    """See the module docstring.

    Attributes:
        known: What the outside knows: acknowledgements and effects.
        answers: The kinds of the next answers; text once they have run out.
        requests: Every request that reached the provider.
        done: The calls of `put` that have had their effect.
        handed_on: The calls whose work is done elsewhere: by a subagent, or behind their results.
        versions: The version of the extension that each call began with, by call id.
    """

    path: Path
    backend: Backend
    known: Known = field(default_factory=Known)
    answers: list[AnswerKind] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    handed_on: set[str] = field(default_factory=set)
    versions: list[tuple[str, str, int]] = field(default_factory=list)
    version: int = 1
    settings: Settings = field(default_factory=Settings)
    contents: Contents = field(default_factory=Contents)
    entropy: SeededEntropy = field(default_factory=lambda: SeededEntropy(1))
    clock: ManualClock = field(default_factory=ManualClock)
    faults: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _loop: asyncio.AbstractEventLoop | None = None
    _harness: Harness | None = None
    _storage: ControlledStorage | None = None
    _held: list[asyncio.Event] = field(default_factory=list)

    # ----------------------------------------------------------------------------------------------------------------- lives

    @property
    def is_open(self) -> bool:
        """True while a harness is open."""
        return self._harness is not None

    @property
    def harness(self) -> Harness:
        """The open harness."""
        assert self._harness is not None, "no harness is open"
        return self._harness

    def open(self, *, crash: tuple[int, Moment] | None = None) -> None:
        """Begin a life.

        Raises:
            Killed: It ended at the commit of its opening that `crash` names.
        """
        assert self._loop is None, "there is a life already"
        self.clock = ManualClock(self.clock.now_ms())
        self._loop = asyncio.new_event_loop()
        self._storage = ControlledStorage(Even(self._loop.run_until_complete(self.store())))
        if crash is not None:
            self._storage.crash_at(*crash)
        self._harness = self.do(self._open_harness(self._storage))

    async def store(self) -> Storage:
        """The data, opened once more."""
        match self.backend:
            case "memory":
                return MemoryStorage(self.contents)
            case "sqlite":
                return await open_sqlite(self.path / "session.sqlite", clock=self.clock, inline=True, synchronous="normal")
            case "jsonl":
                return await open_jsonl(self.path / "session.jsonl", clock=self.clock, inline=True, fsync=False)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Let the process do something, and everything that follows from it at this moment of the clock.

        Raises:
            Killed: The storage crashed meanwhile; this life is over.
        """
        assert self._loop is not None, "there is no life"
        job = self._loop.create_task(work)
        self._loop.run_until_complete(self._settle(job))
        if self._storage is not None and self._storage.crashed.is_set():
            self.kill()
            raise Killed
        if not job.done():
            self.faults.append(f"{work} did not come to its end")
            _DEAD.append(job)
            raise AssertionError(self.faults[-1])
        return job.result()

    def settle(self) -> None:
        """Let everything happen that can happen at this moment of the clock."""
        self.do(asyncio.sleep(0))

    def crash_at(self, commit: int, moment: Moment) -> None:
        """Die at the `commit`-th commit from now."""
        assert self._storage is not None
        self._storage.crash_at(len(self._storage.batches) + commit, moment)

    def kill(self) -> None:
        """End this life at once."""
        assert self._loop is not None
        assert self._storage is not None
        self._storage.crash()
        self._loop.run_until_complete(self._storage.inner.close())
        _DEAD.append((asyncio.all_tasks(self._loop), self._harness, self._storage))
        self._end()

    def close(self) -> None:
        """End this life in order."""
        self.do(self.harness.close())
        assert self._loop is not None
        _DEAD.append(asyncio.all_tasks(self._loop))
        self._end()

    def release(self) -> None:
        """Let tools and slow answers come to their ends."""
        self.do(self._release())

    def install(self) -> None:
        """Replace the extension by its next version, while it may be running."""
        self.version += 1
        self.harness.install(self._extension())

    def advance(self, duration_ms: float) -> None:
        """Let time pass."""
        self.clock.advance(duration_ms)
        self.settle()

    async def _release(self) -> None:
        for event in self._held:
            event.set()
        self._held.clear()

    def _end(self) -> None:
        assert self._loop is not None
        self._loop.close()  # runs nothing more
        self._loop = self._harness = self._storage = None
        self._held.clear()

    async def _settle(self, job: asyncio.Task[Any]) -> None:
        ready: Any = asyncio.get_running_loop()._ready
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
            if self._storage is not None and self._storage.crashed.is_set():
                return
            if not ready:
                return
        raise AssertionError(f"no end of it: {job}")

    async def _open_harness(self, storage: ControlledStorage) -> Harness:
        return await Harness.open(
            storage,
            models=Provider(self),
            clock=self.clock,
            entropy=self.entropy,
            environment=lambda _conversation_id, agent: Folder(agent.cwd),
            extensions=(self._extension(),),
            settings=self.settings,
        )

    # -------------------------------------------------------------------------------------------------------------- provider

    async def answer(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """What the provider sends for a request: a summary, or the next of `answers`."""
        self.requests.append(request)
        number = len(self.requests)
        first = request.messages[0].content[0]
        if isinstance(first, Text) and first.text.startswith(INSTRUCTIONS):
            yield TextDelta(f"gist {number}")
            yield Finished("stop")
            return
        kind: AnswerKind = self.answers.pop(0) if self.answers else "text"
        for event in self._answer("text" if request.deferred is not None and kind == "later" else kind, number):
            if isinstance(event, asyncio.Event):
                self._held.append(event)
                await event.wait()
            else:
                yield event

    def _answer(self, kind: AnswerKind, number: int) -> Iterator[ModelEvent | asyncio.Event]:
        match kind:
            case "fail" | "fatal" | "overflow":
                yield TextDelta(f"half of {number}")
                reason = "context_overflow" if kind == "overflow" else "overloaded"
                yield ModelFailed(reason=reason, message=f"{kind} {number}", retryable=kind == "fail")
            case "lost":
                yield ModelFailed(reason="connection", message=f"lost {number}", retryable=True)
            case "later":
                yield Deferred(handle={"number": number}, poll_after_ms=5_000)
            case "malformed":
                yield ToolCallDelta(0, self._call_id("malformed"), "look", '{"call": ')
                yield USED
                yield Finished("toolUse")
            case "text" | "slow":
                yield TextDelta(f"answer {number}")
                if kind == "slow":
                    yield asyncio.Event()
                yield USED
                yield Finished("stop")
            case _:
                yield TextDelta(f"calls {number}")
                for key, name in enumerate(CALLS[kind]):
                    call_id = self._call_id(name)
                    yield ToolCallDelta(key, call_id, name, json.dumps({"call": call_id}))
                yield USED
                yield Finished("toolUse")

    def _call_id(self, name: str) -> str:
        call_id = f"c{next(self._numbers)}"
        if name in {"touch", "put", "turn", "serve"}:  # put says that it cannot know once it has begun
            self.known.unsafe.add(call_id)
        if name in HANDED_ON:
            self.handed_on.add(call_id)
        return call_id

    # ----------------------------------------------------------------------------------------------------------------- tools

    def _extension(self) -> Extension:
        version = self.version

        async def execute(arguments: Arguments, context: ToolContext) -> ToolResult:
            await self._act(arguments.call, "start", version)
            context.output(f"{arguments.call} works\n")
            gate = asyncio.Event()
            self._held.append(gate)
            await gate.wait()
            await self._act(arguments.call, "end", version)
            self.done.add(arguments.call)
            return ToolResult(content=(Text(text=f"{arguments.call} did it"),))

        async def prepare(arguments: Arguments, _context: ToolContext) -> dict[str, str]:
            return {"before": arguments.call}

        async def reconcile(arguments: Arguments, _context: ToolContext) -> Reconciled:
            if arguments.call in self.done:
                return Reconciled(verdict="done", result=ToolResult(content=(Text(text=f"{arguments.call} was done"),)))
            return Reconciled(verdict="in_doubt" if (arguments.call, "start") in self.known.effects else "not_started")

        def tool(name: str, **more: Any) -> Tool:
            does = {} if "delegate" in more else {"execute": execute}
            return Tool(name=name, description=name, arguments=Arguments, title=lambda given: f"{name} {given.call}", **does, **more)

        def work(given: Arguments, *, background: bool) -> Delegation:
            return Delegation(name=given.call, prompt=f"work on {given.call}", background=background)

        tools = (
            tool("look", access="read", replay="safe"),
            tool("touch", access="command"),
            tool("put", access="edit", replay="reconcile", prepare=prepare, reconcile=reconcile),
            tool("turn", access="command", sequential=True),
            tool("serve", access="command", background=lambda _given: True),
            tool("sub", access="read", replay="safe", delegate=lambda given: work(given, background=False)),
            tool("behind", access="read", replay="safe", delegate=lambda given: work(given, background=True)),
        )
        return Extension(name="world", tools=tools)

    async def _act(self, call_id: str, what: str, version: int) -> None:
        if self._storage is None or self._storage.crashed.is_set():
            await asyncio.Event().wait()  # a tool of a dead process does nothing more
        self.known.effects.append((call_id, what))
        self.versions.append((call_id, what, version))


@dataclass(frozen=True, slots=True)
class Provider:
    """The gateway of one life to the provider of a world (ModelGateway)."""

    world: World

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        return self.world.answer(request)

    async def info(self, model: str) -> ModelInfo:
        return ModelInfo(context_window_tokens=100_000)

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...
