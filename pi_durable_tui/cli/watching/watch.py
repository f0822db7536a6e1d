"""Follows a chat as text, live and read-only: it never writes, and leaves no file behind.

What is printed is what is committed. In a terminal, `t` takes the chat over once its owner is gone, and `q` ends the watching; in a
pipe the watching ends when the owner is gone and everything was told.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.chats import Found, choose, open_for_reading
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.cli.signals import CLOSING, exit_code, on_signals
from pi_durable_tui.cli.watching.keys import Keys
from pi_durable_tui.cli.wish import Wish, open_chat
from pi_durable_tui.harness.observation.events import events_of
from pi_durable_tui.harness.observation.following import follow_view
from pi_durable_tui.harness.observation.frames import Frame
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.playback.story import Told, tell
from pi_durable_tui.session.session import Session
from pi_durable_tui.storage.lock import Holder, holder
from pi_durable_tui.tui.safe_text import safe_json, safe_line, safe_text

FIRST_SHOWN = 12
"""How many of the newest entries are told at the start."""
LOOK_MS = 1_000
"""How often it is looked whether the owner is still there."""

Ended: TypeAlias = Literal["left", "taken over", "owner gone"]


def watch_chat(chat_id: str | None, *, cwd: str | None, as_json: bool) -> int:
    """Follow the chat of that id, or the one that --continue takes, until the person leaves or takes over; the exit code.

    Raises:
        NotFound: There is no such chat.
        StoreCorrupt, SchemaTooNew, EnvironmentFailure: It cannot be read any more. Nothing was changed.
    """
    setup = set_up(cwd, os.environ)
    keys = Keys.of_terminal() if not as_json else None
    found, ended = asyncio.run(_watch(setup, chat_id, keys, as_json=as_json))
    if isinstance(ended, int):
        return ended
    if ended == "taken over":
        return open_chat(Wish(chat_id=found.id, resume=True, cwd=cwd))
    return 0


async def _watch(setup: Setup, chat_id: str | None, keys: Keys | None, *, as_json: bool) -> tuple[Found, Ended | int]:
    found = await choose(setup, chat_id, note=note)
    harness = await open_for_reading(setup, found.session)
    with keys or contextlib.nullcontext():
        try:
            watching = _Watching(setup, found, keys, as_json=as_json)
            return found, await watching.until_ended(harness.session)
        finally:
            await harness.close()


@dataclass(slots=True)
class _Watching:
    """One watch, from its first line to its last."""

    _setup: Setup
    _found: Found
    _keys: Keys | None
    as_json: bool
    _told: Told | None = None
    _view: ConversationView | None = None
    _owner: Holder | None = None
    _is_line_open: bool = False

    async def until_ended(self, session: Session) -> Ended | int:
        """Print what comes until the watching ends, and say how; a number is the exit code after a signal."""
        signalled: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        undo = on_signals(CLOSING, lambda number: None if signalled.done() else signalled.set_result(exit_code(number)))
        self._owner = self._holder()
        note(opening_line(self._found, self._owner, has_keys=self._keys is not None))
        printing = asyncio.ensure_future(self._print(follow_view(session, self._found.chat.conversation_id, clock=self._setup.clock)))
        looking = asyncio.ensure_future(self._look())
        try:
            done, _ = await asyncio.wait([printing, looking, signalled], return_when=asyncio.FIRST_COMPLETED)
            if signalled in done:
                return signalled.result()
            return looking.result() if looking in done else printing.result()
        finally:
            undo()
            for task in (printing, looking):
                task.cancel()
            await asyncio.gather(printing, looking, return_exceptions=True)

    async def _print(self, frames: AsyncGenerator[Frame, None]) -> Ended:
        async with contextlib.aclosing(frames):
            async for frame in frames:
                for text in self._texts(frame.view):
                    sys.stdout.write(text)
                    self._is_line_open = not text.endswith("\n") if text else self._is_line_open
                sys.stdout.flush()
                self._view = frame.view
        return "left"

    def _note(self, text: str) -> None:
        """A remark on a line of its own, also in the middle of an answer."""
        if self._is_line_open and self._keys is not None:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._is_line_open = False
        note(text)

    def _texts(self, view: ConversationView) -> list[str]:
        if self.as_json:
            return [safe_json(msgspec.json.encode(event)) + "\n" for event in events_of(self._view, view)]
        text, self._told = tell(self._told if self._told is not None else before_the_newest(view), view)
        return [safe_text(text)]

    async def _look(self) -> Ended:
        """Look after the owner and the keys."""
        while True:
            was, self._owner = self._owner, self._holder()
            if was is not None and self._owner is None:
                if self._keys is None:
                    await self._setup.clock.sleep_ms(LOOK_MS)  # its last commits are told first
                    return "owner gone"
                self._note("the program that ran it is gone. t takes over and goes on with the work, q leaves.")
            elif self._owner is not None and self._owner != was:
                self._note(f"{self._owner} runs it now.")
            for _ in range(10):
                await self._setup.clock.sleep_ms(LOOK_MS / 10)
                match self._keys.pressed() if self._keys is not None else "":
                    case "q":
                        return "left"
                    case "t" if self._owner is None:
                        return "taken over"
                    case "t":
                        self._note(f"{self._owner} is still running it; it can be taken over once that has ended.")
                    case _:
                        pass

    def _holder(self) -> Holder | None:
        kinds = paths.session_kinds(self._setup.place, self._found.session)
        return holder(paths.session_path(self._setup.place, self._found.session, kinds[0])) if kinds else None


def before_the_newest(view: ConversationView) -> Told:
    """Everything but the newest FIRST_SHOWN entries counts as told. PURE."""
    older = view.entries[:-FIRST_SHOWN]
    return Told(entry_id=older[-1].entry.id if older else 0)


def opening_line(found: Found, owner: Holder | None, *, has_keys: bool) -> str:
    """What is watched, who runs it, and how to leave. PURE."""
    title = f"watching {found.id} ({safe_line(found.chat.title, max_cells=40)}), read-only; "
    runs = f"{owner} runs it." if owner is not None else "no program is running it."
    keys = (" q leaves, t takes over." if owner is None else " q leaves.") if has_keys else ""
    return title + runs + keys
