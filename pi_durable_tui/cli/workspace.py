"""Makes the workspace of a directory: which folders it reads, and whose word about the project counts (rules SA-5, CL-4)."""

from __future__ import annotations

import os
from pathlib import Path

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.compose import Setup
from pi_durable_tui.context.extensions import Loaded
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


def start_remarks(workspace: Workspace, loaded: Loaded, *, more: str) -> tuple[str, ...]:
    """What a person should know about the files that count and those that do not, one line each.

    Args:
        more: How to use what is not used.
    """
    unused = [each.item.shown for each in workspace.unused]
    names = ", ".join(unused[:3]) + (f" and {len(unused) - 3} more" if len(unused) > 3 else "")
    told = (f"Files of the project are not used: {names} ({more}).",) if unused else ()
    return (*workspace.warnings, *loaded.warnings, *told)
