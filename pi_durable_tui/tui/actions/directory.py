"""The chats of the directory, whichever session they are stored in: one tree, one list; opening and forking any of them (rules TU-16, CL-3).

Sessions beside the open one are only read for that. A chat in one of them is opened by opening its session too, which goes on beside
the one that is left; what another process holds can be watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from pi_durable_tui.harness.chats import Branch
from pi_durable_tui.tui.actions.fork_points import fork_points
from pi_durable_tui.tui.actions.moves import branch_choice
from pi_durable_tui.tui.actions.tree import branch_stems, root_of
from pi_durable_tui.tui.bridge import Bridge
from pi_durable_tui.tui.house import OtherSession, SessionsPort
from pi_durable_tui.tui.screens.picker import Choice, PickerScreen

if TYPE_CHECKING:
    from pi_durable_tui.tui.actions.moves import Moves
    from pi_durable_tui.tui.app import PidurableApp


class Spot(Struct, frozen=True, kw_only=True):
    """A conversation of the directory. `session` None: it is in the open one."""

    branch: Branch
    session: OtherSession | None = None

    @property
    def name(self) -> str:
        """As the command line calls it."""
        return f"{self.session.number}.{self.branch.chat.conversation_id}" if self.session is not None else str(self.branch.chat.conversation_id)


class Directory:
    """See the module. Used on the screen's loop."""

    def __init__(self, app: PidurableApp, moves: Moves) -> None:
        self._app, self._moves = app, moves

    def resume(self, _argument: str) -> None:
        """Open a chat that is picked."""
        self._moves.with_bridge(self._resume)

    def tree(self, _argument: str) -> None:
        """Show all conversations as a tree; open one, or fork there."""
        self._moves.with_bridge(self._tree)

    async def _resume(self, bridge: Bridge) -> None:
        chats = await bridge.ask(lambda harness: harness.chats())
        if chats is None:
            return
        spots = [Spot(branch=Branch(chat=chat, parent=None, is_subagent=False)) for chat in chats if not chat.is_empty]
        for session in await self._others(bridge):
            tops = [branch for branch in session.branches if not branch.is_subagent and not branch.chat.is_empty]
            spots += [Spot(branch=branch, session=session) for branch in sorted(tops, key=lambda branch: -branch.chat.last_seq)]
        spots.sort(key=lambda spot: not spot.branch.chat.unfinished)
        if not spots:
            self._app.tell("info", "There is no other chat in this directory.")
            return
        picked = await self._app.push_screen_wait(PickerScreen(self._app.palette, "Open a chat", self._choices([("", spot) for spot in spots], bridge)))
        if picked is not None:
            await self._go(bridge, picked.value)

    async def _tree(self, bridge: Bridge) -> None:
        own = await bridge.ask(lambda harness: harness.overview.branches())
        if own is None:
            return
        shown = bridge.conversation_id
        forest = directory_rows(own, await self._others(bridge), shown=shown)
        start = next((index for index, (_, spot) in enumerate(forest) if spot.session is None and spot.branch.chat.conversation_id == shown), 0)
        choices = self._choices(forest, bridge)
        picked = await self._app.push_screen_wait(PickerScreen(self._app.palette, "Chats", choices, keys={"f": "forks there"}, start=start))
        if picked is None:
            return
        if picked.key == "f":
            await self._fork(bridge, picked.value)
        else:
            await self._go(bridge, picked.value)

    def _choices(self, rows: Sequence[tuple[str, Spot]], bridge: Bridge) -> list[Choice[Spot]]:
        now_ms, choices = self._app.clock.now_ms(), list[Choice[Spot]]()
        for stem, spot in rows:
            is_shown = spot.session is None and spot.branch.chat.conversation_id == bridge.conversation_id
            place = f" · session {spot.session.number}" if spot.session is not None else ""
            held = f", open in another process ({spot.session.holder})" if spot.session is not None and spot.session.holder else ""
            remark = "open elsewhere" if held else ""
            choices.append(branch_choice(spot, spot.branch, now_ms, stem=stem, is_shown=is_shown, remark=remark, place=f"{place}{held}"))
        return choices

    async def _others(self, bridge: Bridge) -> tuple[OtherSession, ...]:
        """The sessions beside the open one; what cannot be read of them is told, and hides nothing else."""
        port = bridge.house.sessions if bridge.house is not None else None
        found = await bridge.ask(lambda _harness: port.others()) if port is not None else None
        for remark in found.remarks if found is not None else ():
            self._app.tell("warn", remark)
        return found.sessions if found is not None else ()

    async def _go(self, bridge: Bridge, spot: Spot) -> None:
        chat, session = spot.branch.chat, spot.session
        if chat.damage:
            self._app.tell("bad", f"Chat {spot.name} cannot be opened. {chat.damage}")
        elif session is None:
            await self._moves.open(bridge, chat.conversation_id, is_look=spot.branch.is_subagent)
        elif session.holder:
            await self._offer_watch(bridge, spot, session)
        elif await self._enter(bridge, session, root_of(spot.branch, session.branches)) and spot.branch.is_subagent:
            here = self._app.bridge
            if here is not None:
                await self._moves.open(here, chat.conversation_id, is_look=True)

    async def _fork(self, bridge: Bridge, spot: Spot) -> None:
        if spot.session is not None and spot.session.holder:
            self._app.tell("info", f"Chat {spot.name} is open in another process ({spot.session.holder}), which alone can fork it.")
            return
        if spot.session is not None and not await self._enter(bridge, spot.session, root_of(spot.branch, spot.session.branches)):
            return
        here = self._app.bridge
        if here is None:
            return
        conversation_id = spot.branch.chat.conversation_id
        points = fork_points(await self._moves.transcript(here, conversation_id))
        if points:
            await self._moves.fork_at(here, conversation_id, points[-1])
        else:
            self._app.tell("info", "Nothing to fork there: nothing was said.")

    async def _enter(self, bridge: Bridge, session: OtherSession, chat_id: int) -> bool:
        """Show a chat of another session, whose work goes on; False on a problem, which is told: then nothing has changed."""
        port = bridge.house.sessions if bridge.house is not None else None
        opened = await bridge.ask(lambda _harness: port.enter(session.number, chat_id)) if port is not None else None
        if opened is None:
            return False
        self._moves.forget()
        await self._app.enter(opened)
        return True

    async def _offer_watch(self, bridge: Bridge, spot: Spot, session: OtherSession) -> None:
        title = f"Chat {spot.name} is open in another process"
        preview = f"It is held by {session.holder}. Only that process can go on with it; watching reads it as it goes and changes nothing."
        choices = [Choice(value="watch", label="Watch it here; q comes back", preview=preview)]
        picked = await self._app.push_screen_wait(PickerScreen(self._app.palette, title, choices))
        port = bridge.house.sessions if bridge.house is not None else None
        if picked is not None and port is not None:
            watch(self._app, port, spot.name)


def watch(app: PidurableApp, port: SessionsPort, name: str) -> None:
    """Lend the terminal to a program that watches the chat; the app waits, its work goes on."""
    with app.lent():
        port.watch(name)
    app.repaint()


def directory_rows(own: Sequence[Branch], others: Sequence[OtherSession], *, shown: int) -> list[tuple[str, Spot]]:
    """All conversations as one forest, each with the lines drawn in front of it; sessions with the newest work come last. PURE.

    Args:
        shown: The conversation that is shown; it stands there also while nothing was said in it.
    """
    sessions: list[tuple[OtherSession | None, Sequence[Branch]]] = [(None, own), *((session, session.branches) for session in others)]
    blocks: list[tuple[int, list[tuple[str, Spot]]]] = []
    for session, branches in sessions:
        rows = [
            (stem, Spot(branch=branch, session=session))
            for stem, branch in branch_stems(branches)
            if not branch.chat.is_empty or (session is None and branch.chat.conversation_id == shown)
        ]
        blocks.append((max((spot.branch.chat.last_at_ms for _, spot in rows), default=0), rows))
    return [row for _, rows in sorted(blocks, key=lambda block: block[0]) for row in rows]
