"""A stop that is cut off by a crash, at each of its commits, whatever was at work (PR-22): once its mark is stored, nothing of the work runs again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import TextDelta, Tool, ToolContext, ToolResult
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.controlled_storage import Moment
from tests.support.harness_oracle import Known, faults, held, rest_faults
from tests.support.harness_rig import Rig
from tests.support.scripted_model import Hold, call, fail, say


class Wish(msgspec.Struct):
    """What to do."""

    command: str = ""


def tools(begun: list[str]) -> tuple[Tool, ...]:
    """Tools that say in `begun` that they were started, and never end by themselves."""

    async def execute(_wish: Wish, context: ToolContext) -> ToolResult:
        begun.append("tool")
        context.output("so far\n")
        await asyncio.Event().wait()
        return ToolResult()

    named = [Tool(name=name, description="", arguments=Wish, execute=execute, title=lambda _: "it", replay="safe") for name in ("hang", "bash")]
    return (*named, *subagent_tools())


async def streaming(rig: Rig) -> Conversation:
    chat = await rig.start((TextDelta("half an answer"), Hold()))
    await chat.submit("go")
    return chat


async def retrying(rig: Rig) -> Conversation:
    chat = await rig.start(fail("overloaded", message="503"))
    await chat.submit("go")
    return chat


async def calling(rig: Rig) -> Conversation:
    chat = await rig.start(call(("hang", {}), ("hang", {})))
    await chat.submit("go")
    return chat


async def asking(rig: Rig) -> Conversation:
    chat = await rig.start(call(("hang", {})), agent=Agent(model="test/model", approval="ask"))
    await chat.submit("go")
    return chat


async def delegating(rig: Rig) -> Conversation:
    chat = await rig.start(call(("subagent", {"name": "reader", "prompt": "read"})), call(("hang", {})))
    await chat.submit("go")
    return chat


async def compacting(rig: Rig) -> Conversation:
    chat = await rig.start(*[say("a" * 500, usage=None) for _ in range(4)], (TextDelta("the gist"), Hold()))
    for _ in range(4):
        await chat.submit("q" * 500)
        await rig.run_out(chat)
    await chat.compact()
    return chat


async def commanding(rig: Rig) -> Conversation:
    chat = await rig.start()
    await chat.run_command("sleep", shown=True)
    return chat


AT_WORK: dict[str, Callable[[Rig], Awaitable[Conversation]]] = {
    "pi.generation": streaming,
    "pi.generation, waiting to try again": retrying,
    "pi.tool": calling,
    "pi.question": asking,
    "pi.subagent": delegating,
    "pi.compaction": compacting,
    "pidurable.command": commanding,
}


@pytest.mark.rule("TK-15", "TK-17", "PR-22", "CASE-E4")
@pytest.mark.parametrize("moment", ["before", "stored"])
@pytest.mark.parametrize("commit", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", AT_WORK)
async def test_what_was_told_to_stop_stops_whenever_the_process_dies(tmp_path: Path, kind: str, commit: int, moment: Moment) -> None:
    begun: list[str] = []
    rig = Rig(tmp_path, tools=tools(begun))
    chat = await AT_WORK[kind](rig)
    await rig.settle()
    assert kind.partition(",")[0] in {task.kind for task in await rig.tasks() if task.is_live}
    sent, ran = len(rig.model.requests), len(begun)
    rig.storage.crash_at(len(rig.storage.batches) + commit, moment)
    stopping = asyncio.ensure_future(chat.abort(background=True))
    await rig.until(lambda: rig.storage.crashed.is_set() or stopping.done())
    is_marked = (commit, moment) != (1, "before")
    await rig.kill()

    harness = await rig.open()
    again = await harness.conversation(chat.id)
    if not is_marked:  # nobody was told that anything stops: it is asked for once more
        await again.abort(background=True)
    await harness.resume()
    await rig.run_out(again)

    assert (len(rig.model.requests), len(begun)) == (sent, ran)
    now = await held(rig.storage.inner)
    known = Known(acknowledged={one.id for one in now.submissions})
    assert [*faults(now, known), *rest_faults(now)] == []
    await rig.close()
