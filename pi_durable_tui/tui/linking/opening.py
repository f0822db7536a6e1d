"""/links, and a click on a link: show where it leads, and open or copy it when the person says so (rule SA-4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pi_durable_tui.errors import PidurableError
from pi_durable_tui.tui.linking.links import WebLink, links_of, web_link
from pi_durable_tui.tui.rows import AnswerRow, MarkRow, SummaryRow, ThinkingRow, ToolRow, UserRow
from pi_durable_tui.tui.screens.picker import Choice, PickerScreen

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp
    from pi_durable_tui.tui.rows import Row


class Links:
    """See the module. Used on the screen's loop."""

    def __init__(self, app: PidurableApp) -> None:
        self._app = app

    def list(self, _argument: str) -> None:
        """Show the links of what is loaded of the chat, the newest one chosen."""
        links = links_of(text for row in self._app.chat.transcript.rows for text in _texts(row))
        if links:
            self._app.run_worker(self._pick("Links", links))
        else:
            self._app.tell("info", "There is no link in what is loaded of this chat.")

    def ask(self, address: str) -> None:
        """Show where one address leads."""
        link = web_link(address)
        if link is not None:
            self._app.run_worker(self._pick("Open this link in your browser?", [link]))
        else:
            self._app.tell("warn", "That address is not opened: it is no plain web address.")

    async def _pick(self, title: str, links: Sequence[WebLink]) -> None:
        choices = [Choice(value=link, label=link.host, detail=link.url.partition(link.host)[2], preview=f"Host: {link.host}\n\n{link.url}") for link in links]
        picked = await self._app.push_screen_wait(PickerScreen(self._app.palette, title, choices, keys={"c": "copies it"}, start=len(choices) - 1))
        if picked is None:
            return
        if picked.key == "c":
            self._app.copy_to_clipboard(picked.value.url)
            self._app.tell("good", f"Copied {picked.value.url}")
        else:
            await self._open(picked.value)

    async def _open(self, link: WebLink) -> None:
        desk = self._app.bridge.desk if self._app.bridge is not None else None
        if desk is None:
            self._app.tell("info", "There is no browser here.")
            return
        try:
            await asyncio.to_thread(desk.browse, link.url)
        except PidurableError as problem:
            self._app.tell("warn", f"{problem.message} {problem.hint}".strip())
        else:
            self._app.tell("good", f"Your browser was told to open {link.host}.")


def _texts(row: Row) -> Iterator[str]:
    match row:
        case ToolRow(output=output, title=title):
            yield from (title, output)
        case UserRow(text=text) | AnswerRow(text=text) | ThinkingRow(text=text) | SummaryRow(text=text) | MarkRow(text=text):
            yield text
        case _:
            pass
