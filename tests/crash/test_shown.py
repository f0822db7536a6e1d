"""What is shown never runs ahead of the store, and a kill takes nothing that was seen (proof.md: PR-2, PR-3).

A model says numbers, one every 5 ms. The run is killed at a random moment; then what was written (to the terminal by the app, as events by
`--mode json`) is held against the store. The commit of each frame is noted before the frame is written. The number of kills of each way is
PIDURABLE_TEST_SHOWN_KILLS (5 unless set); how much was lost of what had only been received is told, and not judged: it is a time.
That it is no more than the interval of 100 ms is a matter of the pace, at any rhythm: tests/harness/test_progress.py.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import re
import select
import signal
import struct
import termios
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.harness.live import LIVE, Live
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.document import Address
from pi_durable_tui.records.messages import AssistantMessage
from pi_durable_tui.session.documents import value_of
from pi_durable_tui.storage.port import Storage
from tests.support.cli_runs import Desk, new_desk
from tests.support.crash_processes import Forks, is_alive, lines, looked, newest, warmed
from tests.support.journey_forks import MODEL

KILLS = int(os.environ.get("PIDURABLE_TEST_SHOWN_KILLS", "5"))
PATIENCE_MS = 60_000
TOKEN = re.compile(rb"n(\d{4})(?= )")
JSON = ("-p", "--mode", "json", "--model", MODEL, "--approve", "all", "count")


@pytest.fixture
def forks() -> Iterator[Forks]:
    with warmed() as parent:
        yield parent


@dataclass(slots=True)
class Output:
    """What a run has written, read as it comes."""

    read: Callable[[], bytes]
    seen: bytes = b""

    def until(self, count: int, pid: int) -> None:
        """Read until so many numbers have come from a run that lives."""
        clock = SystemClock()
        end_ms = clock.monotonic_ms() + PATIENCE_MS
        while len(self.tokens) < count:
            assert is_alive(pid), f"it ended before number {count}: {self.seen[-2_000:]!r}"
            assert clock.monotonic_ms() < end_ms, f"number {count} did not come: {self.seen[-2_000:]!r}"
            self.seen += self.read()

    def further(self, duration_ms: float) -> None:
        """Read for a while."""
        clock = SystemClock()
        end_ms = clock.monotonic_ms() + duration_ms
        while clock.monotonic_ms() < end_ms:
            self.seen += self.read()

    def rest(self) -> None:
        """What was written before the kill and is not read yet."""
        while data := self.read():
            self.seen += data

    @property
    def tokens(self) -> set[int]:
        """The numbers in it."""
        return {int(number) for number in TOKEN.findall(self.seen)}


@dataclass(slots=True)
class Losses:
    """What kills took, and what was wrong."""

    lost_ms: list[float] = field(default_factory=list)
    shown: int = 0
    found: list[str] = field(default_factory=list)

    def add(self, name: str, desk: Desk, *, killed_ms: float, shown: set[int], newest_shown: int) -> None:
        """Hold a killed run against its store."""
        stored, commits = looked(desk, said) or set(), looked(desk, newest) or 0
        received = [(int(number), float(at_ms)) for number, at_ms in map(str.split, lines(desk, "received"))]
        lost = [at_ms for number, at_ms in received if number not in stored]
        self.lost_ms.append(killed_ms - lost[0] if lost else 0.0)
        self.shown += len(shown)
        if not shown <= stored:
            self.found.append(f"{name}: {sorted(shown - stored)} were shown and are gone")
        if stored != set(range(len(stored))):
            self.found.append(f"{name}: what is stored has holes: {sorted(stored)}")
        if newest_shown > commits:
            self.found.append(f"{name}: commit {newest_shown} was shown, {commits} are stored")

    def told(self) -> str:
        """The figures."""
        times = sorted(self.lost_ms)
        middle, late = times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)]
        received = f"received text lost: median {middle:.0f} ms, p99 {late:.0f} ms, most {times[-1]:.0f} ms"
        return f"{len(times)} kills, {self.shown} numbers shown, 0 of them lost; {received}" if not self.found else f"{len(self.found)} faults"


async def said(storage: Storage) -> set[int]:
    """The numbers in the store: of answers that ended, and of the one that was coming in."""
    texts: list[str] = []
    for chat in (await storage.conversations()).items:
        messages = [stored.entry.message for stored in (await storage.entries(chat.id)).items]
        document = await storage.document(Address(kind=LIVE.kind, scope="conversation", scope_id=chat.id))
        revisions = await storage.revisions(document.id) if document is not None else None
        if document is not None and revisions is not None:
            live = from_json(value_of(revisions, store=storage.name, document_id=document.id), Live)
            messages.append(live.generation.message if live.generation is not None else None)
        texts += [message.text for message in messages if isinstance(message, AssistantMessage)]
    return {int(number) for number in TOKEN.findall(" ".join([*texts, ""]).encode())}


def made(root: Path, name: str) -> Desk:
    """A new desk."""
    folder = root / name
    folder.mkdir()
    return new_desk(folder)


def kill(forks: Forks, pid: int) -> float:
    """Kill it; when, in monotonic milliseconds."""
    killed_ms = SystemClock().monotonic_ms()
    os.kill(pid, signal.SIGKILL)
    assert forks.wait(pid) == -signal.SIGKILL
    return killed_ms


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.rule("PR-2", "PR-3", "CASE-A1")
def test_no_frame_of_the_app_runs_ahead_of_the_store_and_a_kill_takes_nothing_that_was_on_the_screen(
    tmp_path: Path, forks: Forks, seed: int, tell: Callable[[str], None]
) -> None:
    chance, losses = random.Random(seed), Losses()
    for number in range(KILLS):
        desk = made(tmp_path, f"{number}")
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        output = Output(lambda master=master: os.read(master, 65_536) if select.select([master], [], [], 0.005)[0] else b"")
        try:
            pid = forks.start(desk, "count", environ={"PIDURABLE_MODEL": MODEL, "TERM": "xterm-256color"}, terminal=os.ttyname(slave), model="counter")
            output.until(chance.randint(1, 80), pid)
            output.further(chance.uniform(0, 110))
            killed_ms = kill(forks, pid)
            output.rest()
        finally:
            os.close(slave)
            os.close(master)
        painted = max(map(int, lines(desk, "painted")))
        losses.add(f"kill {number}", desk, killed_ms=killed_ms, shown=output.tokens, newest_shown=painted)
    tell(f"the app, seed {seed}: {losses.told()}")
    assert losses.found == []


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.rule("PR-2", "PR-3")
def test_no_event_of_print_mode_runs_ahead_of_the_store(tmp_path: Path, forks: Forks, seed: int, tell: Callable[[str], None]) -> None:
    chance, losses = random.Random(seed), Losses()
    for number in range(KILLS):
        desk = made(tmp_path, f"{number}")
        (desk.root / "stdout").touch()
        pid = forks.start(desk, *JSON, model="counter")
        with (desk.root / "stdout").open("rb") as written:
            output = Output(lambda written=written: written.read() or (select.select([], [], [], 0.002), b"")[1])
            output.until(chance.randint(1, 80), pid)
            output.further(chance.uniform(0, 110))
            killed_ms = kill(forks, pid)
            output.rest()
        events = [json.loads(line) for line in lines(desk, "stdout")]
        losses.add(f"kill {number}", desk, killed_ms=killed_ms, shown=output.tokens, newest_shown=max(event["seq"] for event in events))
    tell(f"--mode json, seed {seed}: {losses.told()}")
    assert losses.found == []
