"""The second line of defence: a widget that draws foreign text as it came still brings nothing to the terminal that it would obey (SA-1)."""

from __future__ import annotations

import pytest
from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Label, RichLog, Static, TextArea

from pi_durable_tui.tui.terminal_app import TerminalApp
from tests.support.hostile_text import hostile_texts
from tests.support.terminal_grammar import breaches

# Bidi marks and the like are no matter of the last line: they are dropped where foreign text comes in.
OBEYED = [text for text in hostile_texts() if any(ord(char) < 0x20 or 0x7F <= ord(char) <= 0x9F for char in text)]


class Careless(TerminalApp):
    """Draws everything as it came, in every way the library has."""

    def compose(self) -> ComposeResult:
        for text in OBEYED[::7]:
            yield Static(text, markup=False)
            yield Static(Text(text))
            yield Label(text, markup=False)
        yield TextArea("\n".join(OBEYED))
        log = RichLog(markup=False)
        log.border_title = OBEYED[0].replace("[", "\\[")
        yield log

    def on_mount(self) -> None:
        for text in OBEYED:
            self.query_one(RichLog).write(text)


@pytest.mark.rule("SA-1", "CASE-G1")
async def test_whatever_a_widget_draws_no_control_character_of_its_text_gets_to_the_terminal() -> None:
    async with Careless().run_test(size=(80, 600)) as pilot:
        await pilot.pause()
        strips = pilot.app.screen._compositor.render_strips()
        drawn = "\n".join("".join(segment.text for segment in strip if not segment.control) for strip in strips)
    assert drawn.count("\ufffd") > 300
    assert [found for found in breaches(drawn.replace("\n", "").encode()) if found < "\u00a0"] == []
