"""Calls that go on behind their results: rules TO-10, TK-16, SA-14, PR-6, PR-11."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.harness.ports import Diagnostic, Tool, ToolContext, ToolResult
from pi_durable_tui.harness.settings import Limits, Settings
from pi_durable_tui.records.entry import NOTICE, Entry
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import Text, ToolResultMessage, UserMessage
from pi_durable_tui.records.task import Aborted, Completed, Failed, Terminal
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import Hold, call, say, texts

KILLED = "[The program was killed, and this ended with it. It may have done its work in part.]"
CLOSED = "[The program was closed, and this was ended with it.]"
STOPPED = "[It was stopped.]"


class Arguments(msgspec.Struct, frozen=True):
    """What is done, and whether the call goes on behind its result."""

    what: str = "serve"
    behind: bool = True


@dataclass(slots=True)
class Server:
    """A tool that works until it is told to end. `begun` counts what must not be done twice."""

    begun: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    contexts: list[ToolContext] = field(default_factory=list)

    async def execute(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        self.begun += 1
        self.contexts.append(context)
        if arguments.what == "facts":
            await context.started({"pid": 7})
        context.output("listening\n")
        if arguments.what != "quick":
            await self.ended.wait()
        return ToolResult(content=(Text(text="served"),), details={"exitCode": 0})

    async def on_left(self, facts: JsonObject, _context: ToolContext) -> tuple[Diagnostic, ...]:
        return (Diagnostic("info", "note", f"process {facts['pid']} was ended"),)

    @property
    def tool(self) -> Tool:
        return Tool(
            name="serve",
            description="",
            arguments=Arguments,
            execute=self.execute,
            title=lambda arguments: f"serve {arguments.what}",
            background=lambda arguments: arguments.behind,
            on_left=self.on_left,
        )


def rig_of(path: Path, server: Server, backend: Backend = "memory", limits: Limits | None = None, restart_limit: float = 5) -> Rig:
    return Rig(path, backend, settings=Settings(limits=limits or Limits(), restart_limit=restart_limit), tools=(server.tool, *subagent_tools()))


async def serving(rig: Rig, server: Server, what: str = "serve") -> int:
    """A chat whose run is over while the call goes on; its id."""
    chat = await rig.start(call(("serve", {"what": what})), say("It runs."))
    await chat.submit("start it")
    await rig.run_out(chat)
    assert server.begun == 1
    rig.clock.advance(2_000)  # what it says is stored by now
    await rig.settle()
    return chat.id


async def notices(rig: Rig, chat_id: int) -> list[Entry]:
    return [entry for entry in await rig.entries(chat_id) if entry.kind == NOTICE]


def said(entry: Entry) -> str:
    assert isinstance(entry.message, UserMessage)
    (part,) = entry.message.content
    assert isinstance(part, Text)
    return part.text


async def number_of(rig: Rig) -> int:
    (task,) = await rig.tasks("pi.background")
    return task.id


@pytest.mark.rule("TO-10", "TO-1")
async def test_the_call_returns_at_once_and_its_end_is_a_message_that_is_answered(tmp_path: Path) -> None:
    server = Server()
    rig = rig_of(tmp_path, server)
    chat_id = await serving(rig, server)
    number = await number_of(rig)
    (result,) = [entry.message for entry in await rig.entries(chat_id) if isinstance(entry.message, ToolResultMessage)]
    assert result.text == f"It goes on in the background as number {number}. A message will tell of its end."
    assert [entry.data["title"] for entry in await rig.entries(chat_id) if entry.data is not None and "title" in entry.data] == ["serve serve"]
    live = await rig.live(chat_id)
    assert [(slot.task_id, slot.status, slot.title, slot.output) for slot in live.background] == [(number, "running", "serve serve", "listening\n")]
    assert [task.checkpoint for task in await rig.tasks("pi.background")] == [{"phase": "run"}]

    rig.model.then(say("I saw it end."))
    rig.clock.advance(30_000)
    server.ended.set()
    await rig.until(lambda: len(rig.model.requests) == 3)
    await rig.run_out(await rig.harness.conversation(chat_id))

    (notice,) = await notices(rig, chat_id)
    assert said(notice) == f"[Number {number} in the background has ended: serve serve]\nserved"
    assert notice.data is not None
    assert {key: notice.data[key] for key in ("taskId", "name", "title", "output", "isError", "details")} == {
        "taskId": number, "name": "serve", "title": "serve serve", "output": "served", "isError": False, "details": {"exitCode": 0} }  # fmt: skip
    assert notice.data["durationMs"] == notice.at_ms - int(str(notice.data["startedAtMs"])) >= 30_000
    assert texts(rig.model.requests[-1])[-1] == ("user", said(notice))
    assert (await rig.live(chat_id)).background == ()
    assert [task.outcome for task in await rig.tasks("pi.background")] == [Completed(value={"exitCode": 0})]


@pytest.mark.rule("TO-10")
async def test_what_ends_while_a_run_is_on_is_told_after_the_tool_round(tmp_path: Path) -> None:
    server, hold = Server(), Hold()
    rig = rig_of(tmp_path, server)
    chat = await rig.start(call(("serve", {})), (hold, *call(("serve", {"what": "quick", "behind": False}), ids=["c2"])), say("Seen."))
    await chat.submit("start it")
    await rig.until(lambda: server.begun == 1 and len(rig.model.requests) == 2)
    server.ended.set()
    await rig.settle()
    assert await notices(rig, chat.id) == []
    hold.event.set()
    await rig.run_out(chat)
    assert [role for role, _ in texts(rig.model.requests[-1])][-2:] == ["toolResult", "user"]
    assert len(await notices(rig, chat.id)) == 1
    assert len(rig.model.requests) == 3


@pytest.mark.rule("TO-10", "PR-6", "TK-10")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
@pytest.mark.parametrize("restart_limit", [1, 5])
async def test_a_kill_ends_it_for_good_and_is_told_once_without_asking_the_model(tmp_path: Path, backend: Backend, restart_limit: float) -> None:
    server = Server()
    rig = rig_of(tmp_path, server, backend, restart_limit=restart_limit)
    chat_id = await serving(rig, server)
    for _ in range(3):
        await rig.kill()
        harness = await rig.open()
        await harness.resume()
        await rig.until(lambda: not rig.harness.task_graph())
    number = await number_of(rig)
    assert server.begun == 1
    assert len(rig.model.requests) == 2
    (notice,) = await notices(rig, chat_id)
    assert said(notice) == f"[Number {number} in the background has ended: serve serve]\nlistening\n{KILLED}"
    (task,) = await rig.tasks("pi.background")
    assert isinstance(task.outcome, Failed)
    rig.model.then(say("I know."))
    chat = await rig.harness.conversation(chat_id)
    await chat.submit("and?")
    await rig.run_out(chat)
    role, text = texts(rig.model.requests[-1])[-1]
    assert (role, text.count(KILLED), text.endswith("and?")) == ("user", 1, True)
    await rig.close()


@pytest.mark.rule("TO-10", "TO-3")
async def test_a_call_that_was_killed_before_it_began_begins_once(tmp_path: Path) -> None:
    server = Server()
    rig = rig_of(tmp_path, server)
    chat = await rig.start(call(("serve", {})), say("It runs."))
    await chat.submit("start it")
    for _ in range(20_000):  # until the commit that makes the task, and no further
        await asyncio.sleep(0)
        if any(task.kind == "pi.background" for task in rig.harness.task_graph()):
            break
    assert server.begun == 0
    await rig.kill()
    rig.model.then(say("It runs."))
    harness = await rig.open()
    await harness.resume()
    await rig.until(lambda: server.begun == 1, jump=True)
    await rig.settle()
    assert [task.checkpoint for task in await rig.tasks("pi.background")] == [{"phase": "run"}]
    await rig.close()


@pytest.mark.rule("TO-9", "TO-10", "PR-17")
async def test_a_call_does_not_begin_while_its_outcome_could_not_be_stored(tmp_path: Path) -> None:
    server = Server()
    rig = rig_of(tmp_path, server)
    chat = await rig.start(call(("serve", {})), say("It runs."))
    await chat.submit("start it")
    for _ in range(20_000):  # until the task is at work, and no further
        await asyncio.sleep(0)
        if any(task.kind == "pi.background" and task.status == "running" for task in rig.harness.task_graph()):
            break
    rig.room = False
    await rig.until(lambda: any(report.kind == "storage_refused" for report in rig.reports))
    await rig.settle()
    assert server.begun == 0
    rig.room = True
    await rig.close()


@pytest.mark.rule("TO-10", "PR-7")
async def test_after_a_kill_the_tool_looks_for_what_is_left_of_it(tmp_path: Path) -> None:
    server = Server()
    rig = rig_of(tmp_path, server)
    chat_id = await serving(rig, server, "facts")
    await rig.kill()
    harness = await rig.open()
    await harness.resume()
    await rig.settle()
    (notice,) = await notices(rig, chat_id)
    assert said(notice).endswith(f"{KILLED}\n[process 7 was ended]")


@pytest.mark.rule("TO-10", "SE-7")
async def test_a_close_ends_it_leaves_nothing_unfinished_and_is_told_once(tmp_path: Path) -> None:
    server = Server()
    rig = rig_of(tmp_path, server, "sqlite")
    chat_id = await serving(rig, server)
    await rig.close()
    harness = await rig.open()
    assert [chat.unfinished for chat in await harness.chats()] == [False]
    assert not harness.recovery.was_killed
    (notice,) = await notices(rig, chat_id)
    assert said(notice).endswith(f"listening\n{CLOSED}")
    assert notice.data is not None
    assert notice.data["diagnostics"] == [{"level": "warn", "code": "aborted", "message": CLOSED.strip("[]")}]
    await harness.resume()
    await rig.settle()
    assert len(await notices(rig, chat_id)) == 1
    assert server.begun == 1
    await rig.close()


@pytest.mark.rule("TO-10", "TK-13", "PR-5", "PR-6", "PR-7")
async def test_a_process_that_only_opens_and_closes_leaves_what_a_kill_cut_off_to_the_next_one(tmp_path: Path) -> None:
    server = Server()
    rig = rig_of(tmp_path, server, "sqlite")
    chat_id = await serving(rig, server, "facts")
    await rig.kill()
    await rig.open()
    found = await rig.tasks()
    await rig.close()
    await rig.open()
    assert await rig.tasks() == found
    await rig.harness.resume()
    await rig.settle()
    (notice,) = await notices(rig, chat_id)
    assert said(notice).endswith(f"{KILLED}\n[process 7 was ended]")
    await rig.close()


@pytest.mark.rule("TO-10", "SE-7")
async def test_a_call_that_had_not_begun_when_the_program_was_closed_begins_once(tmp_path: Path) -> None:
    server = Server()
    rig = rig_of(tmp_path, server, "sqlite")
    chat = await rig.start(call(("serve", {})), say("It runs."))
    await chat.submit("start it")
    for _ in range(20_000):  # until the commit that makes the task, and no further
        await asyncio.sleep(0)
        if any(task.kind == "pi.background" for task in rig.harness.task_graph()):
            break
    await rig.close()
    assert server.begun == 0
    rig.model.then(say("It runs."))
    await (await rig.open()).resume()
    await rig.until(lambda: server.begun == 1, jump=True)
    assert await notices(rig, chat.id) == []
    await rig.close()


@pytest.mark.rule("TO-10", "TK-15", "TK-16", "TU-8")
async def test_esc_passes_it_over_and_stopping_it_is_told_without_asking_the_model(tmp_path: Path) -> None:
    server = Server()
    rig = rig_of(tmp_path, server)
    chat = await rig.start(call(("serve", {})), (Hold(),))
    await chat.submit("start it")
    await rig.until(lambda: server.begun == 1 and len(rig.model.requests) == 2)
    await chat.abort()
    assert [task.status for task in await rig.tasks("pi.background")] == ["running"]
    number = await number_of(rig)
    assert await chat.abort_task(number)
    (task,) = await rig.tasks("pi.background")
    assert task.state == Terminal(outcome=Aborted())
    (notice,) = await notices(rig, chat.id)
    assert said(notice).endswith(STOPPED)
    assert len(rig.model.requests) == 2
    assert (await rig.live(chat.id)).background == ()


@pytest.mark.rule("TO-10", "TK-17")
async def test_an_abort_takes_back_what_a_person_typed_and_leaves_the_notice(tmp_path: Path) -> None:
    server = Server()
    rig = rig_of(tmp_path, server)
    chat = await rig.start(call(("serve", {})), (Hold(),), say("Now I know."))
    await chat.submit("start it")
    await rig.until(lambda: server.begun == 1 and len(rig.model.requests) == 2)
    await chat.submit("and later this", mode="steer")
    server.ended.set()
    await rig.settle()
    withdrawn = await chat.abort()
    assert [part.text for one in withdrawn for part in one.content if isinstance(part, Text)] == ["and later this"]
    assert await notices(rig, chat.id) == []
    await chat.submit("go on")
    await rig.run_out(chat)
    assert len(await notices(rig, chat.id)) == 1
    assert len(rig.model.requests) == 3  # the notice and the message in one
    assert [submission.status for submission in (await rig.harness.session.storage.submissions()).items if submission.kind == NOTICE] == ["done"]


@pytest.mark.rule("SA-14")
async def test_no_more_go_on_at_once_than_the_limit_says(tmp_path: Path) -> None:
    server = Server()
    rig = rig_of(tmp_path, server, limits=Limits(background_calls=1))
    chat_id = await serving(rig, server)
    rig.model.then(call(("serve", {}), ids=["c2"]), say("I see."))
    chat = await rig.harness.conversation(chat_id)
    await chat.submit("another")
    await rig.run_out(chat)
    results = [entry.message.text for entry in await rig.entries(chat_id) if isinstance(entry.message, ToolResultMessage)]
    assert "1 calls go on in the background already, which is the limit, so this one was not run." in results[-1]
    assert server.begun == 1


@pytest.mark.rule("TO-10", "TK-14", "CASE-A7")
@pytest.mark.parametrize("is_stopped", [False, True])
async def test_what_a_subagent_started_ends_with_it(tmp_path: Path, is_stopped: bool) -> None:
    server = Server()
    rig = rig_of(tmp_path, server)
    rig.model.when("serve it", call(("serve", {})), (Hold(),) if is_stopped else say("It runs."))
    chat = await rig.start(call(("subagent", {"name": "helper", "prompt": "serve it"})), say("Thanks."))
    await chat.submit("go")
    await rig.until(lambda: server.begun == 1 and len(rig.model.requests) >= 3)
    if is_stopped:
        await rig.settle()
        await chat.abort()
    else:
        await rig.run_out(chat)
    assert [task.is_live for task in await rig.tasks()] == [False] * len(await rig.tasks())
    (task,) = await rig.tasks("pi.background")
    assert task.outcome == Aborted()
    assert len(await notices(rig, task.conversation_id)) == 1
    await rig.close()


@pytest.mark.rule("TO-10")
async def test_tools_list_wait_for_and_stop_what_goes_on(tmp_path: Path) -> None:
    server = Server()
    rig = rig_of(tmp_path, server)
    await serving(rig, server)
    number = await number_of(rig)
    calls = server.contexts[0].background
    assert [(info.task_id, info.name, info.title, info.is_running) for info in await calls.list()] == [(number, "serve", "serve serve", True)]
    waiting = asyncio.ensure_future(calls.wait(number, limit_ms=5_000))
    await rig.settle()
    rig.clock.advance(5_000)
    assert not await waiting
    assert await calls.wait(99, limit_ms=5_000)
    assert not await calls.stop(99)
    waiting = asyncio.ensure_future(calls.wait(number, limit_ms=5_000))
    assert await calls.stop(number)
    assert await waiting
    assert not await calls.stop(number)
    assert [(info.is_running, info.details) for info in await calls.list()] == [(False, None)]
