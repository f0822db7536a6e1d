"""The line above the composer: what goes on, and what the program has to say. The one place of the app that shows errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text
from textual.widget import Widget

from pi_durable_tui.tui.safe_text import safe_line

if TYPE_CHECKING:
    from pi_durable_tui.tui.palette import Palette
    from pi_durable_tui.tui.rows import Notice

_MAX_NOTICES = 3
_MAX_LINES = 8
_MAX_CELLS = 600


class Activity(Widget, can_focus=False):
    """Draws notices, then the line of work going on; hidden while there is neither."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="activity")
        self.palette = palette
        self._notices: tuple[Notice, ...] = ()
        self._spinner = ""
        self._words = ""
        self._hint = ""
        self.display = False

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What is shown, oldest first."""
        return self._notices

    def say(self, notice: Notice) -> None:
        """Show a notice, below the ones that are shown, once; of more than a few the oldest goes."""
        self._notices = (*(shown for shown in self._notices if shown != notice), notice)[-_MAX_NOTICES:]
        self._changed()

    def clear_notices(self) -> bool:
        """Take all notices away; False when there were none."""
        had_some = bool(self._notices)
        if had_some:
            self._notices = ()
            self._changed()
        return had_some

    def let_pass(self) -> None:
        """Take away what told of something that is over now."""
        lasting = tuple(shown for shown in self._notices if not shown.passing)
        if lasting != self._notices:
            self._notices = lasting
            self._changed()

    def show_work(self, spinner: str, words: str, hint: str) -> None:
        """Say what goes on and what a key does about it; "" as `words` for nothing."""
        if (spinner, words, hint) != (self._spinner, self._words, self._hint):
            is_same_height = bool(words) == bool(self._words)
            self._spinner, self._words, self._hint = spinner, words, hint
            if is_same_height:
                self.refresh()
            else:
                self._changed()

    def render(self) -> Table:
        """Behind their marks notices wrap; the work is one line."""
        palette = self.palette
        colors = {"info": palette.accent, "good": palette.good, "warn": palette.warn, "bad": palette.bad}
        grid = Table.grid(expand=True)
        grid.add_column(width=2)
        grid.add_column(ratio=1, overflow="fold")  # a path that is longer than a line goes on in the next
        for notice in self._notices:
            mark = {"info": "i", "good": "✓", "warn": "!", "bad": "✗"}[notice.tone]
            first, *more = [safe_line(line, max_cells=_MAX_CELLS) for line in notice.text.split("\n")[:_MAX_LINES]]
            grid.add_row(Text(mark, palette.style(colors[notice.tone], bold=True)), Text(first, palette.style(colors[notice.tone])))
            for line in more:
                grid.add_row("", Text(line, palette.style(palette.text)))
        if self._words:
            line = Text(self._words, palette.style(palette.muted), no_wrap=True, overflow="ellipsis")
            line.append(f"   {self._hint}" if self._hint else "", palette.style(palette.muted, italic=True))
            grid.add_row(Text(self._spinner, palette.style(palette.accent, bold=True)), line)
        return grid

    def _changed(self) -> None:
        self.display = bool(self._notices or self._words)
        self.refresh(layout=True)
