"""How the help of a command is laid out: what a person types, in the words of the help, and nothing of the parser's types.

A page fits a screen of 80 by 24 and ends with an example (rule CL-6).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from typer.core import TyperArgument, TyperCommand

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

_RANGE = re.compile(r"\s*\[[^\[\]:]*<?=?x[^\[\]:]*\]$")  # what the parser says of a number; it says so again when one does not fit
_DEFAULT_AND_RANGE = re.compile(r"\[(default: [^;\]]+);[^\]]*\]$")
_REQUIRED = re.compile(r"\s*\[required\]$")


class Page(TyperCommand):
    """A command whose page reads well."""

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """`[OPTIONS] [ID]`, without the brackets and braces that the parser puts around names that have their own."""
        return [plain(piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """The arguments, then the options."""
        arguments: list[tuple[str, str]] = []
        options: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            name, help_text = record
            if isinstance(param, TyperArgument):
                arguments.append((plain(param.metavar or name), described(help_text)))
            else:
                options.append((re.sub(r" <float range>$", " X", name), described(help_text)))
        for title, records in (("Arguments", arguments), ("Options", options)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def plain(piece: str) -> str:
    """A piece of a usage line without doubled brackets, and without braces. PURE."""
    return re.sub(r"^\[\[(.*)\]\]$", r"[\1]", piece).strip("{}")


def described(help_text: str) -> str:
    """What an option does, with its default but without the range of its numbers. PURE."""
    return _REQUIRED.sub("", _RANGE.sub("", _DEFAULT_AND_RANGE.sub(r"[\1]", help_text)))
