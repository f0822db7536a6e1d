"""`pidurable watch` beside a real program that runs, is killed, and is taken over (OB-6)."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.cli_runs import Desk, ended
from tests.support.journey_terminal import Terminal, modes_left_on
from tests.support.patience import PATIENCE_S

STALLS = ("-p", "--model", "playback/03-kill-mid-stream", "What does fsync really promise, and what do people forget?")
LAST_WORDS = "A power cut loses it."


@pytest.fixture
def owner(desk: Desk) -> Iterator[subprocess.Popen[bytes]]:
    """A program in the middle of an answer that will not go on by itself."""
    process = desk.start(*STALLS)
    deadline_s = time.monotonic() + PATIENCE_S
    while LAST_WORDS not in desk.run("log").stdout and time.monotonic() < deadline_s:
        pass
    yield process
    process.kill()
    process.communicate()


def files(desk: Desk) -> list[str]:
    return sorted(str(path.relative_to(desk.root)) for path in desk.root.rglob("*"))


@pytest.mark.slow
@pytest.mark.rule("OB-6", "OB-3")
def test_pipes_get_what_is_committed_as_text_or_events_and_end_when_the_owner_is_killed(desk: Desk, owner: subprocess.Popen[bytes]) -> None:
    before = files(desk)
    watching, events = desk.start("watch"), desk.start("watch", "--json")
    assert watching.stdout is not None
    assert events.stdout is not None
    told = b""
    while LAST_WORDS.encode() not in told:
        told += watching.stdout.read1()
    first = json.loads(events.stdout.readline())
    assert files(desk) == before
    owner.kill()
    owner.wait()
    result = ended(watching)
    assert (result.code, result.stdout) == (0, "")
    assert told.decode().startswith("\n> What does fsync really promise, and what do people forget?\n\nThree things stand")
    assert re.fullmatch(rf"pidurable: watching 1\.\d+ \(What does fsync.*…\), read-only; pid {owner.pid} on .* runs it\.\n", result.stderr)
    assert (ended(events).code, first["type"], first["agent"]["model"]) == (0, "snapshot", "playback/03-kill-mid-stream")
    assert LAST_WORDS in first["live"]["generation"]["message"]["content"][0]["text"]
    assert files(desk) == before


def watching_screen(desk: Desk, owner: subprocess.Popen[bytes]) -> Terminal:
    """The app that watches, with what is committed on the screen."""
    terminal = Terminal([sys.executable, "-P", "-m", "pi_durable_tui.cli.main", "watch"], cwd=desk.work, environ=desk.environ())
    terminal.wait_for(LAST_WORDS, f"pid {owner.pid} on", "runs it · q leaves")
    return terminal


@pytest.mark.slow
@pytest.mark.rule("OB-6", "CL-7", "CASE-E5")
def test_in_a_terminal_it_is_the_app_writes_nothing_and_is_taken_over_once_the_owner_is_gone(desk: Desk, owner: subprocess.Popen[bytes]) -> None:
    before = files(desk)
    for way, code in (("q", 0), ("SIGKILL", -9)):
        with closing(watching_screen(desk, owner)) as screen:
            if way == "q":
                screen.press("q")
            else:
                screen.signal(signal.Signals[way])
            assert screen.wait_end() == code
            screen.wait_until(lambda: not screen.is_alternate and modes_left_on(screen.raw) == [], what="the terminal as it was")
            assert screen.current_mode() == screen.mode
    with closing(watching_screen(desk, owner)) as screen:
        screen.press("t")
        screen.wait_for(f"pid {owner.pid} on", "runs it still, and a session has one writer")
        assert owner.poll() is None
        owner.kill()
        owner.wait()
        screen.wait_for("no program runs it · t takes over, q leaves")
        assert files(desk) == before
        screen.press("t")
        screen.wait_for("What nobody gets from it", "Ask for work")  # the second request of the recorded session, in the chat itself


def test_without_a_chat_it_says_so(desk: Desk) -> None:
    result = desk.run("watch")
    assert (result.code, result.stdout) == (2, "")
    assert "There is no chat in" in result.stderr
