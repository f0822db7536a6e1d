"""The last line: where, who, what it cost, and whether all of it is stored (rule TU-11)."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget

from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.status import FooterPart, fit


class Footer(Widget, can_focus=False):
    """Draws the parts it is given; redraws only when they change."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="footer")
        self.palette = palette
        self._parts: tuple[list[FooterPart], list[FooterPart]] = ([], [])

    def show_parts(self, left: list[FooterPart], right: list[FooterPart]) -> None:
        """Draw these from now on."""
        if (left, right) != self._parts:
            self._parts = (left, right)
            self.refresh()

    def render(self) -> Text:
        """One line: the left parts, room, the right parts; parts that do not fit are left out, the least important first."""
        width = max(1, self.size.width)
        left, right = fit(*self._parts, width)
        head, tail = self._joined(left), self._joined(right)
        room = width - head.cell_len - tail.cell_len
        text = Text.assemble(head, " " * max(1 if left else 0, room), tail, no_wrap=True, overflow="ellipsis", end="")
        text.truncate(width, overflow="ellipsis")
        return text

    def _joined(self, parts: Sequence[FooterPart]) -> Text:
        palette = self.palette
        colors = {"text": palette.text, "muted": palette.muted, "good": palette.good, "warn": palette.warn, "bad": palette.bad}
        text = Text(end="")
        for index, part in enumerate(parts):
            text.append(" · " if index else "", palette.style(palette.faint))
            text.append(part.text, palette.style(colors[part.tone], bold=part.tone == "bad"))
        return text
