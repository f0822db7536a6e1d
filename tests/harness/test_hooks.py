"""Extensions look at a run and change it, also while it runs: rules EX-1, EX-2, TO-6, and FB-37."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.harness.extensions.hooks import Blocked, HookedCall, HookedCompaction, Hooks
from pi_durable_tui.harness.extensions.registry import Extension, Registry
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import ModelRequest, Tool, ToolContext, ToolResult
from pi_durable_tui.harness.requests.context import GO_ON
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import AssistantMessage, Text, Usage
from pi_durable_tui.records.submission import Done, Unanswered
from pi_durable_tui.records.task import Failed, Problem
from tests.support.harness_rig import Rig
from tests.support.scripted_model import call, say, texts


class Word(msgspec.Struct):
    """Arguments of the test tool."""

    text: str = ""


def tool(name: str = "echo", result: ToolResult | None = None, **more: Any) -> Tool:
    async def execute(arguments: Word, _context: ToolContext) -> ToolResult:
        return result or ToolResult(content=(Text(text=f"{name} {arguments.text}"),))

    return Tool(name=name, description="", arguments=Word, execute=execute, title=lambda _: name, access="read", **more)


def hooked(**hooks: Any) -> tuple[Extension, ...]:
    return (Extension(name="hooks", hooks=Hooks(**hooks)),)


async def run(rig: Rig, *scripts: Any, agent: Agent | None = None) -> list[Entry]:
    """One input, run to its end; the transcript."""
    chat = await rig.start(*scripts, agent=agent)
    await chat.submit("go")
    await rig.run_out(chat)
    return await rig.entries(chat.id)


@pytest.mark.rule("FB-37", "EX-1")
async def test_hook_before_a_request_changes_what_is_sent_and_not_what_is_stored(tmp_path: Path) -> None:
    async def before(_conversation_id: int, request: ModelRequest) -> ModelRequest:
        return replace(request, options={"temperature": 0})

    rig = Rig(tmp_path, extensions=hooked(before_request=before))
    await run(rig, say("ok"))

    assert rig.model.requests[0].options == {"temperature": 0}


@pytest.mark.rule("FB-37")
async def test_hook_after_a_response_changes_what_is_stored(tmp_path: Path) -> None:
    async def after(_conversation_id: int, message: AssistantMessage) -> AssistantMessage:
        return msgspec.structs.replace(message, content=(Text(text=message.text.upper()),))

    rig = Rig(tmp_path, extensions=hooked(after_response=after))
    _user, answer = await run(rig, say("quiet"))

    assert isinstance(answer.message, AssistantMessage)
    assert answer.message.text == "QUIET"


@pytest.mark.rule("FB-37")
async def test_hook_at_the_final_answer_lets_the_run_go_on(tmp_path: Path) -> None:
    async def on_yield(_conversation_id: int, message: AssistantMessage) -> str | None:
        return "run the tests first" if "done" not in message.text else None

    rig = Rig(tmp_path, extensions=hooked(on_yield=on_yield))
    entries = await run(rig, say("finished"), say("now done"))

    assert [entry.kind for entry in entries] == ["pi.user", "pi.assistant", "pi.user", "pi.assistant"]
    assert texts(rig.model.requests[1])[-1] == ("user", "run the tests first")
    (submission,) = (await rig.harness.session.storage.submissions()).items
    assert isinstance(submission.state, Done)
    assert submission.state.answer_entry_id == entries[-1].id


@pytest.mark.rule("CX-1", "FB-37")
async def test_hook_at_the_final_answer_that_says_nothing_but_blanks_ends_the_run(tmp_path: Path) -> None:
    async def on_yield(_conversation_id: int, _message: AssistantMessage) -> str | None:
        return " \n"

    rig = Rig(tmp_path, extensions=hooked(on_yield=on_yield))
    assert [entry.kind for entry in await run(rig, say("finished"))] == ["pi.user", "pi.assistant"]


@pytest.mark.rule("FB-37")
async def test_hook_after_a_round_adds_a_text_for_the_model(tmp_path: Path) -> None:
    async def after(_conversation_id: int, results: Sequence[Entry]) -> str:
        return f"{len(results)} results"

    rig = Rig(tmp_path, tools=(tool(),), extensions=hooked(after_tools=after))
    await run(rig, call(("echo", {"text": "a"}), ("echo", {"text": "b"})), say("ok"))

    assert texts(rig.model.requests[1])[-1] == ("user", "2 results")


@pytest.mark.rule("FB-37", "TO-1")
async def test_hooks_around_a_tool_change_arguments_and_result(tmp_path: Path) -> None:
    async def before(called: HookedCall) -> JsonObject:
        return {"text": f"{called.arguments['text']}!"}

    async def after(_called: HookedCall, result: ToolResult) -> ToolResult:
        return replace(result, content=(*result.content, Text(text="checked")))

    rig = Rig(tmp_path, tools=(tool(),), extensions=hooked(before_tool=before, after_tool=after))
    await run(rig, call(("echo", {"text": "a"})), say("ok"))

    assert texts(rig.model.requests[1])[-1] == ("toolResult", "echo a!checked")


@pytest.mark.rule("FB-37", "TO-1", "TO-5")
@pytest.mark.parametrize("is_broken", [False, True])
async def test_hook_before_a_tool_blocks_it_by_saying_so_or_by_failing(tmp_path: Path, is_broken: bool) -> None:
    async def before(_called: HookedCall) -> Blocked:
        if is_broken:
            raise ValueError("no policy file")
        return Blocked("not this directory")

    rig = Rig(tmp_path, tools=(tool(),), extensions=hooked(before_tool=before))
    await run(rig, call(("echo", {})), say("ok"))

    (_, text) = texts(rig.model.requests[1])[-1]
    assert ("no policy file" if is_broken else "not this directory") in text
    assert [report.kind for report in rig.reports] == (["hook_failed"] if is_broken else [])


@pytest.mark.rule("FB-37")
async def test_failing_hook_is_reported_and_the_others_run(tmp_path: Path) -> None:
    async def broken(_conversation_id: int, _message: AssistantMessage) -> AssistantMessage:
        raise ValueError("broken")

    async def marks(_conversation_id: int, message: AssistantMessage) -> AssistantMessage:
        return msgspec.structs.replace(message, content=(Text(text="marked"),))

    first, second = (Extension(name=name, hooks=Hooks(after_response=hook)) for name, hook in (("a", broken), ("b", marks)))
    rig = Rig(tmp_path, extensions=(first, second))
    entries = await run(rig, say("plain"))

    assert isinstance(entries[-1].message, AssistantMessage)
    assert entries[-1].message.text == "marked"
    assert [(report.kind, report.reason, report.message) for report in rig.reports] == [("hook_failed", "after_response", "ValueError: broken")]


@pytest.mark.rule("FB-37", "TK-15")
async def test_stopped_call_is_cleaned_up_by_its_tool_and_the_hooks(tmp_path: Path) -> None:
    cleaned: list[str] = []

    async def hang(_arguments: Word, _context: ToolContext) -> ToolResult:
        await asyncio.Event().wait()
        return ToolResult()

    async def own(arguments: Word, _context: ToolContext) -> None:
        cleaned.append(f"tool {arguments.text}")

    async def hook(called: HookedCall) -> None:
        cleaned.append(f"hook {called.name}")

    rig = Rig(tmp_path, tools=(replace(tool("hang"), execute=hang, on_abort=own),), extensions=hooked(on_abort=hook))
    chat = await rig.start(call(("hang", {"text": "x"})))
    await chat.submit("go")
    await rig.settle()
    await chat.abort()

    assert cleaned == ["tool x", "hook hang"]


@pytest.mark.rule("FB-37", "CO-2")
async def test_hook_before_a_compaction_can_forbid_it(tmp_path: Path) -> None:
    async def before(compaction: HookedCompaction) -> Blocked:
        return Blocked(f"not now ({compaction.reason})")

    rig = Rig(tmp_path, extensions=hooked(before_compact=before))
    chat = await rig.start(say("a" * 400), say("b" * 400))
    for text in ("one " + "q" * 400, "two " + "q" * 400):
        await chat.submit(text)
        await rig.run_out(chat)

    await chat.compact()
    await rig.settle()

    (task,) = await rig.tasks("pi.compaction")
    assert task.outcome == Failed(problem=Problem(reason="blocked", message="not now (manual)"))


@pytest.mark.rule("TO-6")
async def test_result_can_end_the_run_without_another_request(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(tool("submit", ToolResult(content=(Text(text="handed in"),), terminate=True)),))
    entries = await run(rig, call(("submit", {})))

    (submission,) = (await rig.harness.session.storage.submissions()).items
    assert len(rig.model.requests) == 1
    assert isinstance(submission.state, Done)
    assert [entry.kind for entry in entries] == ["pi.user", "pi.assistant", "pi.tool-result"]


@pytest.mark.rule("TO-6", "FB-38", "GE-9", "FB-33")
async def test_result_can_hand_over_to_a_fresh_context(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(tool("handoff", ToolResult(content=(Text(text="ok"),), handoff="Go on with step 2.")),))
    entries = await run(rig, call(("handoff", {})), say("step 2 done"))

    assert texts(rig.model.requests[1]) == [("user", "Go on with step 2.")]
    assert [entry.kind for entry in entries] == ["pi.user", "pi.assistant", "pi.tool-result", "pi.reset", "pi.assistant"]
    assert len({request.session_id for request in rig.model.requests}) == 1


@pytest.mark.rule("TO-6", "CX-1")
async def test_handover_without_a_word_still_asks_for_something(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(tool("handoff", ToolResult(content=(Text(text="ok"),), handoff="")),))
    await run(rig, call(("handoff", {})), say("what about?"))

    assert texts(rig.model.requests[1]) == [("user", GO_ON)]


@pytest.mark.rule("TO-6")
async def test_result_can_widen_the_selection_of_tools_and_report_usage(tmp_path: Path) -> None:
    more = tool("more", ToolResult(add_tools=("echo",), usage=Usage(input_tokens=5, output_tokens=1)))
    rig = Rig(tmp_path, tools=(more, tool()))
    agent = Agent(model="test/model", approval="all", tools=("more",))
    await run(rig, call(("more", {})), say("ok"), agent=agent)

    assert [[spec.name for spec in request.tools] for request in rig.model.requests] == [["more"], ["more", "echo"]]
    assert (await rig.harness.usage()).tools == {"more": Usage(input_tokens=5, output_tokens=1)}


@pytest.mark.rule("EX-1", "FB-37")
async def test_installing_a_name_again_replaces_it_while_a_call_runs(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def old(_arguments: Word, _context: ToolContext) -> ToolResult:
        await gate.wait()
        return ToolResult(content=(Text(text="old code"),))

    rig = Rig(tmp_path, extensions=(Extension(name="mine", tools=(replace(tool(), execute=old),)),))
    chat = await rig.start(call(("echo", {})), call(("echo", {})), say("ok"))
    await chat.submit("go")
    await rig.settle()
    rig.harness.install(Extension(name="mine", tools=(tool("echo", ToolResult(content=(Text(text="new code"),))),)))
    gate.set()
    await rig.run_out(chat)

    results = [text for role, text in texts(rig.model.requests[2]) if role == "toolResult"]
    assert results == ["old code", "new code"]


@pytest.mark.rule("EX-2")
async def test_settings_are_read_at_every_use(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(say("1"), say("2"))
    await chat.submit("one")
    await rig.run_out(chat)
    rig.harness.settings.stream = {"max_output_tokens": 9}
    await chat.submit("two")
    await rig.run_out(chat)

    assert [request.options for request in rig.model.requests] == [{}, {"max_output_tokens": 9}]


@pytest.mark.rule("EX-1")
def test_selections_filter_extensions_and_tools_and_wraps_decorate_what_won() -> None:
    registry = Registry()
    registry.install(Extension(name="a", tools=(tool("one"), tool("two"))))
    registry.install(Extension(name="b", tools=(tool("two", replay="safe"),), wraps={"two": lambda won: replace(won, description=f"wrapped {won.replay}")}))

    everything = registry.tools(Agent())
    only_a = registry.tools(Agent(extensions=("a",)))
    only_two = registry.tools(Agent(tools=("two",)))
    registry.remove("b")

    assert [(name, found.description) for name, found in everything.items()] == [("one", ""), ("two", "wrapped safe")]
    assert [(name, found.replay) for name, found in only_a.items()] == [("one", "unsafe"), ("two", "unsafe")]
    assert list(only_two) == ["two"]
    assert registry.tools(Agent())["two"].description == ""


@pytest.mark.rule("TO-1")
async def test_hook_at_the_start_of_a_call_comes_after_its_intent_and_its_failure_stops_nothing(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    async def on_start(called: HookedCall) -> None:
        task = await rig.harness.session.storage.task(called.task_id)
        seen.append((called.name, str((task.checkpoint or {}).get("phase")) if task is not None else ""))
        raise OSError("full")

    rig = Rig(tmp_path, tools=(tool(),), extensions=hooked(on_start=on_start))
    entries = await run(rig, call(("echo", {"text": "a"})), say("ok"))

    assert seen == [("echo", "execute")]
    assert [entry.message.text for entry in entries if entry.kind == "pi.tool-result"] == ["echo a"]
    assert [(report.reason, report.message) for report in rig.reports] == [("on_start", "OSError: full")]


@pytest.mark.rule("EX-1", "FB-37")
@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"sections": lambda _agent: 1 / 0}, "could not give its sections: ZeroDivisionError: division by zero"),
        ({"sections": lambda _agent: {"rules": None}}, "could not give its sections: TypeError: rules is NoneType and no text"),
        ({"wraps": {"echo": lambda tool: tool.missing}}, "could not give its echo: AttributeError: 'Tool' object has no attribute 'missing'"),
        ({"wraps": {"echo": lambda _tool: None}}, "could not give its echo: TypeError: it gave NoneType where Tool is wanted"),
        ({"profiles": lambda: 1 / 0}, "could not give its profiles: ZeroDivisionError: division by zero"),
    ],
)
def test_what_an_extension_cannot_give_is_refused_in_its_name(bad: dict[str, Any], told: str) -> None:
    registry, agent = Registry(), Agent()
    registry.install(Extension(name="house", tools=(tool(),), **bad))
    give = {"sections": registry.sections, "wraps": registry.tools, "profiles": registry.profiles}[next(iter(bad))]
    with pytest.raises(BadRequest, match=re.escape(f"The extension house {told}")):
        give(agent)


async def test_run_under_an_extension_that_fails_says_which_one_it_is_and_the_next_one_goes_on_without_it(tmp_path: Path) -> None:
    rig = Rig(tmp_path, extensions=[Extension(name="house", sections=lambda _agent: {"rules": str(1 // 0)})])
    chat = await rig.start(say("at last"))
    failed = await chat.submit("q")
    await rig.run_out(chat)
    state = (await chat.settled(failed.id)).state
    assert isinstance(state, Unanswered)
    assert "The extension house could not give its sections: ZeroDivisionError" in state.problem.message

    rig.harness.install(Extension(name="house"))
    again = await chat.submit("q")
    await rig.run_out(chat)
    assert isinstance((await chat.settled(again.id)).state, Done)
