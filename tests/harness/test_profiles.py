"""Subagents of a kind: what they are told, with what, and how much they may use (SA-14, TO-7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.live import Budget
from pi_durable_tui.harness.ports import AgentProfile
from pi_durable_tui.tools.subagent import INSTRUCTIONS, subagent_tools
from tests.harness.test_limits import LOOK
from tests.support.harness_rig import Rig
from tests.support.scripted_model import Hold, call, say

SCOUT = AgentProfile(
    name="scout",
    description="Looks.",
    instructions="You only look.",
    model="fake/small",
    thinking="high",
    tools=("look", "more"),
    max_turns=2,
    max_tokens=1_000,
)


def rig_of(tmp_path: Path) -> Rig:
    return Rig(tmp_path, "sqlite", tools=(*subagent_tools(), LOOK), extensions=(Extension(name="profiles", profiles=lambda: (SCOUT,)),))


def ask(**more: object) -> tuple[str, dict]:
    return "subagent", {"name": "eyes", "prompt": "look around", "agent": "scout", **more}


@pytest.mark.rule("SA-14", "TO-7")
async def test_a_subagent_of_a_kind_has_its_model_words_tools_and_budget_and_no_more_than_its_parent(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    chat = await rig.start(call(ask()), say("nothing here"), say("done"))
    await chat.submit("go")
    await rig.run_out(chat)
    request = rig.model.requests[1]
    assert (request.model, request.thinking, [tool.name for tool in request.tools]) == ("fake/small", "high", ["look"])
    [child] = [one for one in (await rig.storage.conversations()).items if one.owner is not None]
    agent = await (await rig.harness.conversation(child.id)).agent()
    assert (agent.instructions, agent.budget) == (f"{INSTRUCTIONS}\n\nYou only look.", Budget(max_turns=2, max_tokens=1_000))
    assert (await chat.agent()).budget is None
    await rig.close()


@pytest.mark.rule("SA-14")
async def test_its_turns_are_counted_over_a_kill_and_its_call_says_why_it_ended(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    chat = await rig.start(call(ask()), call(("look", {}), ids=["c2"]), [Hold()])
    await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 3)
    await rig.kill()
    harness = await rig.open(call(("look", {}), ids=["c3"]), say("too much for the subagent, so this is the answer of the run"))
    await harness.resume()
    await rig.run_out(await harness.conversation(chat.id))
    results = [entry.message.text for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result"]
    assert "The run has had its 2 turns." in results[0]
    await rig.close()


@pytest.mark.rule("SA-14")
async def test_its_tokens_end_it(tmp_path: Path) -> None:
    rig = Rig(
        tmp_path,
        "sqlite",
        tools=(*subagent_tools(), LOOK),
        extensions=(Extension(name="profiles", profiles=lambda: (AgentProfile(name="scout", description="Looks.", max_tokens=100),)),),
    )
    chat = await rig.start(call(ask()), call(("look", {}), ids=["c2"]), say("done"))
    await chat.submit("go")
    await rig.run_out(chat)
    results = [entry.message.text for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result"]
    assert "The run has used 110 tokens, and 100 were allowed." in results[0]
    await rig.close()


@pytest.mark.rule("TO-5")
async def test_an_unknown_kind_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    chat = await rig.start(call(ask(agent="pilot")), say("then not"))
    await chat.submit("go")
    await rig.run_out(chat)
    [result] = [entry.message for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result"]
    assert result.is_error
    assert "There is no kind of agent called 'pilot'. There are: scout." in result.text
    await rig.close()
