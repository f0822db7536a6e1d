"""Searching the rows of a transcript (Ctrl+F; rule TU-4). Draws rows only to look where in them the text stands, one after another.

What is folded is found too: the row tells then that it has to be unfolded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct
from rich.text import Text

from pi_durable_tui.tui.draw.marks import Hit, hits
from pi_durable_tui.tui.rows import AnswerRow, MarkRow, RetryRow, Row, SummaryRow, ThinkingRow, ToolRow, UserRow, can_unfold

Direction = Literal[-1, 1]
_MARKUP = str.maketrans("", "", "*_`#>|[]()~\\- \n")


class Found(Struct, frozen=True):
    """A hit in a row; `unfold`: it is in what is folded."""

    key: str
    hit: Hit
    unfold: bool

    @property
    def line(self) -> int:
        """The first line of the row on which it stands."""
        return self.hit.cells[0][0]


def find(
    rows: Sequence[Row],
    query: str,
    *,
    start: tuple[int, int, int],
    direction: Direction,
    draw: Callable[[int, bool], Sequence[Text]],
    is_unfolded: Callable[[Row], bool],
) -> Found | None:
    """The next place of `query` before or after `start`; None when there is none.

    Args:
        start: (index of a row, line in it, cell): only what is strictly beyond counts.
        draw: (index, unfolded) -> the lines of a row.
    """
    indexes = range(start[0], len(rows)) if direction > 0 else range(min(start[0], len(rows) - 1), -1, -1)
    for index in indexes:
        row = rows[index]
        if not may_hold(row, query):
            continue
        unfolded = is_unfolded(row)
        for unfold in (unfolded, True) if can_unfold(row) and not unfolded else (unfolded,):
            places = hits(draw(index, unfold), query)
            if index == start[0]:
                places = [place for place in places if (place.cells[0][:2] > start[1:]) == (direction > 0) and place.cells[0][:2] != start[1:]]
            if places:
                return Found(row.key, places[0 if direction > 0 else -1], unfold and not unfolded)
    return None


def may_hold(row: Row, query: str) -> bool:
    """Whether a row may show `query`; cheap, and never wrong when it says no."""
    wanted = query.lower().translate(_MARKUP)
    return not wanted or wanted in _words(row).lower().translate(_MARKUP)


def count(rows: Sequence[Row], query: str) -> int:
    """About how often `query` stands in the rows: in the text they are made of, not as it is drawn."""
    wanted = query.lower()
    return sum(_words(row).lower().count(wanted) for row in rows) if wanted else 0


def _words(row: Row) -> str:
    match row:
        case UserRow() | AnswerRow() | ThinkingRow() | MarkRow():
            return row.text
        case ToolRow():
            return "\n".join((row.name, row.title, row.path, row.output, row.diff, *row.remarks))
        case RetryRow():
            return row.reason
        case SummaryRow():
            return f"{row.head}\n{row.text}"
