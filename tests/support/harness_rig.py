"""A harness on a manual clock over data that outlives it: open, close, kill and open again in one process.

`kill` freezes the storage (nothing of the old harness can write or read any more) and drops the harness without unwinding it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.harness.approval import Approver, by_mode
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import LIVE, Agent, Live
from pi_durable_tui.harness.ports import Environment, Tool
from pi_durable_tui.harness.services import Report
from pi_durable_tui.harness.settings import Settings
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.task import Task
from pi_durable_tui.storage.memory import Contents, MemoryStorage
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.controlled_storage import ControlledStorage
from tests.support.scripted_model import ScriptedModel, Step

_DEAD: list[object] = []
"""What was killed is kept: a collected coroutine would run the clean-ups that a killed process never runs."""

Backend: TypeAlias = Literal["memory", "sqlite"]


@dataclass(frozen=True, slots=True)
class Folder:
    """The environment of tools that act on a folder only by its path."""

    cwd: str


@dataclass(slots=True)
class Rig:
    """One session's data and the doors, with at most one harness open on it at a time."""

    path: Path
    backend: Backend = "memory"
    clock: ManualClock = field(default_factory=ManualClock)
    settings: Settings = field(default_factory=Settings)
    tools: Sequence[Tool] = ()
    extensions: Sequence[Extension] = ()
    reports: list[Report] = field(default_factory=list[Report])
    contents: Contents = field(default_factory=Contents)
    approver: Approver = by_mode
    place: Callable[[int, Agent], Environment] | None = None  # None: a folder known by its path only
    room: bool = True  # whether the store has room for ordinary records
    model: ScriptedModel = field(init=False)
    _harness: Harness | None = None
    _storage: ControlledStorage | None = None

    def __post_init__(self) -> None:
        self.model = ScriptedModel(self.clock)

    @property
    def harness(self) -> Harness:
        """The open harness."""
        assert self._harness is not None, "no harness is open"
        return self._harness

    @property
    def storage(self) -> ControlledStorage:
        """The storage of the open harness."""
        assert self._storage is not None, "no harness is open"
        return self._storage

    @property
    def file(self) -> Path:
        """The SQLite file of backend `sqlite`."""
        return self.path / "session.sqlite"

    async def open(self, *scripts: Sequence[Step]) -> Harness:
        """Open a harness over the data; `scripts` are what the model says next."""
        self.model.then(*scripts)
        self._storage = ControlledStorage(await self._inner())
        self._harness = await Harness.open(
            self._storage,
            models=self.model,
            clock=self.clock,
            entropy=SeededEntropy(1),
            environment=self.place or self._environment,
            tools=self.tools,
            extensions=self.extensions,
            settings=self.settings,
            reporter=self.reports.append,
            approver=self.approver,
        )
        return self._harness

    async def start(self, *scripts: Sequence[Step], agent: Agent | None = None) -> Conversation:
        """Open a harness and make a chat in it; everything is allowed unless the agent says otherwise."""
        harness = await self.open(*scripts)
        return await harness.create_conversation(agent or Agent(model="test/model", approval="all", cwd=str(self.path)))

    async def kill(self) -> None:
        """The process dies: nothing it does reaches the store any more."""
        self.storage.crash()
        _DEAD.append((self.harness, self.storage))
        if self.backend == "sqlite":
            await self.storage.inner.close()
        self._harness = self._storage = None

    async def close(self) -> None:
        """Close cleanly."""
        await self.harness.close()
        self._harness = self._storage = None

    async def until(self, condition: Callable[[], bool], *, jump: bool = False) -> None:
        """Let things happen until the condition holds; with `jump` the clock moves to the next sleeper when nothing else does."""
        for _ in range(200):
            for _ in range(50):
                if condition():
                    return
                await asyncio.sleep(0)
            gap_ms = self.clock.next_wake_ms()
            if jump and gap_ms is not None:
                self.clock.advance(gap_ms)
        raise AssertionError("what was waited for did not happen")

    async def settle(self) -> None:
        """Let everything happen that can happen at this moment of the clock."""
        for _ in range(300):
            await asyncio.sleep(0)

    async def run_out(self, conversation: Conversation) -> None:
        """Run the conversation to its end, jumping over every wait."""
        idle = asyncio.ensure_future(conversation.idle())
        await self.until(idle.done, jump=True)
        await idle

    async def live(self, conversation_id: int) -> Live:
        """`pi.live` as committed."""
        return from_json(await self.harness.session.snapshot(LIVE, conversation_id) or {}, Live)

    async def entries(self, conversation_id: int) -> list[Entry]:
        """The transcript."""
        page = await self.harness.session.storage.entries(conversation_id, limit=1_000)
        return [stored.entry for stored in page.items]

    async def tasks(self, kind: str | None = None) -> list[Task]:
        """All task records, by id."""
        page = await self.harness.session.storage.tasks(kind=kind, limit=1_000)
        return list(page.items)

    async def _inner(self) -> Storage:
        if self.backend == "memory":
            return MemoryStorage(self.contents, room=lambda: self.room)
        return await open_sqlite(self.file, clock=self.clock, inline=True)

    def _environment(self, _conversation_id: int, agent: Agent) -> Environment:
        return Folder(agent.cwd)
