"""Folders of a person and of a project, and the workspace over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.context.trust import Trusting
from pi_durable_tui.context.workspace import Where, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """All below one temporary folder.

    Attributes:
        tools: What the agent is offered.
    """

    top: Path
    tools: frozenset[str] = frozenset({"read", "bash"})
    clock: ManualClock = field(default_factory=ManualClock)

    @property
    def config(self) -> Path:
        return self.top / "home" / "config"

    @property
    def repo(self) -> Path:
        return self.top / "home" / "repo"

    @property
    def decisions(self) -> Path:
        return self.top / "home" / "data" / "trust"

    def put(self, path: Path, content: str | bytes) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def workspace(self, directory: Path | None = None, *, trusting: Trusting = "all") -> Workspace:
        """A process that starts in `directory` (None: the repository)."""
        where = Where(directory=directory or self.repo, config=self.config, decisions=self.decisions, home=self.top / "home")
        return Workspace(where, trusting=trusting, tools=self.tools, clock=self.clock)


def new_folders(top: Path) -> Folders:
    """A home with a config folder and a repository with nothing in it."""
    made = Folders(top=top.resolve())
    (made.repo / ".git").mkdir(parents=True)
    made.config.mkdir()
    return made
