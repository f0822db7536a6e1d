"""`pidurable watch` beside a real program that runs, is killed, and is taken over (OB-6)."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.support.cli_runs import Desk, ended
from tests.support.journey_terminal import Terminal

STALLS = ("-p", "--model", "playback/03-kill-mid-stream", "What does fsync really promise, and what do people forget?")
LAST_WORDS = "A power cut loses it."
PATIENCE_S = 20.0


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
@pytest.mark.rule("OB-6")
def test_a_pipe_gets_what_is_committed_and_ends_when_the_owner_is_killed(desk: Desk, owner: subprocess.Popen[bytes]) -> None:
    before = files(desk)
    watching = desk.start("watch")
    assert watching.stdout is not None
    told = b""
    while LAST_WORDS.encode() not in told:
        told += watching.stdout.read1()
    assert files(desk) == before
    owner.kill()
    owner.wait()
    result = ended(watching)
    assert (result.code, result.stdout) == (0, "")
    assert told.decode().startswith("\n> What does fsync really promise, and what do people forget?\n\nThree things stand")
    assert re.fullmatch(rf"pidurable: watching 1\.\d+ \(What does fsync.*…\), read-only; pid {owner.pid} on .* runs it\.\n", result.stderr)
    assert files(desk) == before


@pytest.mark.slow
@pytest.mark.rule("OB-6", "OB-3")
def test_as_json_it_tells_a_snapshot_and_then_events(desk: Desk, owner: subprocess.Popen[bytes]) -> None:
    watching = desk.start("watch", "--json")
    assert watching.stdout is not None
    first = json.loads(watching.stdout.readline())
    owner.kill()
    owner.wait()
    result = ended(watching)
    assert (result.code, first["type"], first["agent"]["model"]) == (0, "snapshot", "playback/03-kill-mid-stream")
    assert LAST_WORDS in first["live"]["generation"]["message"]["content"][0]["text"]


@pytest.mark.slow
@pytest.mark.rule("OB-6")
def test_in_a_terminal_it_is_taken_over_once_the_owner_is_gone_and_not_before(desk: Desk, owner: subprocess.Popen[bytes]) -> None:
    terminal = Terminal([sys.executable, "-m", "pi_durable_tui.cli.main", "watch"], cwd=desk.work, environ=desk.environ())
    try:
        terminal.wait_for(LAST_WORDS)
        terminal.type("t")
        terminal.wait_for("is still running it")
        owner.kill()
        owner.wait()
        terminal.wait_for("t takes over and goes on with the work, q leaves")
        terminal.type("t")
        terminal.wait_for("What nobody gets from it")  # the second request of the recorded session, in the app
    finally:
        terminal.close()


@pytest.mark.slow
@pytest.mark.rule("CL-7")
def test_leaving_gives_the_terminal_back_as_it_was(desk: Desk, owner: subprocess.Popen[bytes]) -> None:
    assert owner.poll() is None
    for way in ("q", "SIGTERM"):
        terminal = Terminal([sys.executable, "-m", "pi_durable_tui.cli.main", "watch"], cwd=desk.work, environ=desk.environ())
        try:
            terminal.wait_for(LAST_WORDS)
            if way == "q":
                terminal.type("q")
            else:
                terminal.signal(signal.SIGTERM)
            assert terminal.wait_end() == (0 if way == "q" else 143)
            assert terminal.current_mode() == terminal.mode
        finally:
            terminal.close()


def test_without_a_chat_it_says_so(desk: Desk) -> None:
    result = desk.run("watch")
    assert (result.code, result.stdout) == (2, "")
    assert "There is no chat in" in result.stderr
