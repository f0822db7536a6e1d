"""Decides whether the first word is a command or the start of a prompt, and draws the help of both as one page.

    pidurable sessions          the command
    pidurable fix the bug       a prompt
    pidurable -- sessions       a prompt, too
    pidurable -p -- --continue  a prompt that looks like an option

Commands stand first: with an option before it (`pidurable -c log`) a word belongs to the prompt.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from typer.core import TyperGroup

from pi_durable_tui.cli.commands.page import Page, described

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem

CHAT = "chat"
"""The hidden command that opens a chat, with a prompt or without."""

_HELP = ("--help", "-h")
_USAGE = "[OPTIONS] [--] [PROMPT]…"

_RESUME = ("--resume", "-r")
_CHAT_ID = re.compile(r"[0-9]+(\.[0-9]+)?")

MORE = frozenset({"mode", "debug", "name", "no_session", "tools", "max_turns", "max_cost", "max_time", "trust"})
"""Options of the chat that its own page shows (`pidurable -p --help`) and the first page leaves out, so that it fits a screen."""

_COLUMN_CELLS = 38


def routed(arguments: Sequence[str], commands: Collection[str]) -> list[str]:
    """The arguments with the chat command put in front, unless they start with a command or ask for help. PURE."""
    if arguments and arguments[0] != CHAT and (arguments[0] in commands or arguments[0] in _HELP):
        return list(arguments)
    return [CHAT, *arguments]


def with_resume_values(arguments: Sequence[str]) -> list[str]:
    """`--resume` with the id behind it if there is one, else with an empty one, so that an option may stand alone. PURE."""
    result: list[str] = []
    for number, word in enumerate(arguments):
        if word == "--":
            return [*result, *arguments[number:]]
        result.append(word)
        following = arguments[number + 1] if number + 1 < len(arguments) else ""
        if word in _RESUME and not _CHAT_ID.fullmatch(following):
            result.append("")
    return result


class ChatCommand(Page):
    """The chat: its page shows every option."""

    def format_usage(self, ctx: Context, formatter: HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path.removesuffix(f" {CHAT}"), _USAGE)

    def format_help_text(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Nothing: the options fill the screen."""


class PromptOrCommand(TyperGroup):
    """A group of commands in which everything that is no command is a prompt."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and not args:
            return super().parse_args(ctx, args)  # a shell completes the first word: it may still become a command
        found = routed(args, self.commands)
        return super().parse_args(ctx, with_resume_values(found) if found[:1] == [CHAT] else found)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        return [*super().shell_complete(ctx, incomplete), *self.commands[CHAT].shell_complete(ctx, incomplete)]

    def format_usage(self, ctx: Context, formatter: HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, f"{_USAGE} | COMMAND [OPTIONS]")

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """The options of the chat command, which are those a person means, then the commands in two columns."""
        records = [option.get_help_record(ctx) for option in self.commands[CHAT].get_params(ctx) if option.name not in MORE]
        with formatter.section("Options"):
            formatter.write_dl([(record[0], described(record[1])) for record in records if record is not None])
        shown = [(name, command) for name, command in self.commands.items() if not command.hidden]
        width = max(len(name) for name, _ in shown)
        cells = [f"{name:<{width}}  {command.get_short_help_str()}" for name, command in shown]
        with formatter.section("Commands"):
            for left, right in itertools.zip_longest(cells[::2], cells[1::2], fillvalue=""):
                formatter.write(f"{'':>{formatter.current_indent}}{left:<{_COLUMN_CELLS}} {right}".rstrip() + "\n")
