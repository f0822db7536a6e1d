"""Says whether commands run in a sandbox, and with `--prove` whether one holds on this machine (rule SA-15)."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from pi_durable_tui.cli.check.findings import Finding
from pi_durable_tui.cli.settings import Sandbox as Wanted
from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.sandbox.bubblewrap import Walled
from pi_durable_tui.tools.sandbox.sandbox import Sandbox

NAME, TRIED = "sandbox", "sandbox, tried"
_HOW = 'To have commands in one: bubblewrap, and "sandbox": "files" or "full" in the settings.'
WALLS: tuple[Walled, ...] = get_args(Walled)


def wanted(mode: Wanted, *, is_there: bool) -> Finding:
    """What the settings ask for, nothing tried. PURE."""
    if mode == "off":
        return Finding(name=NAME, state="good", text=f"off: commands can do what you can do{'; bubblewrap is installed' if is_there else ''}")
    if not is_there:
        text = f"{mode}, but bubblewrap (bwrap) is not installed: no command is run"
        return Finding(name=NAME, state="bad", text=text, next_step='Install bubblewrap, or set "sandbox" to "off".')
    return Finding(name=NAME, state="note", text=f"{mode}: tried before the first command", next_step="To try it now: pidurable doctor --prove")


def proved(mode: Wanted, wrong: Mapping[str, str]) -> Finding:
    """What trying has shown. PURE.

    Args:
        wrong: Kind of sandbox -> why it does not hold here; those that hold are not in it.
    """
    holding = [each for each in WALLS if each not in wrong]
    if mode in wrong:
        return Finding(name=TRIED, state="bad", text=wrong[mode], next_step='Or set "sandbox" to "off".')
    if mode != "off":
        return Finding(name=TRIED, state="good", text=f"{mode}: holds; what must not get through was tried")
    if holding:
        return Finding(name=TRIED, state="good", text=f"off; it would hold here as {' and '.join(holding)}", next_step=_HOW)
    return Finding(name=TRIED, state="note", text=f"off; none would hold here. {next(iter(wrong.values()))}")


def tried(directory: Path, environ: Mapping[str, str], clock: Clock) -> dict[str, str]:
    """Try each kind of sandbox around a command in `directory`, with a temporary folder that is gone afterwards; what does not hold, and why.

    Raises:
        OSError: No temporary folder can be made.
    """
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="pidurable-sandbox-")))
    try:
        return asyncio.run(_tried(directory, folder, environ, clock))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _tried(directory: Path, folder: Path, environ: Mapping[str, str], clock: Clock) -> dict[str, str]:
    wrong: dict[str, str] = {}
    for mode in WALLS:
        try:
            await LocalEnvironment(str(directory), folder / mode, clock, environ, sandbox=Sandbox(mode)).wall()
        except EnvironmentFailure as error:
            wrong[mode] = error.message
    return wrong
