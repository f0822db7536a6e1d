"""What was done is kept when the store has no room for its outcome, or another program keeps it out, until that has passed: TO-9, GE-6, PR-17."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pi_durable_tui.errors import StorageRejected
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.extensions.task_definition import TaskDefinition
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Finished, TextDelta, Tool, ToolContext, ToolResult
from pi_durable_tui.records.messages import AssistantMessage, Text, ToolResultMessage
from pi_durable_tui.records.submission import Done, Unanswered
from pi_durable_tui.records.task import Failed, Faulted
from pi_durable_tui.selftest.oracle import faults
from tests.support.harness_rig import Rig
from tests.support.scripted_model import Hold, call, say


class Nothing(msgspec.Struct):
    """No arguments."""


REASONS = ("no_space", "busy")


def refused(reason: str) -> StorageRejected:
    return StorageRejected("Not now.", reason=reason)


async def until_taken(rig: Rig, reason: str, done: Any) -> None:
    """The store refuses it once more, then takes it."""
    await rig.until(lambda: any(report.kind == "storage_refused" for report in rig.reports))
    await rig.settle()
    assert not done()
    rig.storage.fail_next_commit(refused(reason))
    rig.clock.advance(5_000)
    await rig.settle()
    assert not done()
    rig.clock.advance(5_000)
    await rig.until(done)


@pytest.mark.rule("TO-9", "PR-6", "PR-17")
@pytest.mark.parametrize("reason", REASONS)
async def test_the_result_of_a_call_waits_until_the_store_takes_it(tmp_path: Path, reason: str) -> None:
    ran: list[str] = []

    async def execute(_arguments: Nothing, _context: ToolContext) -> ToolResult:
        ran.append("once")
        rig.storage.fail_next_commit(refused(reason))
        return ToolResult(content=(Text(text="precious"),))

    rig = Rig(tmp_path, tools=[Tool(name="work", description="", arguments=Nothing, execute=execute, title=lambda _: "work")])
    chat = await rig.start(call(("work", {})), say("The answer."))
    submission = await chat.submit("go")
    await until_taken(rig, reason, lambda: len(rig.model.requests) == 2)
    await rig.run_out(chat)
    assert isinstance((await chat.settled(submission.id)).state, Done)
    assert [entry.message.text for entry in await rig.entries(chat.id) if isinstance(entry.message, ToolResultMessage)] == ["precious"]
    assert ran == ["once"]
    assert [(report.kind, report.reason) for report in rig.reports] == [("storage_refused", reason)]
    assert await faults(rig.storage.inner) == []
    await rig.close()


@pytest.mark.rule("GE-6", "PR-17", "PR-21")
@pytest.mark.parametrize("reason", REASONS)
async def test_an_answer_waits_until_the_store_takes_it_and_is_not_asked_for_again(tmp_path: Path, reason: str) -> None:
    hold, rig = Hold(), Rig(tmp_path)
    chat = await rig.start((TextDelta("The answer."), hold, Finished("stop")))
    submission = await chat.submit("go")
    await rig.settle()
    rig.clock.advance(1_000)
    await rig.settle()
    rig.storage.fail_next_commit(refused(reason))
    hold.event.set()
    await until_taken(rig, reason, lambda: not rig.harness.task_graph())
    assert isinstance((await chat.settled(submission.id)).state, Done)
    assert [entry.message.text for entry in await rig.entries(chat.id) if isinstance(entry.message, AssistantMessage)] == ["The answer."]
    assert len(rig.model.requests) == 1
    await rig.close()


@pytest.mark.rule("GE-1", "PR-17")
async def test_a_run_waits_for_another_program_that_holds_the_store_and_ends_when_there_is_no_room_to_begin(tmp_path: Path) -> None:
    reasons = ["busy"]

    def sections(_agent: Agent) -> dict[str, str]:
        if reasons:
            rig.storage.fail_next_commit(refused(reasons.pop()))
        return {}

    rig = Rig(tmp_path, extensions=(Extension(name="more", sections=sections),))
    chat = await rig.start(say("The answer."))
    submission = await chat.submit("go")
    await until_taken(rig, "busy", lambda: not rig.harness.task_graph())
    assert isinstance((await chat.settled(submission.id)).state, Done)
    reasons.append("no_space")
    submission = await chat.submit("again")
    await rig.settle()
    assert isinstance((await chat.settled(submission.id)).state, Unanswered)
    assert len(rig.model.requests) == 1
    await rig.close()


@pytest.mark.rule("TK-15", "PR-17")
@pytest.mark.parametrize("end", ["abort", "close"])
async def test_an_outcome_that_waits_for_the_store_holds_up_neither_a_stop_nor_a_close(tmp_path: Path, end: str) -> None:
    async def execute(_arguments: Nothing, _context: ToolContext) -> ToolResult:
        rig.storage.fail_next_commit(refused("no_space"))
        return ToolResult(content=(Text(text="precious"),))

    rig = Rig(tmp_path, tools=[Tool(name="work", description="", arguments=Nothing, execute=execute, title=lambda _: "work")])
    chat = await rig.start(call(("work", {})), say("The answer."))
    await chat.submit("go")
    await rig.until(lambda: any(report.kind == "storage_refused" for report in rig.reports))
    if end == "abort":
        stopping = asyncio.ensure_future(chat.abort())
        await rig.until(stopping.done)
        assert rig.harness.task_graph() == ()
        await rig.close()
    else:
        await rig.close()
        await rig.open()
        await rig.harness.resume()
        await rig.run_out(await rig.harness.conversation(chat.id))
        (task,) = await rig.tasks("pi.tool")
        assert isinstance(task.outcome, Failed)  # an unsafe call is not run again
        await rig.close()


async def broken(_runtime: Any) -> None:
    raise ValueError("broken")


@pytest.mark.rule("TK-3", "PR-17")
@pytest.mark.parametrize("reason", REASONS)
async def test_the_end_of_a_task_whose_handler_broke_waits_until_the_store_takes_it(tmp_path: Path, reason: str) -> None:
    async def breaks(runtime: Any) -> None:
        rig.storage.fail_next_commit(refused(reason))
        await broken(runtime)

    rig = Rig(tmp_path, extensions=(Extension(name="kinds", tasks=(TaskDefinition(kind="work", phases={"go": breaks}),)),))
    chat = await rig.start()
    await rig.harness.start_task(chat.id, "work", {}, {"phase": "go"})
    await until_taken(rig, reason, lambda: not rig.harness.task_graph())
    (task,) = await rig.tasks("work")
    assert task.outcome == Faulted(message="ValueError: broken")
    await rig.close()


@pytest.mark.rule("TK-3", "TK-15")
async def test_an_end_that_can_never_be_stored_does_not_keep_a_task_alive(tmp_path: Path) -> None:
    async def forever(_runtime: Any) -> None:
        await asyncio.Event().wait()

    async def odd(*_given: Any) -> Any:
        return Failed(problem="no problem")  # type: ignore[arg-type]

    definition = TaskDefinition(kind="work", phases={"go": forever}, on_ending=odd)
    rig = Rig(tmp_path, "sqlite", extensions=(Extension(name="kinds", tasks=(definition,)),))
    chat = await rig.start()
    task_id = await rig.harness.start_task(chat.id, "work", {}, {"phase": "go"})
    await rig.settle()
    stopping = asyncio.ensure_future(chat.abort_task(task_id))
    await rig.until(stopping.done)
    (task,) = await rig.tasks("work")
    assert isinstance(task.outcome, Faulted)
    assert "its definition could not end it" in task.outcome.message
    await rig.close()


@pytest.mark.rule("TK-3")
async def test_an_outcome_that_can_never_be_stored_ends_its_task_at_once(tmp_path: Path) -> None:
    async def odd(runtime: Any) -> None:
        await runtime.end("no outcome")

    rig = Rig(tmp_path, "sqlite", extensions=(Extension(name="kinds", tasks=(TaskDefinition(kind="work", phases={"go": odd}),)),))
    chat = await rig.start()
    await rig.harness.start_task(chat.id, "work", {}, {"phase": "go"})
    await rig.settle()
    (task,) = await rig.tasks("work")
    assert isinstance(task.outcome, Faulted)
    await rig.close()
