"""What a new chat says about the sessions of its directory that it did not take (rule CL-3): somebody else's, and unfinished ones."""

from __future__ import annotations

from collections.abc import Sequence

from pi_durable_tui.cli.compose import Passed
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.cli.watching.followed import owner_of


def remarks(setup: Setup, passed: Sequence[Passed]) -> tuple[str, ...]:
    """One line for all that others hold, and one for all that waits for somebody to go on with it."""
    owners = [owner_of(setup, one.number) for one in passed if one.is_held]
    pids = [f"pid {owner.pid}" for owner in owners if owner is not None]
    said: list[str] = []
    if pids:
        said.append(
            f"In this directory pidurable is at work already ({', '.join(pids)}): all of them change the same files.\npidurable watch shows what it does."
        )
    if any(not one.is_held for one in passed):
        said.append(
            "In this directory work was cut off and is not finished. It waits; this is a new chat.\n/resume opens it, pidurable --continue goes on with it."
        )
    return tuple(said)
