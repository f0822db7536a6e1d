"""The part of a transcript that is selected, and the caret that selects by keys (rule TU-4). PURE: knows rows by their keys, no widget.

Ends of a selection are cells of drawn lines of rows, so they stay where they are while the transcript grows and scrolls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from msgspec import Struct
from rich.cells import cell_len

_WORD = re.compile(r"[\w./~:@%+#?=&-]+")

Place = tuple[int, int]
"""(line of the whole transcript, cell)."""


class Spot(Struct, frozen=True):
    """A cell of a drawn line of a row."""

    key: str
    line: int
    cell: int


@dataclass(slots=True)
class Selecting:
    """What is selected: from `anchor` to `head`, both included; nothing while one of them is None. `caret`: the keys move `head`."""

    anchor: Spot | None = None
    head: Spot | None = None
    caret: bool = False

    @property
    def is_active(self) -> bool:
        """Whether a selection or a caret is shown."""
        return self.head is not None

    def clear(self) -> None:
        """Select nothing."""
        self.anchor, self.head, self.caret = None, None, False


def ordered(one: Place, other: Place) -> tuple[Place, Place]:
    """The earlier and the later one, the later one with the cell behind it."""
    first, last = min(one, other), max(one, other)
    return first, (last[0], last[1] + 1)


def cells_on(line: int, selected: tuple[Place, Place], width: int) -> tuple[int, int] | None:
    """The selected cells of a line as (first, behind the last); None for none."""
    (first_line, first_cell), (last_line, last_cell) = selected
    if not first_line <= line <= last_line:
        return None
    start = first_cell if line == first_line else 0
    end = last_cell if line == last_line else width
    return (start, end) if start < end else None


def word_cells(text: str, cell: int) -> tuple[int, int]:
    """The cells (first, last) of the word at a cell of a line; a word may be a path or an address. The cell alone where there is none."""
    for match in _WORD.finditer(text):
        first = cell_len(text[: match.start()])
        last = first + cell_len(match[0]) - 1
        if first <= cell <= last:
            return first, last
    return cell, cell


def moved(key: str, place: Place, *, lines: int, width: int, page: int) -> Place | None:
    """Where the caret goes; None when the key does not move it.

    Args:
        key: With or without "shift+" in front.
        lines: How many there are in all.
        width: Cells of a line.
        page: Lines of a screen.
    """
    line, cell = place
    match key.removeprefix("shift+"):
        case "up" | "k":
            line -= 1
        case "down" | "j":
            line += 1
        case "left" | "h":
            cell -= 1
        case "right" | "l":
            cell += 1
        case "home" | "0":
            cell = 0
        case "end" | "$" | "dollar_sign":
            cell = width - 1
        case "pageup":
            line -= page
        case "pagedown":
            line += page
        case _:
            return None
    return max(0, min(line, lines - 1)), max(0, min(cell, width - 1))
