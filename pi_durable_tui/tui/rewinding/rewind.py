"""/rewind: go back to before an earlier message (rule TU-18). Nothing that is stored is taken away.

The chat goes back as a fork that ends before the message, and the message becomes the draft of the fork: it is there after a kill
too. Files go back as with /undo: after a look at the difference, and /redo brings them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pi_durable_tui.harness.live import Agent
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.messages import UserMessage
from pi_durable_tui.tui.actions.fork_points import ForkPoint, fork_points, point_at
from pi_durable_tui.tui.actions.moves import Moves
from pi_durable_tui.tui.bridge import Bridge
from pi_durable_tui.tui.ports import ConversationPort, HarnessPort, PlanPort
from pi_durable_tui.tui.rewinding.files import Files
from pi_durable_tui.tui.rewinding.parts import Part, file_count, one_line, part_choices, point_choices
from pi_durable_tui.tui.rows import content_text, typed
from pi_durable_tui.tui.screens.picker import PickerScreen

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp


class Rewinding:
    """See the module. Used on the screen's loop."""

    def __init__(self, app: PidurableApp, moves: Moves, files: Files) -> None:
        self._app, self._moves, self._files = app, moves, files

    def rewind(self, argument: str) -> None:
        """Pick a message, or take the one of an entry; pick what goes back; do it."""
        bridge = self._app.bridge
        if bridge is not None and self._app.view is not None:
            self._app.run_worker(self._rewind(bridge, argument))

    async def _rewind(self, bridge: Bridge, argument: str) -> None:
        shown = bridge.conversation_id
        entries = await self._moves.transcript(bridge, shown)
        points = fork_points(entries)
        point = await self._point(points, argument)
        if point is None:
            return
        plan, why_no_files = await self._plan(bridge, shown, point)
        later = sum(each.said_id >= point.said_id for each in points)
        view = self._app.view
        choices = part_choices(plan, later=later, why_no_files=why_no_files, here=f"{view.agent.cwd}/" if view is not None else "")
        picked = await self._app.push_screen_wait(PickerScreen(self._app.palette, f"Go back to before “{one_line(point.said, 40)}”", choices))
        if picked is not None and bridge.conversation_id == shown:
            await self._go_back(bridge, entries, point, picked.value, plan)

    async def _point(self, points: tuple[ForkPoint, ...], argument: str) -> ForkPoint | None:
        """The message to go back to; None: there is none, which is said, or the person wants none."""
        if argument:
            point = point_at(points, int(argument)) if argument.isdecimal() else None
            if point is None:
                self._app.tell("warn", f"There is no message {argument} here. /rewind alone lists them.")
            return point
        if not points:
            self._app.tell("info", "Nothing to go back to yet: nothing was said here.")
            return None
        picked = await self._app.push_screen_wait(PickerScreen(self._app.palette, "Go back to before", point_choices(points), start=len(points) - 1))
        return picked.value if picked is not None else None

    async def _plan(self, bridge: Bridge, shown: int, point: ForkPoint) -> tuple[PlanPort | None, str]:
        """What going back would do to files; None with why it cannot be said."""
        files, view = bridge.files, self._app.view
        if files is None:
            return None, "Files are not kept in this session."
        if view is not None and view.is_busy:
            return None, "Work is going on here. Stop it first; then files can go back too."
        plan = await bridge.ask(lambda _harness: files.plan_back(shown, point.said_id))
        if plan is None:
            return None, "What was changed since cannot be told."
        self._files.warn(plan, "undo")
        return plan, ""

    async def _go_back(self, bridge: Bridge, entries: tuple[StoredEntry, ...], point: ForkPoint, part: Part, plan: PlanPort | None) -> None:
        files, shown = bridge.files, bridge.conversation_id
        wanted = (files, plan) if part != "chat" and files is not None and plan is not None else None
        if wanted is not None and not await self._files.agreed(wanted[1], f"Take back {file_count(len(wanted[1].steps))}?"):
            return
        if part != "files":
            made = await self._fork(bridge, shown, entries, point)
            if made is None or not await bridge.show(made.id):
                return
            shown = made.id
            self._app.tell("good", f"A new chat, as of before “{one_line(point.said, 40)}”. The old one is untouched; /tree shows both.")
        # Recorded in the chat that is shown now: its /redo is the one a person will try.
        restored = await self._files.restore(bridge, wanted[0], shown, wanted[1]) if wanted is not None else None
        if restored is not None:
            self._app.tell("good", f"{file_count(len(restored.paths))} changed. /redo brings the changes again.")

    async def _fork(self, bridge: Bridge, conversation_id: int, entries: tuple[StoredEntry, ...], point: ForkPoint) -> ConversationPort | None:
        """The chat as of before the message, which is its draft; a new chat when nothing came before."""
        said = next((stored.entry.message for stored in entries if stored.entry.id == point.said_id), None)
        draft = content_text(typed(said.content)) if isinstance(said, UserMessage) else ""
        agent = msgspec.structs.replace(self._app.view.agent, title="") if self._app.view is not None else Agent()

        async def make(harness: HarnessPort) -> ConversationPort:
            conversation = await harness.conversation(conversation_id)
            before = await conversation.entries(before=point.said_id, limit=1)
            made = await harness.fork(conversation_id, before[-1].entry.id) if before else await harness.create_conversation(agent)
            await made.save_draft(draft, len(draft))
            return made

        return await bridge.ask(make)
