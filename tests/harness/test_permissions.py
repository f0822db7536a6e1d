"""Standing permissions: made with an answer, kept with the session, revoked (rules TU-19, SA-13, SA-14)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pi_durable_tui.errors import BadRequest, NotFound
from pi_durable_tui.harness.approval import ApprovalRequest, Granted, Rule, Verdict, rule_text
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.extensions.hooks import Hooks
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.live import Agent, ToolSlot
from pi_durable_tui.harness.ports import Effects, Tool, ToolContext, ToolResult
from pi_durable_tui.records.messages import Text, ToolResultMessage
from pi_durable_tui.records.task import Completed
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import call, say

MAKE = Rule(kind="command", text="make")


class Command(msgspec.Struct):
    """What to run."""

    command: str


def shell(ran: list[str], effects: Callable[[Any, ToolContext], Awaitable[Effects]] | None = None) -> Tool:
    async def execute(arguments: Command, _context: ToolContext) -> ToolResult:
        ran.append(arguments.command)
        return ToolResult(content=(Text(text="ran"),))

    return Tool(name="shell", description="", arguments=Command, execute=execute, title=lambda args: args.command, access="command", effects=effects)


def first_word(request: ApprovalRequest) -> Verdict:
    """An approver for these tests: a permission for the first word covers a call."""
    if request.access == "read":
        return Verdict(decision="allow")
    rule = Rule(kind="command", text=str(request.arguments["command"]).split(" ", maxsplit=1)[0])
    if replace_decision(rule, "deny") in request.rules:
        return Verdict(decision="deny", reason="forbidden")
    return Verdict(decision="allow") if rule in request.rules else Verdict(decision="ask", reason="not yet", rule=None if rule.text == "rm" else rule)


def replace_decision(rule: Rule, decision) -> Rule:
    return msgspec.structs.replace(rule, decision=decision)


ASK = Agent(model="test/model", approval="ask")


async def question(rig: Rig, chat: Conversation) -> ToolSlot:
    await rig.settle()
    (slot,) = (await rig.live(chat.id)).tools
    assert slot.question is not None
    return slot


@pytest.mark.rule("TU-19", "SA-13")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_answer_always_makes_the_rule_that_was_shown_and_the_next_call_is_not_asked_about(tmp_path: Path, backend: Backend) -> None:
    ran: list[str] = []
    rig = Rig(tmp_path, backend, tools=(shell(ran),), approver=first_word)
    chat = await rig.start(call(("shell", {"command": "make a"})), agent=ASK)
    await chat.submit("go")
    slot = await question(rig, chat)
    assert slot.question_details == {"reason": "not yet", "rule": "allow commands that begin with: make"}

    at_ms = rig.clock.now_ms()
    rig.model.then(call(("shell", {"command": "make b"})), say("ok"))
    await chat.answer(slot.question or 0, "always", by="ann")
    await rig.run_out(chat)
    assert ran == ["make a", "make b"]
    (granted,) = await rig.harness.permissions.list()
    assert granted == Granted(id=granted.id, rule=MAKE, by="ann", at_ms=at_ms)
    (asked,) = await rig.tasks("pi.question")
    assert asked.outcome == Completed(value={"decision": "always", "by": "ann", "atMs": at_ms})

    await rig.kill()
    harness = await rig.open(call(("shell", {"command": "make c"})), say("ok"))
    other = await harness.create_conversation(ASK)
    await other.submit("in another chat of the session, after a kill")
    await rig.run_out(other)
    assert ran[-1] == "make c"
    await rig.close()


@pytest.mark.rule("TU-19")
async def test_permissions_are_listed_made_once_and_revoked(tmp_path: Path) -> None:
    rig = Rig(tmp_path, approver=first_word)
    permissions = (await rig.open()).permissions
    one = await permissions.grant(MAKE, by="ann")
    again = await permissions.grant(MAKE, by="bob")
    two = await permissions.grant(Rule(kind="path", text="/etc/", decision="deny"), by="ann")
    assert again == one
    assert await permissions.list() == (one, two)

    await permissions.revoke(one.id)
    assert await permissions.list() == (two,)
    with pytest.raises(NotFound):
        await permissions.revoke(one.id)


@pytest.mark.rule("TU-19")
async def test_always_is_refused_where_no_rule_is_offered_and_the_question_stays(tmp_path: Path) -> None:
    ran: list[str] = []
    rig = Rig(tmp_path, tools=(shell(ran),), approver=first_word)
    chat = await rig.start(call(("shell", {"command": "rm a"})), agent=ASK)
    await chat.submit("go")
    slot = await question(rig, chat)
    with pytest.raises(BadRequest):
        await chat.answer(slot.question or 0, "always", by="ann")
    assert (await question(rig, chat), await rig.harness.permissions.list(), ran) == (slot, (), [])


@pytest.mark.rule("SA-13")
async def test_a_prohibition_is_told_to_the_model(tmp_path: Path) -> None:
    ran: list[str] = []
    rig = Rig(tmp_path, tools=(shell(ran),), approver=first_word)
    chat = await rig.start(call(("shell", {"command": "make"})), say("ok"), agent=ASK)
    await rig.harness.permissions.grant(replace_decision(MAKE, "deny"), by="ann")
    await chat.submit("go")
    await rig.run_out(chat)
    result = next(entry.message for entry in await rig.entries(chat.id) if isinstance(entry.message, ToolResultMessage))
    assert (ran, result.text) == ([], "<harness>\n[error] forbidden\n</harness>")


@pytest.mark.rule("SA-13", "TU-19")
async def test_what_runs_is_what_was_shown_whatever_has_changed_since(tmp_path: Path) -> None:
    ran: list[str] = []
    hooked: list[str] = []

    async def before(called: Any) -> dict[str, Any]:
        hooked.append(called.arguments["command"])
        return {"command": f"make {len(hooked)}"}

    rig = Rig(tmp_path, "sqlite", tools=(shell(ran),), approver=first_word, extensions=(Extension(name="h", hooks=Hooks(before_tool=before)),))
    chat = await rig.start(call(("shell", {"command": "x"})), agent=ASK)
    await chat.submit("go")
    shown = (await question(rig, chat)).arguments
    await rig.kill()

    harness = await rig.open(say("ok"))
    await harness.resume()
    chat = await harness.conversation(chat.id)
    slot = await question(rig, chat)
    await chat.answer(slot.question or 0, "allow", by="ann")
    await rig.run_out(chat)
    result = next(entry for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result")
    assert shown == {"command": "make 1"} == slot.arguments == (result.data or {})["arguments"]
    assert (ran, hooked) == (["make 1"], ["x"])
    await rig.close()


@pytest.mark.rule("SA-12")
async def test_the_approver_is_told_what_a_call_would_touch_and_a_tool_that_fails_to_tell_is_none(tmp_path: Path) -> None:
    seen: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Verdict:
        seen.append(request)
        return Verdict(decision="allow")

    async def effects(arguments: Command, _context: ToolContext) -> Effects:
        if arguments.command == "break":
            raise OSError("gone")
        return Effects(root="/w", directory="/w/sub", command=arguments.command)

    rig = Rig(tmp_path, tools=(shell([], effects),), approver=approve)
    chat = await rig.start(call(("shell", {"command": "ls"})), call(("shell", {"command": "break"})), say("ok"), agent=ASK)
    await chat.submit("go")
    await rig.run_out(chat)
    expected = ApprovalRequest(
        agent=ASK,
        tool="shell",
        access="command",
        arguments={"command": "ls"},
        effects=Effects(root="/w", directory="/w/sub", command="ls"),
        rules=(),
    )
    assert seen == [expected, replace(expected, arguments={"command": "break"}, effects=None)]
    assert [(report.kind, report.reason, report.message) for report in rig.reports] == [("hook_failed", "effects", "OSError: gone")]


@pytest.mark.rule("SA-14")
async def test_a_subagent_has_the_mode_and_the_permissions_of_its_parent_and_no_more(tmp_path: Path) -> None:
    seen: list[tuple[str, str, tuple[Rule, ...]]] = []

    def approve(request: ApprovalRequest) -> Verdict:
        seen.append((request.tool, request.agent.approval, request.rules))
        return first_word(request)

    ran: list[str] = []
    rig = Rig(tmp_path, tools=(shell(ran), *subagent_tools()), approver=approve)
    work = {"name": "helper", "prompt": "build", "tools": ["shell", "nuke"]}
    chat = await rig.start(call(("subagent", work)), call(("shell", {"command": "make x"})), say("built"), say("ok"), agent=ASK)
    await rig.harness.permissions.grant(MAKE, by="ann")
    await chat.submit("go")
    await rig.run_out(chat)
    assert seen == [("subagent", "ask", (MAKE,)), ("shell", "ask", (MAKE,))]
    assert ran == ["make x"]
    assert [spec.name for spec in rig.model.requests[1].tools] == ["shell"]


def test_rules_are_told_in_words():
    assert rule_text(MAKE) == "allow commands that begin with: make"
    assert rule_text(Rule(kind="exact", text="a | b", decision="deny")) == "deny exactly this command: a | b"
    assert rule_text(Rule(kind="path", text="/etc/")) == "allow changes to files in /etc/"
    assert rule_text(Rule(kind="path", text="/etc/x", decision="ask")) == "ask changes to /etc/x"
    assert rule_text(Rule(kind="tool", text="deploy")) == "allow the tool deploy"
