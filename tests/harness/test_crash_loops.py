"""Every kind of task, killed again and again inside its step, under every kind of limit: it stops, it says so, and work is accepted (PR-11).

What is particular to a kind stands in test_restart_limit.py; here all of them are held to the same.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.extensions.hooks import HookedCompaction, Hooks
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.extensions.task_definition import TaskDefinition
from pi_durable_tui.harness.ports import ModelInfo, Tool, ToolContext, ToolResult
from pi_durable_tui.harness.settings import Settings
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.messages import Text
from pi_durable_tui.records.submission import Done
from pi_durable_tui.records.task import Completed
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.harness_rig import Rig
from tests.support.scripted_model import ScriptedModel, call, say
from tests.support.sometimes import happened

ENOUGH = 7
"""So many kills are more than the limit that is usual; without a limit the work goes on after them."""


class Nothing(msgspec.Struct):
    """No arguments."""


class Command(msgspec.Struct):
    """What a person's command is asked."""

    command: str = ""


@dataclass(slots=True)
class Killer:
    """Hangs wherever it is asked to, until the process is killed or it is tame."""

    entered: int = 0
    is_tame: bool = False
    place: str = ""
    kinds: list[str] = field(default_factory=list)

    async def hang(self, place: str) -> None:
        if place == self.place and not self.is_tame:
            self.entered += 1
            await asyncio.Event().wait()

    async def execute(self, _arguments: object, _context: ToolContext) -> ToolResult:
        await self.hang("tool")
        return ToolResult(content=(Text(text="worked"),))

    async def own(self, runtime: TaskRuntime) -> None:
        await self.hang("own")
        await runtime.end(Completed(value=1))

    async def before_compact(self, _compaction: HookedCompaction) -> None:
        await self.hang("compaction")

    def extension(self) -> Extension:
        tools = (
            Tool(name="work", description="", arguments=Nothing, execute=self.execute, title=lambda _: "work", replay="safe"),
            Tool(name="once", description="", arguments=Nothing, execute=self.execute, title=lambda _: "once"),
            Tool(name="bash", description="", arguments=Command, execute=self.execute, title=lambda _: "bash"),
            Tool(name="behind", description="", arguments=Nothing, execute=self.execute, title=lambda _: "behind", background=lambda _: True),
        )
        task = TaskDefinition(kind="test.own", phases={"work": self.own})
        return Extension(name="killer", tools=tools, tasks=(task,), hooks=Hooks(before_compact=self.before_compact))


class MurderousModel(ScriptedModel):
    """Kills whoever asks about a model."""

    def __init__(self, rig: Rig, killer: Killer) -> None:
        super().__init__(rig.clock)
        self._killer = killer

    async def info(self, model: str) -> ModelInfo:
        await self._killer.hang("generation")
        return await super().info(model)


Begin = Callable[[Rig, Conversation], Awaitable[object]]


async def own(rig: Rig, chat: Conversation) -> object:
    return await rig.harness.start_task(chat.id, "test.own", {}, {"phase": "work"})


async def generation(_rig: Rig, chat: Conversation) -> object:
    return await chat.submit("go")


async def tool(rig: Rig, chat: Conversation) -> object:
    rig.model.then(call(("work", {})))
    return await chat.submit("go")


async def unsafe_tool(rig: Rig, chat: Conversation) -> object:
    rig.model.then(call(("once", {})))
    return await chat.submit("go")


async def subagent(rig: Rig, chat: Conversation) -> object:
    rig.model.then(call(("subagent", {"name": "helper", "prompt": "help"})), call(("work", {})))
    return await chat.submit("go")


async def command(_rig: Rig, chat: Conversation) -> object:
    return await chat.run_command("make", shown=True)


async def behind(rig: Rig, chat: Conversation) -> object:
    rig.model.then(call(("behind", {})), say("It runs."))
    return await chat.submit("go")


async def compaction(_rig: Rig, chat: Conversation) -> object:
    return await chat.compact()


KINDS: dict[str, tuple[Begin, str, bool]] = {
    # how it begins, where it hangs, and whether it is begun again after a kill
    "own": (own, "own", True),
    "generation": (generation, "generation", True),
    "tool": (tool, "tool", True),
    "unsafe tool": (unsafe_tool, "tool", False),
    "subagent": (subagent, "tool", True),
    "command": (command, "tool", False),
    "background": (behind, "tool", False),
    "compaction": (compaction, "compaction", True),
}
TOLD = ("in a row", "may have", "was killed")


async def what_is_told(rig: Rig, chat: Conversation) -> str:
    """All that a person can read about it: the transcripts, the failures, and what was reported."""
    conversations = (await rig.harness.session.storage.conversations(limit=100)).items
    entries = [repr(entry) for conversation in conversations for entry in await rig.entries(conversation.id)]
    live = await rig.live(chat.id)
    return " ".join([*entries, repr(live.run_failure), repr(live.compaction_failure), *(report.message for report in rig.reports)])


@pytest.mark.rule("PR-11", "TK-12", "FA-26", "FA-27")
@pytest.mark.parametrize("limit", [1, 5, math.inf])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_crash_loop_stops_is_told_and_leaves_everything_usable(tmp_path: Path, kind: str, limit: float) -> None:
    begin, place, is_begun_again = KINDS[kind]
    killer = Killer()
    rig = Rig(tmp_path, settings=Settings(restart_limit=limit), tools=subagent_tools(), extensions=(killer.extension(),))
    rig.model = MurderousModel(rig, killer)
    chat = await rig.start(say("a" * 400), say("b" * 400))
    for text in ("one ", "two "):
        await chat.submit(text * 100)
        await rig.run_out(chat)

    killer.place = place
    await begin(rig, chat)
    kills = min(limit, ENOUGH) if is_begun_again else 1
    while killer.entered < kills:
        await rig.harness.resume()
        before = killer.entered
        await rig.until(lambda before=before: killer.entered > before, jump=True)
        await rig.kill()
        await rig.open()
    killer.is_tame = limit == math.inf
    rig.model.then(*[say("All is well.")] * 3)
    chat = await rig.harness.conversation(chat.id)
    await rig.run_out(chat)
    await rig.settle()

    assert killer.entered == kills
    if is_begun_again and limit < math.inf:
        happened(f"the restart limit of kind: {kind}")
    told = await what_is_told(rig, chat)
    if limit < math.inf or not is_begun_again:
        assert any(words in told for words in TOLD), told
    assert [task for task in rig.harness.task_graph() if not task.background] == []
    killer.is_tame = True
    again = await chat.submit("and now?")
    await rig.run_out(chat)
    assert isinstance((await chat.settled(again.id)).state, Done)
    await rig.close()
