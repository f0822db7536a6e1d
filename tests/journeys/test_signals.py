"""Eight signals in five states of the app: each time the terminal is as it was before (PR-20, CL-7, CASE-E5)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest

from tests.journeys.test_hygiene import KILLED, is_restored
from tests.support.cli_runs import new_desk
from tests.support.journey_desk import processes, wait_until
from tests.support.screen_forks import COMMAND, STREAMING, ForkedTerminal, ScreenForks

WAY_BACK = "Resume with: pidurable --continue"
STATES = ("idle", "streaming", "running a command", "asking", "showing a list")
LEAVES = {signal.SIGHUP: 129, signal.SIGINT: 130, signal.SIGQUIT: 131, signal.SIGTERM: 143}
"""What it hears: it puts its work away and leaves with this exit code."""
KILLS = (signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV)
"""What ends it where it stands: the guard cleans up."""


def brought_into(forks: ScreenForks, root: Path, state: str) -> ForkedTerminal:
    """An app in that state."""
    root.mkdir()
    desk = new_desk(root)
    approval = "ask" if state == "asking" else "all"
    terminal = ForkedTerminal(forks, ["--approve", approval], cwd=desk.work, environ=desk.environ())
    prompt = {"streaming": "stream", "running a command": "command", "asking": "ask", "showing a list": "/help"}.get(state)
    terminal.wait_for("Ask for work", "● stored")
    if prompt:
        terminal.send(prompt)
    return terminal


def wait_for_state(terminal: ForkedTerminal, state: str) -> None:
    shown = {"streaming": STREAMING, "running a command": "Running bash", "asking": "Run this command?", "showing a list": "Esc closes"}
    terminal.wait_for(shown.get(state, "Ask for work"))
    assert not is_restored(terminal)


@pytest.fixture
def apps(forks: ScreenForks, tmp_path: Path) -> Iterator[dict[str, ForkedTerminal]]:
    """An app in each state."""
    with ExitStack() as stack:
        made = {state: stack.enter_context(closing(brought_into(forks, tmp_path / str(number), state))) for number, state in enumerate(STATES)}
        for state, terminal in made.items():
            wait_for_state(terminal, state)
        yield made


@pytest.mark.slow
@pytest.mark.rule("PR-20", "CL-7", "CASE-E5")
@pytest.mark.parametrize("number", LEAVES, ids=lambda number: number.name)
def test_a_signal_that_it_hears_leaves_the_terminal_as_it_was_in_every_state(apps: dict[str, ForkedTerminal], number: signal.Signals) -> None:
    for terminal in apps.values():
        terminal.signal(number)
    for state, terminal in apps.items():
        assert (state, terminal.wait_end()) == (state, LEAVES[number])
        assert (state, is_restored(terminal)) == (state, True)
        assert (state, terminal.sees(WAY_BACK)) == (state, state not in {"idle", "showing a list"})
    wait_until(lambda: processes(COMMAND) == [], what="the end of the command")


@pytest.mark.slow
@pytest.mark.rule("PR-20", "CL-7", "CASE-E5")
@pytest.mark.parametrize("number", KILLS, ids=lambda number: number.name)
def test_a_signal_that_ends_it_where_it_stands_leaves_the_cleaning_up_to_the_guard(apps: dict[str, ForkedTerminal], number: signal.Signals) -> None:
    for terminal in apps.values():
        terminal.signal(number)
    for state, terminal in apps.items():
        terminal.wait_until(lambda: is_restored(terminal) and terminal.sees(KILLED), what=f"the guard's cleaning up: {state}")  # noqa: B023 - called at once
        assert (state, terminal.wait_end()) == (state, -number)
    wait_until(lambda: processes(COMMAND) == [], what="the end of the command")


@pytest.mark.slow
@pytest.mark.rule("PR-20", "CL-7", "CASE-E5")
def test_stopping_gives_the_terminal_back_and_going_on_takes_it_again_in_every_state(apps: dict[str, ForkedTerminal]) -> None:
    for terminal in apps.values():
        terminal.signal(signal.SIGTSTP)
    for state, terminal in apps.items():
        process = psutil.Process(terminal.process.pid)
        # Read on meanwhile: a program that cannot write what it has painted does not stop.
        terminal.wait_until(lambda: process.status() == psutil.STATUS_STOPPED, what=f"a stopped program: {state}")  # noqa: B023 - called at once
        terminal.wait_until(lambda: is_restored(terminal), what=f"the terminal as it was: {state}")  # noqa: B023 - called at once
        terminal.signal(signal.SIGCONT)
        terminal.wait_until(lambda: terminal.is_alternate, what=f"the app again: {state}")  # noqa: B023 - called at once
        wait_for_state(terminal, state)
        terminal.signal(signal.SIGTERM)
        terminal.wait_end()
        assert is_restored(terminal)
