"""The rows that are held as lines, for one width and palette; what was not used for long is let go (rules TU-1, TU-2).

Only the transcript uses it. It draws a row when it is asked for, of an answer that grows only the lines that changed, and never
more than is asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from pi_durable_tui.tui.draw.marks import Hit
from pi_durable_tui.tui.draw.paint import Painter, to_segments
from pi_durable_tui.tui.draw.stream import MarkdownStream
from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.rows import AnswerRow, Row

KEPT_LINES = 4_000


@dataclass(slots=True)
class DrawnRow:
    """A row as lines. `strips` are made of `lines` when first asked for; `stream` draws an answer that is still growing."""

    row: Row
    unfolded: bool
    joins: bool
    lines: list[Text]
    strips: list[Strip | None] = field(default_factory=list)
    stream: MarkdownStream | None = None
    hits: tuple[object, list[Hit]] | None = None  # where a text was found, and which one in which lines


class DrawnRows:
    """See the module.

    Args:
        width: Cells of a line.
        unfold_key: As it is shown; "": there is none.
    """

    def __init__(self, *, width: int, palette: Palette, unfold_key: str = "") -> None:
        self.painter = Painter(width=width, palette=palette, unfold_key=unfold_key)
        self._rows: OrderedDict[str, DrawnRow] = OrderedDict()
        self._kept_lines = 0

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, row: Row, *, unfolded: bool, joins: bool, now_ms: int) -> DrawnRow:
        """The lines of a row; the arguments are those of `Painter.lines`."""
        drawn = self._rows.get(row.key)
        if isinstance(row, AnswerRow) and row.is_open:
            return drawn if drawn is not None and drawn.row is row else self._draw_open(row, drawn)
        if drawn is not None and drawn.row is row and drawn.unfolded == unfolded and drawn.joins == joins:
            self._rows.move_to_end(row.key)
            return drawn
        self.drop(row.key)
        if isinstance(row, AnswerRow) and (taken := self._take_over(row)) is not None:
            return taken
        return self._keep(row.key, DrawnRow(row, unfolded, joins, self.painter.lines(row, unfolded=unfolded, joins=joins, now_ms=now_ms)))

    def strip(self, drawn: DrawnRow, line: int, base: Style) -> Strip | None:
        """A line of a drawn row over the style `base`; None below its last one."""
        if line >= len(drawn.lines):
            return None
        drawn.strips += [None] * (line + 1 - len(drawn.strips))
        strip = drawn.strips[line]
        if strip is None:
            strip = drawn.strips[line] = Strip(to_segments(drawn.lines[line], base, self.painter.console))
        return strip

    def drop(self, key: str) -> None:
        """Forget a row, so that it is drawn anew."""
        drawn = self._rows.pop(key, None)
        if drawn is not None:
            self._kept_lines -= len(drawn.lines)

    def _draw_open(self, row: AnswerRow, drawn: DrawnRow | None) -> DrawnRow:
        if drawn is None or drawn.stream is None:
            self.drop(row.key)
            drawn = self._keep(row.key, DrawnRow(row, unfolded=False, joins=False, lines=[Text("", end="")], stream=self.painter.stream()))
        assert drawn.stream is not None
        changed = drawn.stream.show(row.text) + 1  # the gap stands ahead of the stream's lines
        self._kept_lines -= len(drawn.lines)
        del drawn.lines[changed:], drawn.strips[changed:]
        drawn.lines += self.painter.indented(drawn.stream.lines[changed - 1 :])
        self._kept_lines += len(drawn.lines)
        drawn.row = row
        return drawn

    def _take_over(self, row: AnswerRow) -> DrawnRow | None:
        """An answer that has just been finished keeps the lines that were drawn while it came in."""
        for key, drawn in self._rows.items():
            if drawn.stream is not None and drawn.stream.text and row.text.startswith(drawn.stream.text):
                whole = self._draw_open(row, drawn)
                self.drop(key)
                whole.stream = None
                return self._keep(row.key, whole)
        return None

    def _keep(self, key: str, drawn: DrawnRow) -> DrawnRow:
        self._rows[key] = drawn
        self._kept_lines += len(drawn.lines)
        while self._kept_lines > KEPT_LINES and len(self._rows) > 1:
            _, oldest = self._rows.popitem(last=False)
            self._kept_lines -= len(oldest.lines)
        return drawn
