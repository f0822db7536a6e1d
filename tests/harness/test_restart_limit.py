"""A crash loop comes to an end, for all four kinds of tasks: facts FA-20 to FA-27, rules TK-11, TK-12 and PR-11."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.extensions.hooks import HookedCall, Hooks
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.extensions.task_definition import TaskDefinition
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import ModelInfo, TextDelta, Tool, ToolContext, ToolResult
from pi_durable_tui.harness.settings import Retry, Settings
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.messages import Problem, Text, ToolResultMessage
from pi_durable_tui.records.submission import Done, Unanswered
from pi_durable_tui.records.task import Completed, Failed, Faulted, Task
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import Hold, ScriptedModel, call, say

LIMIT = 5


class Nothing(msgspec.Struct):
    """No arguments."""


@dataclass(slots=True)
class Killer:
    """A task kind, a tool and a hook of which each hangs in its step until the process is killed, unless `is_tame`."""

    entered: int = 0
    is_tame: bool = False
    steps: list[int] = field(default_factory=list)

    async def hang(self) -> None:
        self.entered += 1
        if not self.is_tame:
            await asyncio.Event().wait()

    async def work(self, runtime: TaskRuntime) -> None:
        n = int(str(runtime.checkpoint["n"]))
        self.steps.append(n)
        await self.hang()
        await (runtime.advance({"phase": "work", "n": n + 1}) if n < 2 else runtime.end(Completed(value=n)))

    async def execute(self, _arguments: Nothing, context: ToolContext) -> ToolResult:
        context.output("working\n")
        await self.hang()
        return ToolResult(content=(Text(text="worked"),))

    async def before_tool(self, _call: HookedCall) -> None:
        await self.hang()

    def extension(self, hooks: Hooks | None = None) -> Extension:
        tool = Tool(name="work", description="", arguments=Nothing, execute=self.execute, title=lambda _: "work", replay="safe")
        task = TaskDefinition(kind="test.work", phases={"work": self.work})
        return Extension(name="killer", tools=(tool,), tasks=(task,), hooks=hooks or Hooks())


def rig_of(path: Path, killer: Killer, limit: float = LIMIT, backend: Backend = "memory", hooks: Hooks | None = None) -> Rig:
    return Rig(path, backend, extensions=(killer.extension(hooks),), settings=Settings(restart_limit=limit))


async def kill_inside(rig: Rig, killer: Killer, times: int) -> None:
    """Kill the process `times` times, each time inside the step, and open it again; the harness is open and idle afterwards."""
    for _ in range(times):
        before = killer.entered
        await rig.harness.resume()
        await rig.until(lambda before=before: killer.entered == before + 1, jump=True)
        await rig.kill()
        await rig.open()


async def start_task(rig: Rig) -> int:
    harness = await rig.open()
    conversation = await harness.create_conversation(Agent())
    return await harness.start_task(conversation.id, "test.work", {}, {"phase": "work", "n": 1})


async def task(rig: Rig, task_id: int) -> Task:
    return next(each for each in await rig.tasks() if each.id == task_id)


def told(rig: Rig) -> list[tuple[str, str]]:
    return [(report.kind, report.reason) for report in rig.reports]


def harness_error(entry: Any) -> str:
    message = entry.message
    assert isinstance(message, ToolResultMessage)
    assert message.is_error
    return message.text


def codes(entry: Any) -> list[str]:
    return [remark["code"] for remark in entry.data["diagnostics"]]


# ------------------------------------------------------------------------------------------------------------ own tasks


@pytest.mark.rule("FA-20", "FA-22", "TK-12", "PR-11")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_own_task_runs_after_four_cut_offs_and_is_faulted_after_the_fifth(tmp_path: Path, backend: Backend) -> None:
    killer = Killer()
    rig = rig_of(tmp_path, killer, backend=backend)
    task_id = await start_task(rig)

    await kill_inside(rig, killer, 4)
    await rig.harness.resume()
    await rig.settle()
    assert (killer.entered, told(rig)) == (5, [])
    await rig.kill()
    await rig.open()
    assert (await task(rig, task_id)).restarts == 5
    await rig.harness.resume()
    await rig.settle()

    ended = await task(rig, task_id)
    assert killer.entered == 5
    assert ended.outcome == Faulted(message="it was cut off 5 times in a row", detail={"reason": "restart_limit"})
    assert (ended.memos, ended.restarts) == (None, None)
    assert told(rig) == [("task_faulted", "restart_limit")]
    await rig.close()


@pytest.mark.rule("FA-21", "TK-11")
async def test_progress_makes_the_count_begin_anew(tmp_path: Path) -> None:
    killer = Killer()
    rig = rig_of(tmp_path, killer)
    task_id = await start_task(rig)
    await kill_inside(rig, killer, 4)

    killer.is_tame = True
    await rig.harness.resume()
    await rig.until(lambda: len(killer.steps) == 5)
    killer.is_tame = False
    await rig.until(lambda: killer.steps[-1] == 2)
    await rig.kill()
    await rig.open()
    await kill_inside(rig, killer, 3)
    assert (await task(rig, task_id)).restarts == 4
    killer.is_tame = True
    await rig.harness.resume()
    await rig.settle()

    assert (await task(rig, task_id)).outcome == Completed(value=2)
    assert told(rig) == []


@pytest.mark.rule("FA-26", "TK-12", "PR-11")
@pytest.mark.parametrize(("limit", "runs"), [(1, 1), (2, 2), (LIMIT, 5), (math.inf, 12)])
async def test_the_setting_is_how_often_a_step_is_begun(tmp_path: Path, limit: float, runs: int) -> None:
    killer = Killer()
    rig = rig_of(tmp_path, killer, limit)
    task_id = await start_task(rig)
    await kill_inside(rig, killer, runs)
    killer.is_tame = True

    await rig.harness.resume()
    await rig.settle()

    ended = await task(rig, task_id)
    is_given_up = ended.outcome == Faulted(message=f"it was cut off {runs} times in a row", detail={"reason": "restart_limit"})
    assert (is_given_up, ended.outcome == Completed(value=2)) == (limit < math.inf, limit == math.inf)


@pytest.mark.rule("FA-26", "EX-2")
async def test_a_changed_limit_counts_at_the_next_look(tmp_path: Path) -> None:
    killer = Killer()
    rig = rig_of(tmp_path, killer, 2)
    task_id = await start_task(rig)
    await kill_inside(rig, killer, 2)
    killer.is_tame = True
    rig.harness.settings.restart_limit = 3

    await rig.harness.resume()
    await rig.settle()

    assert (await task(rig, task_id)).outcome == Completed(value=2)


# ---------------------------------------------------------------------------------------------------------------- tools


async def start_chat(rig: Rig, *scripts: Any) -> int:
    chat = await rig.start(*scripts)
    await chat.submit("go", request_id="first")
    return chat.id


async def chat_of(rig: Rig, conversation_id: int) -> Conversation:
    return await rig.harness.conversation(conversation_id)


@pytest.mark.rule("FA-23", "FA-33", "TK-12", "PR-11")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_tool_cut_off_again_and_again_gives_an_error_result_and_the_run_goes_on(tmp_path: Path, backend: Backend) -> None:
    killer = Killer()
    rig = rig_of(tmp_path, killer, backend=backend)
    chat_id = await start_chat(rig, call(("work", {})), say("I see."))
    await kill_inside(rig, killer, 5)

    await rig.run_out(await chat_of(rig, chat_id))

    assert killer.entered == 5
    result = (await rig.entries(chat_id))[2]
    limit = "[error] Tool work was interrupted too many times in a row and may have partially run"
    assert harness_error(result) == f"<harness>\n{limit}\n</harness>"
    assert codes(result) == ["restart_limit"]
    (tool,) = await rig.tasks("pi.tool")
    assert tool.outcome == Failed(problem=Problem(reason="restart_limit", message=limit.removeprefix("[error] ")))
    assert told(rig) == [("task_interrupted", "restart_limit")]
    (submission,) = (await rig.harness.session.storage.submissions()).items
    assert isinstance(submission.state, Done)  # the model saw the error and answered
    await rig.close()


@pytest.mark.rule("FA-23", "FA-41", "TO-3")
async def test_call_that_dies_before_its_intent_is_given_up_without_having_run(tmp_path: Path) -> None:
    killer = Killer()
    rig = rig_of(tmp_path, killer, 2, hooks=Hooks(before_tool=killer.before_tool))
    chat_id = await start_chat(rig, call(("work", {})), say("I see."))
    await kill_inside(rig, killer, 2)

    await rig.run_out(await chat_of(rig, chat_id))

    assert killer.entered == 2
    assert told(rig) == [("task_interrupted", "restart_limit")]
    assert "was interrupted too many times in a row" in harness_error((await rig.entries(chat_id))[2])


# ---------------------------------------------------------------------------------------------------------- generations


class MurderousModel(ScriptedModel):
    """A gateway that kills the process as soon as it is asked about a model, before any request is sent."""

    def __init__(self, rig: Rig, killer: Killer) -> None:
        super().__init__(rig.clock)
        self._killer = killer

    async def info(self, model: str) -> ModelInfo:
        await self._killer.hang()
        return await super().info(model)


@pytest.mark.rule("FA-24", "TK-12", "PR-11")
@pytest.mark.parametrize("limit", [1, LIMIT])
async def test_run_that_cannot_even_prepare_its_request_ends_unanswered(tmp_path: Path, limit: int) -> None:
    killer = Killer()
    rig = rig_of(tmp_path, killer, limit)
    rig.model = MurderousModel(rig, killer)
    chat_id = await start_chat(rig)
    await kill_inside(rig, killer, limit)

    await rig.run_out(await chat_of(rig, chat_id))

    message = f"The run was given up: it was cut off {limit} times in a row."
    failure = (await rig.live(chat_id)).run_failure
    assert failure is not None
    assert (failure.reason, failure.message) == ("restart_limit", message)
    assert (await rig.tasks("pi.generation"))[0].outcome == Failed(problem=Problem(reason="restart_limit", message=message))
    (submission,) = (await rig.harness.session.storage.submissions()).items
    assert isinstance(submission.state, Unanswered)
    assert submission.state.problem.reason == "restart_limit"
    assert told(rig) == [("task_interrupted", "restart_limit")]
    assert (killer.entered, rig.model.requests) == (limit, [])


@pytest.mark.rule("FA-24", "GE-3", "PR-11")
@pytest.mark.parametrize(("limit", "requests", "reason"), [(1, 1, "restart_limit"), (LIMIT, 4, "interrupted"), (math.inf, 4, "interrupted")])
async def test_kill_loop_inside_the_request_ends_by_the_limit_or_by_the_retries(tmp_path: Path, limit: float, requests: int, reason: str) -> None:
    rig = Rig(tmp_path, settings=Settings(restart_limit=limit))
    chat_id = await start_chat(rig, *[(TextDelta(f"try {n}"), Hold()) for n in range(6)])
    for n in range(requests):
        await rig.harness.resume()
        await rig.until(lambda n=n: len(rig.model.requests) == n + 1, jump=True)
        await rig.settle()
        rig.clock.advance(200)
        await rig.settle()
        await rig.kill()
        await rig.open()

    await rig.run_out(await chat_of(rig, chat_id))

    assert len(rig.model.requests) == requests
    failure = (await rig.live(chat_id)).run_failure
    assert failure is not None
    assert failure.reason == reason
    assert told(rig) == [("task_interrupted", reason)]


# ---------------------------------------------------------------------------------------------------------- compactions


@pytest.mark.rule("FA-25", "TK-12", "PR-11", "CO-5")
@pytest.mark.parametrize(("limit", "kills", "reason"), [(1, 1, "restart_limit"), (LIMIT, 2, "connection")])
async def test_summary_cut_off_again_and_again_is_given_up_and_the_context_stays(tmp_path: Path, limit: int, kills: int, reason: str) -> None:
    rig = Rig(tmp_path, settings=Settings(restart_limit=limit, retry=Retry(max_retries=1)))
    chat = await rig.start(say("a" * 500), say("b" * 500), (Hold(),), (Hold(),))
    for text in ("one", "two"):
        await chat.submit(text * 200)
        await rig.run_out(chat)
    before = await rig.entries(chat.id)
    await chat.compact()
    for n in range(kills):
        await rig.harness.resume()
        await rig.until(lambda n=n: len(rig.model.requests) == 3 + n, jump=True)
        await rig.kill()
        await rig.open()

    await rig.harness.resume()
    await rig.settle()

    live = await rig.live(chat.id)
    assert live.compactions == ()
    assert live.compaction_failure is not None
    assert live.compaction_failure.reason == reason
    assert await rig.entries(chat.id) == before
    assert told(rig) == ([("task_interrupted", "restart_limit")] if reason == "restart_limit" else [])


# ------------------------------------------------------------------------------------------------------------ once more


@pytest.mark.rule("FA-27")
async def test_after_the_limit_the_same_work_is_accepted_again(tmp_path: Path) -> None:
    killer = Killer()
    rig = rig_of(tmp_path, killer, 1)
    rig.model = MurderousModel(rig, killer)
    chat_id = await start_chat(rig)
    await kill_inside(rig, killer, 1)
    await rig.run_out(await chat_of(rig, chat_id))
    killer.is_tame = True
    rig.model.then(say("x" * 900), say("y" * 900), say("the gist"))
    harness: Harness = rig.harness
    chat = await chat_of(rig, chat_id)

    for text in ("again", "and again"):
        placed = await chat.submit(text * 100)
        await rig.run_out(chat)
        assert isinstance((await chat.settled(placed.id)).state, Done)
    compaction_id = await chat.compact()
    task_id = await harness.start_task(chat_id, "test.work", {}, {"phase": "work", "n": 1})
    await rig.settle()

    assert (await rig.live(chat_id)).run_failure is None
    assert isinstance((await task(rig, compaction_id)).outcome, Completed)
    assert (await task(rig, task_id)).outcome == Completed(value=2)
