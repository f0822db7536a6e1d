"""Runs the app of `pidurable watch`: the reader of the store on a thread of its own, the screen on the main thread (rules OB-6, CL-7)."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from pi_durable_tui.cli.chats import Found, choose, open_for_reading
from pi_durable_tui.cli.paths import folders
from pi_durable_tui.cli.screen.guard import TerminalGuard
from pi_durable_tui.cli.screen.keys import read_keymap
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.cli.signals import leave_on_signals
from pi_durable_tui.cli.terminal import COLORS, SWITCH_S, HarnessThread
from pi_durable_tui.cli.watching.followed import followed, owner_of
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.observation.following import follow_tasks

if TYPE_CHECKING:
    from pi_durable_tui.tui.watching.app import Watched

KILLED = "pidurable watch was killed. It had written nothing, and whatever it watched goes on. Again: pidurable watch"


def run_watch_app(setup: Setup, chat_id: str | None) -> tuple[int, Found | None]:
    """Watch a chat until the person leaves or a signal ends it.

    Args:
        chat_id: None: the one that --continue takes.

    Returns:
        The exit code; and the chat, if the person takes it over.

    Raises:
        PidurableError: What ended the app; the terminal is as before.
    """
    # The library of the screen is loaded with the app only.
    from pi_durable_tui.cli.screen.branch import branch  # noqa: PLC0415
    from pi_durable_tui.tui.palette import palette_of  # noqa: PLC0415
    from pi_durable_tui.tui.status import Place  # noqa: PLC0415
    from pi_durable_tui.tui.watching.app import WatchApp  # noqa: PLC0415

    with TerminalGuard(KILLED) as guard:
        sys.setswitchinterval(SWITCH_S)
        worker = HarnessThread()
        reader = _Reader(setup, chat_id)
        app = WatchApp(
            lambda: worker.call(reader.open(worker)),
            clock=setup.clock,
            place=Place(directory=str(setup.place.directory), branch=branch(setup.place.directory)),
            palette=palette_of(setup.settings.theme or "system", colors=setup.environ.get(COLORS, "")),
            keys=read_keymap(folders(setup.environ).config),
        )
        app.on_terminal = guard.say
        undo = leave_on_signals(app.leave_on_signal)
        try:
            app.run(mouse=setup.settings.mouse)
        finally:
            undo()
            worker.finish(reader.close())
    if app.problem is not None:
        raise app.problem
    return app.return_code or 0, reader.found if app.takes_over else None


class _Reader:
    """Opens what is watched and closes it; used on the worker's loop."""

    def __init__(self, setup: Setup, chat_id: str | None) -> None:
        self._setup, self._chat_id = setup, chat_id
        self._harness: Harness | None = None
        self.found: Found | None = None

    async def open(self, worker: HarnessThread) -> Watched:
        """Find the chat and open its session for reading."""
        from pi_durable_tui.tui.watching.app import Watched  # noqa: PLC0415 - the same

        setup = self._setup
        told: list[str] = []
        found = self.found = await choose(setup, self._chat_id, note=told.append)
        harness = self._harness = await open_for_reading(setup, found.session)
        open_conversation = functools.partial(followed, harness, clock=setup.clock)
        return Watched(
            loop=worker.loop,
            conversation=await open_conversation(found.chat.conversation_id),
            open_conversation=open_conversation,
            owner=self._owner,
            tasks=functools.partial(follow_tasks, harness.session, clock=setup.clock),
            window_tokens=harness.overview.window_tokens,
            notices=tuple(told),
        )

    async def close(self) -> None:
        """Nothing may have been opened."""
        if self._harness is not None:
            await self._harness.close()

    async def _owner(self) -> str:
        holder = owner_of(self._setup, self.found.session) if self.found is not None else None
        return "" if holder is None else f"pid {holder.pid} on {holder.host}"
