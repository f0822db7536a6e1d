"""Tools that kill the program that runs them, in real processes: the program stays usable and says what happened (rule PR-11)."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli_runs import Desk, new_desk
from tests.support.crash_processes import Forks, lines, warmed
from tests.support.journey_forks import ANSWER, MODEL

FIRST = ("-p", "--model", MODEL, "--approve", "all")
AGAIN = ("-c", *FIRST)
EXTENSION = """
import os, signal
import msgspec
from pi_durable_tui.harness.ports import Tool, ToolContext, ToolResult
from pi_durable_tui.harness.extensions.registry import Extension
class Nothing(msgspec.Struct):
    pass
async def execute(arguments, context):
    os.kill(os.getpid(), signal.SIGKILL)
def extension():
    tool = Tool(name="fatal", description="", arguments=Nothing, execute=execute, title=lambda _: "fatal", access="read", replay="safe")
    return Extension(name="fatal", tools=(tool,))
"""
KILL_THE_AGENT = "echo once >> ../effects; kill -9 $(ps -o ppid= -p $PPID); sleep 60"


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with warmed() as parent:
        yield parent


def desk_of(root: Path, call: tuple[str, dict[str, str]], restart_limit: int | str) -> Desk:
    desk = new_desk(root)
    extension = root / "config/extensions/fatal/extension.py"
    extension.parent.mkdir(parents=True)
    extension.write_text(EXTENSION)
    (root / "config/settings.json").write_text(json.dumps({"restart_limit": restart_limit}))
    (root / "call.json").write_text(json.dumps(call))
    return desk


def ran(forks: Forks, desk: Desk, *arguments: str) -> tuple[int, list[str]]:
    """How a run ended, and what it said."""
    code = forks.wait(forks.start(desk, *arguments, model="caller"))
    return code, lines(desk, "stdout")


def log(forks: Forks, desk: Desk) -> str:
    code, said = ran(forks, desk, "log")
    assert code == 0
    return "\n".join(said)


@pytest.mark.slow
@pytest.mark.rule("PR-11", "TK-12", "FA-23", "FA-27")
@pytest.mark.parametrize("limit", [1, 3])
def test_a_safe_tool_that_kills_the_program_each_time_is_given_up_at_the_limit(tmp_path: Path, forks: Forks, limit: int) -> None:
    desk = desk_of(tmp_path, ("fatal", {}), limit)
    assert [ran(forks, desk, *arguments) for arguments in [(*FIRST, "go"), *[AGAIN] * (limit - 1)]] == [(-signal.SIGKILL, [])] * limit
    assert ran(forks, desk, *AGAIN) == (0, [ANSWER])
    assert "Tool fatal was interrupted too many times in a row and may have partially run" in log(forks, desk)
    assert ran(forks, desk, *AGAIN, "and now?") == (0, [ANSWER])


@pytest.mark.slow
@pytest.mark.rule("PR-11", "TK-12")
def test_without_a_limit_it_is_tried_each_time_and_other_chats_work(tmp_path: Path, forks: Forks) -> None:
    desk = desk_of(tmp_path, ("fatal", {}), "unlimited")
    assert [ran(forks, desk, *arguments)[0] for arguments in [(*FIRST, "go"), *[AGAIN] * 5]] == [-signal.SIGKILL] * 6
    (tmp_path / "call.json").write_text(json.dumps(("ls", {})))
    assert ran(forks, desk, *FIRST, "something else") == (0, [ANSWER])


@pytest.mark.slow
@pytest.mark.rule("PR-11", "PR-6", "PR-7")
@pytest.mark.parametrize("limit", [1, "unlimited"])
def test_a_command_that_kills_the_program_is_run_once_and_dies_with_it(tmp_path: Path, forks: Forks, limit: int | str) -> None:
    desk = desk_of(tmp_path, ("bash", {"command": KILL_THE_AGENT}), limit)
    assert ran(forks, desk, *FIRST, "go") == (-signal.SIGKILL, [])
    assert ran(forks, desk, *AGAIN) == (0, [ANSWER])
    assert lines(desk, "effects") == ["once"]
    assert "may have partially run" in log(forks, desk)
    assert ran(forks, desk, *AGAIN, "and now?") == (0, [ANSWER])


@pytest.mark.slow
@pytest.mark.rule("PR-11", "TO-10")
def test_a_command_in_the_background_that_kills_the_program_is_run_once_and_told(tmp_path: Path, forks: Forks) -> None:
    desk = desk_of(tmp_path, ("bash", {"command": f"cat ../go; {KILL_THE_AGENT}", "background": True}), 5)
    (tmp_path / "go").touch()
    code, _ = ran(forks, desk, *FIRST, "go")
    assert code in (0, -signal.SIGKILL)  # the answer may have been quicker
    assert ran(forks, desk, *AGAIN, "and now?") == (0, [ANSWER])
    assert len(lines(desk, "effects")) <= 1
    told = log(forks, desk)
    assert told.count("in the background has ended") == 1


@pytest.mark.slow
@pytest.mark.rule("SA-14", "CL-6", "AG-3")
def test_a_run_that_has_used_its_time_ends_with_status_3_and_says_so(tmp_path: Path, forks: Forks) -> None:
    desk = desk_of(tmp_path, ("bash", {"command": "sleep 300"}), 5)
    code, said = ran(forks, desk, *FIRST, "--max-time", "1", "go")
    assert (code, said) == (3, [])
    assert "The run has used its 1 s." in "\n".join(lines(desk, "stderr"))
    assert "because the time of the run was used up" in log(forks, desk)
    assert ran(forks, desk, *AGAIN, "and now?") == (0, [ANSWER])
