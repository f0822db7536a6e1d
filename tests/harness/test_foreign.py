"""Tools, hooks and definitions of extensions raise what is no `Exception`, or give what is not asked for: it is theirs (TK-3, TK-15, PR-6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pi_durable_tui.harness.extensions.hooks import Hooks
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.extensions.task_definition import TaskDefinition
from pi_durable_tui.harness.ports import Tool, ToolContext, ToolResult
from pi_durable_tui.records.messages import AssistantMessage, Text, ToolCall
from pi_durable_tui.records.submission import Done
from pi_durable_tui.records.task import Completed, Faulted
from tests.support.harness_rig import Rig
from tests.support.scripted_model import call, say


class Panic(BaseException):
    """What compiled libraries raise."""


class Nothing(msgspec.Struct):
    """No arguments."""


class Letter(msgspec.Struct):
    """Which call it is."""

    letter: str


RAISED: dict[str, Callable[[], BaseException]] = {
    "a cancellation nobody asked for": asyncio.CancelledError,
    "an exit": lambda: SystemExit(3),
    "a panic": lambda: Panic("index out of bounds"),
}


def raising(error: Callable[[], BaseException]) -> Any:
    async def broken(*_given: Any) -> Any:
        raise error()

    return broken


def tool(**more: Any) -> Tool:
    async def execute(_arguments: Nothing, _context: ToolContext) -> ToolResult:
        return ToolResult(content=(Text(text="done"),))

    return Tool(**{"name": "work", "description": "", "arguments": Nothing, "execute": execute, "title": lambda _: "work", "access": "read", **more})


def hooked(**hooks: Any) -> tuple[Extension, ...]:
    return (Extension(name="hooks", hooks=Hooks(**hooks)),)


async def answered(rig: Rig) -> list[str]:
    """A run with one call comes to its answer; what the results say."""
    chat = await rig.start(call(("work", {})), say("The answer."), say("And another."))
    first = await chat.submit("go")
    await rig.run_out(chat)
    assert isinstance((await chat.settled(first.id)).state, Done)
    assert all(not task.is_live for task in await rig.tasks())
    results = [entry for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result"]
    return [part.text for entry in results for part in getattr(entry.message, "content", ())]


@pytest.mark.rule("TK-3")
@pytest.mark.parametrize("raised", RAISED)
async def test_a_tool_that_raises_no_exception_gives_an_error_result(tmp_path: Path, raised: str) -> None:
    rig = Rig(tmp_path, tools=[tool(execute=raising(RAISED[raised]))])
    (said,) = await answered(rig)
    assert f"[error] Tool work failed: {type(RAISED[raised]()).__name__}" in said
    await rig.close()


@pytest.mark.rule("TK-3", "FB-37")
@pytest.mark.parametrize("raised", RAISED)
@pytest.mark.parametrize("hook", ["before_request", "after_response", "on_yield", "after_tools", "on_start", "after_tool"])
async def test_a_hook_that_raises_no_exception_is_reported_and_the_run_goes_on(tmp_path: Path, raised: str, hook: str) -> None:
    rig = Rig(tmp_path, tools=[tool()], extensions=hooked(**{hook: raising(RAISED[raised])}))
    assert await answered(rig) == ["done"]
    assert {(report.kind, report.reason) for report in rig.reports} == {("hook_failed", hook)}
    await rig.close()


@pytest.mark.rule("FB-37")
@pytest.mark.parametrize(
    ("hook", "wanted"),
    [("before_request", "ModelRequest"), ("after_response", "AssistantMessage"), ("on_yield", "str"), ("after_tools", "str"), ("after_tool", "ToolResult")],
)
async def test_a_hook_that_gives_something_else_than_it_is_asked_for_is_reported_and_the_run_goes_on(tmp_path: Path, hook: str, wanted: str) -> None:
    async def wrong(*_given: Any) -> Any:
        return 5

    rig = Rig(tmp_path, tools=[tool()], extensions=hooked(**{hook: wrong}))
    assert await answered(rig) == ["done"]
    assert {(report.kind, report.reason, report.message) for report in rig.reports} == {
        ("hook_failed", hook, f"TypeError: it gave int where {wanted} is wanted"),
    }
    await rig.close()


@pytest.mark.rule("FB-37")
@pytest.mark.parametrize(("given", "said"), [(5, "TypeError: it gave int where arguments are wanted"), ({"a": {1}}, "which is not JSON")])
async def test_a_hook_before_a_tool_that_gives_no_arguments_blocks_the_call(tmp_path: Path, given: Any, said: str) -> None:
    async def wrong(*_given: Any) -> Any:
        return given

    rig = Rig(tmp_path, tools=[tool()], extensions=hooked(before_tool=wrong))
    (result,) = await answered(rig)
    assert "The call was not run: a check before it failed" in result
    assert said in result
    (task,) = await rig.tasks("pi.tool")
    assert isinstance(task.outcome, Completed)
    await rig.close()


@pytest.mark.rule("PR-6", "CX-1", "FB-37")
async def test_calls_that_a_hook_gives_one_id_are_each_carried_out_once(tmp_path: Path) -> None:
    async def same(_conversation_id: int, answer: AssistantMessage) -> AssistantMessage:
        return msgspec.structs.replace(answer, content=tuple(msgspec.structs.replace(part, id="same") for part in answer.content if isinstance(part, ToolCall)))

    ran: list[str] = []

    async def execute(arguments: Letter, _context: ToolContext) -> ToolResult:
        ran.append(arguments.letter)
        return ToolResult(content=(Text(text=arguments.letter),))

    rig = Rig(tmp_path, tools=[tool(arguments=Letter, execute=execute, sequential=True)], extensions=hooked(after_response=same))
    chat = await rig.start(call(("work", {"letter": "a"}), ("work", {"letter": "b"})), say(""))
    await chat.submit("go")
    await rig.run_out(chat)
    assert ran == ["a", "b"]
    await rig.close()


@pytest.mark.rule("TK-3", "FB-37")
@pytest.mark.parametrize("raised", RAISED)
async def test_a_hook_before_a_tool_that_raises_no_exception_blocks_the_call(tmp_path: Path, raised: str) -> None:
    rig = Rig(tmp_path, tools=[tool()], extensions=hooked(before_tool=raising(RAISED[raised])))
    (said,) = await answered(rig)
    assert "The call was not run: a check before it failed" in said
    await rig.close()


@pytest.mark.rule("TK-3")
@pytest.mark.parametrize("raised", RAISED)
async def test_a_handler_that_raises_no_exception_ends_its_task(tmp_path: Path, raised: str) -> None:
    rig = Rig(tmp_path, extensions=(Extension(name="kinds", tasks=(TaskDefinition(kind="work", phases={"go": raising(RAISED[raised])}),)),))
    chat = await rig.start()
    task_id = await rig.harness.start_task(chat.id, "work", {}, {"phase": "go"})
    await rig.settle()
    (task,) = await rig.tasks("work")
    assert isinstance(task.outcome, Faulted)
    assert task.outcome.message.startswith(type(RAISED[raised]()).__name__)
    assert [(report.kind, report.task_id) for report in rig.reports] == [("task_faulted", task_id)]
    await rig.close()


async def forever(_runtime: Any) -> None:
    await asyncio.Event().wait()


async def told(runtime: Any) -> None:
    await runtime.end(Completed(value=runtime.checkpoint))


@pytest.mark.rule("TK-3", "TK-15")
async def test_a_definition_that_raises_a_cancellation_when_its_task_is_stopped_stops_no_other(tmp_path: Path) -> None:
    definitions = (
        TaskDefinition(kind="work", phases={"go": forever}, on_ending=raising(asyncio.CancelledError)),
        TaskDefinition(kind="other", phases={"go": told}),
    )
    rig = Rig(tmp_path, extensions=(Extension(name="kinds", tasks=definitions),))
    chat = await rig.start()
    task_id = await rig.harness.start_task(chat.id, "work", {}, {"phase": "go"})
    await rig.settle()
    stopping = asyncio.ensure_future(chat.abort_task(task_id))
    await rig.until(stopping.done)
    await rig.harness.start_task(chat.id, "other", {}, {"phase": "go"})
    await rig.settle()
    (work,), (other,) = await rig.tasks("work"), await rig.tasks("other")
    assert work.outcome == Faulted(message="aborted; then its definition could not end it: CancelledError: ")
    assert other.outcome == Completed(value={"phase": "go"})
    await rig.close()


@pytest.mark.rule("SE-7", "TK-10")
async def test_a_close_while_a_tool_waits_is_no_error_of_the_tool(tmp_path: Path) -> None:
    async def execute(_arguments: Nothing, _context: ToolContext) -> ToolResult:
        await asyncio.Event().wait()
        return ToolResult()

    rig = Rig(tmp_path, tools=[tool(execute=execute, replay="safe")])
    chat = await rig.start(call(("work", {})))
    await chat.submit("go")
    await rig.settle()
    await rig.close()
    await rig.open()
    (task,) = await rig.tasks("pi.tool")
    assert (task.status, task.restarts) == ("pending", None)
    assert rig.reports == []
