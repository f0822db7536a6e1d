"""Asks whether the files of a project shall count (rule SA-5). No is what every other key comes to, and typing ahead decides nothing."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from pi_durable_tui.tui.draw.trust import TrustQuestion, question_text
from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.safe_text import safe_line

PAUSE_GAPS = 40
"""A key that comes sooner after the one before, or after the question appeared, was meant for something else; in gaps of typing: 0.6 s."""
WIDTH, AROUND = 112, 7
"""The box as the style sheet makes it: its width, and what border, padding and scroll bar take of it."""


class TrustScreen(ModalScreen[bool | None]):
    """Closes with True (trusted), False (not trusted, remembered) or None (undecided).

    Args:
        pause_s: PAUSE_GAPS in seconds.
    """

    def __init__(self, palette: Palette, question: TrustQuestion, *, pause_s: float) -> None:
        super().__init__()
        self._palette, self._question, self._pause_s = palette, question, pause_s
        self._last_key_s = 0.0

    def compose(self) -> ComposeResult:
        """The files and what is in them, scrolling."""
        with VerticalScroll(id="trust") as box:
            box.border_title = Content(f"Trust {safe_line(self._question.directory, max_cells=60)}?")
            box.border_subtitle = Content("y trusts these files · n does not · Esc decides later")
            yield Static(markup=False)

    def on_mount(self, event: events.Mount) -> None:
        """Keys can be meant for this from here on."""
        self._last_key_s = event.time
        self.query_one("#trust").focus()

    def on_resize(self, event: events.Resize) -> None:
        """The contents fit the width."""
        text = question_text(self._question, self._palette, width=min(WIDTH, event.size.width) - AROUND)
        self.query_one("#trust Static", Static).update(text)

    def on_key(self, event: events.Key) -> None:
        """Only a single key, pressed on purpose, decides."""
        gap_s, self._last_key_s = event.time - self._last_key_s, event.time
        if event.key == "escape":
            self.dismiss(None)
        if event.key not in {"y", "n", "enter"}:
            return
        event.stop()
        if gap_s >= self._pause_s:
            self.dismiss(event.key == "y")

    def action_page(self, direction: int) -> None:
        """PageUp and PageDown."""
        box = self.query_one("#trust", VerticalScroll)
        box.scroll_relative(y=direction * max(1, box.size.height - 1), animate=False)
