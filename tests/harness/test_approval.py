"""Questions to a person are durable: rules TO-3 and TU-19."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import pytest

from pi_durable_tui.errors import NotFound
from pi_durable_tui.harness.live import Agent, ToolSlot
from pi_durable_tui.harness.ports import Access, Tool, ToolContext, ToolResult
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import Text, ToolResultMessage
from pi_durable_tui.records.modes import ApprovalMode
from pi_durable_tui.records.task import Completed
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import call, say


class Command(msgspec.Struct):
    """What to run."""

    command: str


def shell(ran: list[str], access: Access = "command") -> Tool:
    async def execute(arguments: Command, _context: ToolContext) -> ToolResult:
        ran.append(arguments.command)
        return ToolResult(content=(Text(text="ran"),))

    async def preview(arguments: Command, _context: ToolContext) -> JsonObject:
        return {"diff": f"+{arguments.command}"}

    return Tool(name="shell", description="", arguments=Command, execute=execute, title=lambda args: f"$ {args.command}", access=access, preview=preview)


async def asked(rig: Rig, approval: ApprovalMode = "ask") -> tuple[int, ToolSlot]:
    """A chat in which the tool waits for an answer; with its slot."""
    chat = await rig.start(call(("shell", {"command": "make"})), agent=Agent(model="test/model", approval=approval))
    await chat.submit("build")
    await rig.settle()
    (slot,) = (await rig.live(chat.id)).tools
    return chat.id, slot


@pytest.mark.rule("TU-19", "TO-3")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_question_is_stored_survives_a_kill_and_its_answer_is_stored_with_who_and_when(tmp_path: Path, backend: Backend) -> None:
    ran: list[str] = []
    rig = Rig(tmp_path, backend, tools=(shell(ran),))
    chat_id, before = await asked(rig)
    assert (before.status, before.title, before.question_details) == ("asking", "$ make", {"diff": "+make"})
    await rig.kill()

    harness = await rig.open(say("built"))
    await harness.resume()
    await rig.settle()
    (slot,) = (await rig.live(chat_id)).tools
    assert slot == before  # the same question, no second one
    assert len(await rig.tasks("pi.question")) == 1
    assert ran == []

    chat = await harness.conversation(chat_id)
    assert slot.question is not None
    at_ms = rig.clock.now_ms()
    await chat.answer(slot.question, "allow", by="ann")
    await rig.run_out(chat)

    (question,) = await rig.tasks("pi.question")
    assert question.outcome == Completed(value={"decision": "allow", "by": "ann", "atMs": at_ms})
    assert ran == ["make"]
    result = next(entry for entry in await rig.entries(chat_id) if entry.kind == "pi.tool-result")
    assert (result.data or {})["approvedBy"] == "ann"
    await rig.close()


@pytest.mark.rule("TU-19", "TO-3")
@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_nobody_is_asked_again_when_the_program_dies_right_after_an_answer(tmp_path: Path, decision: Literal["allow", "deny"]) -> None:
    ran: list[str] = []
    rig = Rig(tmp_path, "sqlite", tools=(shell(ran),))
    chat_id, slot = await asked(rig)
    assert slot.question is not None
    await (await rig.harness.conversation(chat_id)).answer(slot.question, decision, by="ann")
    await rig.kill()
    assert ran == []  # the answer is stored, and nothing has followed from it yet

    harness = await rig.open(say("built"))
    (seen,) = (await rig.live(chat_id)).tools
    assert (seen.status, seen.question) == ("pending", None)  # so does a second terminal that only looks
    await harness.resume()
    await rig.run_out(await harness.conversation(chat_id))
    assert ran == (["make"] if decision == "allow" else [])
    assert len(await rig.tasks("pi.question")) == 1
    await rig.close()


@pytest.mark.rule("TU-19")
async def test_denied_call_is_not_run_and_the_model_hears_why(tmp_path: Path) -> None:
    ran: list[str] = []
    rig = Rig(tmp_path, tools=(shell(ran),))
    chat_id, slot = await asked(rig)
    chat = await rig.harness.conversation(chat_id)
    rig.model.then(say("fine"))

    assert slot.question is not None
    await chat.answer(slot.question, "deny", by="ann", note="not on Fridays")
    await rig.run_out(chat)
    with pytest.raises(NotFound):
        await chat.answer(slot.question, "allow", by="ann")

    result = next(entry.message for entry in await rig.entries(chat_id) if isinstance(entry.message, ToolResultMessage))
    assert ran == []
    assert result.text == "<harness>\n[error] The call was not run: ann did not allow it (not on Fridays).\n</harness>"


@pytest.mark.rule("TU-19", "TK-15", "TO-3")
async def test_stopping_only_the_question_leaves_the_call_undone_and_says_so(tmp_path: Path) -> None:
    ran: list[str] = []
    rig = Rig(tmp_path, tools=(shell(ran),))
    chat_id, slot = await asked(rig)
    chat = await rig.harness.conversation(chat_id)
    rig.model.then(say("fine"))

    assert slot.question is not None
    assert await chat.abort_task(slot.question)
    await rig.run_out(chat)

    result = next(entry.message for entry in await rig.entries(chat_id) if isinstance(entry.message, ToolResultMessage))
    assert ran == []
    assert result.text == "<harness>\n[error] The call was not run: the question about it was stopped before anybody answered it.\n</harness>"
    await rig.close()


@pytest.mark.rule("TU-19", "TK-15")
async def test_stopping_while_a_question_is_open_ends_the_question_unanswered(tmp_path: Path) -> None:
    ran: list[str] = []
    rig = Rig(tmp_path, tools=(shell(ran),))
    chat_id, slot = await asked(rig)
    chat = await rig.harness.conversation(chat_id)

    await chat.abort()

    assert slot.question is not None
    with pytest.raises(NotFound):
        await chat.answer(slot.question, "allow", by="ann")
    result = next(entry.message for entry in await rig.entries(chat_id) if isinstance(entry.message, ToolResultMessage))
    assert result.text == "<harness>\n[error] Tool shell was stopped by the user before it started\n</harness>"
    assert ran == []


@pytest.mark.rule("TU-19")
@pytest.mark.parametrize(
    ("mode", "access", "expected"),
    [
        ("ask", "read", "runs"),
        ("ask", "edit", "asks"),
        ("ask", "command", "asks"),
        ("edits", "edit", "runs"),
        ("edits", "command", "asks"),
        ("all", "command", "runs"),
        ("plan", "read", "runs"),
        ("plan", "edit", "blocked"),
        ("plan", "command", "blocked"),
    ],
)
async def test_approval_modes(tmp_path: Path, mode: ApprovalMode, access: Access, expected: str) -> None:
    ran: list[str] = []
    rig = Rig(tmp_path, tools=(shell(ran, access),))
    chat = await rig.start(call(("shell", {"command": "x"})), say("ok"), agent=Agent(model="test/model", approval=mode))
    await chat.submit("go")
    await rig.settle()

    slots = (await rig.live(chat.id)).tools
    found = "asks" if slots and slots[0].status == "asking" else "runs" if ran else "blocked"
    assert found == expected
