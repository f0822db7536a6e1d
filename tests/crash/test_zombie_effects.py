"""No effects after death: agents are killed while their commands run in forms that are hard to catch (rule PR-7).

PIDURABLE_TEST_ZOMBIE_KILLS says how many kills (18 unless set; 200 are in the README's table).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.cli_runs import ROOT

KILLS = int(os.environ.get("PIDURABLE_TEST_ZOMBIE_KILLS", "18"))
LONGEST_S = 20.0  # generous: what is asserted is that they die long before their effect; how fast they do is told
EFFECT = "echo $BASHPID >> pids; echo > ready; sleep 60; echo late >> effects"
DAEMON = """
import os, time
for _ in range(2):
    if os.fork(): os._exit(0)
    os.setsid()
os.chdir("/")
ready = os.path.join(HERE, "ready")
for descriptor in range(64):
    try: os.close(descriptor)
    except OSError: pass
open("/proc/self/comm", "w").write("kworker/u8:1")
open(os.path.join(HERE, "pids"), "a").write(f"{os.getpid()}\\n")
open(ready, "w").write("x")
time.sleep(60)
open(os.path.join(HERE, "effects"), "a").write("late")
"""
FORMS = {
    "left with &": f"({EFFECT}) & wait",
    "setsid nohup": f"export HOME; setsid nohup bash -c '{EFFECT}' >/dev/null 2>&1 & wait",
    "double fork": f"( ( ({EFFECT}) & ) & ) ; sleep 300",
    "pipeline": f"({EFFECT}) | cat | cat",
    "ignores TERM": f"trap '' TERM HUP INT QUIT; ({EFFECT})",
    "daemon": f"""python3 -c 'HERE = "'"$PWD"'"{DAEMON}'; sleep 300""",
    "without our environment": f"env -i setsid bash -c '{EFFECT}' & wait",
}


@dataclass(slots=True)
class Agents:
    """The warmed parent."""

    process: subprocess.Popen[str]

    def ask(self, **job: Any) -> dict[str, int]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture
def agents() -> Iterator[Agents]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.command_agents"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Agents(process)
    finally:
        process.kill()
        process.communicate()


def marked(mark: str) -> set[int]:
    """The living processes that carry the mark of a command in their environment."""
    found: set[int] = set()
    for process in psutil.process_iter():
        try:
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        except OSError:
            continue
        if f"LC_MARK={mark}".encode() in environment and is_alive(process.pid):
            found.add(process.pid)
    return found


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return False


def seconds_until_gone(root: Path, mark: str) -> float:
    """How long the command's processes outlive their agent; fails when they outlive all patience."""
    began = time.monotonic()
    pids = [int(pid) for pid in (root / "work/pids").read_text().split()]
    while left := {pid for pid in pids if is_alive(pid)} | marked(mark):
        assert time.monotonic() - began < LONGEST_S, f"{root.name}: {[psutil.Process(pid).cmdline() for pid in left if psutil.pid_exists(pid)]} are still there"
        time.sleep(0.005)
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.rule("PR-7", "SA-11")
def test_no_command_outlives_its_agent_however_it_was_started(tmp_path: Path, agents: Agents, seed: int, tell: Callable[[str], None]) -> None:
    chance, took_s = random.Random(seed), []
    names = list(FORMS)
    for number in range(KILLS):
        name = names[number % len(names)]
        root = tmp_path / f"{number}"
        (root / "work").mkdir(parents=True)
        os.mkfifo(root / "work/ready")
        mark = f"{os.getpid()}-{number}"
        agent = agents.ask(root=str(root), command=FORMS[name], mark=mark)["pid"]
        (root / "work/ready").read_text()
        assert marked(mark), "the mark is not seen, so this test would see nothing"
        time.sleep(0.05 * chance.random() ** 3)
        os.kill(agent, signal.SIGKILL)
        assert agents.ask(wait=agent)["code"] == -signal.SIGKILL
        took_s.append(seconds_until_gone(root, mark))
    effects = [path.parent.parent.name for path in tmp_path.glob("*/*/effects")]
    took_s.sort()
    gone = f"all gone after {took_s[len(took_s) // 2]:.2f} s (median), {took_s[-1]:.2f} s (last)"
    tell(f"{KILLS} kills over {len(names)} forms, late effects: {len(effects)}; {gone}")
    assert effects == []
