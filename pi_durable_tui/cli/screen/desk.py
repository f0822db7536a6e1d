"""What the app needs of this machine: implements `tui.ports.DeskPort`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pi_durable_tui.cli.screen.branch import branch
from pi_durable_tui.cli.screen.browser import browse
from pi_durable_tui.cli.screen.editor import edit
from pi_durable_tui.cli.screen.files import FileNames
from pi_durable_tui.clock import Clock


class Desk:
    """See the module.

    Args:
        directory: Where file names and the branch are looked for.
        environ: Names the editor, which gets all of it, as the browser does.
    """

    def __init__(self, directory: str, clock: Clock, environ: Mapping[str, str]) -> None:
        self._directory = Path(directory)
        self._names = FileNames(directory, clock)
        self._environ = environ

    def find(self, query: str, *, limit: int) -> Sequence[str]:
        return self._names.find(query, limit=limit)

    def complete(self, typed: str, *, limit: int) -> Sequence[str]:
        return self._names.complete(typed, limit=limit)

    def branch(self) -> str:
        return branch(self._directory)

    def edit(self, text: str) -> str:
        return edit(text, self._environ)

    def browse(self, url: str) -> None:
        browse(url, self._environ)
