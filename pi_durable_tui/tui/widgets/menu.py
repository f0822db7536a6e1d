"""The list above the composer while a command's name is typed. Shows the table of commands; runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

if TYPE_CHECKING:
    from pi_durable_tui.tui.commands import Offer
    from pi_durable_tui.tui.palette import Palette

SHOWN = 10


class Menu(Widget, can_focus=False):
    """Commands that fit what is typed, one of them chosen."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="menu")
        self.palette = palette
        self._offers: tuple[Offer, ...] = ()
        self._chosen = 0
        self.display = False

    @property
    def chosen(self) -> Offer | None:
        """The one that Enter or Tab takes; None while nothing is offered."""
        return self._offers[self._chosen] if self._offers else None

    def offer(self, offers: Sequence[Offer]) -> None:
        """Show these; none hides the list. The choice stays on the first unless the same are shown already."""
        offered = tuple(offers)
        if offered == self._offers:
            return
        self._offers, self._chosen = offered, 0
        self.display = bool(offered)
        self.refresh(layout=True)

    def move(self, step: int) -> None:
        """Choose another one, around the ends."""
        if self._offers:
            self._chosen = (self._chosen + step) % len(self._offers)
            self.refresh()

    def render(self) -> Text:
        """One line for each that is in view, and how many there are when not all are."""
        palette = self.palette
        names = [f"/{offer.name} {offer.argument}".strip() for offer in self._offers]
        width = max(map(len, names), default=0)
        top = max(0, min(self._chosen - SHOWN // 2, len(names) - SHOWN))
        lines: list[Text] = []
        for index in range(top, min(top + SHOWN, len(names))):
            is_chosen = index == self._chosen
            lines.append(
                Text.assemble(
                    ("› " if is_chosen else "  ", palette.style(palette.accent, bold=True)),
                    (names[index].ljust(width + 3), palette.style(palette.accent if is_chosen else palette.text, bold=is_chosen)),
                    (self._offers[index].help, palette.style(palette.muted)),
                )
            )
        if len(names) > SHOWN:
            lines.append(Text(f"  {self._chosen + 1} of {len(names)}", palette.style(palette.faint)))
        return Text("\n", end="").join(lines)
