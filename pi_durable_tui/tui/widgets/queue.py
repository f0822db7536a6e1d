"""Messages that wait or were just delivered, each with its state (rule TU-12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

from pi_durable_tui.tui.safe_text import safe_line

if TYPE_CHECKING:
    from pi_durable_tui.tui.palette import Palette
    from pi_durable_tui.tui.rows import QueuedRow

_SHOWN = 5
_WHEN_CELLS = 19
_LEAST_CELLS = 20
"""So much of a message stays to be read beside a hint."""


class Queue(Widget, can_focus=False):
    """Draws queued messages, oldest first; hidden while there are none."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="queue")
        self.palette = palette
        self._rows: tuple[QueuedRow, ...] = ()
        self.key = ""  # the one that takes the newest back, as it is shown
        self.display = False

    def show_rows(self, rows: tuple[QueuedRow, ...]) -> None:
        """Draw these from now on."""
        if rows == self._rows:
            return
        self._rows = rows
        self.display = bool(rows)
        self.refresh(layout=True)

    def render(self) -> Text:
        """One line for each of the newest, and how many more there are; behind the last one how it is taken back."""
        palette = self.palette
        text = Text(end="")
        hidden = len(self._rows) - _SHOWN
        if hidden > 0:
            text.append(f"  … {hidden} more before\n", palette.style(palette.muted))
        shown = self._rows[-_SHOWN:]
        for index, row in enumerate(shown):
            when = {"delivered": "delivered", "held": "waits for you"}.get(row.state, "queued, steers" if row.mode == "steer" else "queued, follow-up")
            hint = self._hint(row) if index == len(shown) - 1 else ""
            room = self.size.width - 2 - _WHEN_CELLS - len(hint)
            mark, color = ("→ ", palette.good) if row.state == "delivered" else ("⋯ ", palette.accent)
            text.append_text(
                Text.assemble(
                    (mark, palette.style(color, bold=True)),
                    (f"{when:<{_WHEN_CELLS}}", palette.style(palette.muted)),
                    (safe_line(row.text, max_cells=room) if hint else row.text, palette.style(palette.text)),
                    (hint, palette.style(palette.muted, italic=True)),
                    "\n" if index < len(shown) - 1 else "",
                )
            )
        return text

    def _hint(self, row: QueuedRow) -> str:
        """What becomes of a message that waits and what a person can do about it, as much as fits beside it."""
        back = [f"{self.key} takes it back"] if self.key and row.state != "delivered" else []
        goes = ["goes ahead of your next message"] if row.state == "held" else []
        for words in ([*goes, *back], goes or back):
            hint = f"   {' · '.join(words)}" if words else ""
            if self.size.width - 2 - _WHEN_CELLS - len(hint) >= _LEAST_CELLS:
                return hint
        return ""
