"""Children of this process that can be killed: the door of `selftest` to processes.

A child is a fork of a process that has loaded everything, so it is at work at once. The process that forks has one thread and no
event loop running while it does so. A child is always in a session of its own: a Ctrl+C at the terminal ends it through its parent only.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from pi_durable_tui.playback.folder import append_line


class Child:
    """A fork at work. Made by `start`."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._code: int | None = None

    def ended(self) -> int | None:
        """How it ended: its exit code, or minus the signal. None: it is at work."""
        if self._code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self) -> int:
        """How it ended, once it has."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def kill(self) -> int:
        """SIGKILL, unless it has ended; how it ended."""
        if self.ended() is None:
            os.kill(self._pid, signal.SIGKILL)  # noqa: TID251 - the kill that is tested; the process was started here and is not waited for yet
        return self.wait()


def start(work: Callable[[], int], *, errors: Path) -> Child:
    """Do `work` in a child; its result is the exit code. What it raises is told in the file `errors`, with exit code 70."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()  # noqa: TID251 - the door, see above
    if pid:
        return Child(pid)
    code = 70
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nowhere, descriptor)
        code = work()
    except BaseException:  # noqa: BLE001 - nothing of the parent may run on in the child
        append_line(errors, traceback.format_exc())
    finally:
        os._exit(code)
