"""Makes the workspace of a directory: which folders it reads, and whose word about the project counts (rules SA-5, CL-4)."""

from __future__ import annotations

import os
from pathlib import Path

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.compose import Setup
from pi_durable_tui.context.trust import Trusting
from pi_durable_tui.context.workspace import Where, Workspace
from pi_durable_tui.tools.catalog import all_tools


def open_workspace(setup: Setup, *, trusting: Trusting) -> Workspace:
    """The workspace of the setup's directory. Reads files, runs nothing of them, writes nothing."""
    folders = paths.folders(setup.environ)
    home = setup.environ.get("HOME")
    where = Where(
        directory=setup.place.directory,
        config=folders.config,
        decisions=folders.data / "trust",
        home=Path(os.path.realpath(home)) if home else None,
    )
    return Workspace(where, trusting=trusting, tools=frozenset(tool.name for tool in all_tools()), clock=setup.clock)


def trusting_of(*, in_print_mode: bool, trust: bool) -> Trusting:
    """Whose word counts: `--trust` says yes for this run; print mode uses nobody's, because nobody was shown anything. PURE."""
    if trust:
        return "all"
    return "none" if in_print_mode else "decided"
