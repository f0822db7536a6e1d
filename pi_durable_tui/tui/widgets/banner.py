"""Stands where the composer would, while a conversation is only looked at."""

from __future__ import annotations

from rich.text import Text
from textual.widget import Widget

from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.safe_text import safe_line


class Banner(Widget, can_focus=False):
    """One line that says what is looked at, and the way back; hidden when nothing is."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="banner")
        self.palette = palette
        self._words = ""
        self.key = ""  # the one that goes back, as it is shown
        self.display = False

    def show(self, words: str) -> None:
        """Say this from now on; "" hides the line. Foreign text is allowed."""
        if words != self._words:
            self._words, self.display = words, bool(words)
            self.refresh(layout=True)

    def render(self) -> Text:
        """The words, then the key."""
        palette = self.palette
        text = Text(end="")
        text.append("◆ ", palette.style(palette.accent, bold=True))
        text.append(safe_line(self._words, max_cells=200), palette.style(palette.text))
        text.append(f"   {self.key} goes back" if self.key else "", palette.style(palette.muted, italic=True))
        return text
