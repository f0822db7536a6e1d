"""The line in which one types what to look for in the transcript (Ctrl+F). It looks for nothing itself."""

from __future__ import annotations

from typing import Literal

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widget import Widget

from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.safe_text import safe_input, safe_line


class Search(Widget, can_focus=True):
    """Hidden until it is opened; takes keys while it is open."""

    ALLOW_SELECT = False

    class Wanted(Message):
        """The person looks for `query`: from where they are (step 0), or for the next one before (-1) or after (1)."""

        def __init__(self, query: str, step: Literal[-1, 0, 1]) -> None:
            super().__init__()
            self.query = query
            self.step: Literal[-1, 0, 1] = step

    class Closed(Message):
        """The person is done looking."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="search")
        self.palette = palette
        self.query_text = ""
        self._result = ""
        self.display = False

    def open(self) -> None:
        """Take keys; what was looked for last is still there."""
        self.display = True
        self.focus()
        self.refresh()
        if self.query_text:
            self.post_message(self.Wanted(self.query_text, 0))

    def tell(self, result: str) -> None:
        """Show what was found, as a few words of safe text."""
        if result != self._result:
            self._result = result
            self.refresh()

    def close(self) -> None:
        """Hide."""
        self.display = False
        self.post_message(self.Closed())

    def on_key(self, event: events.Key) -> None:
        """Text is typed at the end; Enter and Up go back, Down goes on."""
        match event.key:
            case "enter" | "up" | "ctrl+f":
                self.post_message(self.Wanted(self.query_text, -1))
            case "down" | "shift+enter":
                self.post_message(self.Wanted(self.query_text, 1))
            case "escape":
                self.close()
            case "backspace" | "ctrl+h":
                self._change(self.query_text[:-1])
            case "ctrl+u":
                self._change("")
            case _ if event.character is not None and event.is_printable:
                self._change(self.query_text + event.character)
            case _:
                return
        event.stop()
        event.prevent_default()

    def on_paste(self, event: events.Paste) -> None:
        """Its first line is looked for."""
        event.stop()
        self._change(self.query_text + safe_input(event.text).partition("\n")[0])

    def render(self) -> Text:
        """One line: what is looked for, and what was found."""
        palette = self.palette
        text = Text(end="")
        text.append("⌕ ", palette.style(palette.accent, bold=True))
        text.append(safe_line(self.query_text, max_cells=200) if self.query_text else "", palette.style(palette.text))
        text.append("▏", palette.style(palette.accent))
        hint = "Enter older · Down newer · Esc closes"
        text.append(f"  {self._result}" if self._result else "", palette.style(palette.warn if self._result == "not found" else palette.muted))
        text.append(f"   {hint}", palette.style(palette.muted, italic=True))
        return text

    def _change(self, query: str) -> None:
        self.query_text = query
        self.refresh()
        self.post_message(self.Wanted(query, 0))
