"""The process ring: real processes, killed with SIGKILL at random moments, and then continued (proof.md, rig 4).

`pidurable -p` with a command, a file and another command; killed up to three times a session; then `-c -p` ends the run. The number of kills is
PIDURABLE_TEST_KILLS (200 unless set).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.cli_runs import ROOT, Desk, new_desk
from tests.support.crash_oracle import faults
from tests.support.journey_forks import ANSWER, COMMANDS, MODEL

KILLS = int(os.environ.get("PIDURABLE_TEST_KILLS", "200"))
SHARDS = 4
LONGEST_S = 0.8
PROMPT = "do the work"
FIRST = ("-p", "--model", MODEL, "--approve", "all")
AGAIN = ("-c", *FIRST)


@dataclass(slots=True)
class Forks:
    """The warmed parent."""

    process: subprocess.Popen[str]

    def start(self, desk: Desk, *arguments: str) -> int:
        """The pid of a run that has been started."""
        return self._ask(arguments=arguments, cwd=str(desk.work), environ=desk.environ(), folder=str(desk.root))["pid"]

    def wait(self, pid: int) -> int:
        """How a run ended: its exit code, or minus the signal."""
        return self._ask(wait=pid)["code"]

    def _ask(self, **job: Any) -> dict[str, int]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture
def forks() -> Iterator[Forks]:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.journey_forks"], cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Forks(process)
    finally:
        process.kill()
        process.communicate()


@dataclass(slots=True)
class Tally:
    """What happened, and what was wrong."""

    sessions: int = 0
    kills: int = 0
    ends: int = 0  # runs that came to their end before the kill
    moments: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)


def lines(desk: Desk, name: str) -> list[str]:
    """The whole lines of one of the files that a run leaves."""
    path = desk.root / name
    return path.read_text().split("\n")[:-1] if path.exists() else []


def newest_acknowledged(desk: Desk) -> int:
    """The highest commit that anybody was told of."""
    return max((int(line) for line in lines(desk, "acknowledged")), default=0)


def newest_shown(desk: Desk) -> int:
    """The highest commit that `--mode json` has shown."""
    shown = [json.loads(line) for line in lines(desk, "stdout") if line.startswith("{")]
    return max((event["seq"] for event in shown), default=0)


def store_of(desk: Desk) -> Path | None:
    """The session's file; None before there is one."""
    return next(desk.data.glob("*/session.sqlite"), None)


def newest_stored(path: Path) -> int:
    """The newest commit in the store, which must be sound."""
    connection = apsw.Connection(f"file:{path}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        assert list(connection.execute("PRAGMA integrity_check")) == [("ok",)]
    finally:
        connection.close()

    async def look() -> int:
        storage = await open_sqlite(path, clock=SystemClock(), read_only=True, inline=True)
        try:
            return (await storage.metadata()).next_seq - 1
        finally:
            await storage.close()

    return asyncio.run(look())


def judged(desk: Desk) -> list[str]:
    """What the oracle says of the finished session."""
    path = store_of(desk)
    assert path is not None
    effects = [(call, what) for call, what in (line.split() for line in lines(desk, "effects"))]

    async def look() -> list[str]:
        storage = await open_sqlite(path, clock=SystemClock(), read_only=True, inline=True)
        try:
            return await faults(storage, effects=[*effects, ("c2", "end")], unsafe=COMMANDS)
        finally:
            await storage.close()

    return asyncio.run(look())


def wait_for_moment(chance: random.Random, desk: Desk, pid: int) -> str:
    """Return at a random moment of the run: at a log-uniform time, or within 2 ms of a commit."""
    if chance.random() < 0.5:
        time.sleep(0.002 * (LONGEST_S / 0.002) ** chance.random())
        return "at a time"
    wanted = len(lines(desk, "acknowledged")) + chance.randint(1, 30)
    deadline_s = time.monotonic() + LONGEST_S
    while len(lines(desk, "acknowledged")) < wanted and time.monotonic() < deadline_s and is_alive(pid):
        time.sleep(0.000_5)
    time.sleep(0.002 * chance.random())
    return "near a commit"


def is_alive(pid: int) -> bool:
    """Whether the run still goes on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def kill_once(forks: Forks, desk: Desk, chance: random.Random, tally: Tally, arguments: tuple[str, ...]) -> None:
    """Start a run, kill it, and look at what is left."""
    pid = forks.start(desk, *arguments)
    moment = wait_for_moment(chance, desk, pid)
    os.kill(pid, signal.SIGKILL)
    code = forks.wait(pid)
    if code != -signal.SIGKILL:
        tally.ends += 1
        if code != 0:
            tally.found.append(f"session {tally.sessions}: a run that was not killed ended with {code}: {lines(desk, 'stderr')}")
        return
    tally.kills += 1
    tally.moments[moment] += 1
    path = store_of(desk)
    stored = newest_stored(path) if path is not None and path.stat().st_size else 0
    if newest_acknowledged(desk) > stored:
        tally.found.append(f"session {tally.sessions}: commit {newest_acknowledged(desk)} was acknowledged, {stored} are stored")
    if newest_shown(desk) > stored:
        tally.found.append(f"session {tally.sessions}: commit {newest_shown(desk)} was shown, {stored} are stored")


def finish(forks: Forks, desk: Desk, tally: Tally) -> None:
    """End the run as a person would, and judge it."""
    code = forks.wait(forks.start(desk, *AGAIN))
    if code == 2 and not is_submitted(desk):  # nothing was acknowledged before the kill: there is nothing to continue
        code = forks.wait(forks.start(desk, *FIRST, PROMPT))
    name = f"session {tally.sessions}"
    if (code, lines(desk, "stdout")) != (0, [ANSWER]):
        tally.found.append(f"{name}: it ended with {code}, {lines(desk, 'stdout')}, {lines(desk, 'stderr')}")
        return
    tally.found += [f"{name}: {fault}" for fault in judged(desk)]
    tally.found += [f"{name}: the model was asked what a provider refuses: {line}" for line in lines(desk, "requests") if line != "valid"]
    if (desk.work / "notes.txt").read_text() != "written by c2\n":
        tally.found.append(f"{name}: the file was not written")


def is_submitted(desk: Desk) -> bool:
    """Whether an input is in the store."""
    path = store_of(desk)
    if path is None or not path.stat().st_size:
        return False

    async def look() -> bool:
        storage = await open_sqlite(path, clock=SystemClock(), read_only=True, inline=True)
        try:
            return bool((await storage.submissions(limit=1)).items)
        finally:
            await storage.close()

    return asyncio.run(look())


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.rule("PR-1", "PR-2", "PR-5", "PR-6", "PR-10", "CASE-A1", "CASE-A5", "FB-4", "FB-43")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_runs_that_are_killed_at_random_moments_lose_nothing_do_nothing_twice_and_end(tmp_path: Path, forks: Forks, seed: int, shard: int) -> None:
    chance = random.Random(seed * SHARDS + shard)
    tally = Tally()
    while tally.kills < KILLS / SHARDS:
        root = tmp_path / f"{tally.sessions}"
        root.mkdir()
        desk = new_desk(root)
        (root / "config").mkdir()
        (root / "config/settings.json").write_text(json.dumps({"retry": {"base_delay_ms": 20, "max_delay_ms": 20, "max_retries": 10}}))
        as_json = ("--mode", "json") if chance.random() < 0.5 else ()
        kill_once(forks, desk, chance, tally, (*FIRST, *as_json, PROMPT))
        for _ in range(chance.randint(0, 2)):
            if is_submitted(desk):
                kill_once(forks, desk, chance, tally, (*AGAIN, *as_json))
        finish(forks, desk, tally)
        tally.sessions += 1
    print(f"shard {shard} of {SHARDS}, seed {seed}: {tally.kills} kills {dict(tally.moments)} in {tally.sessions} sessions, {tally.ends} runs ended before")
    assert tally.found == []
