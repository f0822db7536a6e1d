"""Decides whether the first word is a command or the start of a prompt, and draws the help of both as one page.

    pidurable sessions          the command
    pidurable fix the bug       a prompt
    pidurable -- sessions       a prompt, too
    pidurable -p -- --continue  a prompt that looks like an option

Commands stand first: with an option before it (`pidurable -c log`) a word belongs to the prompt.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

CHAT = "chat"
"""The hidden command that opens a chat, with a prompt or without."""

_HELP = ("--help", "-h")


def routed(arguments: Sequence[str], commands: Collection[str]) -> list[str]:
    """The arguments with the chat command put in front, unless they start with a command or ask for help. PURE."""
    if arguments and arguments[0] != CHAT and (arguments[0] in commands or arguments[0] in _HELP):
        return list(arguments)
    return [CHAT, *arguments]


class PromptOrCommand(TyperGroup):
    """A group of commands in which everything that is no command is a prompt."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, routed(args, self.commands))

    def format_usage(self, ctx: Context, formatter: HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, "[OPTIONS] [--] [PROMPT]… | COMMAND [OPTIONS]")

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """The options of the chat command, which are those a person means, then the commands."""
        self.commands[CHAT].format_options(ctx, formatter)
        self.format_commands(ctx, formatter)
