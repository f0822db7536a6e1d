"""Stopping work, durably: rules TK-14 to TK-17, PR-22, and CASE-E4."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from pi_durable_tui.harness.ports import TextDelta, Tool, ToolContext, ToolResult
from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage
from pi_durable_tui.records.submission import Done, Unanswered
from pi_durable_tui.records.task import Aborted
from pi_durable_tui.selftest.oracle import faults
from tests.support.harness_rig import Rig
from tests.support.patience import PATIENCE_S
from tests.support.scripted_model import Hold, call, fail, say, texts


class Nothing(msgspec.Struct):
    """No arguments."""


def hanging_tool(ended: list[str], name: str = "hang") -> Tool:
    """A tool that runs until it is cancelled, and then says so."""

    async def execute(_arguments: Nothing, context: ToolContext) -> ToolResult:
        context.output("so far\n")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)
        return ToolResult()

    return Tool(name=name, description="", arguments=Nothing, execute=execute, title=lambda _: name)


async def finished_tool(_arguments: Nothing, _context: ToolContext) -> ToolResult:
    return ToolResult()


QUICK = Tool(name="quick", description="", arguments=Nothing, execute=finished_tool, title=lambda _: "quick", access="read")


@pytest.mark.rule("TK-15", "TO-5", "CASE-E4", "CASE-A1")
async def test_stopping_three_tools_gives_every_call_a_result_and_the_next_input_is_valid(tmp_path: Path) -> None:
    ended: list[str] = []
    rig = Rig(tmp_path, tools=(hanging_tool(ended), QUICK))
    chat = await rig.start(call(("hang", {}), ("quick", {}), ("hang", {})), say("hello to you"))
    placed = await chat.submit("go")
    await rig.settle()
    rig.clock.advance(1_000)
    await rig.settle()

    await chat.abort()

    assert ended == ["hang", "hang"]
    results = {entry.message.tool_call_id: entry for entry in await rig.entries(chat.id) if isinstance(entry.message, ToolResultMessage)}
    assert set(results) == {"c1", "c2", "c3"}
    stopped = results["c1"].message
    assert isinstance(stopped, ToolResultMessage)
    assert stopped.text == "so far\n\n<harness>\n[error] Tool hang was stopped by the user and may have partially run\n</harness>"
    assert isinstance((await chat.settled(placed.id)).state, Unanswered)
    assert [type(task.outcome) for task in await rig.tasks("pi.generation")] == [Aborted]

    await chat.submit("hello")
    await rig.run_out(chat)
    assert [role for role, _ in texts(rig.model.requests[1])] == ["user", "assistant", "toolResult", "toolResult", "toolResult", "user"]


@pytest.mark.rule("TK-15", "TO-3", "GE-5", "CASE-A1")
async def test_stopping_a_round_that_runs_in_turn_says_of_the_calls_that_had_no_turn_that_they_never_started(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(replace(hanging_tool([]), sequential=True), QUICK))
    chat = await rig.start(call(("hang", {}), ("quick", {}), ("hang", {})), say("hello to you"))
    await chat.submit("go")
    await rig.settle()
    await chat.abort()
    results = [entry for entry in await rig.entries(chat.id) if isinstance(entry.message, ToolResultMessage)]
    assert [entry.message.tool_call_id for entry in results if isinstance(entry.message, ToolResultMessage)] == ["c1", "c2", "c3"]
    assert [entry.data["diagnostics"] for entry in results if entry.data is not None][1:] == [
        [{"level": "error", "code": "aborted", "message": f"Tool {name} was stopped by the user before it started"}] for name in ("quick", "hang")
    ]
    await chat.submit("hello")
    await rig.run_out(chat)
    said = [text for role, text in texts(rig.model.requests[1]) if role == "toolResult"]
    assert [("may have partially run" in str(text), "before it started" in str(text)) for text in said] == [(True, False), (False, True), (False, True)]
    assert await faults(rig.storage.inner) == []
    await rig.close()


@pytest.mark.rule("TK-17", "PR-10", "SU-1")
@pytest.mark.parametrize("mode", ["followUp", "steer"])
async def test_what_is_handed_in_while_the_work_is_being_stopped_is_answered_once_it_has_stopped(tmp_path: Path, mode: Any) -> None:
    leaving = asyncio.Event()

    async def slow_to_leave(_arguments: Nothing, _context: ToolContext) -> ToolResult:
        try:
            await asyncio.Event().wait()
        finally:
            await leaving.wait()
        return ToolResult()

    tool = Tool(name="slow", description="", arguments=Nothing, execute=slow_to_leave, title=lambda _: "slow", access="read")
    rig = Rig(tmp_path, tools=(tool,))
    second = Hold()
    chat = await rig.start(call(("slow", {})), (second, *say("The answer.")))
    await chat.submit("go")
    waiting = await chat.submit("and then", mode=mode)
    await rig.settle()
    stopping = asyncio.ensure_future(chat.abort())
    await rig.settle()
    late = await chat.submit("no, this", mode=mode)
    assert not stopping.done()

    leaving.set()
    await rig.settle()

    assert [submission.id for submission in await asyncio.wait_for(stopping, PATIENCE_S)] == [waiting.id]  # it does not wait for the new run
    assert len(rig.model.requests) == 2
    second.event.set()
    await rig.run_out(chat)
    assert isinstance((await chat.settled(late.id)).state, Done)
    assert texts(rig.model.requests[1])[-1] == ("user", "no, this")
    assert await faults(rig.storage.inner) == []
    await rig.close()


@pytest.mark.rule("TK-15", "GE-6", "CASE-E4", "CASE-B3")
async def test_stopping_a_retry_wait_does_not_turn_into_a_retry(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(fail("rate_limit", retry_after_ms=20_000), say("never"))
    await chat.submit("go")
    await rig.settle()

    await chat.abort()
    rig.clock.advance(100_000)
    await rig.settle()

    assert len(rig.model.requests) == 1
    assert not (await chat.view()).is_busy


@pytest.mark.rule("TK-15", "CASE-E4")
async def test_stopping_twice_and_stopping_an_idle_chat_do_no_harm(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start((TextDelta("a"), Hold()), say("b"))
    assert await chat.abort() == ()
    await chat.submit("go")
    await rig.settle()

    await asyncio.gather(chat.abort(), chat.abort())
    await chat.submit("again")
    await rig.run_out(chat)

    answers = [entry.message.stop_reason for entry in await rig.entries(chat.id) if isinstance(entry.message, AssistantMessage)]
    assert answers == ["aborted", "stop"]


@pytest.mark.rule("TK-17")
async def test_stopping_gives_queued_inputs_back_and_keeps_queued_writes(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start((Hold(),))
    await chat.submit("go")
    note = await chat.submit("note", mode="write")
    first, second = await chat.submit("first"), await chat.submit("second", mode="steer")

    withdrawn = await chat.abort()

    assert [submission.id for submission in withdrawn] == [first.id, second.id]
    assert [item.submission_id for item in (await chat.view()).inbox.items] == [note.id]


@pytest.mark.rule("TK-15", "PR-22")
@pytest.mark.parametrize("moment", ["before", "stored"])
@pytest.mark.parametrize("commit", [1, 2, 3])
async def test_crash_in_the_middle_of_stopping_loses_nothing_of_it(tmp_path: Path, commit: int, moment: Literal["before", "stored"]) -> None:
    rig = Rig(tmp_path, tools=(hanging_tool([]),))
    chat = await rig.start(call(("hang", {})))
    placed = await chat.submit("go")
    await rig.settle()
    rig.storage.crash_at(len(rig.storage.batches) + commit, moment)
    stopping = asyncio.ensure_future(chat.abort())
    await rig.until(lambda: rig.storage.crashed.is_set() or stopping.done())
    is_marked = (commit, moment) != (1, "before")
    await rig.kill()

    harness = await rig.open(*([] if is_marked else [say("went on")]))
    await harness.resume()
    again = await harness.conversation(chat.id)
    await rig.run_out(again)

    state = (await again.settled(placed.id)).state
    assert isinstance(state, Unanswered) is is_marked
    results = [entry for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result"]
    assert len(results) == 1
