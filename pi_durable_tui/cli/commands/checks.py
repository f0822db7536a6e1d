"""Commands that look at the program and the machine, and that fit it into a shell."""

# ruff: noqa: PLC0415 - what a command needs is imported when it runs

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pi_durable_tui.cli.commands.options import Cwd, Debug, Json, Store
from pi_durable_tui.cli.commands.page import Page
from pi_durable_tui.cli.wish import COMPLETING

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=Page, short_help="kill it, see what is lost", epilog="Example:  pidurable selftest --kill 200")
def selftest(
    kill: Annotated[int, typer.Option("--kill", min=1, max=1_000_000, metavar="N", help="How many times.")] = 50,
    seed: Annotated[int | None, typer.Option("--seed", min=0, metavar="SEED", help="Draw the same moments as an earlier run.")] = None,
    store: Annotated[Store | None, typer.Option("--store", metavar="KIND", show_default=False, help="Only sqlite or only jsonl; without: both.")] = None,
    debug: Debug = False,
) -> int:
    """Kill a scripted run at random moments, go on with it, and judge it.

    Real SIGKILLs of real processes with tools and files, in a temporary folder; no key, no network. Exit status 1: a promise was broken.
    """
    from pi_durable_tui.cli.check.selftest import run_selftest

    del debug
    return run_selftest(kill, seed=seed, store=store.value if store is not None else None)


@app.command(cls=Page, short_help="what is wrong, what to do", epilog="Example:  pidurable doctor --prove")
def doctor(
    prove: Annotated[bool, typer.Option("--prove", help="Measure too: does the disk wait, and do 20 kills lose anything?")] = False,
    as_json: Json = False,
    cwd: Cwd = None,
    debug: Debug = False,
) -> int:
    """Look at versions, disk, sessions, keys and terminal; say what to do.

    Keys are named, never shown. Exit status 1: something is wrong.
    """
    from pi_durable_tui.cli.check.doctor import run_doctor

    del debug
    return run_doctor(prove=prove, cwd=cwd, as_json=as_json)


class Shell(StrEnum):
    """The shells whose completion is known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command(cls=Page, short_help="for bash, zsh, fish", epilog='Example:  eval "$(pidurable completion bash)"')
def completion(shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> int:
    """Print what makes a shell complete commands and options.

    Put the example into the start-up file of the shell; for fish: pidurable completion fish | source
    """
    from typer._completion_shared import get_completion_script

    print(get_completion_script(prog_name="pidurable", complete_var=COMPLETING, shell=shell.value))
    return 0
