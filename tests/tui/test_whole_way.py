"""The way of a keystroke with the real harness below the app: nothing on the screen that is not in the store (README, "two laws")."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Tool, ToolContext, ToolResult
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.messages import Text
from pi_durable_tui.tui.app import PidurableApp
from pi_durable_tui.tui.bridge import ConversationPort, Opened
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.projection import Projection
from tests.support.harness_rig import Rig
from tests.support.scripted_model import call, say
from tests.support.tui_conversation import FakeConversation, HarnessThread
from tests.support.tui_rig import PLACE
from tests.support.tui_views import START_MS

PORT = ("submit", "withdraw", "abort_task", "answer", "compact", "set_agent", "save_draft", "entries")


class Arguments(msgspec.Struct):
    command: str


async def _run(arguments: Arguments, context: ToolContext) -> ToolResult:
    return ToolResult(content=(Text(text=f"ran {arguments.command}"),))


SHELL = Tool(name="bash", description="", arguments=Arguments, execute=_run, title=lambda arguments: f"bash {arguments.command}")


@dataclass
class Whole:
    thread: HarnessThread
    rig: Rig
    conversation: Conversation
    app: PidurableApp
    pilot: Pilot[None]
    clock: ManualClock

    async def until(self, words: str) -> str:
        """What is on the screen once `words` are on it."""
        for _ in range(60):
            await self.pilot.pause()
            await self.thread.drained()
            self.clock.advance(40)
            self.thread.call(self.rig.clock.advance, 40)
            strips = self.app.screen._compositor.render_strips()
            shown = "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)
            if words in shown:
                return shown
        raise AssertionError(f"{words!r} did not appear:\n{shown}")

    async def stored(self) -> ConversationView:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.conversation.view(), self.thread.loop))


@asynccontextmanager
async def whole(path: Path, *scripts: Any, approval: Any = "all") -> AsyncIterator[Whole]:
    thread, clock = HarnessThread(), ManualClock(START_MS)

    async def make() -> tuple[Rig, Conversation]:
        rig = Rig(path=path, tools=(SHELL,))
        return rig, await rig.start(*scripts, agent=Agent(model="test/model", approval=approval, cwd=str(path)))

    rig, conversation = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), thread.loop))

    async def start() -> Opened:
        return Opened(loop=thread.loop, harness=rig.harness, conversation=conversation, resume=rig.harness.resume)

    app = PidurableApp(start, clock=clock, place=PLACE, palette=DARK, typing_gap_s=0.0)
    try:
        async with app.run_test(size=(100, 30)) as pilot:
            made = Whole(thread, rig, conversation, app, pilot, clock)
            await made.until("● stored")
            yield made
    finally:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(rig.close(), thread.loop))
        thread.close()


async def test_a_prompt_is_stored_before_it_is_shown_and_its_answer_comes_out_of_the_store(tmp_path: Path) -> None:
    async with whole(tmp_path, say("It is **done**.")) as made:
        await made.pilot.press(*"hello", "enter")
        shown = await made.until("It is done.")
        assert "❯ hello" in shown
        stored = await made.stored()
        assert list(Projection().apply(stored).rows) == list(made.app.chat.transcript._rows)
        assert stored.draft.text == ""


@pytest.mark.rule("TU-19")
async def test_a_question_is_stored_shown_answered_and_its_call_runs(tmp_path: Path) -> None:
    async with whole(tmp_path, call(("bash", {"command": "make all"})), say("Made."), approval="ask") as made:
        await made.pilot.press(*"go", "enter")
        shown = await made.until("Run this command?")
        assert "┃ make all" in shown
        made.clock.advance(1_000)
        await made.pilot.press("y")
        shown = await made.until("Made.")
        assert "✓ bash  make all  1 line" in shown
        assert "Run this command?" not in shown


@pytest.mark.rule("TU-10")
async def test_what_is_typed_is_in_the_store_while_it_is_typed(tmp_path: Path) -> None:
    async with whole(tmp_path) as made:
        await made.pilot.press(*"half a")
        await made.until("half a")
        made.clock.advance(100)
        await made.until("half a")
        assert (await made.stored()).draft.text == "half a"


@pytest.mark.parametrize("name", PORT)
def test_the_real_conversation_and_the_fake_take_what_the_bridge_gives(name: str) -> None:
    port = inspect.signature(getattr(ConversationPort, name)).parameters
    for kind in (Conversation, FakeConversation):
        assert list(inspect.signature(getattr(kind, name)).parameters)[: len(port)] == list(port)
