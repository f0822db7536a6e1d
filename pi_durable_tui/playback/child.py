"""The deaths of a demo: starts the process that plays, and ends it for real. The door of `playback` to processes.

The player is a process of its own, because a story in which the program dies by SIGKILL needs somebody who is still there to say so
and to start it again.
"""

from __future__ import annotations

import os
import signal
import subprocess  # noqa: TID251 - the door, see above
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

_ROOT = str(Path(__file__).resolve().parent.parent.parent)
_LEAVE_SCREEN = "\x1b[<u\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1004l\x1b[?2004l\x1b[?2026l\x1b[?1049l\x1b[?25h\x1b[0m"
"""Keyboard protocol, mouse, focus, paste and synchronized output off, the normal screen, cursor and colours back."""

_FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def run_again(arguments: Sequence[str], *, cwd: Path, environ: Mapping[str, str], is_silent: bool = False) -> int:
    """Run this program once more with `arguments`, on the same terminal, and return how it ended: its exit code, or minus the signal.

    SIGTERM and SIGHUP are handed on; SIGINT reaches it from the terminal itself. If a signal ended it, the terminal is as before.

    Args:
        arguments: What follows the program's name.
        cwd: Its working directory.
        environ: Its whole environment.
        is_silent: Its stdout is thrown away.
    """
    mode = _terminal_mode()
    child = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-P", "-m", "pi_durable_tui.cli.main", *arguments],
        cwd=cwd,
        env={**environ, "PYTHONPATH": os.pathsep.join(part for part in (_ROOT, environ.get("PYTHONPATH", "")) if part)},
        stdout=subprocess.DEVNULL if is_silent else None,
    )

    def hand_on(number: int, _frame: FrameType | None) -> None:
        child.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in _FORWARDED}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if code < 0 and mode is not None:
        _restore(mode)
    return code


def die() -> NoReturn:
    """End this process at once, as `kill -9` does: nothing is flushed, closed or handed back."""
    os.kill(os.getpid(), signal.SIGKILL)  # noqa: TID251 - its own death is the story
    raise AssertionError


def _terminal_mode() -> list[int | list[bytes | int]] | None:
    """How the terminal is set; None without one."""
    return termios.tcgetattr(sys.stdin) if sys.stdin and sys.stdin.isatty() and sys.stdout.isatty() else None


def _restore(mode: list[int | list[bytes | int]]) -> None:
    """What the dead player could not do: the mode back, and out of its screen."""
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, mode)
    sys.stdout.write(_LEAVE_SCREEN)
    sys.stdout.flush()
