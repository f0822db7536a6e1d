"""What skills and prompt templates are: how they are read, listed for the model, offered after a "/" and filled in (rule AG-3). PURE."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pi_durable_tui.context.front_matter import split
from pi_durable_tui.context.project import Item
from pi_durable_tui.context.text import one_line

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
DESCRIPTION_CHARS = 400
_PLACE = re.compile(r"\$(?:ARGUMENTS\b|@|([1-9]))")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCommand:
    """A skill or a template, as it can be called with "/name arguments".

    Attributes:
        hint: How its arguments are shown.
        body: Of a template: what is filled in and sent. Of a skill: "".
        path: Of the file.
    """

    kind: Literal["skill", "prompt"]
    name: str
    description: str
    hint: str
    body: str
    path: str

    def expanded(self, arguments: str) -> str:
        """What is sent for "/name arguments"."""
        match self.kind:
            case "prompt":
                return filled(self.body, arguments)
            case "skill":
                return f"Use the skill {self.name}: read {self.path} first and follow it.{f' {arguments}' if arguments else ''}"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The commands by name, the first of a name counts, and one line for each file that is none."""

    commands: tuple[UserCommand, ...]
    warnings: tuple[str, ...]

    def named(self, name: str) -> UserCommand | None:
        """The command of that name."""
        return next((command for command in self.commands if command.name == name), None)


def catalogue(items: Iterable[Item]) -> Catalogue:
    """The skills and templates among files. The project's come after the user's and do not replace them."""
    found: dict[str, UserCommand] = {}
    warnings: list[str] = []
    for item in items:
        if item.kind not in ("skill", "prompt"):
            continue
        command = _skill(item) if item.kind == "skill" else _template(item)
        if isinstance(command, str):
            warnings.append(command)
        elif command.name in found:
            warnings.append(f"{item.shown} is not used: there is another {command.name}.")
        else:
            found[command.name] = command
    return Catalogue(tuple(found[name] for name in sorted(found)), tuple(warnings))


def _skill(item: Item) -> UserCommand | str:
    head = split(item.text).head
    name, description = head.get("name", item.name), head.get("description", "")
    if not NAME.fullmatch(name) or not description:
        return f"{item.shown} is not used: a skill needs a name of letters, digits and dashes, and a description."
    return UserCommand(kind="skill", name=name, description=one_line(description, limit_chars=DESCRIPTION_CHARS), hint="[task]", body="", path=str(item.path))


def _template(item: Item) -> UserCommand | str:
    document = split(item.text)
    if not NAME.fullmatch(item.name):
        return f"{item.shown} is not used: the name of a template is made of letters, digits and dashes."
    first = next((line for line in document.body.splitlines() if line.strip()), "")
    description = document.head.get("description") or first.lstrip("# ")
    has_places = _PLACE.search(document.body) is not None
    hint = document.head.get("argument-hint") or ("[arguments]" if has_places else "")
    return UserCommand(
        kind="prompt",
        name=item.name,
        description=one_line(description, limit_chars=DESCRIPTION_CHARS),
        hint=one_line(hint, limit_chars=60),
        body=document.body,
        path=str(item.path),
    )


def filled(body: str, arguments: str) -> str:
    """A template with its arguments: `$1` to `$9` one each, `$ARGUMENTS` and `$@` all. What is put in is not looked through again.

    Arguments are parted at blanks; quotes keep blanks together. Where the template has no place for them they follow it.
    """
    words = _words(arguments)

    def put(match: re.Match[str]) -> str:
        number = match[1]
        if number is None:
            return arguments
        return words[int(number) - 1] if int(number) <= len(words) else ""

    text, places = _PLACE.subn(put, body)
    return text if places or not arguments else f"{text.rstrip()}\n\n{arguments}"


def _words(arguments: str) -> Sequence[str]:
    try:
        return shlex.split(arguments)
    except ValueError:  # a quote that is not closed is a letter
        return arguments.split()


def skills_text(commands: Iterable[UserCommand]) -> str:
    """The list of skills as the model reads it; "" without any."""
    lines = [f"- {command.name}: {command.description} ({command.path})" for command in commands if command.kind == "skill"]
    head = "Skills are instructions for special tasks. When a task fits a description, read the skill's file before you begin, and follow it."
    return "\n".join([head, *lines]) if lines else ""
