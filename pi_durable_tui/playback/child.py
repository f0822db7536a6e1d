"""The deaths of a demo: starts the process that plays, and ends it for real. The door of `playback` to processes.

The player is a process of its own, because a story in which the program dies by SIGKILL needs somebody who is still there to say so
and to start it again.
"""

from __future__ import annotations

import os
import signal
import subprocess  # noqa: TID251 - the door, see above
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

_ROOT = str(Path(__file__).resolve().parent.parent.parent)
_FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def run_again(arguments: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> int:
    """Run this program once more with `arguments`, on the same terminal, and return how it ended: its exit code, or minus the signal.

    SIGTERM and SIGHUP are handed on. SIGINT reaches it from the terminal itself.

    Args:
        arguments: What follows the program's name.
        cwd: Its working directory.
        environ: Its whole environment.
    """
    child = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-P", "-m", "pi_durable_tui.cli.main", *arguments],
        cwd=cwd,
        env={**environ, "PYTHONPATH": os.pathsep.join(part for part in (_ROOT, environ.get("PYTHONPATH", "")) if part)},
    )

    def hand_on(number: int, _frame: FrameType | None) -> None:
        child.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in _FORWARDED}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def die() -> NoReturn:
    """End this process at once, as `kill -9` does: nothing is flushed, closed or handed back."""
    os.kill(os.getpid(), signal.SIGKILL)  # noqa: TID251 - its own death is the story
    raise AssertionError
