"""Changes one value of a JSON text and leaves every other character as it is: order, spaces, keys that nobody here knows. PURE."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from pi_durable_tui.records.json import Json

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_SCALAR = re.compile(r"[^\s,\]}]+")
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an object: where its name begins, and where its value stands."""

    name: str
    start: int
    value: int
    end: int


def edited(text: str, path: Sequence[str], value: Json) -> str:
    """`text` with the member at `path` set to `value`; objects on the way are made where they are missing.

    Args:
        text: A JSON object. Of two members with one name the last counts, as for every reader of JSON.
    """
    start = _after_blank(text, 0)
    for depth, name in enumerate(path):
        members, close = _members(text, start)
        found = next((member for member in reversed(members) if member.name == name), None)
        rest = path[depth + 1 :]
        if found is not None and rest and text[found.value] == "{":
            start = found.value
            continue
        for missing in reversed(rest):
            value = {missing: value}
        if found is not None:
            return text[: found.value] + _written(value, _indent(text, found.start)) + text[found.end :]
        return _appended(text, start, close, members, (name, value))
    raise ValueError("an empty path")


def removed(text: str, path: Sequence[str]) -> str:
    """`text` without the member at `path`, with one comma less; `text` itself when there is none."""
    start = _after_blank(text, 0)
    for name in path[:-1]:
        found = next((member for member in reversed(_members(text, start)[0]) if member.name == name), None)
        if found is None or text[found.value] != "{":
            return text
        start = found.value
    while True:
        members, _ = _members(text, start)
        index = next((index for index, member in enumerate(members) if member.name == path[-1]), None)
        if index is None:
            return text
        if index > 0:
            text = text[: members[index - 1].end] + text[members[index].end :]
        elif len(members) > 1:
            text = text[: members[0].start] + text[members[1].start :]
        else:
            text = text[: start + 1] + text[members[0].end :].lstrip()


def _appended(text: str, start: int, close: int, members: Sequence[_Member], pair: tuple[str, Json]) -> str:
    """With one member more at the end of the object that stands from `start` to `close`."""
    if members:
        gap = text[start + 1 : members[0].start]  # what stands ahead of the first one stands ahead of this one
        return f"{text[: members[-1].end]},{gap or ' '}{_pair(*pair, _indent(text, members[0].start))}{text[members[-1].end :]}"
    inside = _indent(text, start) + "  "
    return f"{text[: start + 1]}\n{inside}{_pair(*pair, inside)}\n{inside[:-2]}{text[close:]}"


def _members(text: str, start: int) -> tuple[list[_Member], int]:
    """The members of the object that begins at `start`, and where its closing brace is."""
    found: list[_Member] = []
    at = _after_blank(text, start + 1)
    while text[at] != "}":
        name = _STRING.match(text, at)
        assert name is not None  # it is JSON: whoever calls has read it
        value = _after_blank(text, _after_blank(text, name.end()) + 1)
        found.append(_Member(msgspec.json.decode(name[0]), at, value, end := _end(text, value)))
        at = _after_blank(text, end)
        at = _after_blank(text, at + 1) if text[at] == "," else at
    return found, at


def _end(text: str, at: int) -> int:
    """Where the value that begins at `at` ends."""
    if text[at] not in "{[":
        found = _STRING.match(text, at) or _SCALAR.match(text, at)
        assert found is not None  # see _members
        return found.end()
    depth = 0
    for token in _TOKEN.finditer(text, at):
        depth += (token[0] in "{[") - (token[0] in "}]")
        if depth == 0:
            return token.end()
    raise ValueError("not JSON")


def _pair(name: str, value: Json, indent: str) -> str:
    return f"{msgspec.json.encode(name).decode()}: {_written(value, indent)}"


def _written(value: Json, indent: str) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode().replace("\n", f"\n{indent}")


def _indent(text: str, at: int) -> str:
    """The blanks at the beginning of the line that holds a place."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _after_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found is not None else at
