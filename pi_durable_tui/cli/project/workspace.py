"""Makes the workspace of a directory: which folders it reads, and whose word about the project counts (rules SA-5, CL-4)."""

from __future__ import annotations

import os
from pathlib import Path

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.setup import Setup
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


def start_remarks(workspace: Workspace, loaded: Loaded) -> tuple[str, ...]:
    """What a person should know of the files that count in print mode, and of those that do not, one line each."""
    unused = [each.item.shown for each in workspace.unused]
    return (*workspace.warnings, *loaded.warnings, *_unused(unused, "--trust uses them"))


def app_remarks(workspace: Workspace, loaded: Loaded) -> tuple[str, ...]:
    """The same in the app, which asks about what is undecided."""
    refused = [each.item.shown for each in workspace.unused if not each.is_open]
    return (*workspace.warnings, *loaded.warnings, *_unused(refused, "/trust changes that"))


def _unused(names: list[str], way_out: str) -> tuple[str, ...]:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (f"Files of the project are not used: {shown} ({way_out}).",) if names else ()
