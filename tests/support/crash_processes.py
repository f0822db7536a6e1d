"""Real runs of the command line that are killed at chosen moments, and what they leave behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import apsw

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.errors import EnvironmentFailure, NotFound
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.cli_runs import ROOT, Desk

T = TypeVar("T")

LONGEST_S = 0.8
"""About as long as a run takes."""


@dataclass(slots=True)
class Forks:
    """The warmed parent."""

    process: subprocess.Popen[str]

    def start(self, desk: Desk, *arguments: str, environ: Mapping[str, str] | None = None, **options: str) -> int:
        """The pid of a run that has been started. `options`: "terminal" and "model", see `journey_forks`."""
        return self._ask(arguments=arguments, cwd=str(desk.work), environ={**desk.environ(), **(environ or {})}, folder=str(desk.root), **options)["pid"]

    def wait(self, pid: int) -> int:
        """How a run ended: its exit code, or minus the signal."""
        return self._ask(wait=pid)["code"]

    def _ask(self, **job: Any) -> dict[str, int]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextlib.contextmanager
def warmed() -> Iterator[Forks]:
    """A warmed parent; ended with the block."""
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.journey_forks"], cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Forks(process)
    finally:
        process.kill()
        process.communicate()


def lines(desk: Desk, name: str) -> list[str]:
    """The whole lines of one of the files that a run leaves."""
    path = desk.root / name
    return path.read_text().split("\n")[:-1] if path.exists() else []


def store_of(desk: Desk) -> Path | None:
    """The session's file; None before there is one."""
    return next(desk.data.glob("*/session.sqlite"), None)


def looked(desk: Desk, look: Callable[[Storage], Awaitable[T]]) -> T | None:
    """What `look` sees in the store, which must be sound; None while there is none, or none that was ever written."""

    async def open_and_look(path: Path) -> T:
        storage = await open_sqlite(path, clock=SystemClock(), read_only=True, inline=True)
        try:
            return await look(storage)
        finally:
            await storage.close()

    path = store_of(desk)
    if path is None:
        return None
    try:
        seen = asyncio.run(open_and_look(path))
    except (NotFound, EnvironmentFailure):  # killed while it was being made: nothing was acknowledged, and the next writer makes it whole
        return None
    connection = apsw.Connection(f"file:{path}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        assert list(connection.execute("PRAGMA integrity_check")) == [("ok",)]
    finally:
        connection.close()
    return seen


async def newest(storage: Storage) -> int:
    """The newest commit in the store."""
    return (await storage.metadata()).next_seq - 1


def wait_for_moment(chance: random.Random, desk: Desk, pid: int) -> str:
    """Return at a random moment of the run: at a log-uniform time, within 2 ms of a commit or of an effect, or in mid-answer."""
    kind = chance.choices(("at a time", "near a commit", "near an effect", "in mid-answer"), weights=(4, 3, 1, 1))[0]
    match kind:
        case "at a time":
            time.sleep(0.002 * (LONGEST_S / 0.002) ** chance.random())
        case "near a commit":
            _wait_for_line(desk, "acknowledged", chance.randint(1, 30), pid)
            time.sleep(0.002 * chance.random())
        case "near an effect":
            _wait_for_line(desk, "effects", chance.randint(1, 3), pid)
            time.sleep(0.002 * chance.random())
        case _:
            _wait_for_line(desk, "requests", chance.randint(1, 2), pid)
            time.sleep(0.01 + 0.06 * chance.random())
    return kind


def wait_for_few_commits(chance: random.Random, desk: Desk, pid: int) -> str:
    """Return soon after the run has begun to do something: behind one of its first commits, by up to 2 ms."""
    _wait_for_line(desk, "acknowledged", chance.randint(1, 4), pid)
    time.sleep(0.002 * chance.random())
    return "near one of the first commits"


def _wait_for_line(desk: Desk, name: str, number: int, pid: int) -> None:
    """Return once so many more lines are in the file, or the run is over."""
    wanted = len(lines(desk, name)) + number
    deadline_s = time.monotonic() + LONGEST_S
    while len(lines(desk, name)) < wanted and time.monotonic() < deadline_s and is_alive(pid):
        time.sleep(0.000_5)


def is_alive(pid: int) -> bool:
    """Whether the run still goes on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
