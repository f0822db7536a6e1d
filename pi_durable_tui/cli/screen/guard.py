"""Gives the terminal back when the app is killed (rule CL-7, CASE-E5): a shell of a few lines waits for its end and cleans up.

Nothing inside a process can act on SIGKILL, so a second one has to. It reads words from a pipe: "on" while the app has the terminal,
"off" when it has given it back. The end of the pipe is the end of the app, however it came; if the last word was "on", the terminal
is put right and the way back is printed. It leaves the group of the app, ignores what a terminal sends to a group, and has nothing
of the app in its command line, so that what ends the app by group or by name does not end it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess  # noqa: TID251 - the guard is no tool's command: it must outlive this process
import sys
from typing import Self

RESET = (
    "\x18"  # ends a sequence that was cut in the middle
    "\x1b[?2026l"  # synchronized output
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # mouse
    "\x1b[?2004l\x1b[?2048l"  # paste, size reports
    "\x1b[?7h"  # line wrap
    "\x1b[<u"  # keyboard protocol: of the alternate screen, so ahead of leaving it
    "\x1b[?1049l\x1b[0m\x1b[?25h\x1b[?1004l"  # main screen, plain, cursor, focus reports
)
"""Everything the app's driver switches on, switched off."""

# The settings are put back only while they are still the app's (no signals from keys): a shell may have set its own by now.
_SCRIPT = r"""
trap '' HUP INT QUIT TERM TSTP TTIN TTOU
saved=$(stty -g <&2 2>/dev/null)
echo ready
exec >&2
word=off
while IFS= read -r line; do word=$line; done
[ "$word" = on ] || exit 0
printf '%s' "$guard_reset"
case $(stty -a <&2 2>/dev/null) in *-isig*) stty "$saved" <&2 2>/dev/null ;; esac
printf '\r\n%s\r\n' "$guard_words"
"""


class TerminalGuard:
    """A guard of the terminal at stderr; start it before the terminal is changed.

    Args:
        words: What to print after the app was killed; one line of safe text.
    """

    def __init__(self, words: str) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        with contextlib.suppress(OSError):  # a machine without a shell has no guard; everything else works
            self._process = subprocess.Popen(  # noqa: S603 - a fixed script; nothing in it comes from outside
                ["/bin/sh", "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sys.__stderr__,
                env={"PATH": os.defpath, "guard_reset": RESET, "guard_words": words},
                process_group=0,
            )

    def say(self, word: str) -> None:
        """Tell the guard who has the terminal: "on" the app, "off" nobody. The first time waits until the guard knows how it was set."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return
        if not self._is_ready:
            self._is_ready = True
            process.stdout.readline()
        with contextlib.suppress(OSError):  # the guard is gone: there is nothing to tell it
            process.stdin.write(f"{word}\n".encode())
            process.stdin.flush()

    def close(self) -> None:
        """Let the guard end; the terminal stays as it is."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return
        self.say("off")
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.stdout.close()
        process.wait()
        self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ended: object) -> None:
        self.close()
