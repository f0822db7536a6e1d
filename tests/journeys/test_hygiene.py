"""Every end leaves a sane terminal: signals, bugs, SIGKILL, suspension, odd sizes, no colours (CL-7, TU-14, CASE-E5, CASE-E6)."""

from __future__ import annotations

import fcntl
import os
import random
import re
import signal
import struct
import sys
import termios
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.bench.hands import Hands
from tests.journeys.conftest import Begin
from tests.support.broken_app import WORDS
from tests.support.journey_desk import says, wait_until
from tests.support.journey_terminal import Terminal, modes_left_on
from tests.support.model_server import finish, usage

KILLED = "Resume with: pidurable --continue"
WIDE = "日本語 👩\u200d💻 e\u0301 🇩🇪 " + "x" * 300


def is_restored(terminal: Terminal) -> bool:
    return terminal.current_mode() == terminal.mode and not terminal.is_alternate and modes_left_on(terminal.raw) == []


def resize(terminal: Terminal, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    terminal.columns, terminal.rows = columns, rows
    terminal._alternate.resize(rows, columns)
    terminal.signal(signal.SIGWINCH)


@pytest.mark.slow
@pytest.mark.rule("CL-7", "CASE-E5")
def test_a_kill_gives_the_terminal_back_and_tells_the_way_back(begin: Begin) -> None:
    journey = begin([{"text": "Half an answer."}, {"stall": True}], says("The whole answer."))
    terminal = journey.start("--approve", "all")
    terminal.send("a question")
    terminal.wait_for("Half an answer.")
    assert not is_restored(terminal)
    terminal.kill()
    terminal.wait_until(lambda: is_restored(terminal) and terminal.sees(KILLED), what="the guard's cleaning up")
    wait_until(lambda: guards(terminal) == [], what="the end of the guard")


@pytest.mark.slow
@pytest.mark.rule("CL-7", "CASE-E5")
def test_a_kill_of_the_whole_process_group_leaves_the_guard(begin: Begin) -> None:
    terminal = begin().start()
    os.killpg(terminal.process.pid, signal.SIGKILL)
    terminal.wait_until(lambda: is_restored(terminal) and terminal.sees(KILLED), what="the guard's cleaning up")


@pytest.mark.slow
@pytest.mark.rule("CL-7", "CASE-E5", "TU-10")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGQUIT, 131), (signal.SIGHUP, 129)])
def test_every_signal_leaves_cleanly_and_keeps_the_draft(begin: Begin, number: signal.Signals, code: int) -> None:
    journey = begin(says("Hello."))
    terminal = journey.start("--approve", "all")
    terminal.send("hi")
    terminal.wait_for("Hello.", "● stored")
    terminal._write(b"typed and not sent")
    terminal.wait_for("typed and not sent")
    terminal.signal(number)
    assert terminal.wait_end() == code
    assert is_restored(terminal)
    assert guards(terminal) == []
    again = journey.start("--continue")
    again.wait_for("typed and not sent")


@pytest.mark.slow
@pytest.mark.rule("CL-7", "CASE-E5")
@pytest.mark.parametrize("where", ["widget", "background"])
@pytest.mark.parametrize("debug", [False, True])
def test_a_bug_ends_with_a_failure_and_says_so_on_the_main_screen(begin: Begin, where: str, debug: bool) -> None:
    journey = begin()
    command = (sys.executable, "-P", "-m", "tests.support.broken_app", where)
    with closing(Terminal([*command, *(["--debug"] if debug else [])], cwd=journey.work, environ=journey.environ)) as terminal:
        if where == "widget":
            terminal.wait_for("Ask for work")
            terminal.press("x")
        assert terminal.wait_end() == 70
        assert is_restored(terminal)
        assert terminal.sees(f"ValueError: {WORDS}")
        assert (b"Traceback (most recent call last)" in terminal.raw) == debug, terminal.raw[-4_000:]
        assert not terminal.sees("locals")


@pytest.mark.slow
@pytest.mark.rule("CL-7", "CASE-H4")
def test_a_terminal_that_goes_away_without_a_signal_ends_the_program_too(begin: Begin) -> None:
    journey = begin()
    hands = Hands.start((sys.executable, "-P", "-m", "pi_durable_tui.cli.main"), cwd=journey.work, environ=journey.environ)
    hands.wait_for(b"sk for")
    os.close(hands.master)  # it is no controlling terminal: nobody sends SIGHUP
    assert hands.process.wait(20) != 0


@pytest.mark.slow
@pytest.mark.rule("CL-7", "TU-14", "CASE-E5")
def test_ctrl_z_gives_the_terminal_back_and_continuing_takes_it_again(begin: Begin) -> None:
    terminal = begin(says("Hello.")).start()
    terminal._write(b"kept")
    terminal.wait_for("kept")
    terminal.press("\x1a")
    wait_until(lambda: psutil.Process(terminal.process.pid).status() == psutil.STATUS_STOPPED, what="the program to stop")
    terminal.read_for(0.2)
    assert is_restored(terminal)
    terminal.signal(signal.SIGCONT)
    terminal.wait_until(lambda: terminal.is_alternate and terminal.sees("kept"), what="the app again")
    terminal.press("ctrl+c")
    terminal.wait_gone("kept")
    terminal.press("ctrl+c")
    assert terminal.wait_end() == 0
    assert is_restored(terminal)


@pytest.mark.slow
@pytest.mark.rule("TU-14", "CASE-E6")
def test_a_storm_of_sizes_while_an_answer_streams_ends_with_a_straight_screen(begin: Begin) -> None:
    journey = begin([{"words": f"{WIDE} " * 20 + "the end", "delay_ms": 10}, finish(), usage(10, 10)])
    terminal = journey.start("--approve", "all", columns=80, rows=24)
    terminal.send("go")
    terminal._write("日本語".encode())
    sizes = random.Random(7)
    for columns, rows in [(20, 5), (7, 3), (1, 1), *((sizes.randint(1, 200), sizes.randint(1, 60)) for _ in range(40)), (80, 24)]:
        resize(terminal, columns, rows)
        terminal.read_for(0.05)
    terminal.wait_for("the end", "● stored")
    terminal.read_for(0.3)
    typed = [line for line in terminal.lines() if "日本語" in line and line.startswith("│")]
    assert [line[-1] for line in typed] == ["│"], terminal.screen()
    assert terminal.process.poll() is None


@pytest.mark.slow
@pytest.mark.rule("TU-14", "CASE-E6")
@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colours_no_colour_code_is_written_and_the_cursor_can_be_seen(begin: Begin, environ: dict[str, str]) -> None:
    journey = begin(says("# Title\n\n```python\nx = 1\n```"))
    command = (sys.executable, "-P", "-m", "pi_durable_tui.cli.main", "--approve", "all")
    with closing(Terminal(command, cwd=journey.work, environ={**journey.environ, **environ})) as terminal:
        terminal.wait_for("Ask for work")
        terminal.send("go")
        terminal.wait_for("x = 1", "● stored")
        codes = {code for numbers in re.findall(rb"\x1b\[([0-9;]*)m", terminal.raw) for code in numbers.decode().split(";") if code}
    assert {code for code in codes if int(code) >= 30 and int(code) not in range(50, 60)} == set()
    assert "7" in codes, "the cursor is shown in reverse"


def guards(terminal: Terminal) -> list[str]:
    """The guards of this terminal that are alive."""
    found: list[str] = []
    for item in Path("/proc").iterdir():
        if item.name.isdigit():
            try:
                line = (item / "cmdline").read_bytes()
                state = (item / "stat").read_text().rpartition(")")[2].split()[0]
                place = (item / "fd/2").readlink()
            except OSError:
                continue
            if b"guard_words" in line and state not in "ZX" and str(place) == os.ttyname(terminal._slave):
                found.append(item.name)
    return found
