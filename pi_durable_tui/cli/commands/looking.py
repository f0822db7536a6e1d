"""Commands that look at a chat."""

# ruff: noqa: PLC0415, PLR0917 - what a command needs is imported when it runs; typer calls its functions by name

from __future__ import annotations

from typing import Annotated

import typer

from pi_durable_tui.cli.commands.options import ChatId, Cwd, Debug, Json
from pi_durable_tui.cli.commands.page import Page
from pi_durable_tui.errors import BadRequest

app = typer.Typer(rich_markup_mode=None)


@app.command(cls=Page, short_help="what lives, why it waits", epilog="Example:  pidurable inspect 1.3 --json")
def inspect(chat_id: ChatId = None, as_json: Json = False, cwd: Cwd = None, debug: Debug = False) -> int:
    """Show live tasks, waits, restarts and open submissions."""
    from pi_durable_tui.cli.inspect import inspect_chat

    del debug
    return inspect_chat(chat_id, cwd=cwd, as_json=as_json)


@app.command(cls=Page, short_help="a chat as plain text", epilog="Example:  pidurable log | less")
def log(chat_id: ChatId = None, cwd: Cwd = None, debug: Debug = False) -> int:
    """Print a chat as plain text."""
    from pi_durable_tui.cli.log import log_chat

    del debug
    return log_chat(chat_id, cwd=cwd)


@app.command(cls=Page, short_help="follow it in a 2nd terminal", epilog="Example:  pidurable watch 1.3")
def watch(chat_id: ChatId = None, as_json: Json = False, cwd: Cwd = None, debug: Debug = False) -> int:
    """Follow a chat that another process is running, read-only.

    In a terminal it is the app, in which q leaves and t takes over once the other process is gone; in a pipe it is text.
    With --json: one event a line.
    """
    from pi_durable_tui.cli.watching.watch import watch_chat

    del debug
    return watch_chat(chat_id, cwd=cwd, as_json=as_json)


@app.command(cls=Page, short_help="a chat as HTML, a file", epilog="Example:  pidurable export 1.3 --html -o chat.html")
def export(
    chat_id: ChatId = None,
    html: Annotated[bool, typer.Option("--html", help="A page for any browser, offline (if nothing else is said).")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown.")] = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="The stored entries, one JSON object a line.")] = False,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE", help="The file; - for stdout; without: named after the chat.")] = None,
    cwd: Cwd = None,
    debug: Debug = False,
) -> int:
    """Write a chat to one file that needs nothing else to be read."""
    from pi_durable_tui.cli.export.command import Form, export_chat

    del debug
    wanted: list[Form] = [*(["html"] if html else []), *(["markdown"] if markdown else []), *(["jsonl"] if jsonl else [])]
    if len(wanted) > 1:
        raise BadRequest("One form at a time: --html, --markdown or --jsonl. Nothing was written.")
    return export_chat(chat_id, form=wanted[0] if wanted else "html", output=output, cwd=cwd)
