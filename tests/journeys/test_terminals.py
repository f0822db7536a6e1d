"""The app in terminals of many kinds: tiny, huge, inside tmux, over SSH, light, dark, with few colours, without a mouse (TU-14, CASE-E6)."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.journeys.conftest import Begin
from tests.journeys.test_hygiene import is_restored, resize
from tests.support.cli_runs import Desk, new_desk
from tests.support.journey_desk import numbered
from tests.support.journey_terminal import Terminal
from tests.support.model_server import finish, usage
from tests.support.patience import PATIENCE_S
from tests.support.screen_forks import COMMAND, TOLD, ForkedTerminal, ScreenForks

MOUSE_ON = b"\x1b[?1000h"
Open = Callable[..., ForkedTerminal]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return new_desk(tmp_path)


@pytest.fixture
def open_app(forks: ScreenForks, desk: Desk) -> Iterator[Open]:
    """Opens an app that waits for a prompt: `open_app("--approve", "all", columns=80, rows=24, environ={…})`."""
    with ExitStack() as stack:

        def start(*arguments: str, columns: int = 100, rows: int = 32, **environ: str) -> ForkedTerminal:
            made = ForkedTerminal(forks, arguments, cwd=desk.work, environ={**desk.environ(), **environ}, columns=columns, rows=rows)
            stack.callback(made.close)
            made.wait_for("● stored")
            return made

        yield start


def words(text: str) -> str:
    """Letters and digits alone, as they stand on a screen whatever its width."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFC", text))


def is_straight(terminal: Terminal) -> bool:
    """The composer's frame is as wide as the screen."""
    frame = [line for line in terminal.lines() if line.startswith(("╭", "╰"))]
    return len(frame) == 2 and {cell_len(line) for line in frame} == {terminal.columns}


def leave(terminal: ForkedTerminal) -> None:
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_end() == 143
    assert is_restored(terminal)


@pytest.mark.slow
@pytest.mark.rule("TU-14", "CASE-E6")
@pytest.mark.parametrize(("columns", "rows"), [(40, 10), (300, 100)])
def test_everything_can_be_done_in_a_tiny_and_in_a_huge_window(open_app: Open, columns: int, rows: int) -> None:
    terminal = open_app("--approve", "ask", columns=columns, rows=rows)
    terminal.send("tell me")
    terminal.wait_for('print("the end")', "● stored")
    terminal.wait_gone("Esc stops")
    assert terminal.lines()[-1].startswith(" ")
    assert max(cell_len(line) for line in terminal.lines()) <= columns
    terminal.press("\x1b[1;5H")  # Ctrl+Home
    terminal.wait_for("tell me", "日本語のテキスト")
    terminal.press("\x1b[1;5F", "/", "h", "e", "l", "p", "enter")
    terminal.wait_for("Esc closes")
    terminal.press("escape")
    terminal.wait_gone("Esc closes")
    terminal.press("\x14")
    terminal.wait_for("Nothing is at work.")
    terminal.press("\x14")
    terminal.wait_gone("Nothing is at work.")
    terminal.send("run it")
    terminal.wait_for("Run this command?", COMMAND)
    terminal.read_for(0.4)  # the card takes no answer in its first moments
    terminal.press("y")
    terminal.wait_for("Running bash")
    terminal.press("escape")
    terminal.wait_for("● stored")
    terminal.wait_gone("Running bash")
    leave(terminal)


@pytest.mark.slow
@pytest.mark.rule("TU-14", "CASE-E6")
def test_a_screen_is_the_same_after_a_storm_of_sizes_as_when_it_is_drawn_anew(open_app: Open) -> None:
    terminal = open_app("--approve", "all", columns=90, rows=30)
    terminal.send("tell me")
    for step in range(30):
        resize(terminal, 7 + step * 37 % 200, 3 + step * 11 % 60)
        terminal.read_for(0.02)
    resize(terminal, 90, 30)
    terminal.wait_for('print("the end")', "● stored")
    terminal.wait_gone("Esc stops")
    terminal.wait_until(lambda: is_straight(terminal) and f"\n  {'x' * 86}\n" in terminal.screen(), what="the screen in its last size")
    after = [line for line in terminal.lines() if line.strip()]
    leave(terminal)
    again = open_app("--continue", columns=90, rows=30)
    again.wait_for('print("the end")')
    again.wait_until(lambda: is_straight(again), what="the whole screen")
    assert [line for line in again.lines() if line.strip()][:-1] == after[:-1]  # the footer knows how long ago it was stored


@pytest.mark.slow
@pytest.mark.rule("TU-14")
@pytest.mark.parametrize(
    ("environ", "coded", "uncoded"),
    [
        ({"SSH_TTY": "/dev/pts/9", "SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"}, rb"38;5;\d+", rb"[34]8;2;"),
        ({"SSH_TTY": "/dev/pts/9", "TERM": "xterm"}, rb"\x1b\[", rb"[34]8;2;"),
        ({"COLORTERM": "truecolor", "COLORFGBG": "0;15"}, rb"48;2;2[45]\d;2[45]\d;2[45]\d", rb"48;5;"),
        ({"COLORTERM": "truecolor", "COLORFGBG": "15;0"}, rb"48;2;\d\d;\d\d;\d\d", rb"48;2;2[45]\d;2[45]\d;2[45]\d"),
    ],
    ids=["ssh", "ssh, old terminal", "light", "dark"],
)
def test_over_ssh_and_in_light_and_dark_it_uses_the_colours_that_there_are(open_app: Open, environ: dict[str, str], coded: bytes, uncoded: bytes) -> None:
    terminal = open_app("--approve", "all", **environ)
    terminal.send("tell me")
    terminal.wait_for('print("the end")', "● stored")
    terminal.wait_gone("Esc stops")
    assert words(TOLD)[:40] in words(terminal.screen())
    assert re.search(coded, terminal.raw)
    assert not re.search(uncoded, terminal.raw)
    leave(terminal)


@pytest.mark.slow
@pytest.mark.rule("TU-14", "TU-4", "TU-5")
def test_with_the_mouse_off_the_terminal_keeps_it_and_keys_unfold_search_select_and_copy(open_app: Open, desk: Desk) -> None:
    (desk.root / "config").mkdir()
    (desk.root / "config/settings.json").write_text('{"mouse": false}')
    terminal = open_app("--approve", "all")
    terminal.send("tell me")
    terminal.wait_for('print("the end")', "● stored")
    terminal.press("\x06")
    terminal.wait_for("⌕")
    terminal.type("two")
    terminal.wait_for("1 in what is loaded")
    terminal.press("escape")
    terminal.wait_gone("⌕")
    terminal.press("\x1bc", " ", "\x1b[A", "\x1b[A", "enter")
    terminal.wait_for("copied")
    assert b"\x1b]52;c;" in terminal.raw
    assert MOUSE_ON not in terminal.raw
    leave(terminal)


@pytest.mark.slow
@pytest.mark.rule("TU-14", "CASE-E6")
def test_inside_tmux_it_streams_is_resized_detached_and_attached_and_gives_the_pane_back(begin: Begin, tmp_path: Path) -> None:
    journey = begin([*numbered(40, delay_ms=20), {"text": "the end"}, finish(), usage(10, 10)])
    tmux = ("tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null")
    inside = f"{sys.executable} -P -m pi_durable_tui.cli.main --approve all; echo the pane is back; exec cat"
    terminal = journey.start(command=[*tmux, "new-session", inside])
    try:
        terminal.send("count for me")
        terminal.wait_for("n005")
        resize(terminal, 70, 20)
        terminal.wait_for("n020")
        subprocess.run([*tmux, "detach-client"], env=journey.environ, timeout=PATIENCE_S, check=True)
        terminal.wait_end()
        assert is_restored(terminal)

        again = journey.start(command=[*tmux, "attach-session"], columns=80, rows=24, ready="the end")
        again.wait_for("n039", "● stored")
        again.wait_until(lambda: is_straight(again), what="the screen in the new terminal's size")
        again.press("ctrl+c", "ctrl+c")
        again.wait_for("n039", "Resume with: pidurable --continue", "the pane is back")
    finally:
        subprocess.run([*tmux, "kill-server"], env=journey.environ, timeout=PATIENCE_S, check=False)
