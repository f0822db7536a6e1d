"""The one phase of `pi.subagent`, and how it is ended from outside.

Nothing runs while the subagent works: the task waits for its run, so a kill costs nothing here. A background subagent's report is
handed in with the commit that ends the task, so it arrives exactly once.
"""

from __future__ import annotations

import msgspec

from pi_durable_tui.harness.extensions.task_definition import End, Ending, Move, TaskDefinition, Wait
from pi_durable_tui.harness.kinds import BACKGROUND, SUBAGENT
from pi_durable_tui.harness.live import USAGE, UsageTotals
from pi_durable_tui.harness.runs import Desk, as_object
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.subagent.checkpoint import Report, SubagentInput
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.tasks.table import LIVE_STATUSES
from pi_durable_tui.records.codec import from_json, to_json
from pi_durable_tui.records.entry import NOTICE, Entry
from pi_durable_tui.records.json import JsonObject, clean_text
from pi_durable_tui.records.messages import AssistantMessage, Problem, Text, Usage, UserMessage
from pi_durable_tui.records.submission import Done, Unanswered
from pi_durable_tui.records.task import Aborted, Completed, Failed, Faulted, Outcome, Task
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.port import Storage

STOPPED = Problem(reason="aborted", message="it was stopped")


async def report(runtime: TaskRuntime) -> None:
    """The subagent's run has ended: its answer is the outcome, and in the background also a message to who asked.

    When it was told something while it answered, it works on that now, and its last word is still to come.
    """
    services = runtime.services
    wanted = from_json(runtime.task.input, SubagentInput)

    async def write(transaction: Transaction, task: Task) -> Move:
        desk = await Desk.take(transaction, wanted.conversation)
        if desk.live.run is not None:
            return Wait(as_object(Report()), (desk.live.run.task_id,))
        submission = await transaction.submission(wanted.submission)
        value = await said(transaction, wanted.conversation)
        used = from_json((await transaction.document(USAGE, wanted.conversation)).value, UsageTotals)
        value["usage"] = to_json(sum(used.models.values(), Usage()))
        state = submission.state if submission is not None else None
        problem = state.problem if isinstance(state, Unanswered) else None
        left = await transaction.tasks(kind=BACKGROUND, statuses=LIVE_STATUSES, conversation_id=wanted.conversation, limit=1_000)
        if wanted.background:
            await _tell(transaction, services, task, name=wanted.name, said=str(value["text"]), problem=problem)
        for call in left.items:  # nobody would hear of its end
            if call.abort_at_ms is None:
                transaction.put_task(msgspec.structs.replace(call, abort_at_ms=transaction.now_ms))
        _take_back(desk)
        return End(Completed(value=value) if isinstance(state, Done) else Failed(problem=problem or Problem(reason="interrupted")))

    await runtime.commit(write, priority="outcome")


async def said(reader: Storage | Transaction, conversation_id: int) -> JsonObject:
    """What a subagent said last, as far as it is stored: `{conversationId, text}`."""
    page = await reader.entries(conversation_id, limit=50, descending=True)
    texts = (stored.entry.message.text for stored in page.items if isinstance(stored.entry.message, AssistantMessage))
    return {"conversationId": conversation_id, "text": next((text for text in texts if text.strip()), "")}


async def _tell(transaction: Transaction, services: Services, task: Task, *, name: str, said: str, problem: Problem | None) -> None:
    """Hand the report to the conversation that asked, as a message of its own."""
    desk = await Desk.take(transaction, task.conversation_id)
    data = _data(transaction, task, name=name, said=said, problem=problem)
    desk.notify(_text(name, said, problem), services.settings, request_id=f"subagent-report:{task.id}", data=data)
    desk.put_back()


def _enter(transaction: Transaction, task: Task, *, name: str, said: str, problem: Problem) -> None:
    """Tell the conversation that asked how its subagent was ended, without asking the model: it reads this with its next request."""
    entry = Entry(
        id=transaction.new_id(),
        conversation_id=task.conversation_id,
        kind=NOTICE,
        at_ms=transaction.now_ms,
        message=UserMessage(content=(Text(text=clean_text(_text(name, said, problem))),)),
        data=_data(transaction, task, name=name, said=said, problem=problem),
    )
    transaction.insert_entry(entry)


def _data(transaction: Transaction, task: Task, *, name: str, said: str, problem: Problem | None) -> JsonObject:
    data: JsonObject = {"taskId": task.id, "name": "subagent", "title": name, "output": said, "isError": problem is not None}
    return data | {"startedAtMs": task.created_at_ms, "durationMs": max(0, transaction.now_ms - task.created_at_ms)}


def _take_back(desk: Desk) -> None:
    """What waits for a subagent when it ends will never be heard: it comes to an end with it (rule PR-10)."""
    desk.withdraw([item.submission_id for item in desk.inbox.items], "withdrawn")
    desk.put_back()


def _text(name: str, text: str, problem: Problem | None) -> str:
    end = "has finished" if problem is None else f"ended without an answer ({problem.message or problem.reason})"
    return f"[The background subagent {name} {end}.]\n\n{text}".rstrip()


async def close_subagent(transaction: Transaction, task: Task, ending: Ending) -> Outcome:
    """End a subagent from outside: what it had said is kept in the outcome, and of one in the background who asked is told."""
    wanted = from_json(task.input, SubagentInput)
    desk = await Desk.take(transaction, wanted.conversation)
    value = await said(transaction, wanted.conversation)
    _take_back(desk)
    problem = STOPPED if ending.why == "aborted" else Problem(reason=ending.why, message=ending.message)
    if wanted.background:
        _enter(transaction, task, name=wanted.name, said=str(value["text"]), problem=problem)
    match ending.why:
        case "aborted":
            return Aborted(value=value)
        case "restart_limit":
            return Failed(problem=problem)
        case "fault":
            return Faulted(message=ending.message)


DEFINITION = TaskDefinition(kind=SUBAGENT, phases={"report": report}, on_ending=close_subagent, limit_report="task_interrupted")
"""The task kind `pi.subagent`."""
