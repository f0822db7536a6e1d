"""The app with a conversation that the test moves, under a manual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from textual.events import Paste
from textual.pilot import Pilot

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import PidurableError
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.tui.app import PidurableApp
from pi_durable_tui.tui.bridge import Opened
from pi_durable_tui.tui.palette import DARK, Palette
from pi_durable_tui.tui.rows import Notice
from pi_durable_tui.tui.status import Place
from tests.support.tui_conversation import FakeConversation, FakeHarness, FakeWorkspace, HarnessThread, opened
from tests.support.tui_views import START_MS, view

PLACE = Place(directory="~/code/shop", branch="main")


class Rig:
    """The running app, its conversation and its clock."""

    def __init__(
        self,
        first: ConversationView,
        *,
        seam: str = "",
        palette: Palette = DARK,
        typing_gap_s: float = 0.0,
        refuse: PidurableError | None = None,
        others: Sequence[ConversationView] = (),
        workspace: FakeWorkspace | None = None,
        waits: bool = False,
        house: Any = None,
        told: Sequence[Notice] = (),
        **options: Any,
    ):
        self.clock = ManualClock(START_MS + 4_000)
        self.thread = HarnessThread()
        self.conversation: FakeConversation = self.thread.call(FakeConversation, first)
        self.following: FakeConversation = self.thread.call(FakeConversation, view(conversation_id=2))
        self.opened = opened(self.thread, self.conversation, self.following, *(self.thread.call(FakeConversation, other) for other in others), seam=seam)
        self.opened = replace(self.opened, waits=waits, house=house, notices=tuple(told))
        if workspace is not None:
            self.opened = replace(self.opened, workspace=replace(workspace, asked=self.conversation.asked))
        self._refuse = refuse
        self.app = PidurableApp(self._start, clock=self.clock, place=PLACE, palette=palette, typing_gap_s=typing_gap_s, **options)
        self.pilot: Pilot[None]

    async def _start(self) -> Opened:
        if self._refuse is not None:
            raise self._refuse
        return self.opened

    @property
    def chat(self) -> Any:
        return self.app.chat

    @property
    def harness(self) -> FakeHarness:
        assert isinstance(self.opened.harness, FakeHarness)
        return self.opened.harness

    @property
    def asked(self) -> list[tuple[Any, ...]]:
        """What was asked of the conversation, without the drafts and the resumption that come by themselves."""
        return [call for call in self.conversation.asked if call[0] not in {"save_draft", "resume"}]

    async def settle(self) -> None:
        """Let both loops and the clock move until nothing is left to do."""
        for _ in range(3):
            await self._drawn()
            await self.thread.drained()
            self.clock.advance(40)
        await self._drawn()
        await self.pilot.pause()

    async def _drawn(self) -> None:
        """Every widget has read its messages; unlike `Pilot.pause` it does not wait for an idle processor."""
        await self.pilot._wait_for_screen()
        self.app.screen._on_timer_update()

    async def show(self, made: ConversationView) -> None:
        """The harness commits; the screen shows it."""
        self.thread.call(self.conversation.publish, made)
        await self.settle()

    async def type(self, text: str) -> None:
        """Put text into the composer as a paste does; keys are pressed by tests that are about keys."""
        self.chat.prompt.post_message(Paste(text))
        await self.settle()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    def screen_lines(self) -> list[str]:
        """What is on the screen, line by line."""
        width, height = self.app.size
        lines = self.app.screen._compositor.render_strips()
        del width
        return ["".join(segment.text for segment in strip).rstrip() for strip in lines[:height]]

    def text(self) -> str:
        return "\n".join(self.screen_lines())


@asynccontextmanager
async def running(first: ConversationView | None = None, *, size: tuple[int, int] = (100, 30), **options: Any) -> AsyncIterator[Rig]:
    """The app, opened and settled."""
    rig = Rig(first if first is not None else view(), **options)
    try:
        async with rig.app.run_test(size=size) as pilot:
            rig.pilot = pilot
            await rig.settle()
            yield rig
    finally:
        rig.thread.close()
