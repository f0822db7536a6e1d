"""`pidurable sessions` and what is below it."""

# ruff: noqa: PLC0415 - what a command needs is imported when it runs

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from pi_durable_tui.cli.commands.options import HELP_NAMES, ChatId, Cwd, Debug, Json, SomeChat, Store, Yes
from pi_durable_tui.cli.commands.page import Page

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None, context_settings=HELP_NAMES)


class Files(StrEnum):
    """Which files of the directory a recording takes along."""

    NEEDED = "needed"
    ALL = "all"
    NONE = "none"


@app.callback(short_help="list, show, delete, backup", epilog="Example:  pidurable sessions --json")
def sessions(context: typer.Context, as_json: Json = False, cwd: Cwd = None, debug: Debug = False) -> int:
    """List the chats of this directory."""
    from pi_durable_tui.cli.sessions.listing import list_sessions

    del debug
    return list_sessions(cwd=cwd, as_json=as_json) if context.invoked_subcommand is None else 0


@app.command("convert", cls=Page, epilog="Example:  pidurable sessions convert 2 --to jsonl")
def convert(
    to: Annotated[Store, typer.Option(metavar="KIND", help="sqlite (one file) or jsonl (a folder of JSON lines).")],
    number: Annotated[int, typer.Argument(min=1, metavar="[N]", help="The session: the number before the dot of its chats' ids.")] = 1,
    cwd: Cwd = None,
    debug: Debug = False,
) -> int:
    """Turn a session's store into the other kind; the old one is kept."""
    from pi_durable_tui.cli.sessions.listing import convert_session

    del debug
    return convert_session(number, to.value, cwd=cwd)


@app.command("list", cls=Page, epilog="Example:  pidurable sessions list --json")
def list_(as_json: Json = False, cwd: Cwd = None, debug: Debug = False) -> int:
    """List the chats of this directory."""
    from pi_durable_tui.cli.sessions.listing import list_sessions

    del debug
    return list_sessions(cwd=cwd, as_json=as_json)


@app.command(cls=Page, epilog="Example:  pidurable sessions show 1.3")
def show(chat_id: ChatId = None, as_json: Json = False, cwd: Cwd = None, debug: Debug = False) -> int:
    """Show a chat: its state, model, tokens, file and first words."""
    from pi_durable_tui.cli.sessions.listing import show_session

    del debug
    return show_session(chat_id, cwd=cwd, as_json=as_json)


@app.command(cls=Page, epilog='Example:  sqlite3 "$(pidurable sessions path)"')
def path(chat_id: ChatId = None, cwd: Cwd = None, debug: Debug = False) -> int:
    """Print the file that a chat is in."""
    from pi_durable_tui.cli.sessions.listing import path_of

    del debug
    return path_of(chat_id, cwd=cwd)


@app.command(cls=Page, epilog='Example:  pidurable sessions rename 1.3 "the slow query"')
def rename(
    chat_id: SomeChat, name: Annotated[str, typer.Argument(metavar="NAME", help="Empty: no name of its own.")], cwd: Cwd = None, debug: Debug = False
) -> int:
    """Give a chat a name."""
    from pi_durable_tui.cli.sessions.keeping import rename_chat

    del debug
    return rename_chat(chat_id, name, cwd=cwd)


@app.command(cls=Page, epilog="Example:  pidurable sessions delete 1.3")
def delete(chat_id: SomeChat, yes: Yes = False, cwd: Cwd = None, debug: Debug = False) -> int:
    """Delete a chat and its subagents' work for good."""
    from pi_durable_tui.cli.sessions.keeping import delete_chat

    del debug
    return delete_chat(chat_id, cwd=cwd, yes=yes)


@app.command(cls=Page, epilog="Example:  pidurable sessions prune --older-than 30d")
def prune(
    older_than: Annotated[str, typer.Option("--older-than", metavar="AGE", help="Such as 12h, 30d or 4w.")],
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list them.")] = False,
    cwd: Cwd = None,
    debug: Debug = False,
) -> int:
    """Delete finished chats that are older, for good."""
    from pi_durable_tui.cli.sessions.keeping import prune as prune_chats

    del debug
    return prune_chats(older_than, cwd=cwd, yes=yes, dry_run=dry_run)


@app.command(cls=Page, epilog="Example:  pidurable sessions backup ~/backups/today")
def backup(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A new folder; usable as PIDURABLE_DATA_DIR.")], cwd: Cwd = None, debug: Debug = False
) -> int:
    """Copy the sessions of this directory, also while they are written."""
    from pi_durable_tui.cli.sessions.keeping import backup as back_up

    del debug
    return back_up(folder, cwd=cwd)


@app.command(cls=Page, epilog="Example:  pidurable sessions record 1.3 ./the-bug && pidurable demo ./the-bug")
def record(
    first: Annotated[str, typer.Argument(metavar="[ID] FOLDER", help="A chat (without: the one --continue takes), and a new folder.")],
    second: Annotated[str | None, typer.Argument(hidden=True)] = None,
    files: Annotated[Files, typer.Option(metavar="WHICH", help="needed (named or changed by calls), all of the directory, or none.")] = Files.NEEDED,
    cwd: Cwd = None,
    debug: Debug = False,
) -> int:
    """Make a folder of a chat, which pidurable demo plays.

    A bug report is such a folder. Keys are taken out and paths made relative; look through it before you give it away.
    """
    from pi_durable_tui.cli.sessions.recording import record_chat

    del debug
    return record_chat(first if second is not None else None, second or first, extent=files.value, cwd=cwd)


@app.command(cls=Page, epilog="Example:  pidurable sessions salvage 2")
def salvage(
    which: Annotated[
        str | None, typer.Argument(metavar="[ID|FILE]", help="A session, one of its chats, or a store elsewhere; without: the damaged one.")
    ] = None,
    cwd: Cwd = None,
    debug: Debug = False,
) -> int:
    """Write what can still be read of a damaged session into a new one.

    The damaged one is only read. What is lost is listed, and told in its chats.
    """
    from pi_durable_tui.cli.sessions.salvage import salvage as salvage_session

    del debug
    return salvage_session(which, cwd=cwd)
