"""Options that several commands take."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

HELP_NAMES = {"help_option_names": ["-h", "--help"]}

Cwd = Annotated[str | None, typer.Option("--cwd", metavar="DIR", help="Work in DIR instead of here.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
ChatId = Annotated[str | None, typer.Argument(metavar="[ID]", help="A chat as `pidurable sessions` names it; without: the one --continue takes.")]
SomeChat = Annotated[str, typer.Argument(metavar="ID", help="A chat as `pidurable sessions` names it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


class Store(StrEnum):
    """The kinds of store."""

    SQLITE = "sqlite"
    JSONL = "jsonl"
