"""A run ends when it has worked as long as it may: SA-14, and PR-18 for clocks that jump meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.ports import TextDelta, Tool, ToolContext, ToolResult
from pi_durable_tui.harness.settings import Limits, Settings
from pi_durable_tui.records.messages import AssistantMessage, Problem, ToolResultMessage
from pi_durable_tui.records.submission import Done, Submission, Unanswered
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import Hold, call, fail, say

LIMIT = Problem(reason="limit", message="The run has used its 60 s.")
DAY_MS = 86_400_000


class Nothing(msgspec.Struct):
    """No arguments."""


async def _hang(_arguments: Nothing, context: ToolContext) -> ToolResult:
    context.output("working\n")
    await asyncio.Event().wait()
    return ToolResult()


HANG = Tool(name="hang", description="", arguments=Nothing, execute=_hang, title=lambda _: "hang", replay="safe")
ASKED = Tool(name="asked", description="", arguments=Nothing, execute=_hang, title=lambda _: "asked", access="command", replay="safe")


def rig_of(path: Path, backend: Backend = "memory", limit_ms: int | None = 60_000) -> Rig:
    return Rig(path, backend, settings=Settings(limits=Limits(max_time_ms=limit_ms)), tools=(HANG, *subagent_tools()))


async def pass_time(rig: Rig, seconds: int) -> None:
    """Second after second, as it passes for those who sleep."""
    for _ in range(seconds):
        rig.clock.advance(1_000)
        for _ in range(40):
            await asyncio.sleep(0)


async def settled(rig: Rig, submission: Submission) -> Submission:
    found = await rig.harness.session.storage.submission(submission.id)
    assert found is not None
    return found


async def hanging(rig: Rig) -> tuple[Conversation, Submission]:
    chat = await rig.start(call(("hang", {})))
    submission = await chat.submit("go")
    await rig.settle()
    return chat, submission


@pytest.mark.rule("SA-14")
async def test_a_tool_is_stopped_when_the_time_of_its_run_is_used_up_and_the_next_prompt_works(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    chat, submission = await hanging(rig)
    await pass_time(rig, 58)
    assert (await settled(rig, submission)).status == "placed"
    await pass_time(rig, 3)
    state = (await settled(rig, submission)).state
    assert isinstance(state, Unanswered)
    assert state.problem == LIMIT
    (result,) = [entry.message for entry in await rig.entries(chat.id) if isinstance(entry.message, ToolResultMessage)]
    assert result.text == "working\n\n<harness>\n[error] Tool hang was stopped because the time of the run was used up and may have partially run\n</harness>"
    failure = (await rig.live(chat.id)).run_failure
    assert failure is not None
    assert (failure.reason, failure.message) == ("limit", LIMIT.message)
    rig.model.then(say("fresh"))
    again = await chat.submit("and now?")
    await rig.run_out(chat)
    assert isinstance((await settled(rig, again)).state, Done)


@pytest.mark.rule("SA-14", "GE-6")
async def test_an_answer_and_a_wait_for_the_next_attempt_end_too_and_what_came_is_kept(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    chat = await rig.start((TextDelta("half of it"), Hold()))
    submission = await chat.submit("go")
    await pass_time(rig, 62)
    assert isinstance((await settled(rig, submission)).state, Unanswered)
    answers = [entry.message for entry in await rig.entries(chat.id) if isinstance(entry.message, AssistantMessage)]
    assert [(answer.text, answer.stop_reason, answer.problem) for answer in answers] == [("half of it", "aborted", LIMIT)]
    rig.model.then(fail(retry_after_ms=10 * DAY_MS))
    waiting = await chat.submit("again")
    await rig.settle()
    await pass_time(rig, 62)
    assert isinstance((await settled(rig, waiting)).state, Unanswered)


@pytest.mark.rule("SA-14")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
@pytest.mark.parametrize("end", ["kill", "close"])
async def test_the_time_is_counted_over_processes_and_not_between_them(tmp_path: Path, backend: Backend, end: str) -> None:
    rig = rig_of(tmp_path, backend)
    _, submission = await hanging(rig)
    for _ in range(3):
        await pass_time(rig, 18)
        await (rig.kill() if end == "kill" else rig.close())
        rig.clock.advance(DAY_MS)  # nobody works on it
        harness = await rig.open()
        rig.clock.advance(DAY_MS)  # it is open, and has not been resumed
        await harness.resume()
        await rig.settle()
        assert (await settled(rig, submission)).status == "placed"
    await pass_time(rig, 3)
    assert (await settled(rig, submission)).status == "placed"
    await pass_time(rig, 10)
    assert isinstance((await settled(rig, submission)).state, Unanswered)
    await rig.close()


@pytest.mark.rule("SA-14", "PR-18")
@pytest.mark.parametrize("jump_ms", [-DAY_MS, DAY_MS, 1_000 - 1_700_000_000_000])
async def test_a_clock_that_is_set_and_a_machine_that_sleeps_use_up_nothing(tmp_path: Path, jump_ms: int) -> None:
    rig = rig_of(tmp_path)
    _, submission = await hanging(rig)
    await pass_time(rig, 30)
    rig.clock.jump_wall(jump_ms)
    await pass_time(rig, 28)
    assert (await settled(rig, submission)).status == "placed"
    await pass_time(rig, 4)
    assert isinstance((await settled(rig, submission)).state, Unanswered)


@pytest.mark.rule("SA-14", "TU-19")
async def test_the_time_in_which_a_person_is_asked_is_theirs(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    rig.tools = (ASKED,)
    chat = await rig.start(call(("asked", {})), say("I see"))
    await chat.set_agent(approval="ask")
    submission = await chat.submit("go")
    await rig.settle()
    await pass_time(rig, 300)
    (slot,) = (await rig.live(chat.id)).tools
    assert slot.question is not None
    await chat.answer(slot.question, "deny", by="the test")
    await rig.run_out(chat)
    assert isinstance((await settled(rig, submission)).state, Done)


@pytest.mark.rule("SA-14", "CASE-A7")
async def test_a_subagent_works_on_the_time_of_the_run_that_waits_for_it(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    rig.model.when("read", call(("hang", {})))
    chat = await rig.start(call(("subagent", {"name": "reader", "prompt": "read"})))
    submission = await chat.submit("go")
    await rig.settle()
    await pass_time(rig, 62)
    state = (await settled(rig, submission)).state
    assert isinstance(state, Unanswered)
    assert state.problem == LIMIT
    assert [task.is_live for task in await rig.tasks()] == [False] * len(await rig.tasks())
    (child,) = [task.conversation_id for task in await rig.tasks("pi.generation") if task.conversation_id != chat.id]
    texts = [entry.message.text for entry in await rig.entries(child) if isinstance(entry.message, ToolResultMessage)]
    assert "because the time of the run was used up" in texts[0]


@pytest.mark.rule("SA-14")
async def test_a_subagent_in_the_background_has_a_time_of_its_own(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    rig.model.when("read", call(("hang", {})))
    chat = await rig.start(call(("subagent", {"name": "reader", "prompt": "read", "background": True})), say("started"), say("I heard"))
    await chat.submit("go")
    await rig.settle()
    await pass_time(rig, 58)
    assert len(rig.model.requests) == 3
    await pass_time(rig, 4)
    await rig.run_out(chat)
    (task,) = await rig.tasks("pi.subagent")
    assert not task.is_live
    assert "ended without an answer (The run has used its 60 s.)" in str(rig.model.requests[-1].messages[-1])


@pytest.mark.rule("SA-14")
async def test_without_a_limit_nothing_is_counted_and_nobody_wakes(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, limit_ms=None)
    chat, submission = await hanging(rig)
    assert rig.clock.next_wake_ms() in (None, 1_000)  # the running output
    await pass_time(rig, 300)
    run = (await rig.live(chat.id)).run
    assert run is not None
    assert (run.used_ms, (await settled(rig, submission)).status) == (0, "placed")


@pytest.mark.rule("SA-14", "TK-15")
async def test_a_kill_right_after_the_mark_ends_the_run_all_the_same(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, "sqlite")
    chat, submission = await hanging(rig)
    await pass_time(rig, 59)
    rig.clock.advance(1_000)
    for _ in range(100):
        await asyncio.sleep(0)
        if (run := (await rig.live(chat.id)).run) is None or run.limit is not None:
            break
    await rig.kill()
    rig.settings.limits = Limits()
    harness = await rig.open()
    await harness.resume()
    await rig.settle()
    state = (await settled(rig, submission)).state
    assert isinstance(state, Unanswered)
    assert state.problem == LIMIT
    await rig.close()
