"""A run ends where it may use no more: turns and money, its subagents' money included (SA-14)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.generation.limits import combined, reached
from pi_durable_tui.harness.live import Budget
from pi_durable_tui.harness.ports import AgentProfile, Finished, TextDelta, Tool, ToolContext, ToolResult, UsageReport
from pi_durable_tui.harness.settings import Limits, Settings
from pi_durable_tui.records.messages import Problem, Text, ToolResultMessage, Usage
from pi_durable_tui.records.submission import Done, Submission, Unanswered
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.harness_rig import Rig
from tests.support.scripted_model import Hold, Step, call, say


class Nothing(msgspec.Struct):
    """No arguments."""


async def _look(_arguments: Nothing, _context: ToolContext) -> ToolResult:
    return ToolResult(content=(Text(text="looked"),))


LOOK = Tool(name="look", description="", arguments=Nothing, execute=_look, title=lambda _: "look", access="read", replay="safe")


def priced(script: tuple[Step, ...], cost_usd: float | None) -> tuple[Step, ...]:
    """The same answer at that price."""
    used = UsageReport(Usage(input_tokens=1, output_tokens=1, cost_usd=cost_usd))
    return tuple(used if isinstance(step, UsageReport) else step for step in script)


def rig_of(tmp_path: Path, limits: Limits) -> Rig:
    return Rig(tmp_path, "sqlite", settings=Settings(limits=limits), tools=(*subagent_tools(), LOOK))


async def settled(rig: Rig, submission: Submission) -> Submission:
    found = await rig.harness.session.storage.submission(submission.id)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("limits", "turn", "used", "is_reached"),
    [
        (Budget(), 99, Usage(input_tokens=99, cost_usd=99.0), False),
        (Budget(max_turns=2), 2, Usage(), False),
        (Budget(max_turns=2), 3, Usage(), True),
        (Budget(max_cost_usd=0.5), 9, Usage(cost_usd=0.49), False),
        (Budget(max_cost_usd=0.5), 1, Usage(cost_usd=0.5), True),
        (Budget(max_cost_usd=0.5), 9, Usage(output_tokens=9), False),
        (Budget(max_tokens=10), 9, Usage(input_tokens=5, output_tokens=4, cache_read_tokens=5), False),
        (Budget(max_tokens=10), 1, Usage(input_tokens=5, output_tokens=5), True),
    ],
)
def test_a_limit_stands_before_the_request_that_would_go_over_it(limits: Budget, turn: int, used: Usage, is_reached: bool) -> None:
    assert (reached(limits, turn=turn, used=used) is not None) is is_reached


@pytest.mark.parametrize(
    ("limits", "own", "together"),
    [
        (Limits(), Budget(), Budget()),
        (Limits(max_turns=5), Budget(max_tokens=9), Budget(max_turns=5, max_tokens=9)),
        (Limits(max_turns=5, max_cost_usd=0.0), Budget(max_turns=7, max_cost_usd=1.0), Budget(max_turns=5, max_cost_usd=0.0)),
        (Limits(max_turns=7), Budget(max_turns=5), Budget(max_turns=5)),
    ],
)
def test_of_the_limits_for_all_and_those_of_an_agent_the_stricter_ones_hold(limits: Limits, own: Budget, together: Budget) -> None:
    assert combined(limits, own) == together


@pytest.mark.rule("SA-14")
async def test_a_run_that_has_had_its_turns_ends_with_its_results_and_the_next_prompt_works(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, Limits(max_turns=2))
    chat = await rig.start(call(("look", {})), call(("look", {}), ids=["c2"]), say("fine"))
    submission = await chat.submit("go")
    await rig.run_out(chat)
    ended = await settled(rig, submission)
    assert isinstance(ended.state, Unanswered)
    assert ended.state.problem == Problem(reason="limit", message="The run has had its 2 turns.")
    assert [entry.kind for entry in await rig.entries(chat.id)] == ["pi.user", *["pi.assistant", "pi.tool-result"] * 2]
    assert (await rig.live(chat.id)).run_failure.reason == "limit"
    await chat.submit("and now?")
    await rig.run_out(chat)
    assert (await rig.entries(chat.id))[-1].message.text == "fine"
    assert rig.model.requests[-1].messages[-1].content[0].text == "and now?"
    await rig.close()


@pytest.mark.rule("SA-14")
async def test_the_turns_of_a_run_are_counted_over_a_kill(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, Limits(max_turns=1))
    chat = await rig.start(call(("look", {})))
    submission = await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 1)
    await rig.settle()
    await rig.kill()
    harness = await rig.open(call(("look", {}), ids=["c2"]), say("too much"))
    await harness.resume()
    await rig.run_out(await harness.conversation(chat.id))
    assert isinstance((await settled(rig, submission)).state, Unanswered)
    assert "too much" not in str(await rig.entries(chat.id))
    await rig.close()


@pytest.mark.rule("SA-14")
async def test_a_run_that_has_cost_what_was_allowed_ends_and_the_next_one_starts_from_nothing(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, Limits(max_cost_usd=0.25))
    chat = await rig.start(priced(call(("look", {})), 0.3), priced(say("cheap"), 0.2), priced(say("again"), 0.2))
    first = await chat.submit("go")
    await rig.run_out(chat)
    ended = await settled(rig, first)
    assert isinstance(ended.state, Unanswered)
    assert ended.state.problem.message == "The run has cost $0.3000, and $0.2500 was allowed."
    for text in ("cheap", "again"):
        await chat.submit("more")
        await rig.run_out(chat)
        assert (await rig.entries(chat.id))[-1].message.text == text
    await rig.close()


@pytest.mark.rule("SA-14", "TO-7")
async def test_what_subagents_cost_counts_for_the_run_that_called_them(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, Limits(max_cost_usd=0.25))
    work = ("subagent", {"name": "reader", "prompt": "read"})
    chat = await rig.start(priced(call(work), 0.01), priced(say("dear answer"), 0.4), say("too much"))
    submission = await chat.submit("go")
    await rig.run_out(chat)
    ended = await settled(rig, submission)
    assert isinstance(ended.state, Unanswered)
    assert ended.state.problem.message == "The run has cost $0.4100, and $0.2500 was allowed."
    await rig.close()


@pytest.mark.rule("SA-14", "TO-7")
async def test_what_the_subagents_of_another_chat_cost_is_no_matter_of_a_run(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, Limits(max_cost_usd=0.25))
    here = await rig.start()
    there = await rig.harness.create_conversation(await here.agent())
    waiting = Hold()
    rig.model.when("here", (waiting, *priced(call(("look", {})), 0.01)), priced(say("done"), 0.01))
    rig.model.when("there", priced(call(("subagent", {"name": "reader", "prompt": "read"})), 0.01), say("thanks"))
    rig.model.when("read", priced(say("dear answer"), 0.4))
    submission = await here.submit("here")
    await rig.settle()
    await there.submit("there")
    await rig.run_out(there)
    waiting.event.set()
    await rig.run_out(here)
    assert isinstance((await settled(rig, submission)).state, Done)
    await rig.close()


@pytest.mark.rule("SA-14", "TO-7")
async def test_what_its_brothers_use_is_no_matter_of_the_budget_of_a_subagent(tmp_path: Path) -> None:
    scout = AgentProfile(name="scout", description="Looks.", max_tokens=5)
    rig = rig_of(tmp_path, Limits())
    rig.extensions = (Extension(name="profiles", profiles=lambda: (scout,)),)
    names, waiting = ("first", "second", "third"), Hold()
    rig.model.when("first", (waiting, *priced(call(("look", {})), 0.0)), priced(say("done"), 0.0))
    for name in names[1:]:
        rig.model.when(name, priced(call(("look", {})), 0.0), priced(say("done"), 0.0))
    asked = [("subagent", {"name": name, "prompt": name, "agent": "scout"}) for name in names]
    chat = await rig.start(call(*asked), say("thanks"))
    await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 6)
    await rig.settle()
    waiting.event.set()
    await rig.run_out(chat)
    results = [entry.message for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result"]
    assert [result.text for result in results if isinstance(result, ToolResultMessage)] == ["done"] * 3
    await rig.close()


@pytest.mark.rule("SA-14")
async def test_an_unknown_price_ends_no_run(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, Limits(max_cost_usd=0.0001))
    chat = await rig.start(priced(call(("look", {})), None), [TextDelta("done"), Finished("stop")])
    await chat.submit("go")
    await rig.run_out(chat)
    assert (await rig.entries(chat.id))[-1].message.text == "done"
    await rig.close()
