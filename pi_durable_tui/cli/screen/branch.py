"""Which branch the working directory is on, for the footer (rule TU-11). Two small files of git are read; nothing is run or written."""

from __future__ import annotations

from pathlib import Path

from pi_durable_tui.cli.paths import read_text
from pi_durable_tui.errors import ConfigError

_LIMIT_BYTES = 4_096
_BRANCH = "ref: refs/heads/"
_DIGITS = 8


def branch(directory: Path) -> str:
    """The branch, or the first digits of the commit when no branch is out; "" outside of a repository, or where it cannot be read."""
    try:
        for folder in (directory, *directory.parents):
            mark = folder / ".git"
            if mark.is_dir():
                return _named(read_text(mark / "HEAD", limit_bytes=_LIMIT_BYTES))
            pointer = read_text(mark, limit_bytes=_LIMIT_BYTES)  # of a work tree or a submodule
            if pointer is not None:
                return _named(read_text(folder / pointer.removeprefix("gitdir:").strip() / "HEAD", limit_bytes=_LIMIT_BYTES))
    except (ConfigError, OSError, ValueError):
        pass
    return ""


def _named(head: str | None) -> str:
    said = (head or "").strip()
    return said.removeprefix(_BRANCH) if said.startswith(_BRANCH) else said[:_DIGITS]
