"""What the composer needs of the machine: file names and an editor. The command line gives the real ones (cli/screen)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class DeskPort(Protocol):
    """Called on threads of their own, never on the screen's."""

    def find(self, query: str, *, limit: int) -> Sequence[str]:
        """The paths below the working directory that fit a few letters best, folders with a "/" at the end. Never waits for a whole scan."""
        ...

    def complete(self, typed: str, *, limit: int) -> Sequence[str]:
        """The paths that a half-typed one may become, in order of names, folders with a "/" at the end."""
        ...

    def edit(self, text: str) -> str:
        """`text` as the person leaves it in their editor; called while the terminal is not the app's.

        Raises:
            EnvironmentFailure: There is no editor, or it failed.
        """
        ...
