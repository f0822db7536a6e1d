"""A command that a person runs beside the agent: its intent and its end are stored, a kill leaves it in doubt, Esc stops it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Tool, ToolContext, ToolResult
from pi_durable_tui.records.entry import COMMAND, Entry
from pi_durable_tui.records.messages import Text, UserMessage
from pi_durable_tui.records.task import Aborted, Completed, Failed
from tests.support.harness_rig import Rig
from tests.support.scripted_model import call, say, texts


class Arguments(msgspec.Struct):
    command: str


@dataclass
class Shell:
    """A tool `bash` that says "working" and then waits for `released`."""

    runs: list[str] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def tool(self) -> Tool:
        return Tool(name="bash", description="", arguments=Arguments, execute=self.execute, title=lambda wanted: wanted.command)

    async def execute(self, wanted: Arguments, context: ToolContext) -> ToolResult:
        self.runs.append(wanted.command)
        context.output("working\n")
        self.started.set()
        await self.released.wait()
        return ToolResult(content=(Text(text=f"ran {wanted.command}"),), details={"exitCode": 0})


def codes_of(entry: Entry) -> list[object]:
    """The codes of the harness's remarks on a result."""
    remarks = (entry.data or {}).get("diagnostics")
    return [remark.get("code") for remark in remarks if isinstance(remark, dict)] if isinstance(remarks, list) else []


def of_command(entries: list[Entry]) -> Entry:
    (found,) = [entry for entry in entries if entry.kind == COMMAND]
    return found


@pytest.fixture
def shell() -> Shell:
    return Shell()


@pytest.mark.rule("TU-10", "TO-1")
@pytest.mark.parametrize("shown", [True, False])
async def test_a_command_runs_without_a_run_and_the_model_reads_it_only_if_wished(tmp_path: Path, shell: Shell, shown: bool) -> None:
    rig = Rig(path=tmp_path, tools=(shell.tool(),))
    conversation = await rig.start(say("heard"), agent=Agent(model="test/model", approval="ask", tools=(), cwd=str(tmp_path)))
    await conversation.run_command(" make all ", shown=shown)
    await rig.until(shell.started.is_set)
    live = await rig.live(conversation.id)
    assert live.run is None
    assert [(slot.title, slot.status) for slot in live.commands] == [("make all", "running")]
    shell.released.set()
    await rig.run_out(conversation)
    entry = of_command(await rig.entries(conversation.id))
    assert entry.data is not None
    assert (entry.data["title"], entry.data["output"], entry.data["shown"], entry.data["details"]) == ("make all", "ran make all", shown, {"exitCode": 0})
    assert (await rig.live(conversation.id)).commands == ()
    await conversation.submit("and now?")
    await rig.run_out(conversation)
    (request,) = rig.model.requests
    said = "\n".join(part.text for message in request.messages if isinstance(message, UserMessage) for part in message.content if isinstance(part, Text))
    assert ("$ make all\nran make all" in said) == shown
    assert said.endswith("and now?")
    await rig.close()


@pytest.mark.rule("TO-1", "TO-2")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_a_command_that_a_kill_cut_off_is_in_doubt_and_not_run_again(tmp_path: Path, shell: Shell, backend) -> None:
    rig = Rig(path=tmp_path, backend=backend, tools=(shell.tool(),))
    rig.settings.progress.persist_within_ms = 0
    conversation = await rig.start()
    task_id = await conversation.run_command("make all", shown=True)
    await rig.until(shell.started.is_set)
    rig.clock.advance(200)
    await rig.settle()
    await rig.kill()
    harness = await rig.open()
    again = await harness.conversation(conversation.id)
    await again.idle()
    entry = of_command(await rig.entries(conversation.id))
    assert entry.data is not None
    assert codes_of(entry) == ["interrupted"]
    assert shell.runs == ["make all"]
    (task,) = [task for task in await rig.tasks("pidurable.command") if task.id == task_id]
    assert isinstance(task.outcome, Failed)
    await rig.close()


@pytest.mark.rule("TO-1")
async def test_a_command_that_was_only_wished_for_is_run_after_a_kill(tmp_path: Path, shell: Shell) -> None:
    rig = Rig(path=tmp_path, tools=(shell.tool(),))
    conversation = await rig.start()
    shell.released.set()
    await conversation.run_command("make all", shown=True)
    await rig.kill()
    assert shell.runs == []
    harness = await rig.open()
    await (await harness.conversation(conversation.id)).idle()
    assert shell.runs == ["make all"]
    assert [task.outcome for task in await rig.tasks("pidurable.command")] == [Completed(value=of_command(await rig.entries(conversation.id)).id)]
    await rig.close()


@pytest.mark.rule("TU-8", "TK-15")
async def test_stopping_stops_a_command_and_keeps_what_it_said(tmp_path: Path, shell: Shell) -> None:
    rig = Rig(path=tmp_path, tools=(shell.tool(),))
    rig.settings.progress.persist_within_ms = 0
    conversation = await rig.start()
    await conversation.run_command("make all", shown=True)
    await rig.until(shell.started.is_set)
    rig.clock.advance(200)
    await rig.settle()
    await conversation.abort()
    entry = of_command(await rig.entries(conversation.id))
    assert entry.data is not None
    assert entry.data["output"] == "working\n"
    assert codes_of(entry) == ["aborted"]
    assert [type(task.outcome) for task in await rig.tasks("pidurable.command")] == [Aborted]
    await rig.close()


@pytest.mark.rule("CX-1")
async def test_a_command_in_the_middle_of_a_round_keeps_calls_and_results_together(tmp_path: Path, shell: Shell) -> None:
    rig = Rig(path=tmp_path, tools=(shell.tool(),))
    conversation = await rig.start(call(("bash", {"command": "slow"})), say("done"))
    await conversation.submit("go")
    await rig.until(shell.started.is_set)
    await conversation.run_command("mine", shown=True)
    await rig.settle()
    shell.released.set()
    await rig.run_out(conversation)
    roles = [type(message).__name__ for message in rig.model.requests[-1].messages]
    assert roles == ["UserMessage", "AssistantMessage", "ToolResultMessage", "UserMessage"]
    assert texts(rig.model.requests[-1])[-1] == ("user", "The user ran this command themselves:\n$ mine\nran mine")
    await rig.close()


async def test_a_blank_command_is_refused(tmp_path: Path, shell: Shell) -> None:
    rig = Rig(path=tmp_path, tools=(shell.tool(),))
    conversation = await rig.start()
    with pytest.raises(BadRequest):
        await conversation.run_command("  \n", shown=True)
    assert await rig.tasks() == []
    await rig.close()
