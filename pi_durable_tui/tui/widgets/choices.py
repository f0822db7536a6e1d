"""The list above the composer from which one is taken: file names, paths, what was sent before. It offers; it decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.text import Text
from textual.widget import Widget

from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.safe_text import safe_line

SHOWN = 8


class Choice(Struct, frozen=True):
    """`text` is what is taken; foreign text is allowed in it. `note` stands beside it."""

    text: str
    note: str = ""


class Choices(Widget, can_focus=False):
    """Hidden while nothing is offered."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="choices")
        self.palette = palette
        self._title = ""
        self._choices: tuple[Choice, ...] = ()
        self._at = 0
        self.display = False

    @property
    def chosen(self) -> Choice | None:
        """The one that Enter or Tab takes; None while nothing is offered."""
        return self._choices[self._at] if self._choices else None

    def offer(self, title: str, choices: Sequence[Choice]) -> None:
        """Show these, the first one chosen; without a title: nothing."""
        offered = tuple(choices) if title else ()
        if (title, offered) == (self._title, self._choices) and self.display == bool(title):
            return
        self._title, self._choices, self._at = title, offered, 0
        self.display = bool(title)
        self.refresh(layout=True)

    def close(self) -> bool:
        """Offer nothing; False when nothing was offered."""
        was_open = self.display
        self.offer("", ())
        return was_open

    def move(self, step: int) -> None:
        """Choose another one, around the ends."""
        if self._choices:
            self._at = (self._at + step) % len(self._choices)
            self.refresh()

    def render(self) -> Text:
        """What it is about, then a line for each that is in view."""
        palette = self.palette
        top = max(0, min(self._at - SHOWN // 2, len(self._choices) - SHOWN))
        count = f"  {self._at + 1} of {len(self._choices)}" if self._choices else "  nothing fits"
        lines = [Text.assemble((self._title, palette.style(palette.accent, bold=True)), (count, palette.style(palette.muted)))]
        for index in range(top, min(top + SHOWN, len(self._choices))):
            choice, is_chosen = self._choices[index], index == self._at
            color = palette.accent if is_chosen else palette.text
            line = Text.assemble(
                ("› " if is_chosen else "  ", palette.style(palette.accent, bold=True)),
                (safe_line(choice.text, max_cells=300), palette.style(color, bold=is_chosen)),
                (f"  {choice.note}" if choice.note else "", palette.style(palette.muted)),
            )
            lines.append(line)
        return Text("\n", end="").join(lines)
