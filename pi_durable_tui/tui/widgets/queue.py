"""Messages that wait or were just delivered, each with its state (rule TU-12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

if TYPE_CHECKING:
    from pi_durable_tui.tui.palette import Palette
    from pi_durable_tui.tui.rows import QueuedRow

_SHOWN = 5


class Queue(Widget, can_focus=False):
    """Draws queued messages, oldest first; hidden while there are none."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="queue")
        self.palette = palette
        self._rows: tuple[QueuedRow, ...] = ()
        self.display = False

    def show_rows(self, rows: tuple[QueuedRow, ...]) -> None:
        """Draw these from now on."""
        if rows == self._rows:
            return
        self._rows = rows
        self.display = bool(rows)
        self.refresh(layout=True)

    def render(self) -> Text:
        """One line for each of the newest, and how many more there are."""
        palette = self.palette
        text = Text(end="")
        hidden = len(self._rows) - _SHOWN
        if hidden > 0:
            text.append(f"  … {hidden} more before\n", palette.style(palette.muted))
        shown = self._rows[-_SHOWN:]
        for index, row in enumerate(shown):
            when = "delivered" if row.state == "delivered" else "queued, steers" if row.mode == "steer" else "queued, follow-up"
            mark, color = ("→ ", palette.good) if row.state == "delivered" else ("⋯ ", palette.accent)
            text.append_text(
                Text.assemble(
                    (mark, palette.style(color, bold=True)),
                    (f"{when:<19}", palette.style(palette.muted)),
                    (row.text, palette.style(palette.text)),
                    "\n" if index < len(shown) - 1 else "",
                )
            )
        return text
