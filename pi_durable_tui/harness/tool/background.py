"""The task `pi.background`: a call that goes on behind its result (rule TO-10).

The call ends at once, in the commit that makes this task. The tool then works as for any call: intent first, then the effect. That it
has ended is told in the commit that ends the task, so exactly once. What a process does dies with it: a task that is found at work
after a kill is never run again, it is ended, and that is told. An abort of the run passes it over (rule TK-16), a close of the harness
ends it.
"""

from __future__ import annotations

import contextlib

import msgspec

from pi_durable_tui.errors import SessionClosed, SessionFailed, StorageRejected
from pi_durable_tui.harness.extensions.hooks import HookedCall
from pi_durable_tui.harness.extensions.task_definition import End, Ending, Move, TaskDefinition
from pi_durable_tui.harness.kinds import BACKGROUND
from pi_durable_tui.harness.live import LIVE, Live, ToolSlot
from pi_durable_tui.harness.ports import Diagnostic, Tool, ToolResult
from pi_durable_tui.harness.runs import Desk, as_object
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.tasks.table import LIVE_STATUSES, TaskTable
from pi_durable_tui.harness.tool import decide
from pi_durable_tui.harness.tool.carry import carry_out, intend, leftovers, stored_output
from pi_durable_tui.harness.tool.checkpoint import BackgroundInput, CallInput
from pi_durable_tui.harness.tool.finish import enter
from pi_durable_tui.harness.tool.output import slot_of
from pi_durable_tui.harness.tool.rights import acting
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import NOTICE, Entry
from pi_durable_tui.records.json import JsonObject, clean_text, strict
from pi_durable_tui.records.messages import Problem, Text, UserMessage
from pi_durable_tui.records.task import Aborted, Completed, Failed, Faulted, Outcome, Pending, Running, Task, Terminal, moved
from pi_durable_tui.session.transaction import Transaction

KILLED = Diagnostic("error", "interrupted", "The program was killed, and this ended with it. It may have done its work in part.")
CLOSED = Diagnostic("warn", "aborted", "The program was closed, and this was ended with it.")
STOPPED = Diagnostic("warn", "aborted", "It was stopped.")
TOLD_CHARS = 4_000
"""So much of the end of its output is told of a call that was ended."""


async def put_in_background(runtime: TaskRuntime, tool: Tool, arguments: JsonObject, *, title: str) -> None:
    """End the call with the number under which it goes on, in one commit; the limit on such calls may refuse it (rule SA-14)."""
    limit = runtime.services.settings.limits.background_calls

    async def write(transaction: Transaction, task: Task) -> Move:
        running = await transaction.tasks(kind=BACKGROUND, statuses=LIVE_STATUSES, limit=1_000)
        conversation = await transaction.conversation(task.conversation_id)
        if len(running.items) >= limit:
            text = f"{limit} calls go on in the background already, which is the limit, so this one was not run. Stop one, or wait for one."
            return End(Completed(value=await enter(transaction, task, decide.Refusal("blocked", text).result)))
        draft = await transaction.document(LIVE, task.conversation_id)
        job = Task(
            id=transaction.new_id(),
            kind=BACKGROUND,
            conversation_id=task.conversation_id,
            input=as_object(BackgroundInput(name=tool.name, arguments=arguments, title=title)),
            state=Pending(checkpoint={"phase": "start"}),
            created_at_ms=transaction.now_ms,
            # What a subagent started ends with it; only a person's chat outlives its runs.
            background=conversation is None or conversation.owner is None,
        )
        transaction.put_task(job)
        call_id = from_json(task.input, CallInput).call_id
        slot = ToolSlot(
            task_id=job.id,
            call_id=call_id,
            name=tool.name,
            arguments=arguments,
            title=title,
            status="pending",
            started_at_ms=transaction.now_ms,
        )
        if (called := slot_of(draft.value, task.id)) is not None:
            called |= {"title": title, "arguments": arguments}
        draft.value = as_object(_with_slot(from_json(draft.value, Live), slot))
        text = f"It goes on in the background as number {job.id}. A message will tell of its end."
        return End(Completed(value=await enter(transaction, task, ToolResult(content=(Text(text=text),), details={"background": job.id}))))

    await runtime.commit(write)


async def start(runtime: TaskRuntime) -> None:
    """Store the intent, and only then do it. A kill in here repeats all of it."""
    wanted = from_json(runtime.task.input, BackgroundInput)
    agent = await acting(runtime)
    call = CallInput(assistant=0, call_id=f"call-{runtime.task_id}", name=wanted.name, arguments=wanted.arguments)
    admitted = decide.admit(runtime.services.registry.tools(agent), call, wanted.arguments)
    if isinstance(admitted, decide.Refusal):
        await _finish(runtime, admitted.result)
        return
    if (refusal := await intend(runtime)) is not None:
        await _finish(runtime, refusal.result)
        return
    called = HookedCall(conversation_id=runtime.task.conversation_id, task_id=runtime.task_id, name=wanted.name, arguments=wanted.arguments, in_background=True)
    await _finish(runtime, await carry_out(runtime, admitted, called))


async def run(runtime: TaskRuntime) -> None:
    """Reached only when a process ended after the intent: what it did ended with it, and is not begun again."""
    remarks = (KILLED if runtime.task.restarts else CLOSED, *await leftovers(runtime, from_json(runtime.task.input, BackgroundInput).name))
    result = decide.cut_short((await stored_output(runtime))[-TOLD_CHARS:], *remarks)

    async def write(transaction: Transaction, task: Task) -> Move:
        await _enter(transaction, task, result)
        return End(Failed(problem=Problem(reason="interrupted", message=result.diagnostics[0].message)))

    await runtime.commit(write, priority="outcome")


async def close_background(transaction: Transaction, task: Task, ending: Ending) -> Outcome:
    """End it from outside; what it had said is told."""
    match ending.why:
        case "aborted":
            remark, outcome = STOPPED, Aborted()
        case "restart_limit":
            remark, outcome = KILLED, Failed(problem=Problem(reason="restart_limit", message=ending.message))
        case "fault":
            name = from_json(task.input, BackgroundInput).name
            remark, outcome = decide.faulted(name, ending.message), Faulted(message=ending.message)
    await _close(transaction, task, remark)
    return outcome


async def end_with_the_process(services: Services, table: TaskTable) -> None:
    """The harness closes, and what goes on in the background has ended with its handlers: store that, so that nothing is left unfinished.

    What did not work in this process is left to the next one: what has not begun begins there, and what a kill had cut off is looked after.
    What cannot be stored is told by it, too.
    """
    for task_id in [task.id for task in table.tasks.values() if task.kind == BACKGROUND and _is_at_work(task)]:

        async def write(transaction: Transaction, task_id: int = task_id) -> None:
            task = table.tasks.get(task_id)
            if task is not None and _is_at_work(task):
                await _close(transaction, task, CLOSED)
                transaction.put_task(moved(task, Terminal(outcome=Aborted()), at_ms=transaction.now_ms))

        with contextlib.suppress(StorageRejected, SessionClosed, SessionFailed):
            await services.session.commit(write, priority="outcome")


def _is_at_work(task: Task) -> bool:
    """Whether its tool works in this process."""
    return isinstance(task.state, Running) and task.state.checkpoint.get("phase") == "run" and not task.restarts


async def _close(transaction: Transaction, task: Task, remark: Diagnostic) -> None:
    slot = slot_of((await transaction.document(LIVE, task.conversation_id)).value, task.id) or {}
    await _enter(transaction, task, decide.cut_short(str(slot.get("output", ""))[-TOLD_CHARS:], remark))


async def _finish(runtime: TaskRuntime, result: ToolResult) -> None:
    """It ended by itself: the model is told at once, also when nothing runs; in a subagent that has ended nobody is asked any more."""
    services = runtime.services

    async def write(transaction: Transaction, task: Task) -> Move:
        conversation = await transaction.conversation(task.conversation_id)
        desk = await Desk.take(transaction, task.conversation_id)
        if desk.live.run is None and conversation is not None and conversation.owner is not None:
            await _enter(transaction, task, result)
        else:
            data = _data(task, _slot(desk.live, task.id), result, now_ms=transaction.now_ms)
            desk.change_live(background=_others(desk.live, task.id))
            desk.notify(_text(task, result), services.settings, request_id=f"background-end:{task.id}", data=data)
            desk.put_back()
        await _change_documents(transaction, task, result)
        return End(Completed(value=result.details))

    await runtime.commit(write, priority="outcome")


async def _enter(transaction: Transaction, task: Task, result: ToolResult) -> None:
    """Tell how it ended without asking the model: it reads this with its next request."""
    draft = await transaction.document(LIVE, task.conversation_id)
    live = from_json(draft.value, Live)
    entry = Entry(
        id=transaction.new_id(),
        conversation_id=task.conversation_id,
        kind=NOTICE,
        at_ms=transaction.now_ms,
        message=UserMessage(content=(Text(text=_text(task, result)),)),
        data=_data(task, _slot(live, task.id), result, now_ms=transaction.now_ms),
    )
    transaction.insert_entry(entry)
    draft.value = as_object(msgspec.structs.replace(live, background=_others(live, task.id)))


async def _change_documents(transaction: Transaction, task: Task, result: ToolResult) -> None:
    for definition, step in result.documents:
        changed = await transaction.document(definition, task.conversation_id)
        changed.value = step(changed.value)


def _with_slot(live: Live, slot: ToolSlot) -> Live:
    return msgspec.structs.replace(live, background=(*live.background, slot))


def _others(live: Live, task_id: int) -> tuple[ToolSlot, ...]:
    return tuple(slot for slot in live.background if slot.task_id != task_id)


def _slot(live: Live, task_id: int) -> ToolSlot | None:
    return next((slot for slot in live.background if slot.task_id == task_id), None)


def _text(task: Task, result: ToolResult) -> str:
    """What the model reads. PURE."""
    title = from_json(task.input, BackgroundInput).title
    said = [part.text.rstrip("\n") for part in result.content if isinstance(part, Text)]
    remarks = [f"[{remark.message}]" for remark in result.diagnostics]
    return clean_text("\n".join([f"[Number {task.id} in the background has ended: {title}]", *said, *remarks]))


def _data(task: Task, slot: ToolSlot | None, result: ToolResult, *, now_ms: int) -> JsonObject:
    """What people want to know of it. PURE."""
    wanted = from_json(task.input, BackgroundInput)
    started_at_ms = slot.started_at_ms if slot is not None else task.created_at_ms
    data: JsonObject = {
        "taskId": task.id,
        "name": wanted.name,
        "arguments": wanted.arguments,
        "title": wanted.title,
        "startedAtMs": started_at_ms,
        "durationMs": max(0, now_ms - started_at_ms),
        "diagnostics": decide.remarks(result.diagnostics),
        "output": "\n".join(part.text for part in result.content if isinstance(part, Text)),
        "isError": result.is_error,
    }
    return data if result.details is None else {**data, "details": strict(result.details)}


DEFINITION = TaskDefinition(kind=BACKGROUND, phases={"start": start, "run": run}, on_ending=close_background, limit_report="task_interrupted")
"""The task kind `pi.background`."""
