"""`pidurable sessions` and what is below it."""

# ruff: noqa: PLC0415 - what a command needs is imported when it runs

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pi_durable_tui.cli.commands.options import HELP_NAMES, Cwd, Debug, Json

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None, context_settings=HELP_NAMES)


class Store(StrEnum):
    """The kinds of store."""

    SQLITE = "sqlite"
    JSONL = "jsonl"


@app.callback(short_help="list, rename, delete, backup", epilog="Example:  pidurable sessions --json")
def sessions(context: typer.Context, as_json: Json = False, cwd: Cwd = None, debug: Debug = False) -> int:
    """List the chats of this directory."""
    from pi_durable_tui.cli.sessions import list_sessions

    del debug
    return list_sessions(cwd=cwd, as_json=as_json) if context.invoked_subcommand is None else 0


@app.command("convert", epilog="Example:  pidurable sessions convert 2 --to jsonl")
def convert(
    to: Annotated[Store, typer.Option(metavar="KIND", help="sqlite (one file) or jsonl (a folder of JSON lines).")],
    number: Annotated[int, typer.Argument(min=1, metavar="[N]", help="The session: the number before the dot of its chats' ids.")] = 1,
    cwd: Cwd = None,
    debug: Debug = False,
) -> int:
    """Turn a session's store into the other kind; the old one is kept."""
    from pi_durable_tui.cli.sessions import convert_session

    del debug
    return convert_session(number, to.value, cwd=cwd)
