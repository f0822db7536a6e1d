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
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.task import Running, Task
from pi_durable_tui.tui.bridge import DRAFT_MS, Bridge
from pi_durable_tui.tui.following import Sight
from pi_durable_tui.tui.watching.sights import FRAME_MS
from tests.support.tui_conversation import FakeConversation, HarnessThread, opened
from tests.support.tui_views import slot, user, view


@dataclass
class Desk:
    bridge: Bridge
    conversation: FakeConversation
    following: FakeConversation
    thread: HarnessThread
    clock: ManualClock
    views: list[ConversationView] = field(default_factory=list)
    problems: list[PidurableError] = field(default_factory=list)
    switches: list[int] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)

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
    switches: list[int] = []
    sights: list[Sight] = []
    bridge = Bridge(
        opened(thread, conversation, following),
        clock=clock,
        on_sight=lambda sight: (views.append(sight.view), sights.append(sight)),
        on_switch=lambda: switches.append(len(views)),
        on_problem=problems.append,
    )
    desk = Desk(bridge, conversation, following, thread, clock, views, problems, switches, sights)
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

        def draw_for_200_ms(made: Sight) -> None:
            desk.views.append(made.view)
            desk.clock.advance(200)

        desk.bridge._on_sight = draw_for_200_ms
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
        assert named == [("submit", "hello", "followUp"), ("answer", 7, "allow", "the user"), ("set_agent", {"model": "a/b"}), ("withdraw", 5), ("abort",)]


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


async def test_another_conversation_takes_over_and_the_old_one_is_no_longer_shown() -> None:
    async with bridged() as desk:
        await desk.frame()
        desk.bridge.save_draft("half a thought", 4)
        assert await desk.bridge.show(2) is True
        assert (desk.bridge.conversation_id, desk.switches) == (2, [1])
        await desk.frame()
        desk.thread.call(desk.conversation.publish, view(seq=99))
        await desk.frame()
        assert [(one.conversation.id, one.seq) for one in desk.views] == [(1, 1), (2, 50)]
        await desk.bridge.submit("there", mode="followUp")
        assert ("submit", "there", "followUp") in desk.following.asked
        assert ("save_draft", "half a thought", 4) in desk.asked
        assert ("abort",) not in desk.asked, "the work that is left goes on"


async def test_a_conversation_that_is_not_there_changes_nothing() -> None:
    async with bridged() as desk:
        assert await desk.bridge.show(77) is False
        assert [type(problem) for problem in desk.problems] == [NotFound]
        assert (desk.bridge.conversation_id, desk.switches) == (1, [])


def with_subagents(*subagents: tuple[int, int, bool], **fields: Any) -> ConversationView:
    """A view with live subagents: (task, conversation, background)."""
    tasks = tuple(
        Task(
            id=task_id,
            kind="pi.subagent",
            conversation_id=1,
            input={"name": f"worker {task_id}", "conversation": conversation_id, "submission": 1, "background": background},
            state=Running(checkpoint={"phase": "report"}),
            created_at_ms=0,
            background=background,
        )
        for task_id, conversation_id, background in subagents
    )
    return view(tasks=tasks, **fields)


@pytest.mark.rule("TU-7", "OB-1")
async def test_a_subagent_is_followed_while_its_task_lives() -> None:
    async with bridged() as desk:
        await desk.frame()
        desk.thread.call(desk.conversation.publish, with_subagents((40, 2, False), seq=2))
        await desk.frame()
        desk.thread.call(desk.following.publish, view(user(60, "read it all"), seq=61, conversation_id=2))
        await desk.frame()
        assert [(each.task_id, each.name, each.view.seq if each.view else None) for each in desk.sights[-1].subagents] == [(40, "worker 40", 61)]
        assert desk.following.watchers == 1
        desk.thread.call(desk.conversation.publish, view(seq=3))
        await desk.frame()
        desk.thread.call(desk.following.publish, view(seq=62, conversation_id=2))
        await desk.frame()
        assert desk.sights[-1] == Sight(view=desk.conversation.view)
        assert desk.following.delivered == 2, "nothing is read of a subagent that has ended"


@pytest.mark.rule("TU-7", "TU-19")
async def test_a_question_of_a_subagent_is_answered_in_its_conversation() -> None:
    async with bridged() as desk:
        asking = slot(70, "bash", "bash make", status="asking", question=77)
        desk.thread.call(desk.following.publish, view(tools=[asking], seq=61, conversation_id=2))
        desk.thread.call(desk.conversation.publish, with_subagents((40, 2, False), seq=2))
        await desk.frame()
        await desk.frame()
        assert await desk.bridge.answer(77, "deny") is True
        assert ("answer", 77, "deny", "the user") in desk.following.asked
        assert [call for call in desk.asked if call[0] == "answer"] == []


async def test_a_task_is_stopped_in_the_conversation_it_belongs_to() -> None:
    async with bridged() as desk:
        assert await desk.bridge.abort_task(9) is True
        assert await desk.bridge.abort_task(10, 2) is True
        assert await desk.bridge.abort_task(11, 77) is False
        assert [call for call in desk.asked if call[0] == "abort_task"] == [("abort_task", 9)]
        assert desk.following.asked == [("abort_task", 10)]
