"""How the head of a Markdown file is read: `key: value` lines between two lines of dashes. PURE.

A part of YAML is enough for what skills and templates say about themselves: plain and quoted values, and texts folded over indented lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

_KEY = re.compile(r"([A-Za-z][\w-]*):(?:\s+(.*?))?\s*")
_FOLDED = frozenset({"", ">", "|", ">-", "|-", ">+", "|+"})

Head: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True)
class Document:
    """The values of the head, keys in lower case, and the text after it."""

    head: Head
    body: str


def split(text: str) -> Document:
    """Head and body; a file without a head is all body."""
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return Document({}, text)
    end = next((number for number, line in enumerate(lines[1:], start=1) if line.strip() == "---"), None)
    if end is None:
        return Document({}, text)
    return Document(_values(lines[1:end]), "\n".join(lines[end + 1 :]).lstrip("\n"))


def _values(lines: list[str]) -> Head:
    values: Head = {}
    key = ""
    for line in lines:
        match = _KEY.fullmatch(line)
        if match is not None:
            key, value = match[1].lower(), match[2] or ""
            values[key] = "" if value in _FOLDED else _plain(value)
        elif key and line.startswith((" ", "\t")):
            values[key] = f"{values[key]} {line.strip()}".strip()
    return values


def _plain(value: str) -> str:
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value
