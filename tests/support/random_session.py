"""One session driven at random against strict providers of three forms: kills, closes, forks, aborts and every bad answer that is known.

Everything is real but the clock of the harness and the people: the gateway, its library, HTTP over loopback, the SQLite file, the tools. A kill
freezes the store in the middle of whatever goes on and drops the connections, as the end of a process would; the next life opens the file anew.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pi_durable_tui.clock import ManualClock, SystemClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.errors import PidurableError
from pi_durable_tui.harness.compaction.select import INSTRUCTIONS
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.settings import Compaction, Settings
from pi_durable_tui.storage.sqlite import open_sqlite
from pi_durable_tui.tools.catalog import all_tools
from pi_durable_tui.tools.environment import LocalEnvironment
from tests.support.controlled_storage import ControlledStorage
from tests.support.model_contract import MODELS, gateway_to
from tests.support.model_server import ModelServer, Received, Step, usage
from tests.support.random_answers import ANSWERS, steps
from tests.support.wire_forms import form_of_path

TURNS_PER_JUMP = 20
"""So often everything may act before the harness's clock goes on to its next sleeper."""
QUICK_TURNS = 1_000
MOST_TURNS = 20_000
TOOLS = frozenset({"read", "write", "edit", "bash", "ls", "todo"})
_DEAD: list[object] = []
"""What was killed is kept: a collected coroutine would run the clean-ups that a killed process never runs."""

ACTS: dict[str, int] = {
    "ask": 40,
    "steer": 8,
    "abort": 6,
    "kill": 8,
    "kill at a commit": 10,
    "close": 4,
    "fork": 5,
    "compact": 4,
    "reset": 1,
    "switch model": 8,
    "wait": 6,
}


@dataclass(slots=True)
class RandomSession:
    """See the module.

    Attributes:
        happened: How often each kind of answer and act came.
    """

    root: Path
    seed: int
    happened: Counter[str] = field(default_factory=Counter)
    clock: ManualClock = field(default_factory=ManualClock)
    is_calm: bool = False  # the provider only answers with text from now on
    server: ModelServer = field(init=False)
    _random: random.Random = field(init=False)
    _entropy: SeededEntropy = field(init=False)
    _storage: ControlledStorage | None = None
    _harness: Harness | None = None
    _chats: list[int] = field(default_factory=list)
    _stalled: list[Received] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._entropy = SeededEntropy(self.seed)
        self.server = ModelServer(strict=True, answer=self._answer)
        (self.root / "work").mkdir(parents=True)
        (self.root / "work/a.py").write_text("def a():\n    return 1\n", encoding="utf-8")

    async def run(self, requests: int) -> None:
        """Let it go on until so many requests were answered, then come to rest."""
        async with self.server:
            await self._open()
            harness = self._harness
            assert harness is not None  # just opened
            agent = Agent(model=MODELS["messages"], thinking="low", approval="all", cwd=str(self.root / "work"), tools=tuple(sorted(TOOLS)))
            self._chats.append((await harness.create_conversation(agent)).id)
            while len(self.server.requests) < requests:
                await self._act(self._chosen(ACTS))
            await self._come_to_rest()

    # ------------------------------------------------------------------------------------------------------------------ acts

    async def _act(self, act: str) -> None:
        self.happened[f"act: {act}"] += 1
        chat = await self._again(self._random.choice(self._chats[-3:]))
        match act:
            case "ask":
                await self._do(chat.submit(f"task {self._random.randrange(1_000)}"))
                await self._pass_until_idle(chat.id)
            case "steer":
                await self._do(chat.submit("one thing"))
                await self._pass_time(self._random.randrange(400))
                await self._do((await self._again(chat.id)).submit("rather this", mode="steer"))
            case "abort":
                await self._do(chat.submit("a long one"))
                await self._pass_time(self._random.randrange(1_500))
                await self._do((await self._again(chat.id)).abort())
            case "kill":
                await self._do(chat.submit("and then"))
                await self._pass_time(self._random.randrange(1_500))
                await self._kill()
            case "kill at a commit":
                assert self._storage is not None  # a session is always open between acts
                self._storage.crash_at(self._storage._commits + self._random.randrange(1, 25), self._random.choice(("before", "stored")))
                await self._do(chat.submit("while it lasts"))
                await self._pass_until_idle(chat.id)
            case "close":
                await self._do(chat.submit("before leaving"))
                await self._pass_time(self._random.randrange(800))
                await self._close()
            case "fork":
                await self._fork(chat)
            case "compact":
                await self._do(chat.compact())
                await self._pass_time(self._random.randrange(600))
            case "reset":
                await self._do(chat.reset("We start anew."))
            case "switch model":
                await self._do(chat.set_agent(model=self._random.choice(sorted(MODELS.values())), thinking=self._random.choice(("off", "low"))))
            case _:
                await self._pass_time(300)

    async def _again(self, chat_id: int) -> Conversation:
        """The chat of this life, which is a new one when the last has ended meanwhile."""
        while True:
            if self._is_dead:
                await self._kill()
            assert self._harness is not None  # there is a life
            found = asyncio.ensure_future(self._harness.conversation(chat_id))
            await self._spin(found.done)
            if found.done():
                return found.result()
            _DEAD.append(found)

    async def _fork(self, chat: Conversation) -> None:
        entries = await self._do(chat.entries(limit=30))
        if not entries or self._harness is None:
            return
        forked = await self._do(self._harness.fork(chat.id, self._random.choice(entries).entry.id))
        if forked is not None:
            self._chats.append(forked.id)

    async def _come_to_rest(self) -> None:
        self.is_calm = True
        for chat_id in self._chats[-3:]:
            chat = await self._again(chat_id)
            await self._do(chat.submit("the last one"))
            await self._pass_until_idle(chat.id)
        await self._close(is_last=True)

    # ----------------------------------------------------------------------------------------------------------------- lives

    async def _open(self) -> None:
        self._storage = ControlledStorage(await open_sqlite(self.root / "session.sqlite", clock=self.clock, inline=True, synchronous="normal"))
        environment = LocalEnvironment(str(self.root / "work"), self.root / "state", SystemClock())
        self._harness = await Harness.open(
            self._storage,
            models=gateway_to(self.server, SystemClock()),
            clock=self.clock,
            entropy=self._entropy,
            environment=lambda _conversation_id, _agent: environment,
            tools=[tool for tool in all_tools() if tool.name in TOOLS],
            settings=Settings(compaction=Compaction(keep_tokens=400)),
        )
        await self._harness.resume()

    async def _kill(self) -> None:
        assert self._storage is not None  # there is a life
        self._storage.crash()
        self.server.drop()
        _DEAD.append((self._harness, self._storage))
        await self._storage.inner.close()
        await self._open()

    async def _close(self, *, is_last: bool = False) -> None:
        assert self._harness is not None  # there is a life
        await self._do(self._harness.close())
        if not is_last:
            await self._open()

    async def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What `work` gives; None when it is refused, or the process died over it."""
        job = asyncio.ensure_future(work)
        await self._spin(job.done)
        if not job.done():
            _DEAD.append(job)
            await self._kill()
            return None
        try:
            return job.result()
        except PidurableError:
            self.happened["refused to the person"] += 1
            return None

    async def _pass_until_idle(self, chat_id: int) -> None:
        """Until nothing goes on in the chat. A provider that says nothing for ever is left by an abort or a kill."""
        chat = await self._again(chat_id)
        idle = asyncio.ensure_future(chat.idle())
        await self._spin(lambda: idle.done() or self._is_stalled)
        if idle.done():
            return
        idle.cancel()
        if self._is_stalled and not self._is_dead and self._random.random() < 0.5:
            await self._do(chat.abort())
            await self._pass_time(200)
        if self._is_stalled or self._is_dead:
            await self._kill()

    async def _pass_time(self, turns: int) -> None:
        left = iter(range(turns))
        await self._spin(lambda: next(left, None) is None)
        if self._is_dead:
            await self._kill()

    @property
    def _is_dead(self) -> bool:
        return self._storage is not None and self._storage.crashed.is_set()

    @property
    def _is_stalled(self) -> bool:
        """A stream is open on which nothing more will come."""
        return any(received.how is None for received in self._stalled)

    async def _spin(self, condition: Callable[[], bool]) -> None:
        """Let everything act until the condition holds or the process has died; the harness's clock goes on meanwhile."""
        for turn in range(MOST_TURNS):
            if condition() or self._is_dead:
                return
            # Threads (files, the library's) and processes need real time.
            await asyncio.sleep(0 if turn < QUICK_TURNS else 0.001)
            gap_ms = self.clock.next_wake_ms() if turn % TURNS_PER_JUMP == 0 else None
            if gap_ms is not None:
                self.clock.advance(gap_ms)
        assert self._harness is not None  # there is a life
        raise AssertionError(f"nothing more happens: {self._harness.task_graph()}; {self.told()}")

    # -------------------------------------------------------------------------------------------------------------- provider

    def _chosen(self, weights: dict[str, int]) -> str:
        return self._random.choices(list(weights), weights=list(weights.values()))[0]

    def _answer(self, received: Received) -> Sequence[Step]:
        """What the provider says to a request it has accepted."""
        form = form_of_path(received.path)
        if json.dumps(INSTRUCTIONS)[1:60] in json.dumps(received.body):
            kind = "text" if self.is_calm else self._random.choices(("text", "overflow", "overloaded", "empty"), weights=(8, 1, 1, 1))[0]
        else:
            kind = "text" if self.is_calm else self._chosen(ANSWERS)
        self.happened[f"{form}: {kind}"] += 1
        if kind == "stall":
            self._stalled.append(received)
        counts = usage(self._random.choice((500, 4_000, 30_000, 170_000)), self._random.randrange(900), 100)
        return [*steps(kind, received.n, with_thoughts=form != "chat" and "thinking" in (received.body or {})), counts]

    def told(self) -> str:
        """What has happened, for a test that fails."""
        return f"seed {self.seed}, {len(self.server.requests)} requests: {dict(sorted(self.happened.items()))}"
