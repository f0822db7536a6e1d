"""The list above the composer while a command's name is typed. Shows the table of commands; runs nothing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget

from pi_durable_tui.tui.commands import Command
from pi_durable_tui.tui.palette import Palette


class Menu(Widget, can_focus=False):
    """Commands that fit what is typed, one of them chosen."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="menu")
        self.palette = palette
        self._commands: tuple[Command, ...] = ()
        self._chosen = 0
        self.display = False

    @property
    def chosen(self) -> Command | None:
        """The one that Enter or Tab takes; None while nothing is offered."""
        return self._commands[self._chosen] if self._commands else None

    def offer(self, commands: Sequence[Command]) -> None:
        """Show these; none hides the list. The choice stays on the first unless the same are shown already."""
        offered = tuple(commands)
        if offered == self._commands:
            return
        self._commands, self._chosen = offered, 0
        self.display = bool(offered)
        self.refresh(layout=True)

    def move(self, step: int) -> None:
        """Choose another one, around the ends."""
        if self._commands:
            self._chosen = (self._chosen + step) % len(self._commands)
            self.refresh()

    def render(self) -> Text:
        """One line for each command."""
        palette = self.palette
        names = [f"/{command.name} {command.argument}".strip() for command in self._commands]
        width = max(map(len, names), default=0)
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        for index, (command, name) in enumerate(zip(self._commands, names, strict=True)):
            is_chosen = index == self._chosen
            line = Text.assemble(
                ("› " if is_chosen else "  ", palette.style(palette.accent, bold=True)),
                (name.ljust(width + 3), palette.style(palette.accent if is_chosen else palette.text, bold=is_chosen)),
                (command.help, palette.style(palette.muted)),
                "\n" if index < len(names) - 1 else "",
            )
            text.append_text(line)
        return text
