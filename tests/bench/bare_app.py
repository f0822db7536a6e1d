"""The smallest app of the same library with a composer and a line of text: what the screen is compared with.

With a port it sends what is typed to the provider there and shows the end of the answer as it comes, thirty times a second. It stores nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static, TextArea

FRAME_S = 1 / 30
SHOWN_CHARS = 2_500


class BareApp(App[None]):
    """See the module."""

    CSS = "Static { height: 1fr; } TextArea { height: 3; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "ask", priority=True)]

    def compose(self) -> ComposeResult:
        yield Static("bare", markup=False)
        yield TextArea(placeholder="Ask for work", compact=True)

    def on_mount(self) -> None:
        self.query_one(TextArea).cursor_blink = False
        self.query_one(TextArea).focus()

    def action_ask(self) -> None:
        composer = self.query_one(TextArea)
        asked, composer.text = composer.text, ""
        self.run_worker(self._ask(asked))

    async def _ask(self, asked: str) -> None:
        shown, answer, painted_s = self.query_one(Static), "", 0.0
        reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
        body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": asked}]}).encode()
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        while line := await reader.readline():
            if line.startswith(b"data: {"):
                answer += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
                if time.monotonic() - painted_s > FRAME_S:
                    shown.update(answer[-SHOWN_CHARS:])
                    painted_s = time.monotonic()
        shown.update(answer[-SHOWN_CHARS:])
        writer.close()


if __name__ == "__main__":
    BareApp().run()
