"""How bytes of a file become text for a model. PURE.

What a person cannot see must not instruct the model: control characters, direction marks, tags and zero-width characters are taken out,
and that is told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Marks of direction, zero-width characters (but for the joiners that scripts and emoji need) and the invisible copies of ASCII.
_HIDDEN = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e0fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A text, and what was odd about its bytes ("" for nothing)."""

    text: str
    oddity: str


def decoded(data: bytes, *, is_cut: bool = False) -> Decoded:
    """The text of a file: UTF-8, else Latin-1; line ends as newlines; nothing invisible in it.

    Args:
        is_cut: `data` may end in the middle of a character.
    """
    oddities: list[str] = []
    try:
        text = _utf8(data, is_cut=is_cut)
    except UnicodeDecodeError:
        text = data.decode("latin-1")
        oddities.append("is not UTF-8 and was read as Latin-1")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    shown, controls = _CONTROLS.subn("\ufffd", text)
    shown, hidden = _HIDDEN.subn("", shown)
    if controls:
        oddities.append(f"has {controls} control characters, which were replaced")
    if hidden:
        oddities.append(f"has {hidden} invisible characters, which were left out")
    return Decoded(text=shown, oddity=" and ".join(oddities))


def fenced(text: str, language: str = "") -> str:
    """The text as a code block whose fence does not occur in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"


def shown_name(name: str) -> str:
    """A file's name as people and models may read it: what cannot be printed stands as its number (rule SA-10)."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in name)


def one_line(text: str, *, limit_chars: int) -> str:
    """The text with its white space as single blanks, cut at the limit."""
    line = " ".join(text.split())
    return line if len(line) <= limit_chars else f"{line[: limit_chars - 1]}…"


def _utf8(data: bytes, *, is_cut: bool) -> str:
    for missing in range(4 if is_cut else 1):
        try:
            return data[: len(data) - missing].decode("utf-8")
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8")
