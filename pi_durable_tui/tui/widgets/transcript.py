"""The transcript: rows that can be folded, selected, copied, searched and jumped through (rules TU-1 to TU-6).

How rows are drawn, measured and followed is row_view.py. What is selected is copied at once, as it was written: without margins,
line numbers and the breaks that only the width made. It knows rows only: no view, no bridge, no clock.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Literal

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.message import Message
from textual.strip import Strip

from pi_durable_tui.tui.draw.marks import Hit, copied, hits, piece
from pi_durable_tui.tui.linking.links import address_at
from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.rows import UserRow, can_unfold
from pi_durable_tui.tui.widgets.reading.finding import Direction, Found, count, find, may_hold
from pi_durable_tui.tui.widgets.reading.row_view import RowView
from pi_durable_tui.tui.widgets.reading.selecting import Place, Selecting, Spot, cells_on, moved, ordered, word_cells

_SAID_S = 2.0


class Transcript(RowView, can_focus=False):
    """Shows rows; see the module."""

    class Left(Message):
        """Keys select nothing any more."""

    class LinkClicked(Message):
        """A web address was clicked; foreign text."""

        def __init__(self, address: str) -> None:
            super().__init__()
            self.address = address

    def __init__(self, palette: Palette) -> None:
        super().__init__(palette)
        self._selecting = Selecting()
        self._selected: tuple[Place, Place] | None = None  # as lines of the whole transcript
        self._query = ""
        self._found: Found | None = None

    def clear(self) -> None:
        """Empty, at the end, following: another conversation comes."""
        self._selecting.clear()
        self._selected = self._found = None
        super().clear()

    def page(self, direction: int) -> None:
        """Move by a screen less two lines, or the caret by as much; -1 up, 1 down."""
        if self._selecting.caret:
            self._move_caret("pageup" if direction < 0 else "pagedown")
        else:
            super().page(direction)

    def on_click(self, event: events.Click) -> None:
        """Tell of the link that was clicked, else fold or unfold the tool or thinking; on the pill: go to the end."""
        if self.new_lines and event.y == self.size.height - 1:
            self.go_to_end()
            return
        line = event.y + self.scroll_offset.y
        if not self._rows or line >= self._tops[-1] or self._selecting.is_active:
            return
        index = bisect_right(self._tops, line) - 1
        row = self._rows[index]
        if event.chain > 1:
            self._select_around(index, line - self._tops[index], event.x, whole_line=event.chain > 2)
        elif (address := address_at(self._draw(index).lines, line - self._tops[index], event.x)) is not None:
            self.post_message(self.LinkClicked(address))
        elif can_unfold(row):
            anchor = self._anchor()
            self._turned ^= {row.key}
            self._is_exact[index] = False
            self._is_following = self._is_following and index == len(self._rows) - 1
            self._settle(anchor)

    # ------------------------------------------------------------------------------------- selecting, searching, jumping

    def go_to_prompt(self, direction: Direction) -> None:
        """Put the previous (-1) or next (1) message of the person at the top."""
        line = self.scroll_offset.y
        starts = [self._tops[index] for index, row in enumerate(self._rows) if isinstance(row, UserRow)]
        wanted = [top for top in starts if top < line] if direction < 0 else [top for top in starts if top > line]
        if wanted:
            self._go_to_line(wanted[-1] if direction < 0 else wanted[0])
        elif direction < 0:
            self.go_to_start()
        else:
            self.go_to_end()

    def search(self, query: str, step: Literal[-1, 0, 1]) -> str:
        """Look for `query` and show where it stands, highlighted; "" ends the search.

        Args:
            step: -1 the next one before the one shown, 1 the next one after it, 0 the newest one that is at or above the visible part.

        Returns:
            What was found, in a few words.
        """
        is_new, self._query = query != self._query, query
        start = self._search_from(step, is_new=is_new)
        direction: Direction = 1 if step > 0 else -1
        found = find(self._rows, query, start=start, direction=direction, draw=self._lines, is_unfolded=self._unfolded) if query else None
        if found is None and step == 0 and query:
            found = find(self._rows, query, start=start, direction=1, draw=self._lines, is_unfolded=self._unfolded)
        self._found = found or (self._found if not is_new else None)
        if found is not None:
            index = self._index_of(found.key)
            if found.unfold:
                self._turned ^= {found.key}
                self._is_exact[index] = False
                self._settle(self._anchor())
            self._go_to_line(max(0, self._tops[index] + found.line - self.size.height // 3))
        self.refresh()
        if found is None:
            if query and direction < 0:
                self.post_message(self.OlderWanted())
            return "not found" if query and self._found is None else "no more" if query else ""
        return f"{count(self._rows, query):,} in what is loaded"

    def begin_selecting(self) -> None:
        """Show a caret that keys move; with Space or Shift it selects, Enter copies."""
        if not self._rows:
            return
        self.can_focus = True
        self.focus()
        line = min(self.scroll_offset.y + self.size.height, self._tops[-1]) - 1
        self._selecting = Selecting(anchor=None, head=self._spot(line, 0), caret=True)
        self._place_selection()

    def end_selecting(self) -> bool:
        """Select nothing; False when there was nothing selected and no caret."""
        was_active, self._said = self._selecting.is_active or bool(self._said), ""
        if self._selecting.caret:
            self.can_focus = False
            self.post_message(self.Left())
        self._selecting.clear()
        self._place_selection()
        return was_active

    def copy_selected(self) -> str:
        """Put the selected text into the clipboard of the terminal (OSC 52) and return it; "" when nothing is selected."""
        text = self._selected_text()
        if text:
            self.app.copy_to_clipboard(text)
            lines = text.count("\n") + 1
            self._say(f"copied {lines:,} lines" if lines > 1 else f"copied {len(text):,} characters")
        return text

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A selection begins here."""
        if event.button == 1 and self._rows:
            self.end_selecting()
            self._selecting.anchor = self._spot(event.y + self.scroll_offset.y, event.x)
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The selection ends here for now; at the edges it scrolls."""
        if self._selecting.anchor is None or self._selecting.caret or self.app.mouse_captured is not self:
            return
        if event.y < 0 or event.y >= self.size.height:
            self.scroll_to(y=self.scroll_y + (-1 if event.y < 0 else 1), animate=False, immediate=True)
        y = max(0, min(event.y, self.size.height - 1))
        head = self._spot(y + self.scroll_offset.y, max(0, event.x))
        if head != self._selecting.anchor or self._selecting.head is not None:
            self._selecting.head = head
            self._place_selection()

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        """What is selected is copied."""
        if self.app.mouse_captured is self:
            self.release_mouse()
            if self._selecting.head is None:
                self._selecting.clear()
            else:
                self.copy_selected()

    def on_key(self, event: events.Key) -> None:
        """Keys of the caret."""
        if not self._selecting.caret:
            return
        match event.key:
            case "enter" | "y" | "c":
                self.copy_selected()
                said = self._said
                self.end_selecting()
                self._said = said
            case "space" | "v":
                self._selecting.anchor = self._selecting.head
                self._place_selection()
            case "escape" | "q":
                self.end_selecting()
            case _ if not self._move_caret(event.key):
                return
        event.stop()
        event.prevent_default()

    def _move_caret(self, key: str) -> bool:
        head = self._selecting.head
        if head is None:
            return False
        at = self._place(head)
        place = moved(key, at, lines=self._tops[-1], width=self._width, page=max(1, self.size.height - 2))
        if place is None:
            return False
        if key.startswith("shift+") and self._selecting.anchor is None:
            self._selecting.anchor = head
        self._selecting.head = self._spot(*place)
        if not self.scroll_offset.y <= place[0] < self.scroll_offset.y + self.size.height:
            up = place[0] < self.scroll_offset.y
            self.scroll_to(y=place[0] if up else place[0] - self.size.height + 1, animate=False, immediate=True)
        self._place_selection()
        return True

    def _select_around(self, index: int, line: int, cell: int, *, whole_line: bool) -> None:
        """Select and copy the word at a cell, or the line of content, which may be several drawn ones."""
        lines = self._draw(index).lines
        first = last = min(line, len(lines) - 1)
        if whole_line:
            while first > 0 and piece(lines[first]).joins is not None:
                first -= 1
            while last + 1 < len(lines) and piece(lines[last + 1]).joins is not None:
                last += 1
            cells = (0, self._width - 1)
        else:
            cells = word_cells(lines[first].plain, cell)
        key = self._rows[index].key
        self._selecting = Selecting(anchor=Spot(key, first, cells[0]), head=Spot(key, last, cells[1]))
        self._place_selection()
        self.copy_selected()

    def _search_from(self, step: int, *, is_new: bool) -> tuple[int, int, int]:
        if self._found is not None and not is_new and step:
            return self._index_of(self._found.key), *self._found.hit.cells[0][:2]
        line = min(self.scroll_offset.y + self.size.height, self._tops[-1] + 1) - 1
        index = min(bisect_right(self._tops, max(0, line)) - 1, max(0, len(self._rows) - 1))
        return index, line - self._tops[index], self._width

    def _go_to_line(self, line: int) -> None:
        self.scroll_to(y=min(line, max(0, self._tops[-1] - self.size.height)), animate=False, immediate=True)

    def _index_of(self, key: str) -> int:
        return next((index for index in range(len(self._rows) - 1, -1, -1) if self._rows[index].key == key), 0)

    def _spot(self, line: int, cell: int) -> Spot:
        line = max(0, min(line, self._tops[-1] - 1))
        index = min(bisect_right(self._tops, line) - 1, len(self._rows) - 1)
        return Spot(self._rows[index].key, line - self._tops[index], max(0, min(cell, self._width - 1)))

    def _place(self, spot: Spot) -> Place:
        return self._tops[self._index_of(spot.key)] + spot.line, spot.cell

    def _place_selection(self) -> None:
        one, other = self._selecting.anchor or self._selecting.head, self._selecting.head
        self._selected = ordered(self._place(one), self._place(other)) if one is not None and other is not None and self._rows else None
        self.refresh()

    def _selected_text(self) -> str:
        one, other = self._selecting.anchor, self._selecting.head
        if one is None or other is None:
            return ""
        ends = sorted((self._index_of(spot.key), spot.line, spot.cell) for spot in (one, other))
        (first, first_line, start), (last, last_line, end) = ends
        lines = [line for index in range(first, last + 1) for line in self._draw(index).lines]
        after = len(self._draw(last).lines) - last_line - 1
        return copied(lines[first_line : len(lines) - after], start_cell=start, end_cell=end + 1).strip("\n")

    def _settled(self) -> None:
        if self._selecting.is_active:
            self._place_selection()

    def _say(self, words: str) -> None:
        self._said = words
        self.refresh()
        self.set_timer(_SAID_S, self._unsay)

    def _unsay(self) -> None:
        self._said = ""
        self.refresh()

    def _lines(self, index: int, unfolded: bool) -> list[Text]:
        """The lines of a row as they are, or as they would be unfolded."""
        row = self._rows[index]
        if unfolded == self._unfolded(row):
            return self._draw(index).lines
        return self._drawn.painter.lines(row, unfolded=unfolded, joins=False, now_ms=self._now_ms)

    def _with_highlights(self, strip: Strip, line: int, index: int, width: int) -> Strip:
        palette = self._palette
        if self._query:
            found = self._found
            for hit in self._hits(index):
                is_current = found is not None and found.key == self._rows[index].key and found.hit == hit
                color = palette.style(palette.background, on=palette.warn if is_current else palette.muted)
                for hit_line, first, last in hit.cells:
                    if self._tops[index] + hit_line == line:
                        strip = _painted(strip, first, last, width, color)
        cells = cells_on(line, self._selected, width) if self._selected is not None else None
        return _painted(strip, *cells, width, palette.style(palette.background, on=palette.accent)) if cells is not None else strip

    def _hits(self, index: int) -> list[Hit]:
        drawn = self._draw(index)
        if drawn.hits is None or drawn.hits[0] != (self._query, len(drawn.lines), id(drawn.row)):
            drawn.hits = ((self._query, len(drawn.lines), id(drawn.row)), hits(drawn.lines, self._query) if may_hold(drawn.row, self._query) else [])
        return drawn.hits[1]


def _painted(strip: Strip, first: int, last: int, width: int, style: Style) -> Strip:
    """The strip with another style over some of its cells."""
    first, last = max(0, first), min(last, width)
    if first >= last:
        return strip
    middle = Strip(list(Segment.apply_style(strip.crop(first, last), post_style=style)))
    return Strip.join([strip.crop(0, first), middle, strip.crop(last, width)]).adjust_cell_length(width)
