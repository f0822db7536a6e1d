"""Between the screen's loop and the harness's, over threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import InternalError, NotFound, PidurableError, SessionFailed
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.tui.bridge import DRAFT_MS, FRAME_MS, Bridge
from tests.support.tui_conversation import FakeConversation, HarnessThread, opened
from tests.support.tui_views import user, view


@dataclass
class Desk:
    bridge: Bridge
    conversation: FakeConversation
    following: FakeConversation
    thread: HarnessThread
    clock: ManualClock
    views: list[ConversationView] = field(default_factory=list)
    problems: list[PidurableError] = field(default_factory=list)

    async def settle(self) -> None:
        await self.thread.drained()
        await asyncio.sleep(0)

    async def frame(self) -> None:
        await self.settle()
        self.clock.advance(FRAME_MS)
        await self.settle()

    @property
    def asked(self) -> list[tuple[Any, ...]]:
        return self.conversation.asked


@asynccontextmanager
async def bridged() -> AsyncIterator[Desk]:
    thread, clock = HarnessThread(), ManualClock()
    conversation = thread.call(FakeConversation, view(seq=1))
    following = thread.call(FakeConversation, view(seq=50, conversation_id=2))
    views: list[ConversationView] = []
    problems: list[PidurableError] = []
    bridge = Bridge(opened(thread, conversation, following=following), clock=clock, on_view=views.append, on_problem=problems.append)
    desk = Desk(bridge, conversation, following, thread, clock, views, problems)
    try:
        await desk.settle()
        yield desk
    finally:
        await bridge.close()
        thread.close()


@pytest.mark.rule("OB-2")
async def test_the_first_view_is_shown_and_only_then_work_is_resumed() -> None:
    async with bridged() as desk:
        assert [one.seq for one in desk.views] == [1]
        assert desk.asked == [("resume",)]


@pytest.mark.rule("OB-2")
async def test_a_slow_screen_skips_views_and_gets_the_newest_while_the_harness_never_waits() -> None:
    async with bridged() as desk:
        for seq in range(2, 102):
            desk.thread.call(desk.conversation.publish, view(user(1, "x"), seq=seq))
        await desk.settle()
        assert desk.conversation.delivered == 101, "the watch was read to the end although no frame was drawn"
        assert [one.seq for one in desk.views] == [1]
        await desk.frame()
        assert [one.seq for one in desk.views] == [1, 101]


@pytest.mark.rule("OB-2")
async def test_a_view_after_a_pause_is_shown_at_once() -> None:
    async with bridged() as desk:
        await desk.frame()
        desk.thread.call(desk.conversation.publish, view(seq=2))
        await desk.settle()
        assert [one.seq for one in desk.views] == [1, 2]


@pytest.mark.rule("OB-2")
async def test_a_costly_frame_is_followed_by_a_longer_pause() -> None:
    async with bridged() as desk:
        await desk.frame()

        def draw_for_200_ms(made: ConversationView) -> None:
            desk.views.append(made)
            desk.clock.advance(200)

        desk.bridge._on_view = draw_for_200_ms
        desk.thread.call(desk.conversation.publish, view(seq=2))
        await desk.settle()
        desk.thread.call(desk.conversation.publish, view(seq=3))
        desk.clock.advance(399)
        await desk.settle()
        assert [one.seq for one in desk.views] == [1, 2]
        desk.clock.advance(1)
        await desk.settle()
        assert [one.seq for one in desk.views] == [1, 2, 3]


async def test_commands_run_on_the_harness_loop_in_the_order_they_were_given() -> None:
    async with bridged() as desk:
        done = [
            desk.bridge.submit("hello", mode="followUp"),
            desk.bridge.answer(7, "allow"),
            desk.bridge.set_agent(model="a/b"),
            desk.bridge.take_back(5),
        ]
        assert await asyncio.gather(*done) == [True, True, True, True]
        assert await desk.bridge.abort() == ()
        named = [call for call in desk.asked if call[0] not in {"resume", "save_draft"}]
        assert named == [("submit", "hello", "followUp"), ("answer", 7, "allow", "terminal"), ("set_agent", {"model": "a/b"}), ("withdraw", 5), ("abort",)]


async def test_a_refused_command_comes_back_as_a_problem_and_false() -> None:
    async with bridged() as desk:
        problem = NotFound("open question 7", where="conversation 1")
        desk.conversation.refuse = problem
        assert await desk.bridge.answer(7, "allow") is False
        desk.conversation.refuse = problem
        assert await desk.bridge.older(9) == ()
        desk.conversation.refuse = problem
        assert await desk.bridge.abort() == ()
        assert desk.problems == [problem, problem, problem]


async def test_the_end_of_a_session_and_a_broken_watch_are_told() -> None:
    async with bridged() as desk:
        failed = SessionFailed("disk")
        desk.thread.call(desk.conversation.break_watch, failed)
        await desk.settle()
        assert desk.problems == [failed]
    async with bridged() as desk:
        desk.thread.call(desk.conversation.break_watch, KeyError("x"))
        await desk.settle()
        assert [type(problem) for problem in desk.problems] == [InternalError]


@pytest.mark.rule("TU-10")
async def test_drafts_are_stored_at_once_then_at_most_every_interval_and_the_newest_always() -> None:
    async with bridged() as desk:
        for length in range(1, 6):
            desk.bridge.save_draft("x" * length, length)
            await desk.settle()
        assert desk.asked[1:] == [("save_draft", "x", 1)]
        desk.clock.advance(DRAFT_MS)
        await desk.settle()
        assert desk.asked[1:] == [("save_draft", "x", 1), ("save_draft", "xxxxx", 5)]


@pytest.mark.rule("TU-10")
async def test_closing_stores_the_draft_and_what_was_sent() -> None:
    async with bridged() as desk:
        desk.bridge.submit("sent", mode="followUp")
        desk.bridge.save_draft("a", 1)
        desk.bridge.save_draft("ab", 2)
        await desk.bridge.close()
        assert ("submit", "sent", "followUp") in desk.asked
        assert [call for call in desk.asked if call[0] == "save_draft"][-1] == ("save_draft", "ab", 2)


async def test_a_new_conversation_takes_over_and_the_old_one_is_no_longer_shown() -> None:
    async with bridged() as desk:
        await desk.frame()
        agent = Agent(model="a/b")
        assert await desk.bridge.new_conversation(agent) is True
        await desk.frame()
        desk.thread.call(desk.conversation.publish, view(seq=99))
        await desk.frame()
        assert [(one.conversation.id, one.seq) for one in desk.views] == [(1, 1), (2, 50)]
        await desk.bridge.submit("there", mode="followUp")
        assert ("new", agent) in desk.asked
        assert ("submit", "there", "followUp") in desk.following.asked
