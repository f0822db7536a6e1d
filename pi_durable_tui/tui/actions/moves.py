"""Going to another conversation of the session: a new chat, a fork, a subagent to look into, and back (rules TU-7, TU-15).

All of them end in `Bridge.show`. The work of the conversation that is left goes on; what stands in its composer is its draft.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from textual.screen import ModalScreen

from pi_durable_tui.harness.chats import Branch
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.tui.actions.fork_points import ForkPoint, fork_points, point_at
from pi_durable_tui.tui.bridge import Bridge
from pi_durable_tui.tui.ports import HarnessPort
from pi_durable_tui.tui.screens.picker import Choice, PickerScreen

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp

V = TypeVar("V")

PAGE = 1_000
LISTED_ENTRIES = 10_000
"""Of a longer transcript the picker of /fork lists the turns of the newest so many; /fork ENTRY reaches all of it."""


class Moves:
    """See the module. Used on the screen's loop."""

    def __init__(self, app: PidurableApp) -> None:
        self._app = app
        self._back: list[int] = []

    def new(self, _argument: str) -> None:
        """Start a new chat with the same agent."""
        self.with_bridge(self._new)

    def fork(self, argument: str) -> None:
        """Go on in a new chat: from the turn of an entry, or from one that is picked."""
        self.with_bridge(lambda bridge: self._fork(bridge, argument))

    def agents(self, _argument: str) -> None:
        """Look into a subagent of this chat that is picked."""
        self.with_bridge(self._agents)

    def look_into(self) -> None:
        """Look into the subagent at work; when there is not exactly one, pick."""
        sight = self._app.chat.sight
        if sight is not None and len(sight.subagents) == 1:
            self.look(sight.subagents[0].conversation_id)
        else:
            self.agents("")

    def look(self, conversation_id: int) -> None:
        """Open a conversation to look at; Esc comes back."""
        self.with_bridge(lambda bridge: self.open(bridge, conversation_id, is_look=True))

    def forget(self) -> None:
        """Another session is shown from now on: there is nothing to come back to."""
        self._back = []

    @property
    def is_away(self) -> bool:
        """True while a subagent is looked into."""
        return bool(self._back)

    def back(self) -> None:
        """To the conversation from which the subagent was opened."""
        if self._back:
            target = self._back.pop()
            self.with_bridge(lambda bridge: self._return(bridge, target))

    async def _return(self, bridge: Bridge, conversation_id: int) -> None:
        if not await bridge.show(conversation_id):
            self._back.append(conversation_id)

    async def open(self, bridge: Bridge, conversation_id: int, *, is_look: bool) -> bool:
        """Show a conversation. `is_look`: Esc comes back. False on a problem, which is told: then the old one stays."""
        before = bridge.conversation_id
        if before == conversation_id:
            return True
        back = [*self._back, before] if is_look else []
        if is_look and conversation_id in back:
            back = back[: back.index(conversation_id)]
        if not await bridge.show(conversation_id):
            return False
        self._back = back
        return True

    async def _new(self, bridge: Bridge) -> None:
        view = self._app.view
        if view is not None:
            agent = msgspec.structs.replace(view.agent, title="")
            made = await bridge.ask(lambda harness: harness.create_conversation(agent))
            if made is not None:
                await self.open(bridge, made.id, is_look=False)

    async def _fork(self, bridge: Bridge, argument: str) -> None:
        shown = bridge.conversation_id
        points = fork_points(await self.transcript(bridge, shown))
        if argument:
            point = point_at(points, int(argument)) if argument.isdecimal() else None
            if point is None:
                self._app.tell("warn", f"There is no message {argument} here. /fork alone lists them.")
            else:
                await self.fork_at(bridge, shown, point)
        elif not points:
            self._app.tell("info", "Nothing to fork yet: nothing was said here.")
        else:
            screen = PickerScreen(self._app.palette, "Fork from", [_turn(point) for point in points], start=len(points) - 1)
            picked = await self._app.push_screen_wait(screen)
            if picked is not None:
                await self.fork_at(bridge, shown, picked.value)

    async def fork_at(self, bridge: Bridge, conversation_id: int, point: ForkPoint) -> None:
        """Go on in a new chat that begins with a conversation up to a turn."""
        made = await bridge.ask(lambda harness: harness.fork(conversation_id, point.entry_id))
        if made is not None and await self.open(bridge, made.id, is_look=False):
            said = " ".join(point.said.split())
            self._app.tell("good", f"A new chat, as of “{said[:60]}{'…' if len(said) > 60 else ''}”. The old one is untouched and goes on; /tree shows both.")

    async def _agents(self, bridge: Bridge) -> None:
        branches = await bridge.ask(lambda harness: harness.overview.branches())
        shown, now_ms = bridge.conversation_id, self._app.clock.now_ms()
        own = [branch for branch in branches or () if branch.is_subagent and branch.parent == shown]
        if not own:
            self._app.tell("info", "This chat has no subagents.")
            return
        choices = [branch_choice(branch, branch, now_ms) for branch in own]
        picked = await self._app.push_screen_wait(PickerScreen(self._app.palette, "Subagents", choices, start=len(choices) - 1))
        if picked is not None:
            await self.open(bridge, picked.value.chat.conversation_id, is_look=True)

    async def transcript(self, bridge: Bridge, conversation_id: int) -> tuple[StoredEntry, ...]:
        """The newest LISTED_ENTRIES entries of a conversation, ids growing; none on a problem, which is told."""

        async def read(harness: HarnessPort) -> tuple[StoredEntry, ...]:
            conversation = await harness.conversation(conversation_id)
            found = page = await conversation.entries(limit=PAGE)
            while len(page) == PAGE and len(found) < LISTED_ENTRIES:
                page = await conversation.entries(before=found[0].entry.id, limit=PAGE)
                found = (*page, *found)
            return found

        return await bridge.ask(read) or ()

    def with_bridge(self, work: Callable[[Bridge], Coroutine[Any, Any, object]]) -> None:
        """Do this with what is open, unless nothing is, or something lies over the chat."""
        bridge = self._app.bridge
        if bridge is not None and self._app.view is not None and not isinstance(self._app.screen, ModalScreen):
            self._app.run_worker(work(bridge))


def _turn(point: ForkPoint) -> Choice[ForkPoint]:
    note = "" if point.is_whole else "\n\n(This turn is not finished: the fork begins before its open calls.)"
    return Choice(
        value=point,
        label=" ".join(point.said.split()) or "(no text)",
        detail=f"#{point.said_id}",
        preview=f"{point.said.strip()}\n\n{point.answered[:2_000]}{note}".strip(),
    )


def branch_choice(value: V, branch: Branch, now_ms: int, *, stem: str = "", is_shown: bool = False, remark: str = "", place: str = "") -> Choice[V]:
    """A conversation as a line of a list.

    Args:
        remark: Stands out beside its name, "" for none.
        place: Follows its number in the preview: where it is stored.
    """
    chat = branch.chat
    kind = "subagent " if branch.is_subagent else "fork: " if branch.parent is not None else ""
    words = ("shown" if is_shown else "", "unfinished" if chat.unfinished else "", "damaged" if chat.damage else "", remark)
    return Choice(
        value=value,
        stem=stem,
        label=kind + (chat.title or "(nothing said yet)"),
        badge=" · ".join(word for word in words if word),
        detail=when(chat.last_at_ms, now_ms),
        preview=f"{chat.first_text.strip()[:2_000]}\n\n{chat.damage or chat.model or 'no model'} · chat {chat.conversation_id}{place}",
    )


def when(at_ms: int, now_ms: int) -> str:
    """How long ago, or on which day."""
    seconds = max(0, now_ms - at_ms) // 1000
    if seconds < 60:
        return "just now"
    if seconds < 3_600:
        return f"{seconds // 60} min ago"
    if seconds < 86_400:
        return f"{seconds // 3_600} h ago"
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d")
