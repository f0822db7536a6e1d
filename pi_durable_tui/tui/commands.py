"""Every slash command, as one table, and how a typed line is read. PURE."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command.

    Attributes:
        name: Without the slash; also the name of the app's method `command_NAME`.
        argument: How its argument is shown, "" if it takes none.
        help: What it does, one line.
    """

    name: str
    argument: str
    help: str


COMMANDS: tuple[Command, ...] = (
    Command(name="help", argument="", help="keys and commands"),
    Command(name="model", argument="[provider/model]", help="show or change the model"),
    Command(name="approve", argument="[ask|edits|all|plan]", help="show or change what the agent may do unasked"),
    Command(name="new", argument="", help="start a new chat here; this one stays stored"),
    Command(name="quit", argument="", help="leave; pidurable --continue comes back"),
)
_BY_NAME = {command.name: command for command in COMMANDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A line that is a command: which one (None: there is none of that name) and what follows it."""

    name: str
    command: Command | None
    argument: str


def read(text: str) -> Typed | None:
    """The command in `text`; None when it is a message. A path such as "/etc/hosts" or a second line makes it a message."""
    line = text.strip()
    if not line.startswith("/") or "\n" in line:
        return None
    name, _, argument = line[1:].partition(" ")
    if not name.isidentifier():
        return None
    return Typed(name=name, command=_BY_NAME.get(name), argument=argument.strip())


def completions(text: str) -> tuple[Command, ...]:
    """The commands a half-typed line may become, in the order of the table; none once it is no longer a command's name."""
    if not text.startswith("/") or "\n" in text or " " in text:
        return ()
    return tuple(command for command in COMMANDS if command.name.startswith(text[1:]))
