"""Leaving the app by a key or a signal: the work is handed back, the terminal is as it was (CL-7, CL-8, PR-20, CASE-E5, CASE-H4)."""

from __future__ import annotations

import signal
import time

import pytest

from tests.journeys.conftest import Begin
from tests.support.journey_desk import calls, processes, says, wait_until
from tests.support.journey_terminal import Terminal, modes_left_on
from tests.support.patience import PATIENCE_S

WAY_BACK = "Resume with: pidurable --continue"


def is_restored(terminal: Terminal) -> bool:
    """The terminal is as it was before the program."""
    return terminal.current_mode() == terminal.mode and not terminal.is_alternate and modes_left_on(terminal.raw) == []


@pytest.mark.slow
@pytest.mark.rule("CL-8", "PR-20", "CASE-E5")
def test_ctrl_c_twice_leaves_with_the_end_of_the_transcript_and_the_way_back_in_the_normal_screen(begin: Begin) -> None:
    journey = begin(says("The answer to keep."))
    terminal = journey.start("--approve", "all")
    terminal.send("a question to keep")
    terminal.wait_for("The answer to keep.", "● stored")
    terminal.type("not sent")
    terminal.press("ctrl+c")
    terminal.wait_gone("not sent")
    terminal.press("ctrl+c")
    assert terminal.wait_end() == 0
    assert is_restored(terminal)
    assert [terminal.sees(text) for text in ("a question to keep", "The answer to keep.", WAY_BACK)] == [True] * 3


@pytest.mark.slow
@pytest.mark.rule("CL-7", "CL-8", "PR-20", "CASE-E5", "CASE-H4", "FA-18")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_in_mid_stream_closes_cleanly_and_continuing_asks_again_as_if_nothing_had_been(begin: Begin, number: signal.Signals, code: int) -> None:
    journey = begin([{"text": "Half an answer."}, {"stall": True}], says("The whole answer."))
    terminal = journey.start("--approve", "all")
    terminal.send("a question")
    terminal.wait_for("Half an answer.")
    terminal.signal(number)
    assert terminal.wait_end() == code
    assert is_restored(terminal)
    assert terminal.sees(WAY_BACK)

    again = journey.start("--continue")
    again.wait_for("The whole answer.", "● stored")
    assert not again.sees("killed")
    assert len(journey.requests) == 2
    assert journey.requests[0]["messages"] == journey.requests[1]["messages"]


@pytest.mark.slow
@pytest.mark.rule("CL-7", "PR-20", "CASE-E5")
def test_a_kill_gives_the_terminal_back_and_says_how_to_come_back(begin: Begin) -> None:
    journey = begin([{"text": "Half an answer."}, {"stall": True}])
    terminal = journey.start("--approve", "all")
    terminal.send("a question")
    terminal.wait_for("Half an answer.")
    terminal.kill()
    deadline_s = time.monotonic() + PATIENCE_S
    while not (is_restored(terminal) and terminal.sees("pidurable --continue")) and time.monotonic() < deadline_s:
        terminal.read_for(0.05)
    assert is_restored(terminal)
    assert terminal.sees("pidurable --continue")


@pytest.mark.slow
@pytest.mark.rule("CL-7", "CASE-H4")
def test_closing_the_terminal_window_ends_the_program_and_its_commands(begin: Begin) -> None:
    mark = "sleep 330.0815"
    journey = begin(calls(("bash", {"command": mark})), says("I heard it."))
    terminal = journey.start("--approve", "all")
    terminal.send("wait a while")
    terminal.wait_until(lambda: processes(mark) != [], what="the command to run")
    terminal.hang_up()
    wait_until(lambda: terminal.process.poll() is not None, what="the end of the program")
    wait_until(lambda: processes(mark) == [], what="the end of the command")

    again = journey.start("--continue")
    again.wait_for("I heard it.", "● stored")
    assert journey.refused == []
