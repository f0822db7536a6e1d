"""The app as the command line starts it: demos that type themselves, no key, nothing said (CL-2, CL-5). Kills and signals: tests/journeys."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from tests.support.cli_runs import Desk
from tests.support.journey_terminal import Terminal, modes_left_on

Start = Callable[..., Terminal]


@pytest.fixture
def start(desk: Desk) -> Iterator[Start]:
    started: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        command = [sys.executable, "-m", "pi_durable_tui.cli.main", *arguments]
        started.append(Terminal(command, cwd=desk.work, environ=desk.environ()))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


@pytest.mark.slow
@pytest.mark.rule("CL-5", "TU-9")
def test_a_demo_types_itself_dies_and_comes_back_with_all_that_was_on_the_screen(start: Start) -> None:
    terminal = start("demo", "03", "--speed", "10")
    terminal.wait_for("What does fsync really promise")
    # What stands between two lives is looked for in all that came: this process may be slower than the demo.
    terminal.wait_until(lambda: b"$ pidurable --continue" in terminal.raw, what="the way back")
    first_life, between, _ = terminal.raw.partition(b"Killed by SIGKILL: nothing was flushed, closed or handed back.")
    assert (between != b"", modes_left_on(first_life)) == (True, [])
    terminal.wait_for("What nobody gets from it", "● stored")
    assert all(terminal.sees(text) for text in ("A power cut loses it.", "Interrupted here", "; nothing lost"))
    terminal.press("ctrl+d")
    assert terminal.wait_end() == 0
    assert terminal.current_mode() == terminal.mode
    assert not terminal.sees("Resume with")


@pytest.mark.slow
@pytest.mark.rule("CL-5", "CASE-H2")
def test_without_a_key_the_app_opens_and_says_what_it_looked_for(start: Start) -> None:
    terminal = start()
    terminal.wait_for("No model is chosen", "ANTHROPIC_API_KEY", "pidurable demo", "● stored")
    terminal.press("ctrl+d")
    assert terminal.wait_end() == 0


@pytest.mark.slow
@pytest.mark.rule("CASE-H5")
def test_a_chat_that_was_opened_without_a_word_is_not_what_continue_takes(start: Start, desk: Desk) -> None:
    terminal = start()
    terminal.wait_for("● stored")
    terminal.press("ctrl+d")
    assert terminal.wait_end() == 0
    result = desk.run("-c", "-p", "hi")
    assert (result.code, result.stderr[:28]) == (2, "pidurable: There is no chat ")
