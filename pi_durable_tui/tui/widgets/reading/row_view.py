"""The drawing half of the transcript: one widget that draws rows by lines, however many there are (rules TU-1, TU-2, TU-3).

Heights of rows far from the visible part are estimates; rows in view and one screen around it are drawn and measured, and the
line being read stays where it is when an estimate turns out wrong. It follows the end only while it is at the end; otherwise a
pill tells how many new lines there are. It knows rows only: no view, no bridge, no clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from pi_durable_tui.tui.draw.paint import MARGIN_CELLS, estimate_lines, is_one_line, to_segments
from pi_durable_tui.tui.rows import RetryRow, Row, ToolRow, can_unfold
from pi_durable_tui.tui.widgets.reading.drawn import DrawnRow, DrawnRows

if TYPE_CHECKING:
    from pi_durable_tui.tui.palette import Palette
    from pi_durable_tui.tui.projection import Rows

_SETTLE_ROUNDS = 6


class RowView(ScrollView, can_focus=False):
    """Shows rows; see the module."""

    ALLOW_SELECT = False  # the library's way of selecting knows nothing of margins and wrapped lines

    class OlderWanted(Message, namespace="transcript"):
        """The first row came near the visible part."""

    class EndReached(Message, namespace="transcript"):
        """The person came back to the end."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="transcript")
        self._palette = palette
        self._drawn_width = 1
        self._rows: list[Row] = []
        self._heights: list[int] = []
        self._is_exact: list[bool] = []
        self._tops: list[int] = [0]  # tops[i] is the first line of row i; the last one is the number of lines
        self._unfold_key = ""
        self._drawn = self._new_drawn(1)
        self._is_following = True
        self._is_settling = False
        self._all_unfolded = False
        self._turned: set[str] = set()
        self._seen: tuple[int, int] | None = None  # the last row and its height when the end was left
        self._now_ms = 0
        self._said = ""  # shown in place of the pill for a moment

    @property
    def rows(self) -> Sequence[Row]:
        """All that is loaded, top to bottom."""
        return self._rows

    @property
    def is_following(self) -> bool:
        """True while new lines scroll into view by themselves."""
        return self._is_following

    @property
    def new_lines(self) -> int:
        """Lines that came below since the end was left; 0 while following."""
        if self._seen is None or self._is_following:
            return 0
        index, height = self._seen
        return max(0, self._tops[-1] - self._tops[min(index, len(self._rows))] - height) if self._rows else 0

    @property
    def drawn_rows(self) -> int:
        """How many rows are held as lines."""
        return len(self._drawn)

    def show_rows(self, change: Rows, *, now_ms: int) -> None:
        """Take over a result of the projection; every result must be shown, in order.

        Args:
            now_ms: Wall clock, for rows of work that is going on.
        """
        self._now_ms = now_ms
        shift = change.prepended
        if not shift and change.changed_from == len(change.rows) == len(self._rows):
            return  # a commit of something else, such as a draft, draws nothing here: the next key shall not wait for a frame
        anchor = self._anchor()
        if shift > 0:
            self._insert_front(list(change.rows[:shift]))
        elif shift < 0:
            del self._rows[:-shift], self._heights[:-shift], self._is_exact[:-shift]
        if self._seen is not None:
            self._seen = (max(0, self._seen[0] + shift), self._seen[1])
        start = min(change.changed_from, len(self._rows))
        del self._rows[start:], self._heights[start:], self._is_exact[start:]
        width = self._width
        for row in change.rows[start:]:
            self._rows.append(row)
            self._heights.append(estimate_lines(row, width))
            self._is_exact.append(False)
        self._retop(0 if shift else start)
        self._settle((anchor[0] + shift, anchor[1]))

    def clear(self) -> None:
        """Empty, at the end, following: another conversation comes."""
        self._rows, self._heights, self._is_exact = [], [], []
        self._drawn = self._new_drawn(self._width)
        self._turned.clear()
        self._is_following, self._seen = True, None
        self._retop(0)
        self._settle((0, 0))

    def tick(self, now_ms: int) -> None:
        """Redraw the durations of work that is going on; does nothing when there is none."""
        self._now_ms = now_ms
        for index in range(len(self._rows) - 1, max(-1, len(self._rows) - 32), -1):
            row = self._rows[index]
            if isinstance(row, RetryRow) or (isinstance(row, ToolRow) and row.status == "running"):
                self._drawn.drop(row.key)
                top = self._tops[index] - self.scroll_offset.y
                if top < self.size.height and top + self._heights[index] > 0:
                    self.refresh_lines(self._tops[index], self._heights[index])

    def set_palette(self, palette: Palette) -> None:
        """Draw everything anew in other colours."""
        self._palette = palette
        self._remeasure()

    def set_unfold_key(self, key: str) -> None:
        """Name this key, as it is shown, where something is folded; "": there is none."""
        if key != self._unfold_key:
            self._unfold_key = key
            self._remeasure()

    def toggle_all(self) -> None:
        """Unfold everything that is folded, or fold it again."""
        self._all_unfolded = not self._all_unfolded
        self._turned.clear()
        anchor = self._anchor()
        for index, row in enumerate(self._rows):
            if can_unfold(row):
                self._is_exact[index] = False
        self._settle(anchor)

    def go_to_end(self) -> None:
        """Show the last line and follow."""
        self._is_following, self._seen = True, None
        self._settle((0, 0))
        self.refresh()
        self.post_message(self.EndReached())

    def go_to_start(self) -> None:
        """Show the first line that is loaded."""
        self.scroll_to(y=0, animate=False, immediate=True)

    def page(self, direction: int) -> None:
        """Move by a screen less two lines; -1 up, 1 down."""
        self.scroll_to(y=self.scroll_y + direction * max(1, self.size.height - 2), animate=False, immediate=True)

    def render_line(self, y: int) -> Strip:
        """The strip of line `y` of the visible part."""
        width = self.size.width
        base = self._base()
        line = y + self.scroll_offset.y
        strip = Strip.blank(width, base)
        if not self._rows:
            return self._welcome(y, width, base)
        if line < self._tops[-1]:
            index = bisect_right(self._tops, line) - 1
            drawn = self._drawn.strip(self._draw(index), line - self._tops[index], base)
            strip = drawn.adjust_cell_length(width, base) if drawn is not None else strip
            strip = self._with_highlights(strip, line, index, width)
        if y == self.size.height - 1 and (self.new_lines or self._said):
            strip = self._with_pill(strip, width)
        return strip

    def on_resize(self, _event: events.Resize) -> None:
        """Another width changes every height; another height only what is visible."""
        if self._drawn_width != self._width:
            self._remeasure()
        else:
            self._settle(self._anchor())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Whoever scrolls up stops following; whoever comes to the end follows again."""
        super().watch_scroll_y(old_value, new_value)
        if self._is_settling or not self.is_mounted:
            return
        was_following = self._is_following
        self._is_following = new_value >= self.max_scroll_y
        if was_following and not self._is_following:
            self._seen = (max(0, len(self._rows) - 1), self._heights[-1] if self._heights else 0)
        if self._is_following and not was_following:
            self._seen = None
            self.post_message(self.EndReached())
        self._settle(self._anchor())
        if new_value < self.size.height:
            self.post_message(self.OlderWanted())

    # ------------------------------------------------------------------------------------------------------ measuring

    @property
    def _width(self) -> int:
        return max(1, self.size.width)

    def _new_drawn(self, width: int) -> DrawnRows:
        return DrawnRows(width=width, palette=self._palette, unfold_key=self._unfold_key)

    def _remeasure(self) -> None:
        anchor = self._anchor()
        width = self._drawn_width = self._width
        self._drawn = self._new_drawn(width)
        self._heights = [estimate_lines(row, width) for row in self._rows]
        self._is_exact = [False] * len(self._rows)
        self._retop(0)
        self._settle(anchor)
        self.refresh()

    def _insert_front(self, rows: list[Row]) -> None:
        width = self._width
        self._rows[:0] = rows
        self._heights[:0] = [estimate_lines(row, width) for row in rows]
        self._is_exact[:0] = [False] * len(rows)

    def _retop(self, start: int) -> None:
        del self._tops[start + 1 :]
        self._tops += list(accumulate(self._heights[start:], initial=self._tops[start]))[1:]

    def _anchor(self) -> tuple[int, int]:
        """The row at the top of the visible part, and how many of its lines are above."""
        line = self.scroll_offset.y
        index = min(bisect_right(self._tops, line) - 1, max(0, len(self._rows) - 1))
        return index, line - self._tops[index]

    def _settle(self, anchor: tuple[int, int]) -> None:
        """Measure what is in view and around it, then put the anchored line (or the end) where it belongs."""
        height = self.size.height
        if not height or self._is_settling:
            return
        self._is_settling = True
        try:
            if self._is_following:
                self._measure_end(2 * height)
                target = self._tops[-1]
            else:
                target = self._measure_around(anchor, height)
            size = Size(self._width, self._tops[-1])
            if size != self.virtual_size:
                self.virtual_size = size
            self.scroll_target_y = self.scroll_y = min(target, max(0, self._tops[-1] - height))
            self._settled()
            self.refresh()
        finally:
            self._is_settling = False

    def _settled(self) -> None:
        """Lines have moved."""

    def _with_highlights(self, strip: Strip, line: int, index: int, width: int) -> Strip:
        """A line of row `index` with what is to be set off in it."""
        del line, index, width
        return strip

    def _measure_end(self, lines: int) -> None:
        index, found = len(self._rows), 0
        while index > 0 and found < lines:
            index -= 1
            self._measure(index)
            found += self._heights[index]
        self._retop(index)

    def _measure_around(self, anchor: tuple[int, int], height: int) -> int:
        index, offset = min(anchor[0], max(0, len(self._rows) - 1)), anchor[1]
        line = self._tops[index] + offset
        for _ in range(_SETTLE_ROUNDS):
            first = max(0, bisect_right(self._tops, max(0, line - height)) - 1)
            last = min(len(self._rows) - 1, bisect_right(self._tops, line + 2 * height) - 1)
            changed = [row for row in range(first, last + 1) if self._measure(row)]
            if not changed:
                break
            self._retop(changed[0])
            line = self._tops[index] + min(offset, max(0, self._heights[index] - 1)) if self._rows else 0
        return line

    def _measure(self, index: int) -> bool:
        """Make the height of a row exact; True if it changed."""
        if self._is_exact[index]:
            return False
        height = len(self._draw(index).lines)
        changed = height != self._heights[index]
        self._heights[index], self._is_exact[index] = height, True
        return changed

    # -------------------------------------------------------------------------------------------------------- drawing

    def _unfolded(self, row: Row) -> bool:
        return self._all_unfolded != (row.key in self._turned)

    def _draw(self, index: int) -> DrawnRow:
        """The lines of a row, drawn now if they are not held."""
        row, before = self._rows[index], self._rows[index - 1] if index else None
        joins = before is not None and is_one_line(before, unfolded=self._unfolded(before))
        return self._drawn.get(row, unfolded=self._unfolded(row), joins=joins, now_ms=self._now_ms)

    def _base(self) -> Style:
        return self._palette.style(self._palette.text, on=self._palette.background)

    def _welcome(self, y: int, width: int, base: Style) -> Strip:
        """What an empty chat shows, right above the composer."""
        palette = self._palette
        lines = [
            Text.assemble(
                ("  pidurable", palette.style(palette.accent, bold=True)), ("  every step is stored before it is shown", palette.style(palette.muted))
            ),
            Text("  Type what you want done. / lists commands, /help shows the keys.", palette.style(palette.muted)),
        ]
        index = y - (self.size.height - len(lines))
        if index < 0:
            return Strip.blank(width, base)
        lines[index].end = ""
        lines[index].truncate(max(1, width - MARGIN_CELLS), overflow="ellipsis")
        return Strip(to_segments(lines[index], base, self._drawn.painter.console)).adjust_cell_length(width, base)

    def _with_pill(self, strip: Strip, width: int) -> Strip:
        lines = self.new_lines
        text = f" {self._said} " if self._said else f" ↓ {lines:,} new line{'s' if lines > 1 else ''} "
        pill = Segment(text, self._palette.style(self._palette.background, on=self._palette.accent, bold=True))
        start = max(0, (width - len(text)) // 2)
        return Strip.join([strip.crop(0, start), Strip([pill]), strip.crop(start + len(text), width)]).adjust_cell_length(width, self._base())
