"""Every slash command, as one table, and how a typed line is read. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from pi_durable_tui.records.modes import APPROVAL_MODES, THINKING_LEVELS
from pi_durable_tui.tui.palette import THEMES

EXPORT_FORMS: tuple[Literal["html", "markdown", "jsonl"], ...] = ("html", "markdown", "jsonl")


class Command(Struct, frozen=True, kw_only=True):
    """One command.

    Attributes:
        name: Without the slash; what it does is in actions/.
        argument: How its argument is shown, "" if it takes none.
        help: What it does, one line.
        choices: What the argument may be, for completion; () where it is free text.
    """

    name: str
    argument: str
    help: str
    choices: tuple[str, ...] = ()


class Offer(Struct, frozen=True, kw_only=True):
    """A line of the list above the composer: `name` is what stands behind the slash when it is taken.

    Attributes:
        runs: It is a command of an extension, not a message.
    """

    name: str
    argument: str
    help: str
    runs: bool = False


COMMANDS: tuple[Command, ...] = (
    Command(name="help", argument="", help="keys and commands"),
    Command(name="model", argument="[provider/model]", help="choose the model, or name it"),
    Command(name="thinking", argument=f"[{'|'.join(THINKING_LEVELS)}]", help="show or change how much the model thinks", choices=THINKING_LEVELS),
    Command(name="approve", argument=f"[{'|'.join(APPROVAL_MODES)}]", help="show or change what the agent may do unasked", choices=APPROVAL_MODES),
    Command(name="permissions", argument="[allow|ask|deny WORDS]", help="standing rules: what is allowed, asked or forbidden"),
    Command(name="undo", argument="[entry]", help="take back changes of files since your last message"),
    Command(name="redo", argument="", help="bring back what /undo or /rewind took"),
    Command(name="rewind", argument="[entry]", help="go back to before a message: chat, files or both"),
    Command(name="new", argument="", help="start a new chat here; this one stays stored"),
    Command(name="resume", argument="", help="open another chat of this directory"),
    Command(name="fork", argument="[entry]", help="go on from an earlier message in a new chat"),
    Command(name="tree", argument="", help="all chats here, with their forks and subagents"),
    Command(name="agents", argument="", help="look into the subagents of this chat"),
    Command(name="tasks", argument="", help="what is at work right now, as a tree; stop any of it"),
    Command(name="compact", argument="[focus]", help="summarize the older part of the context"),
    Command(name="context", argument="", help="what fills the model's context"),
    Command(name="name", argument="TITLE", help="give this chat a name"),
    Command(name="session", argument="", help="where this session is stored, and what it used"),
    Command(name="diff", argument="[chat|entry]", help="what changed in files since your last message", choices=("chat",)),
    Command(
        name="export",
        argument=f"[{'|'.join(EXPORT_FORMS)}] [PATH]",
        help="write this chat into a file",
        choices=EXPORT_FORMS,
    ),
    Command(name="links", argument="", help="the links of this chat: where they lead; open or copy one"),
    Command(name="copy", argument="", help="copy the last answer; a selection is copied at once"),
    Command(name="settings", argument="[KEY [VALUE]]", help="all settings: what they mean, who set them; change them"),
    Command(name="theme", argument=f"[{'|'.join(THEMES)}]", help="show or change the colours", choices=THEMES),
    Command(name="trust", argument="", help="which files of the project are used; change it"),
    Command(name="mcp", argument="", help="the MCP servers: how they stand, and their tools"),
    Command(name="reload", argument="", help="read skills, templates, extensions, servers and keys anew"),
    Command(name="hotkeys", argument="", help="the keys as they are bound, and how to change them"),
    Command(name="quit", argument="", help="leave; pidurable --continue comes back"),
)
_BY_NAME = {command.name: command for command in COMMANDS}


class Typed(Struct, frozen=True, kw_only=True):
    """A line that is a command: which one (None: there is none of that name) and what follows it."""

    name: str
    command: Command | None
    argument: str


def read(text: str, extra: Sequence[Offer] = ()) -> Typed | None:
    """The command in `text`; None when it is a message. A path such as "/etc/hosts" or a second line makes it a message.

    Args:
        extra: Skills and templates: they are messages, filled in when they are sent. Commands of the table win over them.
    """
    line = text.strip()
    if not line.startswith("/") or "\n" in line:
        return None
    name, _, argument = line[1:].partition(" ")
    if not name.isidentifier() or (name not in _BY_NAME and any(offer.name == name for offer in extra)):
        return None
    return Typed(name=name, command=_BY_NAME.get(name), argument=argument.strip())


def nearest(name: str, extra: Sequence[Offer] = ()) -> str:
    """The command, skill or template that `name` may have been meant for; "" when none is like it."""
    from difflib import get_close_matches  # noqa: PLC0415 - for whoever mistypes

    return next(iter(get_close_matches(name.lower(), [*_BY_NAME, *(offer.name for offer in extra)], n=1)), "")


def completions(text: str, extra: Sequence[Offer] = ()) -> tuple[Offer, ...]:
    """What a half-typed line may become: commands by the beginning of their name, then the values of an argument that has some.

    Args:
        extra: Skills and templates, offered after the table.
    """
    if not text.startswith("/") or "\n" in text:
        return ()
    name, space, typed = text[1:].partition(" ")
    if not space:
        table = [Offer(name=command.name, argument=command.argument, help=command.help) for command in COMMANDS]
        return tuple(offer for offer in (*table, *(offer for offer in extra if offer.name not in _BY_NAME)) if offer.name.startswith(name))
    command = _BY_NAME.get(name)
    if command is None or not typed:  # nothing is chosen for somebody who only wants to know what holds
        return ()
    return tuple(Offer(name=f"{name} {value}", argument="", help=command.help) for value in command.choices if value.startswith(typed))
