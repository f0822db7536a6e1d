"""Keys and commands, from the tables (rule: what works is in them, and nothing else)."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from pi_durable_tui.tui.commands import COMMANDS
from pi_durable_tui.tui.keymap import KEYS
from pi_durable_tui.tui.palette import Palette


class HelpScreen(ModalScreen[None]):
    """Closes with Esc, q or Enter."""

    BINDINGS = [("escape,q,enter,ctrl+c", "dismiss", "Close")]

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette

    def compose(self) -> ComposeResult:
        """One block of text that scrolls when it does not fit."""
        with VerticalScroll(id="help") as box:
            box.border_title = Content("Help")
            box.border_subtitle = Content("Esc closes")
            yield Static(self.text(), markup=False)

    def text(self) -> Text:
        """Commands, then keys, in two columns."""
        palette = self._palette
        commands = [(f"/{command.name} {command.argument}".strip(), command.help) for command in COMMANDS]
        keys = [(key.shown, key.help) for key in KEYS]
        width = max(len(name) for name, _ in [*commands, *keys]) + 3
        text = Text()
        for title, table in (("Commands", commands), ("Keys", keys)):
            text.append(f"{title}\n", palette.style(palette.accent, bold=True))
            for name, help_text in table:
                text.append(f"{name:<{width}}", palette.style(palette.text))
                text.append(f"{help_text}\n", palette.style(palette.muted))
            text.append("\n" if title == "Commands" else "")
        text.rstrip()
        return text
