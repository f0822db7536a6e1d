"""`pidurable watch`: follows a chat, live and read-only; it never writes, and leaves no file behind (rule OB-6).

In a terminal it is the app, without a hand in the chat. Anywhere else what is committed is printed as text, or as events, until the
owner is gone and everything was told.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import msgspec

from pi_durable_tui.cli.chats import Found, choose, open_for_reading
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.cli.signals import CLOSING, exit_code, on_signals
from pi_durable_tui.cli.watching.followed import owner_of
from pi_durable_tui.cli.wish import Wish, open_chat
from pi_durable_tui.harness.observation.events import events_of
from pi_durable_tui.harness.observation.following import follow_view
from pi_durable_tui.harness.observation.frames import Frame
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.playback.story import Told, tell
from pi_durable_tui.session.session import Session
from pi_durable_tui.storage.lock import Holder
from pi_durable_tui.tui.safe_text import safe_json, safe_line, safe_text

FIRST_SHOWN = 12
"""How many of the newest entries are told at the start."""
LOOK_MS = 1_000
"""How often it is looked whether the owner is still there."""


def watch_chat(chat_id: str | None, *, cwd: str | None, as_json: bool) -> int:
    """Follow the chat of that id, or the one that --continue takes, until the person leaves or takes over; the exit code.

    Raises:
        NotFound: There is no such chat.
        StoreCorrupt, SchemaTooNew, EnvironmentFailure: It cannot be read any more. Nothing was changed.
    """
    setup = set_up(cwd, os.environ)
    if as_json or not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        return asyncio.run(_print(setup, chat_id, as_json=as_json))
    from pi_durable_tui.cli.watching.screen import run_watch_app  # noqa: PLC0415 - imports textual

    code, taken = run_watch_app(setup, chat_id)
    return code if taken is None else open_chat(Wish(chat_id=taken.id, resume=True, cwd=cwd))


async def _print(setup: Setup, chat_id: str | None, *, as_json: bool) -> int:
    found = await choose(setup, chat_id, note=note)
    harness = await open_for_reading(setup, found.session)
    try:
        return await _Printing(setup, found, as_json=as_json).until_ended(harness.session)
    finally:
        await harness.close()


@dataclass(slots=True)
class _Printing:
    """One watch as text, from its first line to its last."""

    _setup: Setup
    _found: Found
    as_json: bool
    _told: Told | None = None
    _view: ConversationView | None = None

    async def until_ended(self, session: Session) -> int:
        """Print what comes until the owner is gone or a signal ends it; the exit code."""
        signalled: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        undo = on_signals(CLOSING, lambda number: None if signalled.done() else signalled.set_result(exit_code(number)))
        note(opening_line(self._found, owner_of(self._setup, self._found.session)))
        printing = asyncio.ensure_future(self._print(follow_view(session, self._found.chat.conversation_id, clock=self._setup.clock)))
        looking = asyncio.ensure_future(self._owner_gone())
        try:
            done, _ = await asyncio.wait([printing, looking, signalled], return_when=asyncio.FIRST_COMPLETED)
            if signalled in done:
                return signalled.result()
            for task in done:
                task.result()
            return 0
        finally:
            undo()
            for task in (printing, looking):
                task.cancel()
            await asyncio.gather(printing, looking, return_exceptions=True)

    async def _print(self, frames: AsyncGenerator[Frame, None]) -> None:
        async with contextlib.aclosing(frames):
            async for frame in frames:
                for text in self._texts(frame.view):
                    sys.stdout.write(text)
                sys.stdout.flush()
                self._view = frame.view

    def _texts(self, view: ConversationView) -> list[str]:
        if self.as_json:
            return [safe_json(msgspec.json.encode(event)) + "\n" for event in events_of(self._view, view)]
        text, self._told = tell(self._told if self._told is not None else before_the_newest(view), view)
        return [safe_text(text)]

    async def _owner_gone(self) -> None:
        """Until an owner that was there is not there any more; its last commits are told first."""
        was: Holder | None = None
        while (owner := owner_of(self._setup, self._found.session)) is not None or was is None:
            was = owner
            await self._setup.clock.sleep_ms(LOOK_MS)
        await self._setup.clock.sleep_ms(LOOK_MS)


def before_the_newest(view: ConversationView) -> Told:
    """Everything but the newest FIRST_SHOWN entries counts as told. PURE."""
    older = view.entries[:-FIRST_SHOWN]
    return Told(entry_id=older[-1].entry.id if older else 0)


def opening_line(found: Found, owner: Holder | None) -> str:
    """What is watched, and who runs it. PURE."""
    title = f"watching {found.id} ({safe_line(found.chat.title, max_cells=40)}), read-only; "
    return title + (f"{owner} runs it." if owner is not None else "no program is running it.")
