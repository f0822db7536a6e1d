"""A command that a person runs beside the agent (`!` in the composer): a task, so that its intent and its end are stored (rule TO-1).

It is carried out by the tool of that name, in the conversation's environment, without asking anybody: whoever typed it has said yes.
A kill after the intent leaves it in doubt, never run again by itself. What it did enters the transcript as an entry of its own, which
the model reads or not, as the person wished.
"""

from __future__ import annotations

import asyncio

import msgspec

from pi_durable_tui.harness.extensions.task_definition import End, Ending, Move, TaskDefinition
from pi_durable_tui.harness.live import LIVE, Live, ToolSlot
from pi_durable_tui.harness.ports import ToolResult
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.tool import decide
from pi_durable_tui.harness.tool.carry import intend, leftovers, result_of, stored_output, tool_context
from pi_durable_tui.harness.tool.checkpoint import CallInput
from pi_durable_tui.harness.tool.output import RunningOutput
from pi_durable_tui.harness.transcript import agent_of
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import COMMAND as COMMAND_ENTRY
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.json import JsonObject, strict
from pi_durable_tui.records.messages import Problem, Record, Text, UserMessage
from pi_durable_tui.records.task import Aborted, Completed, Failed, Faulted, Outcome, Pending, Task
from pi_durable_tui.session.transaction import Transaction

COMMAND = "pidurable.command"


class CommandInput(Record, frozen=True):
    """What a person wants to be run. `shown`: the model reads the command and what came of it."""

    name: str
    arguments: JsonObject
    title: str
    shown: bool


async def begin_command(transaction: Transaction, conversation_id: int, wanted: CommandInput) -> Task:
    """Store the wish, and a place on the screen for it."""
    draft = await transaction.document(LIVE, conversation_id)
    live = from_json(draft.value, Live)
    task = Task(
        id=transaction.new_id(),
        kind=COMMAND,
        conversation_id=conversation_id,
        input=as_object(wanted),
        state=Pending(checkpoint={"phase": "start"}),
        created_at_ms=transaction.now_ms,
    )
    transaction.put_task(task)
    slot = ToolSlot(
        task_id=task.id,
        call_id=f"call-{task.id}",
        name=wanted.name,
        arguments=wanted.arguments,
        title=wanted.title,
        status="pending",
        started_at_ms=transaction.now_ms,
    )
    draft.value = as_object(msgspec.structs.replace(live, commands=(*live.commands, slot)))
    return task


async def start(runtime: TaskRuntime) -> None:
    """Store the intent, and only then do it. A kill in here repeats all of it."""
    wanted = from_json(runtime.task.input, CommandInput)
    admitted = await _admitted(runtime, wanted)
    if isinstance(admitted, decide.Refusal):
        await _finish(runtime, admitted.result)
        return
    if (refusal := await intend(runtime)) is not None:
        await _finish(runtime, refusal.result)
        return
    await _finish(runtime, await _carry_out(runtime, admitted))


async def run(runtime: TaskRuntime) -> None:
    """Reached only when the process ended after the intent: the command may have done anything, so it is not run again."""
    name = from_json(runtime.task.input, CommandInput).name
    remarks = (decide.interrupted(name), *await leftovers(runtime, name))
    await _finish(runtime, decide.cut_short(await stored_output(runtime), *remarks), is_cut_off=True)


async def close_command(transaction: Transaction, task: Task, ending: Ending) -> Outcome:
    """End a command from outside; what it had said is kept."""
    wanted = from_json(task.input, CommandInput)
    live = from_json((await transaction.document(LIVE, task.conversation_id)).value, Live)
    output = next((slot.output for slot in live.commands if slot.task_id == task.id), "")
    match ending.why:
        case "aborted":
            remark = decide.aborted(wanted.name, has_started=task.checkpoint is not None and task.checkpoint.get("phase") == "run")
            outcome: Outcome = Aborted()
        case "restart_limit":
            remark = decide.restart_limit(wanted.name)
            outcome = Failed(problem=Problem(reason="restart_limit", message=remark.message))
        case "fault":
            remark = decide.faulted(wanted.name, ending.message)
            outcome = Faulted(message=ending.message)
    await _enter(transaction, task, decide.cut_short(output, remark))
    return outcome


async def _admitted(runtime: TaskRuntime, wanted: CommandInput) -> decide.Admitted | decide.Refusal:
    """A person may use a tool that the agent is not offered."""
    agent = await agent_of(runtime.services, runtime.task.conversation_id)
    tools = runtime.services.registry.tools(msgspec.structs.replace(agent, tools=None))
    call = CallInput(assistant=0, call_id=f"call-{runtime.task_id}", name=wanted.name, arguments=wanted.arguments)
    return decide.admit(tools, call, wanted.arguments)


async def _carry_out(runtime: TaskRuntime, admitted: decide.Admitted) -> ToolResult:
    """Do it. No hooks: it is not the agent that acts."""
    output = RunningOutput(runtime)
    context = await tool_context(runtime, output)
    try:
        if admitted.tool.execute is None:
            return decide.Refusal("tool_unavailable", f"Tool {admitted.tool.name} is not for people.").result
        return await result_of(admitted, context)
    except asyncio.CancelledError:
        if runtime.is_aborted and admitted.tool.on_abort is not None:
            await admitted.tool.on_abort(admitted.arguments, context)
        raise
    finally:
        await output.stop()


async def _finish(runtime: TaskRuntime, result: ToolResult, *, is_cut_off: bool = False) -> None:
    async def write(transaction: Transaction, task: Task) -> Move:
        entry_id = await _enter(transaction, task, result)
        if is_cut_off:
            return End(Failed(problem=Problem(reason="interrupted", message=result.diagnostics[0].message)))
        return End(Completed(value=entry_id))

    await runtime.commit(write, priority="outcome")


async def _enter(transaction: Transaction, task: Task, result: ToolResult) -> int:
    """Put what came of it into the transcript and take its place on the screen down; returns the entry's id."""
    wanted = from_json(task.input, CommandInput)
    draft = await transaction.document(LIVE, task.conversation_id)
    live = from_json(draft.value, Live)
    slot = next((each for each in live.commands if each.task_id == task.id), None)
    started_at_ms = slot.started_at_ms if slot is not None else task.created_at_ms
    output = "\n".join(part.text for part in result.content if isinstance(part, Text))
    data: JsonObject = {
        "taskId": task.id,
        "name": wanted.name,
        "arguments": wanted.arguments,
        "title": wanted.title,
        "startedAtMs": started_at_ms,
        "durationMs": max(0, transaction.now_ms - started_at_ms),
        "diagnostics": decide.remarks(result.diagnostics),
        "output": output,
        "isError": result.is_error,
        "shown": wanted.shown,
    }
    if result.details is not None:
        data["details"] = strict(result.details)
    entry = Entry(
        id=transaction.new_id(),
        conversation_id=task.conversation_id,
        kind=COMMAND_ENTRY,
        at_ms=transaction.now_ms,
        message=_told(wanted, output, result) if wanted.shown else None,
        data=data,
    )
    transaction.insert_entry(entry)
    draft.value = as_object(msgspec.structs.replace(live, commands=tuple(each for each in live.commands if each.task_id != task.id)))
    return entry.id


def _told(wanted: CommandInput, output: str, result: ToolResult) -> UserMessage:
    """What the model reads. PURE."""
    remarks = "".join(f"\n[{remark.message}]" for remark in result.diagnostics)
    command = wanted.arguments.get("command", wanted.title)
    return UserMessage(content=(Text(text=f"The user ran this command themselves:\n$ {command}\n{output}{remarks}"),))


DEFINITION = TaskDefinition(kind=COMMAND, phases={"start": start, "run": run}, on_ending=close_command, limit_report="task_interrupted")
