"""What of a drawn line is content and what is ours, so that content can be copied and found as it was before it was drawn (rule TU-4).

Lines carry marks beside their colours: cells that are ours (margins, bars, line numbers), and lines that only exist because the one
before was too narrow. PURE: lines in, text out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Literal, TypeAlias

from msgspec import Struct
from rich.cells import get_character_cell_size
from rich.style import Style
from rich.text import Text

_OURS = Style(meta={"ours": True})
_JOINS = {" ": Style(meta={"joins": " "}), "": Style(meta={"joins": ""})}


def ours(style: Style | None = None) -> Style:
    """`style`, marked as ours: what is drawn with it is neither copied nor found."""
    return _OURS if style is None else style + _OURS


@lru_cache(maxsize=2_048)
def unmarked(style: Style) -> Style:
    """The style without marks, for the screen."""
    return style.clear_meta_and_links() if style.meta else style


def mark_joins(whole: Text, parts: Sequence[Text]) -> None:
    """Mark the lines that `whole` was wrapped into, so that they become one line again when copied."""
    position = 0
    for index, part in enumerate(parts):
        start = whole.plain.find(part.plain, position)
        if start < 0:
            return  # the text library changed the text (it never should): the parts stay lines of their own
        gap = whole.plain[position:start]
        if index and part.plain and "\n" not in gap:
            mark_join(part, " " if gap else "")
        position = start + len(part.plain)


def mark_join(line: Text, joint: Literal["", " "]) -> None:
    """Mark a line as the rest of the one before it."""
    line.stylize(_JOINS[joint], 0, len(line.plain))


class Piece(Struct, frozen=True):
    """Content of one drawn line.

    Attributes:
        text: Without what is ours.
        cells: The first cell of each character, and one more: the cell behind the last one.
        joins: What stands between this line and the one before: "" or " " in a wrapped line, None at the beginning of a line.
    """

    text: str
    cells: tuple[int, ...]
    joins: str | None


def piece(line: Text) -> Piece:
    """The content of a drawn line."""
    hidden: set[int] = set()
    joins: str | None = None
    for span in line.spans:
        meta = span.style.meta if isinstance(span.style, Style) else {}
        if "ours" in meta:
            hidden.update(range(span.start, span.end))
        joins = meta.get("joins", joins)
    starts = list(accumulate(map(get_character_cell_size, line.plain), initial=0))
    kept = [index for index in range(len(line.plain)) if index not in hidden]
    end = starts[kept[-1] + 1] if kept else 0
    return Piece(text="".join(line.plain[index] for index in kept), cells=(*(starts[index] for index in kept), end), joins=joins)


def copied(lines: Sequence[Text], *, start_cell: int = 0, end_cell: int | None = None) -> str:
    """The content of drawn lines as text, wrapped lines in one, without what is ours and without blanks at line ends.

    Args:
        start_cell: Of the first line only what begins there or later.
        end_cell: Of the last line only what begins before it; None: all.
    """
    result: list[str] = []
    for number, line in enumerate(lines):
        content = piece(line)
        first = bisect_left(content.cells, start_cell, 0, len(content.text)) if number == 0 else 0
        is_last = number == len(lines) - 1 and end_cell is not None
        last = bisect_left(content.cells, end_cell, 0, len(content.text)) if is_last and end_cell is not None else len(content.text)
        text = content.text[first:last]
        if content.joins is not None and result:
            result[-1] += content.joins + text
        else:
            result.append(text)
    return "\n".join(line.rstrip() for line in result)


class Hit(Struct, frozen=True):
    """A place where a text was found: the cells of the lines it stands on, as (line, first cell, cell behind the last)."""

    cells: tuple[tuple[int, int, int], ...]


def hits(lines: Sequence[Text], query: str) -> list[Hit]:
    """Where `query` stands in drawn lines, from top to bottom, upper and lower case alike, also across the lines of a wrap."""
    wanted = query.lower()
    return [hit for text, places in contents(lines) for hit in _hits_in(text, places, wanted)] if wanted else []


Places: TypeAlias = list[tuple[int, int, int] | None]
"""Of each character of a content the line it stands on, its first cell and the one behind it; None: it stands nowhere."""


def contents(lines: Sequence[Text]) -> Iterator[tuple[str, Places]]:
    """Each line of content of drawn lines, which may be several of those, with the place of each of its characters."""
    pieces = [piece(line) for line in lines]
    begin = 0
    while begin < len(pieces):
        end = begin + 1
        while end < len(pieces) and pieces[end].joins is not None:
            end += 1
        yield _content(pieces, begin, end)
        begin = end


def _content(pieces: Sequence[Piece], begin: int, end: int) -> tuple[str, Places]:
    """The lines begin to end - 1, which are one line of content."""
    text, places = "", Places()
    for line in range(begin, end):
        each = pieces[line]
        if line > begin and each.joins:
            text += each.joins
            places.append(None)
        text += each.text
        places += [(line, each.cells[index], each.cells[index + 1]) for index in range(len(each.text))]
    return text, places


def _hits_in(text: str, places: Places, wanted: str) -> list[Hit]:
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text  # a letter that changes its length: exact case only, and the cells stay right
    found: list[Hit] = []
    position = lowered.find(wanted)
    while position >= 0:
        by_line: dict[int, tuple[int, int]] = {}
        for place in places[position : position + len(wanted)]:
            if place is not None:
                first, _ = by_line.get(place[0], (place[1], 0))
                by_line[place[0]] = (first, place[2])
        found.append(Hit(cells=tuple((line, first, last) for line, (first, last) in by_line.items())))
        position = lowered.find(wanted, position + len(wanted))
    return found
