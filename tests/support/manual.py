"""Writes the manual page from the table of commands: `python -m tests.support.manual`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from pi_durable_tui import __version__
from pi_durable_tui.cli.commands.application import app
from pi_durable_tui.cli.commands.page import described, plain
from pi_durable_tui.cli.providers import DEFAULTS
from pi_durable_tui.cli.routing import CHAT
from pi_durable_tui.models.catalog import PROVIDERS

PAGE = Path(__file__).parents[2] / "docs/pidurable.1"

DESCRIPTION = (
    (
        "pidurable is a coding agent for the terminal whose work cannot be lost. Every step is committed to a file before it is shown: prompts, pieces of "
        "a streamed answer, what a tool is about to do and what came of it, queued messages, questions, the half-typed draft. Kill it at any moment; "
        "pidurable --continue says what happened and goes on with the work."
    ),
    (
        "A first word that names a command is that command; all other words are a first prompt for a new chat. Words after -- are always a prompt. @FILE in "
        "a prompt brings a file along. With -p the answer goes to standard output, and piped input comes before the prompt."
    ),
)
ENVIRONMENT = (
    (", ".join(PROVIDERS[name].keys[0] for name in DEFAULTS), "Keys of providers, and others that LiteLLM knows. They are never stored."),
    ("OPENAI_BASE_URL", "Another server that speaks the OpenAI form, for models named openai/NAME."),
    ("PIDURABLE_MODEL", "The model of new chats, as provider/name."),
    ("PIDURABLE_DATA_DIR, PIDURABLE_CONFIG_DIR", "Where sessions and settings are, instead of below the home."),
    ("PIDURABLE_STORE", "The kind of new sessions: sqlite or jsonl."),
    ("NO_COLOR", "No colours."),
)
FILES = (
    (
        "~/.local/share/pidurable/HASH/session.sqlite",
        "All chats of one directory; plain tables that sqlite3 reads. Below ~/Library/Application Support on macOS.",
    ),
    ("~/.config/pidurable/settings.json", "Settings. /settings in the app shows each one."),
    ("AGENTS.md, CLAUDE.md, .pidurable/", "What a project tells the agent, used after a yes."),
)
EXITS = (
    ("0", "Done."),
    ("1", "The check that was asked for found something wrong, or the answer to a question was no."),
    ("2", "Asked wrongly, or not configured. Nothing was started."),
    ("3", "Refused: busy, locked, read-only, or a limit was reached. What was done is stored."),
    ("4", "The world outside failed: a model, a file, a process."),
    ("5", "The session failed: the end of a write is not known. Open it again."),
    ("6", "The session is damaged; it was not touched."),
    ("70", "A bug of this program."),
    ("128+N", "Signal N."),
)


def written() -> str:
    """The page as it must be."""
    group: Any = typer.main.get_command(app)
    lines = [
        f'.TH PIDURABLE 1 "" "pidurable {__version__}" "User Commands"',
        *_section("NAME", "pidurable - a coding agent for the terminal whose work cannot be lost"),
        ".SH SYNOPSIS",
        r"\fBpidurable\fR [OPTIONS] [\-\-] [PROMPT]\[u2026]",
        ".br",
        r"\fBpidurable\fR COMMAND [OPTIONS]",
        *_section("DESCRIPTION", *DESCRIPTION),
        ".SH OPTIONS",
        *_records(group, group.commands[CHAT]),
        ".SH COMMANDS",
    ]
    for name, command in sorted(group.commands.items()):
        if not command.hidden:
            lines += _command(group, f"pidurable {name}", command)
            for below, inner in sorted(getattr(command, "commands", {}).items()):
                lines += _command(command, f"pidurable {name} {below}", inner)
    for title, pairs in (("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES), ("EXIT STATUS", EXITS)):
        lines += [f".SH {title}", *(line for first, second in pairs for line in _pair(first, second))]
    lines += _section("SEE ALSO", "/help in the app; pidurable COMMAND --help; pidurable demo --list.")
    return "\n".join(lines) + "\n"


def _section(title: str, *paragraphs: str) -> list[str]:
    return [f".SH {title}", "\n.PP\n".join(map(_escaped, paragraphs))]


def _command(parent: Any, name: str, command: Any) -> list[str]:
    context = command.make_context(name, [], parent=None, resilient_parsing=True)
    usage = " ".join([name, *(plain(piece) for piece in command.collect_usage_pieces(context))])
    told = [_escaped(" ".join(part.split())) for part in textwrap.dedent(command.help or "").strip().split("\n\n")]
    example = (command.epilog or "").partition("Example:")[2].strip()
    return [".SS", _bold(usage), "\n.PP\n".join(told), *_records(parent, command), ".PP", f"Example: {_bold(example)}"]


def _records(_parent: Any, command: Any) -> Iterator[str]:
    context = command.make_context(command.name, [], resilient_parsing=True)
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None and param.name not in ("help", "debug"):
            name = plain(param.metavar or record[0]) if param.param_type_name == "argument" else re.sub(r" <float range>$", " X", record[0])
            yield from _pair(name, described(record[1]))


def _pair(first: str, second: str) -> list[str]:
    return [".TP", _bold(first), _escaped(second)]


def _bold(text: str) -> str:
    return rf"\fB{_escaped(text)}\fR"


def _escaped(text: str) -> str:
    """A text that the setter takes as it is."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    text = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in text)
    return rf"\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
