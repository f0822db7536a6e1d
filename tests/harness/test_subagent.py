"""Work handed to a conversation of its own: rules TO-7, TU-8, SA-14, FB-27, FB-32, FB-35, and CASE-A7."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Finished, TextDelta, Tool, ToolContext, ToolResult
from pi_durable_tui.records.entry import NOTICE
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import AssistantMessage, Problem, Text, ToolResultMessage, Usage
from pi_durable_tui.records.modes import ApprovalMode
from pi_durable_tui.records.submission import Done, Unanswered
from pi_durable_tui.records.task import Aborted, Completed
from pi_durable_tui.selftest.oracle import faults
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import Hold, call, fail, say, texts


class Nothing(msgspec.Struct):
    """No arguments."""


async def look(_arguments: Nothing, _context: ToolContext) -> ToolResult:
    return ToolResult(content=(Text(text="looked"),))


LOOK = Tool(name="look", description="", arguments=Nothing, execute=look, title=lambda _: "look", access="read", replay="safe")
WORK: JsonObject = {"name": "reader", "prompt": "read it all"}


def rig_with(tmp_path: Path, backend: Backend = "memory") -> Rig:
    return Rig(tmp_path, backend, tools=(*subagent_tools(), LOOK))


async def child_of(rig: Rig) -> Conversation:
    """The conversation of the newest subagent."""
    newest = (await rig.tasks("pi.subagent"))[-1]
    (child,) = (await rig.harness.session.storage.conversations(owner=newest.id)).items
    return await rig.harness.conversation(child.id)


async def results(rig: Rig, conversation_id: int) -> list[ToolResultMessage]:
    return [entry.message for entry in await rig.entries(conversation_id) if isinstance(entry.message, ToolResultMessage)]


@pytest.mark.rule("TO-7", "FB-27", "SA-14", "GE-9")
async def test_subagent_works_in_a_conversation_of_its_own_and_its_answer_is_the_result(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    chat = await rig.start(call(("subagent", WORK)), call(("look", {})), say("all read"), say("thanks"))
    await chat.submit("go")
    await rig.run_out(chat)
    child = await child_of(rig)

    assert (await results(rig, chat.id))[0].text == "all read"
    assert [entry.kind for entry in await rig.entries(child.id)] == ["pi.user", "pi.assistant", "pi.tool-result", "pi.assistant"]
    assert [spec.name for spec in rig.model.requests[1].tools] == ["subagents", "look"]  # nothing that delegates
    agent = await child.agent()
    assert (agent.model, agent.approval, agent.title) == ("test/model", "all", "reader")
    sessions = [request.session_id for request in rig.model.requests]
    assert (sessions[0] == sessions[3], sessions[1] == sessions[2], sessions[0] == sessions[1]) == (True, True, False)
    assert (await rig.harness.usage()).models["test/model"] == Usage(input_tokens=400, output_tokens=40)
    assert [chat.conversation_id for chat in await rig.harness.chats()] == [chat.id]  # a subagent is no chat


@pytest.mark.rule("TO-7", "FB-27", "FB-32", "CASE-A7")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
@pytest.mark.parametrize("end", ["kill", "close"])
async def test_subagent_goes_on_where_it_was_after_the_process_ended(tmp_path: Path, backend: Backend, end: str) -> None:
    rig = rig_with(tmp_path, backend)
    chat = await rig.start(call(("subagent", WORK)), call(("look", {})), (TextDelta("half"), Hold()))
    placed = await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 3)
    await rig.settle()
    await (rig.kill() if end == "kill" else rig.close())

    harness = await rig.open(say("all read"), say("thanks"))
    await harness.resume()
    again = await harness.conversation(chat.id)
    await rig.run_out(again)

    assert len(await rig.tasks("pi.subagent")) == 1
    assert (await results(rig, chat.id))[0].text == "all read"
    submissions = (await harness.session.storage.submissions()).items
    assert [submission.request_id for submission in submissions] == [None, f"subagent:{(await rig.tasks('pi.tool'))[0].id}"]
    assert isinstance((await again.settled(placed.id)).state, Done)
    await rig.close()


@pytest.mark.rule("TU-8", "TK-15", "FB-27", "CASE-E4")
async def test_stopping_only_the_subagent_gives_its_call_what_it_had_said_and_the_run_goes_on(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    chat = await rig.start(call(("subagent", WORK)), (TextDelta("I found two"), Hold()), say("then without it"))
    placed = await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 2)
    await rig.settle()
    (slot,) = (await rig.live(chat.id)).tools
    child = await child_of(rig)
    assert (slot.status, slot.conversation) == ("running", child.id)

    assert slot.subagent is not None
    assert await chat.abort_task(slot.subagent)
    await rig.run_out(chat)

    (result,) = await results(rig, chat.id)
    assert result.is_error
    assert result.text == "I found two\n<harness>\n[error] Tool subagent was stopped by the user and may have partially run\n</harness>"
    assert isinstance((await chat.settled(placed.id)).state, Done)
    assert not (await child.view()).is_busy
    assert not await chat.abort_task(slot.subagent)


@pytest.mark.rule("TU-8", "TK-15", "TK-17", "CASE-A7")
async def test_stopping_the_run_stops_the_subagent_first_and_keeps_what_it_had_said(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    chat = await rig.start(call(("subagent", WORK)), (TextDelta("I found two"), Hold()))
    await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 2)
    await rig.settle()

    await chat.abort()

    ended = {task.kind: task for task in await rig.tasks()}
    assert [type(task.outcome) for task in await rig.tasks()] == [Aborted] * 4
    assert ended["pi.subagent"].outcome == Aborted(value={"conversationId": (await child_of(rig)).id, "text": "I found two"})
    assert (await results(rig, chat.id))[0].text.startswith("I found two\n")
    child_end, subagent_end, tool_end = (
        next(n for n, batch in enumerate(rig.storage.batches) for task in batch.tasks if task.id == task_id and not task.is_live)
        for task_id in ((await rig.tasks("pi.generation"))[1].id, ended["pi.subagent"].id, ended["pi.tool"].id)
    )
    assert child_end < subagent_end < tool_end


@pytest.mark.rule("CASE-A7", "GE-6")
async def test_subagent_whose_model_fails_gives_an_error_result_and_the_run_goes_on(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    chat = await rig.start(call(("subagent", WORK)), fail("auth", retryable=False, message="bad key"), say("I see"))
    placed = await chat.submit("go")
    await rig.run_out(chat)

    (result,) = await results(rig, chat.id)
    assert result.text == "<harness>\n[error] Tool subagent failed: bad key\n</harness>"
    assert isinstance((await chat.settled(placed.id)).state, Done)


@pytest.mark.rule("TO-7", "FB-27", "CASE-A7")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_four_subagents_that_a_kill_cut_off_all_go_on_where_they_were(tmp_path: Path, backend: Backend) -> None:
    rig = rig_with(tmp_path, backend)
    names = ("one", "two", "three", "four")
    for name in names:
        rig.model.when(f"the work of {name}", call(("look", {})), (TextDelta(f"half of {name}"), Hold()))
    work = [("subagent", {"name": name, "prompt": f"the work of {name}", "background": name in ("three", "four")}) for name in names]
    chat = await rig.start(call(*work))
    placed = await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 9)
    await rig.settle()
    await rig.kill()

    for name in names:
        rig.model.when(f"the work of {name}", say(f"done: {name}"))
    rig.model.when("go", *[say("noted")] * 3)
    harness = await rig.open()
    await harness.resume()
    again = await harness.conversation(chat.id)
    await rig.run_out(again)

    assert {result.text for result in await results(rig, chat.id)} >= {"done: one", "done: two"}
    heard = "".join(text for role, text in texts(rig.model.requests[-1]) if role == "user")
    assert [heard.count(f"[The background subagent {name} has finished.]\n\ndone: {name}") for name in ("three", "four")] == [1, 1]
    assert isinstance((await again.settled(placed.id)).state, Done)
    for task in await rig.tasks("pi.subagent"):
        (child,) = (await harness.session.storage.conversations(owner=task.id)).items
        assert [result.tool_name for result in await results(rig, child.id)] == ["look"]  # what was done before the kill is not done again
    await rig.close()


@pytest.mark.rule("FB-27", "TK-16", "SU-2")
@pytest.mark.parametrize("killed", [False, True])
async def test_background_subagent_reports_exactly_once(tmp_path: Path, killed: bool) -> None:
    rig = rig_with(tmp_path)
    hold = Hold()
    rig.model.when("read it all", (hold, *say("all read")))
    chat = await rig.start(call(("subagent", {**WORK, "background": True})), say("started it"), say("noted"))
    await chat.submit("go")
    await rig.run_out(chat)
    assert (await results(rig, chat.id))[0].text.startswith("Subagent reader was started in the background as number ")
    await rig.until(lambda: len(rig.model.requests) == 3)
    if killed:
        await rig.kill()
        rig.model.when("read it all", say("all read"))
        harness = await rig.open()
        await harness.resume()
        chat = await harness.conversation(chat.id)
    hold.event.set()
    await rig.until(lambda: len(rig.model.requests) == (5 if killed else 4), jump=True)
    await rig.run_out(chat)

    users = [text for role, text in texts(rig.model.requests[-1]) if role == "user"]
    assert users == ["go", "[The background subagent reader has finished.]\n\nall read"]
    answers = [entry.message.text for entry in await rig.entries(chat.id) if isinstance(entry.message, AssistantMessage)]
    assert answers[-1] == "noted"


@pytest.mark.rule("FB-27", "TK-16")
async def test_stopping_the_run_lets_a_background_subagent_go_on(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    hold, busy = Hold(), Hold()
    rig.model.when("read it all", (hold, *say("all read")))
    chat = await rig.start(call(("subagent", {**WORK, "background": True})), (busy,), say("noted"))
    await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 3)

    await chat.abort()
    hold.event.set()
    await rig.until(lambda: len(rig.model.requests) == 4)
    await rig.run_out(chat)

    assert texts(rig.model.requests[3])[-1][1].endswith("all read")


@pytest.mark.rule("FB-27")
async def test_background_subagent_can_be_listed_told_waited_for_and_stopped(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    hold, ready = Hold(), Hold()
    rig.model.when("read it all", (hold, *call(("look", {}))), say("hurried"))
    chat = await rig.start(call(("subagent", {**WORK, "background": True})), (ready, *say("")), agent=Agent(model="test/model", approval="all"))
    await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 3)
    number = (await rig.tasks("pi.subagent"))[0].id
    await chat.abort()
    care = (("subagents", {"action": "list"}), ("subagents", {"action": "message", "subagent": number, "text": "hurry"}))
    rig.model.then(call(*care), call(("subagent_wait", {"subagent": number})), say("joined"), say("reported"))
    await chat.submit("look after it")
    await rig.until(lambda: len(rig.model.requests) == 5)
    hold.event.set()
    await rig.run_out(chat)

    listed, told, joined = [result.text for result in (await results(rig, chat.id))[1:4]]
    assert listed == f"{number} reader: runs in the background; last said: nothing yet"
    assert told == "It was told."
    assert joined == "hurried"
    assert ("user", "hurry") in [texts(request)[-1] for request in rig.model.requests]


@pytest.mark.rule("FB-27", "TK-15")
async def test_background_subagent_can_be_stopped_by_the_agent(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    rig.model.when("read it all", (TextDelta("half"), Hold()))
    chat = await rig.start(call(("subagent", {**WORK, "background": True})), say("started"))
    await chat.submit("go")
    await rig.run_out(chat)
    number = (await rig.tasks("pi.subagent"))[0].id
    rig.model.then(call(("subagents", {"action": "stop", "subagent": number})), call(("subagents", {"action": "list"})), say("ok"))
    await chat.submit("stop it")
    await rig.run_out(chat)

    stopped, listed = [result.text for result in (await results(rig, chat.id))[1:]]
    assert stopped == f"Subagent {number} is being stopped."
    assert listed == f"{number} reader: has ended in the background; last said: half"


@pytest.mark.rule("GE-8")
async def test_unknown_subagents_are_said_to_be_unknown(tmp_path: Path) -> None:
    rig = rig_with(tmp_path)
    calls = (("subagents", {"action": "stop", "subagent": 99}), ("subagents", {"action": "message"}), ("subagent_wait", {"subagent": 99}))
    chat = await rig.start(*(call(each) for each in calls), say("ok"))
    await chat.submit("go")
    await rig.run_out(chat)

    assert [result.text for result in await results(rig, chat.id)] == [
        "Subagent 99 does not run.",
        "The action message needs the number of a subagent.",
        "<harness>\n[error] There is no subagent number 99 here.\n</harness>",
    ]


@pytest.mark.rule("SA-14", "TU-19")
@pytest.mark.parametrize(
    ("above", "then", "is_run"), [("all", "all", True), ("all", "plan", False), ("all", "ask", None), ("ask", "all", None), ("plan", "all", False)]
)
async def test_a_subagent_may_do_no_more_than_the_chat_above_it_now(tmp_path: Path, above: ApprovalMode, then: ApprovalMode, is_run: bool | None) -> None:
    """`above` is the mode when it was started, `then` the one when it calls; None: a person is asked."""
    hold = Hold()
    rig = Rig(tmp_path, tools=(*subagent_tools(), replace(LOOK, name="act", access="command")))
    rig.model.when("read it all", (hold, *call(("act", {}))), say("all read"))
    chat = await rig.start(call(("subagent", WORK)), say("thanks"), agent=Agent(model="test/model", approval=above))
    await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 2)
    await chat.set_agent(approval=then)
    hold.event.set()
    await rig.settle()
    child = await child_of(rig)
    if is_run is None:
        (slot,) = (await rig.live(child.id)).tools
        assert slot.status == "asking"
    else:
        (result,) = await results(rig, child.id)
        assert (result.text == "looked") is is_run


@pytest.mark.rule("SA-14", "TO-6")
@pytest.mark.parametrize(("above", "is_run"), [(None, True), (("subagent", "look", "more"), False)])
async def test_a_subagent_that_a_result_gives_more_tools_has_only_those_that_the_chat_above_has_and_none_that_starts_others(
    tmp_path: Path, above: tuple[str, ...] | None, is_run: bool
) -> None:
    async def more(_arguments: Nothing, _context: ToolContext) -> ToolResult:
        return ToolResult(content=(Text(text="more"),), add_tools=("act", "subagent"))

    rig = Rig(tmp_path, tools=(*subagent_tools(), LOOK, replace(LOOK, name="act"), replace(LOOK, name="more", execute=more)))
    rig.model.when("read it all", call(("more", {})), call(("act", {}), ("subagent", WORK), ids=["c2", "c3"]), say("all read"))
    chat = await rig.start(call(("subagent", {**WORK, "tools": ["more"]})), say("thanks"), agent=Agent(model="test/model", approval="all", tools=above))
    await chat.submit("go")
    await rig.run_out(chat)
    child = await child_of(rig)
    _, acted, delegated = sorted(await results(rig, child.id), key=lambda result: result.tool_call_id)
    assert (acted.text == "looked") is is_run
    assert "There is no tool 'subagent'" in delegated.text
    offered = [tool.name for tool in rig.model.requests[2].tools]
    assert offered == (["act", "more"] if is_run else ["more"])
    await rig.close()


@pytest.mark.rule("SA-14")
async def test_a_tool_that_is_taken_from_the_chat_above_is_taken_from_its_subagent(tmp_path: Path) -> None:
    hold, rig = Hold(), rig_with(tmp_path)
    rig.model.when("read it all", (hold, *call(("look", {}))), say("all read"))
    chat = await rig.start(call(("subagent", WORK)), say("thanks"))
    await chat.submit("go")
    await rig.settle()
    await chat.set_agent(tools=("subagent",))
    hold.event.set()
    await rig.run_out(chat)
    (result,) = await results(rig, (await child_of(rig)).id)
    assert "There is no tool 'look'" in result.text
    await rig.close()


async def steered_at_its_end(rig: Rig, *, background: bool) -> Conversation:
    """A chat whose subagent was told something while its answer came in."""
    hold = Hold()
    rig.model.when("read it all", (TextDelta("all read"), hold, *say("")), say("and the rest"))
    chat = await rig.start(call(("subagent", {**WORK, "background": background})), *((say("started"),) if background else ()), say("thanks"))
    await chat.submit("go")
    await rig.settle()
    rig.clock.advance(1_000)
    await rig.settle()
    child = await child_of(rig)
    told = await child.submit("the rest too", mode="steer")
    hold.event.set()
    await rig.until(lambda: not rig.harness.task_graph(), jump=True)
    assert isinstance((await child.settled(told.id)).state, Done)
    return chat


@pytest.mark.rule("FB-27", "TK-14")
@pytest.mark.parametrize("background", [False, True])
async def test_a_subagent_that_is_told_something_while_it_answers_reports_what_it_says_to_that(tmp_path: Path, background: bool) -> None:
    rig = rig_with(tmp_path)
    chat = await steered_at_its_end(rig, background=background)
    if background:
        assert texts(rig.model.requests[-1])[-1] == ("user", "[The background subagent reader has finished.]\n\nand the rest")
    else:
        assert [result.text for result in await results(rig, chat.id)] == ["and the rest"]
    (task,) = await rig.tasks("pi.subagent")
    assert isinstance(task.outcome, Completed)
    assert isinstance(task.outcome.value, dict)
    assert task.outcome.value["text"] == "and the rest"
    assert await faults(rig.storage.inner) == []
    await rig.close()


@pytest.mark.rule("FB-27", "PR-10")
@pytest.mark.parametrize("end", ["fails", "stopped"])
async def test_what_a_subagent_was_told_and_did_not_hear_comes_to_an_end_with_it(tmp_path: Path, end: str) -> None:
    rig = rig_with(tmp_path)
    hold = Hold()
    rig.model.when("read it all", (hold, *fail("refused", retryable=False)))
    chat = await rig.start(call(("subagent", WORK)), say("thanks"))
    await chat.submit("go")
    await rig.settle()
    child = await child_of(rig)
    told, noted = await child.submit("the rest too", mode="steer"), await child.submit("a note", mode="write")
    if end == "stopped":
        await chat.abort()
    hold.event.set()
    await rig.run_out(chat)
    for one in (told, noted):
        assert (await child.settled(one.id)).state == Unanswered(problem=Problem(reason="withdrawn"))
    assert await faults(rig.storage.inner) == []
    await rig.close()


@pytest.mark.rule("FB-27", "TK-12", "TK-15")
@pytest.mark.parametrize("end", ["stopped", "restart limit"])
async def test_a_background_subagent_that_is_ended_from_outside_is_told_of_once_without_asking_the_model(tmp_path: Path, end: str) -> None:
    rig, answering = rig_with(tmp_path, "sqlite"), Hold()
    rig.settings.restart_limit = 1
    rig.model.when("read it all", (TextDelta("I found two"), answering, Finished("stop")))
    chat = await rig.start(call(("subagent", {**WORK, "background": True})), say("started"))
    await chat.submit("go")
    await rig.run_out(chat)
    rig.clock.advance(1_000)
    await rig.settle()
    (subagent,) = await rig.tasks("pi.subagent")
    if end == "stopped":
        assert await chat.abort_task(subagent.id)
    else:
        answering.event.set()
        await rig.until(lambda: any(node.task_id == subagent.id and node.status == "running" for node in rig.harness.task_graph()))
        await rig.kill()
        await (await rig.open()).resume()
        await rig.until(lambda: not rig.harness.task_graph())
    assert len(rig.model.requests) == 3
    (notice,) = [entry for entry in await rig.entries(chat.id) if entry.kind == NOTICE]
    assert notice.data is not None
    assert (notice.data["taskId"], notice.data["isError"]) == (subagent.id, True)
    why = "it was stopped" if end == "stopped" else "it was cut off 1 times in a row"
    rig.model.then(say("I see."))
    chat = await rig.harness.conversation(chat.id)
    await chat.submit("and?")
    await rig.run_out(chat)
    assert texts(rig.model.requests[-1])[-1][1] == f"[The background subagent reader ended without an answer ({why}).]\n\nI found twoand?"
    assert await faults(rig.storage.inner) == []
    await rig.close()


def telling(gate: asyncio.Event, *, told: asyncio.Event | None = None) -> tuple[Extension, ...]:
    """A tool that tells the first subagent something once the gate is open; with `told` it sets that and goes on for ever."""

    async def tell(_arguments: Nothing, context: ToolContext) -> ToolResult:
        (info, *_) = await context.subagents.list()
        await gate.wait()
        is_heard = await context.subagents.message(info.task_id, "hurry")
        if told is not None and not told.is_set():
            told.set()
            await asyncio.Event().wait()
        return ToolResult(content=(Text(text=str(is_heard)),))

    return (Extension(name="more", tools=(Tool(name="tell", description="", arguments=Nothing, execute=tell, title=lambda _: "tell", replay="safe"),)),)


@pytest.mark.rule("FB-27", "TK-14")
async def test_a_subagent_that_ends_while_it_is_told_something_begins_no_run_that_nobody_hears_of(tmp_path: Path) -> None:
    rig, gate, answering = rig_with(tmp_path), asyncio.Event(), Hold()
    rig.extensions = telling(gate)
    rig.model.when("read it all", (answering, *say("all read")))
    chat = await rig.start(call(("subagent", {**WORK, "background": True})), call(("tell", {})), say("so"), say("reported"))
    await chat.submit("go")
    await rig.settle()
    (subagent,) = await rig.tasks("pi.subagent")
    answering.event.set()
    await rig.until(lambda: any(node.task_id == subagent.id and node.status == "running" for node in rig.harness.task_graph()))
    rig.storage.hold_commits()
    await rig.settle()
    gate.set()
    await rig.settle()
    rig.storage.release_commits()
    await rig.run_out(chat)
    assert [result.text for result in await results(rig, chat.id)][-1] == "False"
    assert len([task for task in await rig.tasks("pi.generation") if task.conversation_id != chat.id]) == 1
    assert await faults(rig.storage.inner) == []
    await rig.close()


@pytest.mark.rule("FB-27", "TO-2")
async def test_a_call_that_tells_a_subagent_something_and_runs_again_after_a_kill_tells_it_once(tmp_path: Path) -> None:
    rig, gate, told = rig_with(tmp_path), asyncio.Event(), asyncio.Event()
    rig.extensions = telling(gate, told=told)
    rig.model.when("read it all", (Hold(),))
    chat = await rig.start(call(("subagent", {**WORK, "background": True})), call(("tell", {})))
    gate.set()
    await chat.submit("go")
    await rig.until(told.is_set)
    await rig.kill()
    rig.model.then(say("so"))
    await (await rig.open()).resume()
    await rig.settle()
    assert [result.text for result in await results(rig, chat.id)][-1] == "True"
    child = await child_of(rig)
    submissions = (await rig.harness.session.storage.submissions(conversation_id=child.id, limit=100)).items
    assert [one.content for one in submissions] == [(Text(text="read it all"),), (Text(text="hurry"),)]
    await rig.close()


@pytest.mark.rule("TK-14", "TK-15")
async def test_a_run_that_begins_in_the_chat_of_a_subagent_after_an_opening_is_below_it(tmp_path: Path) -> None:
    rig, answering = rig_with(tmp_path), Hold()
    rig.model.when("read it all", (answering, *say("all read")), say("and the rest"))
    chat = await rig.start(call(("subagent", WORK)), say("thanks"))
    await chat.submit("go")
    await rig.settle()
    (subagent,), child = await rig.tasks("pi.subagent"), await child_of(rig)
    answering.event.set()
    await rig.until(lambda: not [node for node in rig.harness.task_graph() if node.conversation_id == child.id])
    await rig.kill()
    assert [task.is_live for task in [(await rig.open(), await rig.tasks("pi.subagent"))[1][0]]] == [True]
    child, chat = await rig.harness.conversation(child.id), await rig.harness.conversation(chat.id)
    await child.submit("the rest too")
    below = [node.owner for node in rig.harness.task_graph() if node.conversation_id == child.id]
    assert below == [subagent.id]
    await rig.run_out(chat)
    assert [result.text for result in await results(rig, chat.id)] == ["and the rest"]
    await rig.close()
