"""When the agent dies, its commands die with it, however they were started (rule PR-7)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
AGENT = """
import asyncio, sys
from pathlib import Path
from tests.support.tools_calls import Workplace
asyncio.run(Workplace(Path(sys.argv[1])).call("bash", command=sys.argv[2]))
"""
EFFECT = "echo $BASHPID >> pids; echo > ready; sleep 300; echo late >> effects"
FORMS = {
    "background": f"({EFFECT}) & wait",
    "setsid nohup": "export -f work; setsid nohup bash -c work & wait",
    "double fork": f"( ( ({EFFECT}) & ) & ) ; sleep 300",
    "pipeline": f"({EFFECT}) | cat",
    "ignores TERM": f"trap '' TERM HUP INT; {EFFECT}",
}


@pytest.mark.slow
@pytest.mark.rule("PR-7", "SA-11")
@pytest.mark.parametrize("form", FORMS)
def test_a_killed_agent_leaves_no_process_and_no_late_effect(tmp_path: Path, form: str):
    work = tmp_path / "work"
    work.mkdir()
    os.mkfifo(work / "ready")
    command = f"work() {{ {EFFECT}; }}; {FORMS[form]}"
    agent = subprocess.Popen([sys.executable, "-c", AGENT, str(tmp_path), command], cwd=ROOT)
    (work / "ready").read_text()
    processes = psutil.Process(agent.pid).children(recursive=True)
    assert int((work / "pids").read_text()) in [process.pid for process in processes]
    agent.kill()
    agent.wait()
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    assert [process.pid for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert not (work / "effects").exists()


HOLDER = """
import asyncio, os, sys
from pathlib import Path
from tests.support.tools_calls import Workplace
async def main():
    running = asyncio.ensure_future(Workplace(Path(sys.argv[1])).call("bash", command=sys.argv[2]))
    await asyncio.to_thread((Path(sys.argv[1]) / "work/started").read_text)
    if os.fork() == 0:  # holds every descriptor of the agent, and outlives it
        os.read(0, 1)
        os._exit(0)
    (Path(sys.argv[1]) / "work/ready").write_text("x")
    await running
asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.rule("PR-7")
def test_a_copy_of_the_agents_descriptors_does_not_hide_its_death(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    os.mkfifo(work / "ready")
    os.mkfifo(work / "started")
    agent = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path), "echo $$ > pids; echo > started; sleep 300"], cwd=ROOT, stdin=subprocess.PIPE)
    (work / "ready").read_text()
    shell = psutil.Process(int((work / "pids").read_text()))
    agent.kill()
    agent.wait()
    _, alive = psutil.wait_procs([shell], timeout=PATIENCE_S)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert agent.stdin is not None
    agent.stdin.close()  # lets the copy go


@pytest.mark.slow
@pytest.mark.rule("PR-7")
def test_a_command_dies_when_its_reaper_is_killed_and_the_agent_cannot_act(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    os.mkfifo(work / "ready")
    agent = subprocess.Popen([sys.executable, "-c", AGENT, str(tmp_path), "echo $$ $PPID > pids; echo > ready; sleep 300"], cwd=ROOT)
    (work / "ready").read_text()
    shell, reaper = (psutil.Process(int(word)) for word in (work / "pids").read_text().split())
    agent.send_signal(signal.SIGSTOP)
    reaper.kill()
    _, alive = psutil.wait_procs([shell], timeout=PATIENCE_S)
    agent.kill()
    agent.wait()
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
