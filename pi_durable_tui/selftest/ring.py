"""Kills the run at moments drawn by chance, again and again, and judges what is left: after every kill, and when the run has come to its end.

One shard is one process. It tells what it saw in a file of JSON lines (`Told`), so that whoever started it can follow it and add up
several of them. It never judges by what a child says of itself: only by the store, and by what was written outside of it before.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from pi_durable_tui.clock import Clock
from pi_durable_tui.entropy import Entropy, SeededEntropy
from pi_durable_tui.errors import EnvironmentFailure, NotFound, PidurableError
from pi_durable_tui.playback.folder import append_line, files_of, lines
from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage
from pi_durable_tui.selftest import forks, script
from pi_durable_tui.selftest.oracle import faults
from pi_durable_tui.selftest.script import Stage
from pi_durable_tui.storage.conversion import open_store
from pi_durable_tui.storage.dump import Convertible
from pi_durable_tui.storage.kind import STORE_KINDS, StoreKind

Moment: TypeAlias = Literal["time", "commit", "effect"]
MOMENTS: tuple[Moment, ...] = ("time", "commit", "effect")

SHORTEST_MS = 2.0
LONGEST_MS = 600.0
"""About as long as a run takes."""
POLL_MS = 0.5
MOST_KILLS_OF_A_RUN = 6
ENOUGH_FAULTS = 5
END_WITHIN_MS = 30_000


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a shard saw since it last said something.

    Attributes:
        kills: By the moment they were aimed at.
        runs: Runs that were ended and judged.
        stores: The same by the kind of their store.
        commits: Acknowledged commits that were looked for in the store, and found.
        effects: Commands that were started.
        traces: What kills have left in transcripts.
        faults: What was wrong, as sentences.
        kept: The folder of a run in which something was wrong.
    """

    kills: dict[str, int] = {}
    runs: int = 0
    stores: dict[str, int] = {}
    commits: int = 0
    effects: int = 0
    traces: dict[str, int] = {}
    faults: tuple[str, ...] = ()
    kept: str = ""


def total(told: list[Told]) -> Told:
    """Everything together. PURE."""
    return Told(
        kills=dict(sum((Counter(one.kills) for one in told), Counter[str]())),
        runs=sum(one.runs for one in told),
        stores=dict(sum((Counter(one.stores) for one in told), Counter[str]())),
        commits=sum(one.commits for one in told),
        effects=sum(one.effects for one in told),
        traces=dict(sum((Counter(one.traces) for one in told), Counter[str]())),
        faults=tuple(fault for one in told for fault in one.faults),
        kept=next((one.kept for one in told if one.kept), ""),
    )


def read_told(path: Path) -> list[Told]:
    """What a shard has told so far."""
    return [msgspec.json.decode(line, type=Told) for line in lines(path)]


def run_shard(root: Path, *, seed: int, kills: int, clock: Clock, tell: Path, kinds: Sequence[StoreKind] = STORE_KINDS) -> int:
    """Kill `kills` times in folders below `root`, and tell it in the file `tell`. Returns 0; faults are told, not raised.

    Args:
        kinds: The kinds of store, one run after the other.
    """
    chance = SeededEntropy(seed)
    done, found = 0, 0
    number = 0
    while done < kills and found < ENOUGH_FAULTS:
        stage = Stage(root / f"run-{number}", kinds[number % len(kinds)])
        number += 1
        stage.work.mkdir(parents=True, mode=0o700)
        run = Run(stage, f"seed {seed}, run {number}, {stage.kind}", chance, clock, lambda told: append_line(tell, msgspec.json.encode(told).decode()))
        done += run.kill_up_to(min(kills - done, 1 + int(chance.fraction() * MOST_KILLS_OF_A_RUN)))
        found += run.finish()
    return 0


class Run:
    """One run over its lives."""

    def __init__(self, stage: Stage, name: str, chance: Entropy, clock: Clock, tell: Callable[[Told], None]) -> None:
        self._stage = stage
        self._name = name
        self._chance = chance
        self._clock = clock
        self._tell = tell
        self._traces: dict[str, int] = {}

    def kill_up_to(self, most: int) -> int:
        """Start and kill it up to `most` times, as long as it does not come to its end before; how often it was killed."""
        for killed in range(most):
            moment = MOMENTS[int(self._chance.fraction() * len(MOMENTS))]
            child = self._start()
            asyncio.run(self._wait_for(moment, child))
            if child.kill() != -signal.SIGKILL:
                return killed
            self._report(Told(kills={moment: 1}, commits=self._acknowledged()), self.wrong_after_kill())
        return most

    def wrong_after_kill(self) -> list[str]:
        """What is wrong with the store of a run that was killed."""
        newest = self._acknowledged()
        wrong = self._look(lambda storage: self._after_kill(storage, newest))
        if wrong is None:
            return [f"commit {newest} was acknowledged, and there is no store"] if newest else []
        return wrong

    def wrong_at_the_end(self) -> list[str]:
        """What is wrong with a run that came to its end."""
        wrong = self._look(self._at_the_end)
        return ["there is no store"] if wrong is None else wrong

    def finish(self) -> int:
        """Let the run come to its end and judge it; the number of faults. The folder is kept when there are any."""
        child = self._start()
        asyncio.run(self._wait_for_end(child))
        code = child.kill()
        wrong = self.wrong_at_the_end() if code == 0 else [f"the run did not come to its end: {code}", *lines(self._stage.errors)[-1:]]
        started = sum(line.endswith("start") for line in lines(self._stage.effects))
        self._report(Told(runs=1, stores={self._stage.kind: 1}, effects=started, traces=self._traces), wrong)
        if not wrong:
            shutil.rmtree(self._stage.root, ignore_errors=True)
        return len(wrong)

    def _start(self) -> forks.Child:
        return forks.start(lambda: script.live(self._stage), errors=self._stage.errors)

    def _report(self, told: Told, wrong: list[str]) -> None:
        if wrong:
            told = msgspec.structs.replace(told, faults=tuple(f"{self._name}: {fault}" for fault in wrong), kept=str(self._stage.root))
        self._tell(told)

    # ------------------------------------------------------------------------------------------------------------ moments

    async def _wait_for(self, moment: Moment, child: forks.Child) -> None:
        """Return at the moment, or when the child has ended."""
        match moment:
            case "time":
                await self._clock.sleep_ms(SHORTEST_MS * (LONGEST_MS / SHORTEST_MS) ** self._chance.fraction())
                return
            case "commit":
                await self._wait_for_lines(self._stage.acknowledged, 1 + int(self._chance.fraction() * 30), child)
            case "effect":
                await self._wait_for_lines(self._stage.effects, 1 + int(self._chance.fraction() * 4), child)
        await self._clock.sleep_ms(2 * self._chance.fraction())

    async def _wait_for_lines(self, path: Path, more: int, child: forks.Child) -> None:
        wanted = len(lines(path)) + more
        deadline_ms = self._clock.monotonic_ms() + 2 * LONGEST_MS
        while len(lines(path)) < wanted and child.ended() is None and self._clock.monotonic_ms() < deadline_ms:
            await self._clock.sleep_ms(POLL_MS)

    async def _wait_for_end(self, child: forks.Child) -> None:
        deadline_ms = self._clock.monotonic_ms() + END_WITHIN_MS
        while child.ended() is None and self._clock.monotonic_ms() < deadline_ms:
            await self._clock.sleep_ms(2)

    # ---------------------------------------------------------------------------------------------------------- judgement

    def _acknowledged(self) -> int:
        """The highest commit that anybody was told of."""
        return max((int(line) for line in lines(self._stage.acknowledged)), default=0)

    def _look(self, look: Callable[[Convertible], Awaitable[list[str]]]) -> list[str] | None:
        """What `look` finds wrong in the store as it lies there, or that it cannot be read; None while none was ever written."""

        async def work() -> list[str]:
            storage = await open_store(self._stage.kind, self._stage.store, clock=self._clock, read_only=True)
            try:
                return await look(storage)
            finally:
                await storage.close()

        try:
            return asyncio.run(work())
        except (NotFound, EnvironmentFailure):  # killed while the file was being made
            return None
        except PidurableError as error:
            return [error.message]

    async def _after_kill(self, storage: Convertible, newest: int) -> list[str]:
        await storage.verify()
        stored = (await storage.metadata()).next_seq - 1
        return [f"commit {newest} was acknowledged, {stored} are stored"] if newest > stored else []

    async def _at_the_end(self, storage: Convertible) -> list[str]:
        await storage.verify()
        effects = [(call, what) for call, what in (line.split() for line in lines(self._stage.effects))]
        found = await faults(storage, effects=[*effects, (script.FILE_CALL, "end")], unsafe=script.COMMANDS)
        written = files_of(self._stage.work)
        if written != {self._stage.file.name: f"{script.FILE_TEXT}\n"}:
            found.append(f"the files are {written}")
        chat = (await storage.conversations()).items[0]
        newest = (await storage.entries(chat.id, limit=1, descending=True)).items[0].entry.message
        if not isinstance(newest, AssistantMessage) or newest.text != script.ANSWER:
            found.append(f"the run ended with {newest}")
        self._traces = await _traces(storage)
        return found


async def _traces(storage: Convertible) -> dict[str, int]:
    messages = [stored.entry.message for chat in (await storage.conversations()).items for stored in (await storage.entries(chat.id, limit=1_000)).items]
    cut = sum(isinstance(message, AssistantMessage) and message.stop_reason == "aborted" for message in messages)
    doubted = sum(isinstance(message, ToolResultMessage) and message.is_error for message in messages)
    return {"answers cut off": cut, "calls in doubt": doubted}
