"""The sessions of the directory beside the open one: implements `tui.house.SessionsPort` (rules TU-16, CL-3). Reads them; writes nothing."""

from __future__ import annotations

import os
import subprocess  # noqa: TID251 - a program of ours with the person's terminal: it is no tool's command
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.chats import open_for_reading
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.cli.watching.followed import owner_of
from pi_durable_tui.errors import NotFound, PidurableError

if TYPE_CHECKING:
    from pi_durable_tui.tui.bridge import Opened as Shown
    from pi_durable_tui.tui.house import Others, OtherSession


class Sessions:
    """See the module. Used on the harness's loop, but for `watch`.

    Args:
        own: The number of the session that is open.
        enter: Opens a chat (session, conversation), or finds it open.
    """

    def __init__(self, setup: Setup, own: int, enter: Callable[[int, int], Awaitable[Shown]]) -> None:
        self._setup, self._own, self._enter = setup, own, enter

    async def others(self) -> Others:
        """See `SessionsPort`."""
        from pi_durable_tui.tui.house import Others  # noqa: PLC0415 - with the app, which is there by now

        found: list[OtherSession] = []
        remarks: list[str] = []
        for number in paths.session_numbers(self._setup.place):
            if number == self._own:
                continue
            try:
                found.append(await self._read(number))
            except NotFound:
                continue
            except PidurableError as error:
                remarks.append(f"Session {number} cannot be shown: {error.message} {error.hint}".strip())
        return Others(sessions=tuple(found), remarks=tuple(remarks))

    async def enter(self, session: int, conversation_id: int) -> Shown:
        """See `SessionsPort`."""
        return await self._enter(session, conversation_id)

    def watch(self, name: str) -> None:
        """See `SessionsPort`."""
        command = [sys.executable, "-P", "-m", "pi_durable_tui.cli.main", "watch", name, "--cwd", str(self._setup.place.directory)]
        subprocess.run(command, env=dict(self._setup.environ), check=False)  # noqa: S603 - ourselves; the name is two numbers

    async def _read(self, number: int) -> OtherSession:
        from pi_durable_tui.tui.house import OtherSession  # noqa: PLC0415 - with the app, which is there by now

        owner = owner_of(self._setup, number)
        harness = await open_for_reading(self._setup, number)
        try:
            branches = await harness.overview.branches()
        finally:
            await harness.close()
        return OtherSession(number=number, holder=f"pid {owner.pid}" if owner is not None and owner.pid != os.getpid() else "", branches=branches)
