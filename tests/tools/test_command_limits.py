"""What one command may use: SA-11, SA-14; and timeouts under clocks that jump: PR-18."""

from __future__ import annotations

import asyncio
import math
import os
import resource
import subprocess
from pathlib import Path

import psutil
import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.process import CommandLimits, ProcessFacts, boot_id, end_left_of, left_of
from pi_durable_tui.tools.reaper import allowed_processes, stat_fields, threads_of
from tests.support.patience import PATIENCE_S
from tests.support.tools_calls import Workplace, details_of, text_of

DAY_MS = 86_400_000


def limited(tmp_path: Path, limits: CommandLimits) -> Workplace:
    work = Workplace(tmp_path)
    work.environment = LocalEnvironment(str(work.folder), work.state, work.environment.clock, limits=limits)
    return work


@pytest.mark.rule("SA-11", "SA-14")
async def test_a_command_has_the_limits_it_was_given_or_our_own_where_they_are_lower(tmp_path: Path):
    work = limited(tmp_path, CommandLimits(file_bytes=1_048_576, open_files=99))
    assert text_of(await work.call("bash", command="ulimit -Sc; ulimit -Hc; ulimit -Sn; ulimit -Hn; ulimit -Hf")) == "0\n0\n99\n99\n1024"
    roomy = limited(tmp_path, CommandLimits(file_bytes=2**62, open_files=2**40))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert text_of(await roomy.call("bash", command="ulimit -Hn")) == str(hard)


@pytest.mark.rule("SA-11")
def test_the_usual_limits_are_far_from_what_builds_need():
    usual = CommandLimits()
    assert usual.processes >= 2_000
    assert usual.open_files >= 65_536
    assert usual.file_bytes >= 50 * 1024**3


@pytest.mark.rule("SA-11", "CASE-D4")
async def test_a_file_grows_no_further_than_its_limit(tmp_path: Path):
    work = limited(tmp_path, CommandLimits(file_bytes=1_000_000))
    result = await work.call("bash", command="exec 2>/dev/null; head -c 3000000 /dev/zero > big; echo still here")
    assert text_of(result) == "still here"
    assert (work.folder / "big").stat().st_size == 1_000_000
    alone = await work.call("bash", command="exec head -c 3000000 /dev/zero > big")
    assert text_of(alone) == "(no output)\n[ended by signal SIGXFSZ]"


@pytest.mark.slow
@pytest.mark.rule("SA-11", "SA-14")
async def test_a_command_with_too_many_processes_is_ended_with_all_of_them(tmp_path: Path):
    work = limited(tmp_path, CommandLimits(processes=20))
    result = await asyncio.wait_for(work.call("bash", command="for i in $(seq 40); do sleep 300 & echo $! >> pids; done; wait"), PATIENCE_S)
    assert text_of(result) == "(no output)\n[there were too many processes of it at once; the command and everything it started were ended]"
    assert result.is_error
    assert [pid for pid in (work.folder / "pids").read_text().split() if psutil.pid_exists(int(pid))] == []


@pytest.mark.slow
@pytest.mark.rule("SA-11")
async def test_many_processes_within_the_limit_are_left_alone(tmp_path: Path):
    work = limited(tmp_path, CommandLimits(processes=60))
    result = await work.call("bash", command="for i in $(seq 40); do sleep 1.5 & done; wait; echo all done")
    assert (text_of(result), result.diagnostics) == ("all done", ())


@pytest.mark.rule("SA-11")
def test_the_kernel_counts_what_the_user_runs_already_on_top_and_nothing_of_root():
    assert threads_of(os.getuid()) >= 1
    nobody = 3_999_999_999
    assert (allowed_processes(7, nobody), allowed_processes(7, 0)) == (7, None)


@pytest.mark.rule("PR-18", "CASE-D3")
@pytest.mark.parametrize("jump_ms", [-DAY_MS, -3_600_000, 3_600_000, DAY_MS, -1_700_000_000_000])
async def test_a_timeout_is_measured_in_time_that_passes_whatever_the_wall_clock_says(tmp_path: Path, jump_ms: int):
    clock = ManualClock()
    work = Workplace(tmp_path, clock=clock)
    os.mkfifo(work.folder / "ready")
    running = asyncio.ensure_future(work.call("bash", command="echo > ready; sleep 300", timeout_s=10))
    await asyncio.to_thread((work.folder / "ready").read_text)
    clock.advance(4_000)
    clock.jump_wall(jump_ms)  # set by somebody, or the machine slept: both stand still for the command, too
    clock.advance(5_999)
    done, _ = await asyncio.wait({running}, timeout=0.05)
    assert not done
    clock.advance(1)
    assert details_of(await asyncio.wait_for(running, PATIENCE_S))["timedOut"] is True


async def test_a_command_in_the_background_has_no_timeout_unless_it_is_given_one(tmp_path: Path):
    arguments = Workplace(tmp_path).tools["bash"].arguments
    given = [(arguments(command="x", background=background, timeout_s=limit)).limit_s for background, limit in ((False, None), (True, None), (True, 5))]
    assert given == [120, math.inf, 5]


# ------------------------------------------------------------------------------------------------------ after the reaper


def facts_of(pid: int) -> ProcessFacts:
    return ProcessFacts(pid=pid, start_time=int(stat_fields(pid)[19]), boot_id=boot_id())


def started(script: str) -> subprocess.Popen[bytes]:
    """A shell in a session of its own that has written a line."""
    process = subprocess.Popen(["bash", "-c", script], start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


@pytest.mark.slow
@pytest.mark.rule("PR-7", "TO-8")
async def test_what_outlived_its_reaper_is_found_by_session_or_group_and_ended():
    process = started("sleep 300 & (sleep 300 & echo; wait) & wait")
    facts = facts_of(process.pid)
    members = {child.pid for child in psutil.Process(process.pid).children(recursive=True)}
    assert set(left_of(facts)) == {process.pid, *members}
    process.kill()
    process.wait()
    assert set(left_of(facts)) == members  # the leader is dead: its number still names the session
    assert set(await end_left_of(facts)) == members
    assert left_of(facts) == ()
    assert await end_left_of(facts) == ()


@pytest.mark.slow
@pytest.mark.rule("PR-7", "TO-8")
async def test_a_process_that_only_has_the_number_is_not_touched():
    process = started("echo; sleep 300")
    try:
        facts = facts_of(process.pid)
        assert facts.start_time is not None
        others = (
            ProcessFacts(pid=facts.pid, start_time=facts.start_time - 1, boot_id=facts.boot_id),
            ProcessFacts(pid=facts.pid, start_time=facts.start_time, boot_id="another boot"),
            ProcessFacts(pid=facts.pid, start_time=None, boot_id=facts.boot_id),
        )
        assert [await end_left_of(other) for other in others] == [()] * 3
        assert process.poll() is None
        assert psutil.pid_exists(process.pid)
    finally:
        os.killpg(process.pid, 9)
        process.wait()


@pytest.mark.slow
@pytest.mark.rule("PR-7", "TO-8")
async def test_bash_ends_what_is_left_of_its_command_and_says_so(tmp_path: Path):
    work = Workplace(tmp_path)
    tool = work.tools["bash"]
    assert tool.on_left is not None
    process = started("echo; sleep 300")
    facts = facts_of(process.pid).to_json()
    told = await tool.on_left(facts, work.context())
    assert [remark.message for remark in told] == ["1 process was still at work after the program had died, and ended now."]
    process.wait()
    assert await tool.on_left(facts, work.context()) == ()
    assert await tool.on_left({"pid": 7}, work.context()) == ()
