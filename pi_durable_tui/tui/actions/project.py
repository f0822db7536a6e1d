"""The app's side of what the working directory brings: trust before the first message, /trust, /reload, and files that come along (SA-5, AG-3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pi_durable_tui.errors import PidurableError
from pi_durable_tui.records.messages import Content
from pi_durable_tui.tui.bridge import Opened
from pi_durable_tui.tui.draw.trust import TrustQuestion
from pi_durable_tui.tui.screens.trust import PAUSE_GAPS, TrustScreen

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp
    from pi_durable_tui.tui.ports import WorkspacePort

T = TypeVar("T")


class Project:
    """See the module. Used on the screen's loop.

    Args:
        typing_gap_s: 0 where keys come from a program: then no pause is needed before a key that decides.
    """

    def __init__(self, app: PidurableApp, *, typing_gap_s: float) -> None:
        self._app = app
        self._pause_s = PAUSE_GAPS * typing_gap_s
        self._opened: Opened | None = None
        self._preparing = asyncio.Lock()

    async def begin(self, opened: Opened) -> None:
        """Say what there is to say, and ask about what nobody has decided about; nothing goes on and nothing is sent before the answer."""
        self._opened = opened
        self.remind()
        question = await self._call(opened, opened.workspace.undecided())
        if question is not None:
            await self._ask(opened, question)
        self._offer(opened)

    def remind(self) -> None:
        """Say again what there was to say at the opening: why no model is there, and every way to one."""
        for notice in self._opened.notices if self._opened is not None else ():
            self._app.chat.say(notice)

    def trust(self, _argument: str) -> None:
        """Show the project's files and how they stand; change it."""
        if self._opened is not None:
            self._app.run_worker(self._show(self._opened))

    def reload(self, _argument: str) -> None:
        """Read skills, templates, extensions, instructions, keys and MCP servers anew."""
        if self._opened is not None:
            self._app.run_worker(self._reload(self._opened))

    async def prepared(self, text: str) -> str | Sequence[Content] | None:
        """What to hand in for a typed text, in the order of the calls; None on a problem, which is told."""
        opened, view = self._opened, self._app.view
        is_command = text.lstrip().startswith("/") and bool(self._app.chat.prompt.offers)
        if opened is None or not ("@" in text or is_command):
            return text
        async with self._preparing:
            ready = await self._call(opened, opened.workspace.prepared(text, view.agent.model if view is not None else None))
        if ready is None:
            return None
        for remark in ready.remarks:
            self._app.tell("warn", remark)
        return ready.content

    async def ask(self, question: Callable[[WorkspacePort], Coroutine[Any, Any, T]]) -> T | None:
        """What the workspace answers on its loop; None on a problem, which is told, and before there is one."""
        return None if self._opened is None else await self._call(self._opened, question(self._opened.workspace))

    async def _show(self, opened: Opened) -> None:
        question = await self._call(opened, opened.workspace.all_files())
        if question is None:
            self._app.tell("info", "This project has no files that would be loaded.")
        else:
            await self._ask(opened, question)

    async def _ask(self, opened: Opened, question: TrustQuestion) -> None:
        is_trusted = await self._app.push_screen_wait(TrustScreen(self._app.palette, question, pause_s=self._pause_s))
        if is_trusted is None:
            return
        remarks = await self._call(opened, opened.workspace.decide(question, is_trusted=is_trusted))
        self._told(opened, remarks, "These files are used from now on." if is_trusted else "These files are not used. /trust changes that.")

    async def _reload(self, opened: Opened) -> None:
        remarks = await self._call(opened, opened.workspace.reload())
        self._app.take_keys(await asyncio.to_thread(opened.read_keys))
        self._told(opened, remarks, "Skills, templates, extensions, instructions, keys and MCP servers were read anew.")

    def _told(self, opened: Opened, remarks: tuple[str, ...] | None, text: str) -> None:
        if remarks is None:
            return
        self._offer(opened)
        self._app.tell("info", text)
        for remark in remarks:
            self._app.tell("warn", remark)

    def _offer(self, opened: Opened) -> None:
        self._app.chat.prompt.offers = opened.workspace.offers

    async def _call(self, opened: Opened, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of work on the harness's loop; None on a problem, which is told."""
        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, opened.loop))
        except PidurableError as problem:
            self._app.tell("bad", f"{problem.message} {problem.hint}".strip())
            return None
