"""What /undo and /redo do: show what taking file changes back would mean, and do it when a person says so (rule TU-18).

/rewind (rewind.py) takes files back with the same look and the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal

from pi_durable_tui.tui.actions.asked import newest_message
from pi_durable_tui.tui.bridge import Bridge
from pi_durable_tui.tui.ports import FilesPort, PlanPort, RestoredPort
from pi_durable_tui.tui.rewinding.difference import DifferenceScreen, changes_of
from pi_durable_tui.tui.safe_text import safe_line

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp

SHOWN_IMPOSSIBLE = 3


class Files:
    """See the module. Used on the screen's loop."""

    def __init__(self, app: PidurableApp) -> None:
        self._app = app

    def undo(self, argument: str) -> None:
        """Take back what was changed since the last message, or since an entry."""
        self._run(lambda bridge, files: self._undo(bridge, files, argument))

    def redo(self, _argument: str) -> None:
        """Take the last /undo back."""
        self._run(self._redo)

    def _run(self, act: Callable[[Bridge, FilesPort], Coroutine[Any, Any, None]]) -> None:
        bridge, view = self._app.bridge, self._app.view
        if bridge is None or view is None:
            return
        if bridge.files is None:
            self._app.tell("info", "Files are not kept in this session, so nothing can be taken back.")
        elif view.is_busy:
            self._app.tell("info", "Work is going on. Stop it first; then files can be taken back.")
        else:
            self._app.run_worker(act(bridge, bridge.files))

    async def _undo(self, bridge: Bridge, files: FilesPort, argument: str) -> None:
        view = self._app.view
        if argument and not argument.isdecimal():
            self._app.tell("warn", "/undo takes the number of an entry, or nothing.")
            return
        entry_id = int(argument) if argument else (await newest_message(bridge, view) if view is not None else None)
        if entry_id is None:
            self._app.tell("info", "Nothing was asked here yet, so nothing was changed.")
            return
        shown = bridge.conversation_id
        plan = await bridge.ask(lambda _harness: files.plan_back(shown, entry_id))
        if plan is not None:
            await self._offer(bridge, files, plan, "undo")

    async def _redo(self, bridge: Bridge, files: FilesPort) -> None:
        shown = bridge.conversation_id
        plan = await bridge.ask(lambda _harness: files.plan_undo(shown))
        if plan is not None:
            await self._offer(bridge, files, plan, "redo")

    async def _offer(self, bridge: Bridge, files: FilesPort, plan: PlanPort, kind: Literal["undo", "redo"]) -> None:
        self.warn(plan, kind)
        if not plan.steps:
            self._app.tell("info", "Nothing to take back: no file has changed since then." if kind == "undo" else "There is no /undo to take back here.")
            return
        title = f"Take back {_files(len(plan.steps))}?" if kind == "undo" else f"Bring {_files(len(plan.steps))} back again?"
        shown = bridge.conversation_id
        restored = await self.restore(bridge, files, shown, plan) if await self.agreed(plan, title) else None
        if restored is not None:
            again = " /redo brings the changes again." if kind == "undo" else ""
            self._app.tell("good", f"{_files(len(restored.paths))} changed. The model is told.{again}")

    async def agreed(self, plan: PlanPort, title: str) -> bool:
        """Show every file with its difference; True after the key that says so, else nothing was changed, which is told."""
        here = f"{self._app.view.agent.cwd}/" if self._app.view is not None else ""
        if await self._app.push_screen_wait(DifferenceScreen(self._app.palette, title, changes_of(plan, here))):
            return True
        self._app.tell("info", "Nothing was changed.")
        return False

    async def restore(self, bridge: Bridge, files: FilesPort, conversation_id: int, plan: PlanPort) -> RestoredPort | None:
        """Carry a plan out and record it in a conversation; what could not be done is told. None on a problem, which is told."""
        restored = await bridge.ask(lambda _harness: files.restore(conversation_id, plan))
        for path, why in restored.failed if restored is not None else ():
            self._app.tell("warn", f"{safe_line(path)}: {why}")
        return restored

    def warn(self, plan: PlanPort, kind: Literal["undo", "redo"]) -> None:
        """Say what cannot be taken back, and what is not known."""
        for path, why in plan.impossible[:SHOWN_IMPOSSIBLE]:
            self._app.tell("warn", f"{safe_line(path)} cannot be taken back: {why}")
        if len(plan.impossible) > SHOWN_IMPOSSIBLE:
            self._app.tell("warn", f"{len(plan.impossible) - SHOWN_IMPOSSIBLE} more files cannot be taken back.")
        if kind == "undo" and not plan.is_whole and plan.steps:
            self._app.tell("info", "Not every file of the directory could be looked at, so commands may have changed others too.")


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
