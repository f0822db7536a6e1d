"""How a call ends, in one commit: its result enters the transcript, its slot leaves the screen, its task is terminal (FA-33, FA-36)."""

from __future__ import annotations

import msgspec

from pi_durable_tui.harness.extensions.task_definition import End, Ending, Move
from pi_durable_tui.harness.live import AGENT, LIVE, USAGE, Agent, Live, ToolSlot, UsageTotals
from pi_durable_tui.harness.ports import ToolResult
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.tool import decide
from pi_durable_tui.harness.tool.checkpoint import CallInput, Collect, Execute
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import TOOL_RESULT, Entry
from pi_durable_tui.records.json import JsonObject, clean_text, strict
from pi_durable_tui.records.messages import Problem, ToolCall, Usage
from pi_durable_tui.records.task import Aborted, Completed, Failed, Faulted, Outcome, Task
from pi_durable_tui.session.transaction import Transaction


async def finish(runtime: TaskRuntime, result: ToolResult, *, is_cut_off: bool = False) -> None:
    """Store the result of a call and end its task: `completed`, or `failed` when it was cut off and its end is unknown."""

    async def write(transaction: Transaction, task: Task) -> Move:
        entry_id = await enter(transaction, task, result)
        if not is_cut_off:
            return End(Completed(value=entry_id))
        return End(Failed(problem=Problem(reason="interrupted", message=result.diagnostics[0].message)))

    await runtime.commit(write, priority="outcome")


async def close_tool(transaction: Transaction, task: Task, ending: Ending) -> Outcome:
    """End a call from outside; it gets a result all the same, so that history stays valid (rule CX-1)."""
    asked = from_json(task.input, CallInput)
    live = from_json((await transaction.document(LIVE, task.conversation_id)).value, Live)
    slot = next((each for each in live.tools if each.task_id == task.id), None)
    match ending.why:
        case "aborted":
            why = "because the time of the run was used up" if live.run is not None and live.run.limit is not None else "by the user"
            remark = decide.aborted(asked.name, has_started=_has_started(task), why=why)
            outcome: Outcome = Aborted()
        case "restart_limit":
            remark = decide.restart_limit(asked.name)
            outcome = Failed(problem=Problem(reason="restart_limit", message=remark.message))
        case "fault":
            remark = decide.faulted(asked.name, ending.message)
            outcome = Faulted(message=ending.message)
    output = await _subagent_text(transaction, task) or (slot.output if slot is not None else "")
    await enter(transaction, task, decide.cut_short(output, remark))
    return outcome


def _has_started(task: Task) -> bool:
    checkpoint = task.checkpoint
    return checkpoint is not None and checkpoint.get("phase") in {"execute", "collect"}


async def _subagent_text(transaction: Transaction, task: Task) -> str:
    """What the subagent of a delegated call had said; it has ended before the call is ended (rule TK-15)."""
    checkpoint = task.checkpoint
    if checkpoint is None or checkpoint.get("phase") != "collect":
        return ""
    ended = await transaction.task(from_json(checkpoint, Collect).subagent)
    return said_by(ended.outcome) if ended is not None else ""


def said_by(outcome: Outcome | None) -> str:
    """The text that a subagent left, also when it was stopped. PURE."""
    value = outcome.value if isinstance(outcome, Completed | Aborted) else None
    return str(value.get("text", "")) if isinstance(value, dict) else ""


async def enter(transaction: Transaction, task: Task, result: ToolResult) -> int:
    """Put a result into the transcript and take its slot down, in the commit of `transaction`; returns the entry's id."""
    draft = await transaction.document(LIVE, task.conversation_id)
    live = from_json(draft.value, Live)
    slot = next((each for each in live.tools if each.task_id == task.id), None)
    asked = from_json(task.input, CallInput)
    entry_id = _insert(transaction, task, asked, result, _data(transaction, task, asked, slot, result))
    await _count(transaction, task, result)
    await _add_tools(transaction, task, result)
    for definition, step in result.documents:
        changed = await transaction.document(definition, task.conversation_id)
        changed.value = step(changed.value)
    draft.value = as_object(msgspec.structs.replace(live, tools=tuple(each for each in live.tools if each.task_id != task.id)))
    return entry_id


def enter_unstarted(transaction: Transaction, run: Task, call: ToolCall, *, why: str) -> None:
    """Put into the transcript that a call of a run that ends was never begun: there is no task of it, and no slot (rule TO-3)."""
    result = decide.cut_short("", decide.aborted(call.name, has_started=False, why=why))
    asked = CallInput(assistant=0, call_id=call.id, name=call.name, arguments=call.arguments)
    data: JsonObject = {"name": call.name, "arguments": call.arguments, "title": call.name, "diagnostics": decide.remarks(result.diagnostics)}
    _insert(transaction, run, asked, result, data)


def _insert(transaction: Transaction, task: Task, asked: CallInput, result: ToolResult, data: JsonObject) -> int:
    """Put a result into the transcript of a task's conversation; returns the entry's id."""
    entry_id = transaction.new_id()
    message = decide.message(asked, result)
    transaction.insert_entry(Entry(id=entry_id, conversation_id=task.conversation_id, kind=TOOL_RESULT, at_ms=transaction.now_ms, message=message, data=data))
    return entry_id


async def _count(transaction: Transaction, task: Task, result: ToolResult) -> None:
    if result.usage is not None:
        name = from_json(task.input, CallInput).name
        draft = await transaction.document(USAGE, task.conversation_id)
        totals = from_json(draft.value, UsageTotals)
        tools = {**totals.tools, name: totals.tools.get(name, Usage()) + result.usage}
        draft.value = as_object(msgspec.structs.replace(totals, tools=tools))


async def _add_tools(transaction: Transaction, task: Task, result: ToolResult) -> None:
    if result.add_tools:
        draft = await transaction.document(AGENT, task.conversation_id)
        agent = from_json(draft.value, Agent)
        if agent.tools is not None:
            draft.value = as_object(msgspec.structs.replace(agent, tools=tuple(dict.fromkeys((*agent.tools, *result.add_tools)))))


def _intent(task: Task) -> Execute | Collect | None:
    checkpoint = task.checkpoint or {}
    match checkpoint.get("phase"):
        case "execute":
            return from_json(checkpoint, Execute)
        case "collect":
            return from_json(checkpoint, Collect)
        case _:
            return None


def _data(transaction: Transaction, task: Task, asked: CallInput, slot: ToolSlot | None, result: ToolResult) -> JsonObject:
    """What people want to know of a result: which call, how long, details and remarks."""
    intent = _intent(task)
    started_at_ms = slot.started_at_ms if slot is not None else task.created_at_ms
    data: JsonObject = {
        "taskId": task.id,
        "name": asked.name,
        "arguments": intent.arguments if intent is not None else asked.arguments,
        "title": intent.title if intent is not None else (slot.title if slot is not None else asked.name),
        "startedAtMs": started_at_ms,
        "durationMs": max(0, transaction.now_ms - started_at_ms),
        "diagnostics": decide.remarks(result.diagnostics),
    }
    if result.details is not None:
        data["details"] = strict(result.details)
    if result.terminate:
        data["terminate"] = True
    if result.handoff is not None:
        data["handoff"] = clean_text(result.handoff)
    if intent is not None and intent.approved_by is not None:
        data["approvedBy"] = intent.approved_by
    return data
