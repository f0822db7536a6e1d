"""Single keys of the terminal while text is printed: no line editing, no echo; everything else stays as it is. Restored when it is left."""

from __future__ import annotations

import os
import select
import sys
import termios
from typing import Self


class Keys:
    """A context in which keys can be asked for.

    Args:
        descriptor: Of a terminal.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._before = termios.tcgetattr(descriptor)

    @classmethod
    def of_terminal(cls) -> Self | None:
        """The keys of the person's terminal; None when input or output is none."""
        return cls(sys.stdin.fileno()) if sys.stdin and sys.stdin.isatty() and sys.stdout.isatty() else None

    def __enter__(self) -> Self:
        mode = termios.tcgetattr(self._descriptor)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, mode)
        return self

    def __exit__(self, *_error: object) -> None:
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

    def pressed(self) -> str:
        """The newest key since the last call, in lower case; "" when there was none."""
        newest = ""
        while select.select([self._descriptor], [], [], 0)[0]:
            piece = os.read(self._descriptor, 64)
            if not piece:
                break
            newest = piece.decode(errors="replace")[-1].lower()
        return newest
