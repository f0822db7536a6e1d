"""PURE. A file's bytes as text and back without changing a byte that nobody named: BOM, encoding and each line's ending stay (CASE-C1)."""

from __future__ import annotations

import bisect
import codecs
import re
from dataclasses import dataclass

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark starts with the same two bytes
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    r"""A decoded file.

    Attributes:
        text: Its characters, without the mark at the start, line endings as they are.
        encoding: A Python codec whose `encode` gives the same bytes back.
        mark: The byte order mark, b"" when there is none.
        newline: The ending that inserted lines take: the most frequent one, "\n" when there is none.
    """

    text: str
    encoding: str
    mark: bytes
    newline: str

    def encode(self, text: str) -> bytes:
        """The bytes of a file of this kind that holds `text`.

        Raises:
            UnicodeEncodeError: The encoding has no such character.
        """
        return self.mark + text.encode(self.encoding)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineView:
    """The same text with every line ending as a newline, and the way back to the original positions."""

    text: str
    collapsed: tuple[int, ...]  # positions in `text` just after an ending that took two characters

    def original(self, position: int) -> int:
        """Where `position` of the view lies in the original text."""
        return position + bisect.bisect_right(self.collapsed, position)


def kind_of_binary(data: bytes) -> str | None:
    """What kind of binary file starts with (or is) `data`; None when it may be text."""
    for start, kind in _PICTURES:
        if data.startswith(start):
            return kind
    if b"\0" in data and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        return "binary file"
    return None


def decode(data: bytes) -> TextFile:
    """Decode so that encoding again gives `data` back.

    UTF-8, or what a mark at the start says; everything else is read as Windows-1252, or Latin-1 where that has no character.
    """
    mark, declared = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    body = data[len(mark) :]
    for encoding in (declared, "cp1252"):
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError:
            continue
        return TextFile(text=text, encoding=encoding, mark=mark, newline=majority_newline(text))
    text = body.decode("latin-1")
    return TextFile(text=text, encoding="latin-1", mark=mark, newline=majority_newline(text))


def majority_newline(text: str) -> str:
    """The most frequent line ending. A lone carriage return counts only where there is no other ending (old Mac files)."""
    pairs = text.count("\r\n")
    singles = text.count("\n") - pairs
    if not pairs and not singles:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if pairs > singles else "\n"


def view(text: str) -> LineView:
    """The text as models write it: every line ends in a newline."""
    if "\r" not in text:
        return LineView(text=text, collapsed=())
    if "\n" not in text:
        return LineView(text=text.replace("\r", "\n"), collapsed=())
    collapsed = tuple(match.start() - index + 1 for index, match in enumerate(re.finditer("\r\n", text)))
    return LineView(text=text.replace("\r\n", "\n"), collapsed=collapsed)


def respell(old: str, new: str, newline: str) -> str:
    """`new`, which replaces `old`, with line endings that fit the file.

    A line that keeps its place keeps its ending: lines are paired from the start as far as they are equal, then from the end, then in
    order. Lines without a partner take `newline`.

    Args:
        old: The replaced original text, endings as they are.
        new: The replacement, with plain newlines.
        newline: The ending of lines without a partner.
    """
    pattern = "\r" if newline == "\r" else "\r\n|\n"
    endings = re.findall(pattern, old)
    old_lines = re.split(pattern, old)
    new_lines = new.split("\n")
    breaks = len(new_lines) - 1
    chosen = [newline] * breaks
    head = 0
    while head < min(breaks, len(endings)) and new_lines[head] == old_lines[head]:
        chosen[head] = endings[head]
        head += 1
    tail = 0
    while tail < min(breaks, len(endings)) - head and new_lines[-2 - tail] == old_lines[-2 - tail]:
        chosen[breaks - 1 - tail] = endings[len(endings) - 1 - tail]
        tail += 1
    for index in range(head, min(breaks, len(endings)) - tail):
        chosen[index] = endings[index]
    return "".join(line + ending for line, ending in zip(new_lines, [*chosen, ""], strict=True))
