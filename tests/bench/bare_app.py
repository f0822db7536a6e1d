"""The smallest app of the same library with a composer and a line of text: what the screen is compared with."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Static, TextArea


class BareApp(App[None]):
    """See the module."""

    CSS = "Static { height: 1fr; } TextArea { height: 3; }"
    ENABLE_COMMAND_PALETTE = False

    def compose(self) -> ComposeResult:
        yield Static("bare", markup=False)
        yield TextArea(placeholder="Ask for work", compact=True)

    def on_mount(self) -> None:
        self.query_one(TextArea).cursor_blink = False
        self.query_one(TextArea).focus()


if __name__ == "__main__":
    BareApp().run()
