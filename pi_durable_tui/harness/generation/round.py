"""The parts of a commit that start tool calls: a task and a slot on the screen for each (rule GE-5)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pi_durable_tui.errors import InternalError
from pi_durable_tui.harness.extensions.hooks import asked
from pi_durable_tui.harness.extensions.task_definition import Advance, End, Move, Wait
from pi_durable_tui.harness.generation import decide
from pi_durable_tui.harness.generation.checkpoint import Prepare, Tools
from pi_durable_tui.harness.kinds import TOOL
from pi_durable_tui.harness.live import ToolSlot
from pi_durable_tui.harness.runs import Desk, as_object
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.tool.checkpoint import Call, CallInput
from pi_durable_tui.harness.transcript import agent_of
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import TOOL_RESULT, Entry
from pi_durable_tui.records.json import Json
from pi_durable_tui.records.messages import AssistantMessage, ToolCall
from pi_durable_tui.records.task import Completed, Pending, Task
from pi_durable_tui.session.transaction import Transaction


def begin_round(runtime: TaskRuntime, desk: Desk, entry_id: int, message: AssistantMessage, *, at_once: int) -> Move:
    """Start the first `at_once` calls of an answer; the generation waits for them."""
    calls = message.tool_calls
    is_cut = message.stop_reason == "length"
    started = _start(runtime, desk, entry_id, calls[:at_once], is_cut=is_cut)
    desk.change_live(generation=None)
    return _waiting(Tools(assistant=entry_id, tools=started, pending=tuple(call.id for call in calls[at_once:])), started)


async def next_call(runtime: TaskRuntime, at: Tools) -> None:
    """Start the next call of a sequential round."""
    stored = await runtime.services.session.storage.entry(at.assistant)
    message = stored.entry.message if stored is not None else None
    if not isinstance(message, AssistantMessage):
        raise InternalError(f"entry {at.assistant}, which made the tool calls, is not an answer")
    call = next(call for call in message.tool_calls if call.id == at.pending[0])

    async def write(transaction: Transaction, task: Task) -> Move:
        desk = await Desk.take(transaction, task.conversation_id)
        started = _start(runtime, desk, at.assistant, (call,), is_cut=message.stop_reason == "length")
        desk.put_back()
        return _waiting(Tools(assistant=at.assistant, tools=(*at.tools, *started), pending=at.pending[1:]), started)

    await runtime.commit(write)


async def end_round(runtime: TaskRuntime, at: Tools) -> None:
    """All calls have their results: begin the next turn, or do what a result asked for instead (rule TO-6)."""
    services, conversation_id = runtime.services, runtime.task.conversation_id
    results = await _results(services, conversation_id, at)
    hooks = services.registry.hooks(await agent_of(services, conversation_id))
    calls = [partial(hook.after_tools, conversation_id, results) for hook in hooks if hook.after_tools is not None]
    texts = await asked("after_tools", calls, services.hook_failed, of=str)
    following = decide.after_round(results)

    async def write(transaction: Transaction, task: Task) -> Move:
        desk = await Desk.take(transaction, task.conversation_id)
        for text in texts:
            desk.say(text)
        if following.is_terminated:
            desk.end_run(answer_entry_id=at.assistant, settings=services.settings)
        else:
            if following.handoff is not None:
                desk.reset(following.handoff)
            desk.join(services.settings)
        desk.put_back()
        return End(Completed(value=at.assistant)) if following.is_terminated else Advance(as_object(Prepare()))

    await runtime.commit(write)


async def unstarted_calls(transaction: Transaction, task: Task) -> tuple[ToolCall, ...]:
    """The calls of a run's sequential round whose turn has not come, in call order."""
    checkpoint = task.checkpoint or {}
    if checkpoint.get("phase") != "tools" or not checkpoint.get("pending"):
        return ()
    at = from_json(checkpoint, Tools)
    stored = await transaction.entry(at.assistant)
    message = stored.entry.message if stored is not None else None
    return tuple(call for call in message.tool_calls if call.id in at.pending) if isinstance(message, AssistantMessage) else ()


async def _results(services: Services, conversation_id: int, at: Tools) -> tuple[Entry, ...]:
    """The result entries of a round, in call order, also of calls that were cut off or stopped."""
    found: dict[Json, Entry] = {}
    cursor: int | None = at.assistant + 1
    while cursor is not None:
        page = await services.session.storage.entries(conversation_id, cursor=cursor, limit=1_000)
        found |= {each.entry.data.get("taskId"): each.entry for each in page.items if each.entry.kind == TOOL_RESULT and each.entry.data is not None}
        cursor = page.next
    return tuple(found[task_id] for task_id in at.tools if task_id in found)


def _start(runtime: TaskRuntime, desk: Desk, entry_id: int, calls: Sequence[ToolCall], *, is_cut: bool) -> tuple[int, ...]:
    slots: list[ToolSlot] = []
    for call in calls:
        task_input = CallInput(assistant=entry_id, call_id=call.id, name=call.name, arguments=call.arguments, malformed=call.malformed, is_cut=is_cut)
        task = runtime.child(desk.transaction, TOOL, as_object(task_input), Pending(checkpoint=as_object(Call())))
        slots.append(
            ToolSlot(
                task_id=task.id,
                call_id=call.id,
                name=call.name,
                arguments=call.arguments,
                title=call.name,
                status="pending",
                started_at_ms=desk.transaction.now_ms,
            )
        )
    desk.change_live(tools=(*desk.live.tools, *slots))
    return tuple(slot.task_id for slot in slots)


def _waiting(checkpoint: Tools, on: tuple[int, ...]) -> Wait:
    return Wait(as_object(checkpoint), on)
