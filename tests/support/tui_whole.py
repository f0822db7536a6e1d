"""The app over a real harness with a scripted model: both clocks are moved by the test, everything else is as in the program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from textual.events import Paste
from textual.pilot import Pilot

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Tool, ToolContext, ToolResult
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.messages import Text
from pi_durable_tui.tools.subagent import subagent_tools
from pi_durable_tui.tui.app import PidurableApp
from pi_durable_tui.tui.bridge import Opened
from pi_durable_tui.tui.palette import DARK
from tests.support.harness_rig import Rig
from tests.support.tui_conversation import FakeWorkspace, HarnessThread
from tests.support.tui_rig import PLACE
from tests.support.tui_views import START_MS


class Arguments(msgspec.Struct):
    command: str


async def _run(arguments: Arguments, context: ToolContext) -> ToolResult:
    if arguments.command.startswith("sleep"):
        context.output(f"{arguments.command} began")
        await asyncio.Event().wait()
    return ToolResult(content=(Text(text=f"ran {arguments.command}"),))


SHELL = Tool(name="bash", description="", arguments=Arguments, execute=_run, title=lambda arguments: f"bash {arguments.command}")
"""Runs at once; a command that begins with "sleep" runs for ever."""


@dataclass
class Whole:
    thread: HarnessThread
    rig: Rig
    conversation: Conversation
    app: PidurableApp
    pilot: Pilot[None]
    clock: ManualClock

    def screen(self) -> str:
        """What is on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    async def step(self, ms: int = 40) -> None:
        """A moment passes on both clocks, and everything that follows from it happens."""
        await self.pilot.pause()
        await self.thread.drained()
        self.clock.advance(ms)
        self.thread.call(self.rig.clock.advance, ms)

    async def until(self, words: str, *, gone: bool = False) -> str:
        """What is on the screen once `words` are on it, or off it."""
        for _ in range(600):
            await self.step()
            shown = self.screen()
            if (words in shown) != gone:
                return shown
        raise AssertionError(f"{words!r} {'stayed' if gone else 'did not appear'}:\n{shown}")

    async def rested(self) -> None:
        """Nothing runs in the chat any more: what is on the screen of an answer is all of it, and stored."""
        for _ in range(600):
            if (await self.stored()).live.run is None:
                return
            await self.step()
        raise AssertionError(f"the run did not end:\n{self.screen()}")

    def files(self, history: Any) -> None:
        """What the session keeps of files, from now on."""
        opened = self.app._opened
        assert opened is not None
        object.__setattr__(opened, "files", history)

    async def view(self) -> ConversationView:
        """What is shown, once it is."""
        while self.app.view is None:
            await self.step()
        return self.app.view

    async def say(self, text: str) -> None:
        """Type a line and send it."""
        self.app.chat.prompt.post_message(Paste(text))
        await self.step()
        await self.pilot.press("enter")
        await self.step()

    async def ask(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of something that runs on the harness's loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.thread.loop))

    async def stored(self, conversation_id: int | None = None) -> ConversationView:
        conversation = self.conversation if conversation_id is None else await self.ask(self.rig.harness.conversation(conversation_id))
        return await self.ask(conversation.view())

    async def entries(self, conversation_id: int | None = None) -> list[Entry]:
        return await self.ask(self.rig.entries(conversation_id if conversation_id is not None else self.conversation.id))


@asynccontextmanager
async def whole(
    path: Path, *scripts: Any, approval: Any = "all", size: tuple[int, int] = (100, 30), tools: Sequence[Tool] = (), **options: Any
) -> AsyncIterator[Whole]:
    """The app over a harness whose model says `scripts`; its tools are SHELL, the ones about subagents, and `tools`."""
    thread, clock = HarnessThread(), ManualClock(START_MS)

    async def make() -> tuple[Rig, Conversation]:
        rig = Rig(path=path, clock=ManualClock(START_MS), tools=(SHELL, *subagent_tools(), *tools), **options)
        return rig, await rig.start(*scripts, agent=Agent(model="test/model", approval=approval, cwd=str(path)))

    rig, conversation = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), thread.loop))

    async def start() -> Opened:
        return Opened(loop=thread.loop, harness=rig.harness, conversation=conversation, workspace=FakeWorkspace(), resume=rig.harness.resume)

    app = PidurableApp(start, clock=clock, place=PLACE, palette=DARK, typing_gap_s=0.0)
    try:
        async with app.run_test(size=size) as pilot:
            made = Whole(thread, rig, conversation, app, pilot, clock)
            await made.until("● stored")
            yield made
    finally:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(rig.close(), thread.loop))
        thread.close()
