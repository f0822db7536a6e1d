"""A picture of watching another program's chat."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.watching.app import WatchApp, Watched
from tests.pictures.test_screens import FIGURES, Looks, looks  # noqa: F401 - a fixture
from tests.support.tui_conversation import FakeConversation, HarnessThread
from tests.support.tui_rig import PLACE
from tests.support.tui_story import STORY
from tests.support.tui_views import START_MS, slot, view


async def opened(thread: HarnessThread, shown: ConversationView) -> Watched:
    """A chat that somebody else runs."""
    conversation = thread.call(FakeConversation, shown)

    async def owner() -> str:
        return "pid 4711 on desk"

    async def nothing(*_arguments: object) -> Sequence[object]:
        return ()

    async def unknown(_model: str) -> None:
        return None

    return Watched(loop=thread.loop, conversation=conversation, open_conversation=nothing, owner=owner, tasks=nothing, window_tokens=unknown)  # type: ignore[arg-type]


@pytest.mark.rule("OB-6")
async def test_watching(looks: Looks) -> None:  # noqa: F811
    thread, clock = HarnessThread(), ManualClock(START_MS + 4_000)
    made = view(*STORY[:6], tools=[slot(9, "bash", "bash pytest -q tests", output="............\n")], **FIGURES)
    app = WatchApp(lambda: opened(thread, made), clock=clock, place=PLACE, palette=DARK)
    try:
        async with app.run_test(size=(100, 30)) as pilot:
            while not app.chat.owner or app.chat.sight is None:
                await pilot.pause()
                await thread.drained()
            await pilot.pause()
            looks(SimpleNamespace(app=app), "somebody else's chat")  # type: ignore[arg-type]
    finally:
        thread.close()
