"""What a screen asks of a session as a whole: TU-16, TU-17, CO-3."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.observation.overview import CompactionPlan, ContextUse, SessionFacts
from pi_durable_tui.harness.ports import Tool, ToolContext, ToolResult
from pi_durable_tui.records.entry import COMPACTION
from pi_durable_tui.records.messages import Text, Usage
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.harness_rig import Rig
from tests.support.scripted_model import call, say


class Nothing(msgspec.Struct):
    """No arguments."""


async def look(_arguments: Nothing, _context: ToolContext) -> ToolResult:
    return ToolResult(content=(Text(text="looked"),))


LOOK = Tool(name="look", description="", arguments=Nothing, execute=look, title=lambda _: "look", access="read", replay="safe")


@pytest.mark.rule("TU-17", "CO-3")
async def test_the_plan_of_a_compaction_is_what_the_compaction_then_does(tmp_path: Path) -> None:
    rig = Rig(tmp_path, extensions=[Extension(name="role", sections=lambda _agent: {"base": "Be good."})])  # instructions are not summarized
    chat = await rig.start(*[say(f"answer {n} " + "a" * 500, usage=None) for n in range(4)])
    assert await rig.harness.overview.compaction(chat.id) is None
    for n in range(4):
        await chat.submit(f"question {n} " + "q" * 500)
        await rig.run_out(chat)
    plan = await rig.harness.overview.compaction(chat.id)
    assert plan == CompactionPlan(summarized_entries=6, summarized_tokens=768, kept_entries=2, kept_tokens=256, shortened=0)

    rig.model.then(say("the gist"))
    await chat.compact()
    await rig.until(lambda: rig.model.sent[-1] != [] and len(rig.model.requests) == 5)
    await rig.settle()
    newest = (await rig.entries(chat.id))[-1]
    assert (newest.kind, (newest.data or {})["entriesSummarized"]) == (COMPACTION, plan.summarized_entries)
    use = await rig.harness.overview.context(chat.id)
    assert (use.summary_tokens, use.message_tokens) == (8, 256)


async def test_the_context_is_told_by_parts_and_by_what_the_provider_counted(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(LOOK,))
    chat = await rig.start(say("b" * 40, usage=Usage(input_tokens=900, output_tokens=10)))
    await chat.submit("a" * 400)
    await rig.run_out(chat)
    use = await rig.harness.overview.context(chat.id)
    assert use == ContextUse(system_tokens=0, tool_tokens=use.tool_tokens, summary_tokens=0, message_tokens=110, total_tokens=910, window_tokens=100_000)
    assert 5 <= use.tool_tokens <= 30


@pytest.mark.rule("TU-16")
async def test_the_tree_of_a_session_knows_forks_and_subagents_and_writes_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(*subagent_tools(), LOOK))
    chat = await rig.start(call(("subagent", {"name": "reader", "prompt": "read"})), say("all read"), say("thanks"))
    await chat.submit("go")
    await rig.run_out(chat)
    fork = await rig.harness.fork(chat.id)
    before = (await rig.storage.metadata()).next_seq
    found = {branch.chat.conversation_id: (branch.parent, branch.is_subagent, branch.chat.title) for branch in await rig.harness.overview.branches()}
    child = next(conversation_id for conversation_id, (_, is_subagent, _) in found.items() if is_subagent)
    assert found == {chat.id: (None, False, "go"), child: (chat.id, True, "reader"), fork.id: (chat.id, False, "go")}
    facts = await rig.harness.overview.facts()
    assert facts == SessionFacts(store="memory", commits=before - 1, chats=2, forks=1, subagents=1)
    assert (await rig.storage.metadata()).next_seq == before
