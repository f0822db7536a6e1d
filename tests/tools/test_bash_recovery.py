"""When the agent dies, its commands die with it, however they were started (rule PR-7)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
AGENT = """
import asyncio, sys
from pathlib import Path
from tests.support.tools_calls import Workplace
asyncio.run(Workplace(Path(sys.argv[1])).call("bash", command=sys.argv[2]))
"""
EFFECT = "echo $BASHPID >> pids; echo > ready; sleep 1.2; echo late >> effects"
FORMS = {
    "background": f"({EFFECT}) & wait",
    "setsid nohup": "export -f work; setsid nohup bash -c work & wait",
    "double fork": f"( ( ({EFFECT}) & ) & ) ; sleep 60",
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
    command_processes = psutil.Process(agent.pid).children(recursive=True)
    assert int((work / "pids").read_text()) in [process.pid for process in command_processes] or form == "double fork"
    effect = psutil.Process(int((work / "pids").read_text()))
    agent.kill()
    agent.wait()
    _, alive = psutil.wait_procs([*command_processes, effect], timeout=1)
    assert [process.pid for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert not (work / "effects").exists()
