"""Calls that a subagent carries out: started with the intent, collected when its run has ended (rules TO-7, TU-8).

No handler waits meanwhile, so a kill changes nothing: the call goes on waiting, and the subagent goes on where it was.
"""

from __future__ import annotations

import msgspec

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.harness.extensions.task_definition import End, Move, Wait
from pi_durable_tui.harness.kinds import SUBAGENT
from pi_durable_tui.harness.live import LIVE
from pi_durable_tui.harness.ports import Delegation, Join, SubagentInfo, ToolResult
from pi_durable_tui.harness.runs import Desk, as_object
from pi_durable_tui.harness.subagent.begin import begin_subagent, child_agent
from pi_durable_tui.harness.subagent.checkpoint import SubagentInput
from pi_durable_tui.harness.subagent.phases import said
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.tool import decide
from pi_durable_tui.harness.tool.checkpoint import CallInput, Collect
from pi_durable_tui.harness.tool.decide import Refusal
from pi_durable_tui.harness.tool.finish import enter, finish, said_by
from pi_durable_tui.harness.tool.output import slot_of
from pi_durable_tui.harness.transcript import agent_of
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.json import JsonObject, clean_text
from pi_durable_tui.records.messages import Text
from pi_durable_tui.records.task import Aborted, Completed, Failed, Task
from pi_durable_tui.session.transaction import Transaction


async def delegate(runtime: TaskRuntime, wanted: Delegation | Join, arguments: JsonObject, *, title: str, approved_by: str | None) -> None:
    """Start the subagent and wait for it; in the background say that it was started; or join one that runs."""
    if isinstance(wanted, Join):
        await _join(runtime, wanted, arguments, title=title)
        return
    try:
        child = child_agent(await agent_of(runtime.services, runtime.task.conversation_id), wanted, runtime.services.registry)
    except BadRequest as error:
        await finish(runtime, Refusal("invalid_arguments", error.message).result)
        return

    async def write(transaction: Transaction, task: Task) -> Move:
        subagent = await begin_subagent(transaction, runtime.services, task, child, wanted)
        if wanted.background:
            text = f"Subagent {wanted.name} was started in the background as number {subagent.id}. Its answer will come as a message."
            entry_id = await enter(transaction, task, ToolResult(content=(Text(text=text),), details={"subagent": subagent.id}))
            return End(Completed(value=entry_id))
        await _show(transaction, task, arguments, title, subagent)
        return Wait(as_object(Collect(arguments=arguments, title=title, subagent=subagent.id, approved_by=approved_by)), (subagent.id,))

    await runtime.commit(write)


async def collect(runtime: TaskRuntime) -> None:
    """The subagent has ended: its answer is the result, or what it had said when it was stopped."""
    at = from_json(runtime.checkpoint, Collect)
    ended = await runtime.services.session.storage.task(at.subagent)
    outcome = ended.outcome if ended is not None else None
    name = from_json(runtime.task.input, CallInput).name
    text = said_by(outcome)
    details: JsonObject = {"subagent": at.subagent}
    if isinstance(outcome, Completed | Aborted) and isinstance(outcome.value, dict):
        details |= {key: outcome.value[key] for key in ("conversationId", "usage") if key in outcome.value}
    content = (Text(text=text),) if text else ()
    match outcome:
        case Completed():
            await finish(runtime, ToolResult(content=content, details=details))
        case Aborted():
            remark = decide.aborted(name, has_started=True)
            await finish(runtime, ToolResult(content=content, is_error=True, details=details, diagnostics=(remark,)))
        case Failed():
            problem = outcome.problem
            remark = decide.faulted(name, problem.message or problem.reason)
            await finish(runtime, ToolResult(content=content, is_error=True, details=details, diagnostics=(remark,)))
        case _:
            remark = decide.faulted(name, "its subagent ended without an answer")
            await finish(runtime, ToolResult(is_error=True, details=details, diagnostics=(remark,)))


async def _join(runtime: TaskRuntime, wanted: Join, arguments: JsonObject, *, title: str) -> None:
    subagent = await runtime.services.session.storage.task(wanted.task_id)
    if subagent is None or subagent.kind != SUBAGENT or subagent.conversation_id != runtime.task.conversation_id:
        await finish(runtime, Refusal("invalid_arguments", f"There is no subagent number {wanted.task_id} here.").result)
        return

    async def write(transaction: Transaction, task: Task) -> Move:
        await _show(transaction, task, arguments, title, subagent)
        return Wait(as_object(Collect(arguments=arguments, title=title, subagent=subagent.id)), (subagent.id,))

    await runtime.commit(write)


async def _show(transaction: Transaction, task: Task, arguments: JsonObject, title: str, subagent: Task) -> None:
    live = await transaction.document(LIVE, task.conversation_id)
    slot = slot_of(live.value, task.id)
    if slot is not None:
        slot |= {"status": "running", "title": title, "arguments": arguments, "startedAtMs": transaction.now_ms, "subagent": subagent.id}
        slot["conversation"] = from_json(subagent.input, SubagentInput).conversation
        slot.pop("question", None)
        slot.pop("questionDetails", None)


class OwnSubagents:
    """The subagents of the conversation whose tool runs; see `ports.Subagents`."""

    def __init__(self, runtime: TaskRuntime) -> None:
        self._runtime = runtime
        self._services = runtime.services
        self._conversation_id = runtime.task.conversation_id
        self._messages = 0

    async def list(self) -> tuple[SubagentInfo, ...]:
        """See the port."""
        storage = self._services.session.storage
        page = await storage.tasks(kind=SUBAGENT, conversation_id=self._conversation_id, limit=1_000)
        return tuple([await self._info(task) for task in page.items])

    async def message(self, task_id: int, text: str) -> bool:
        """See the port."""
        task = await self._running(task_id)
        if task is None:
            return False
        conversation_id = from_json(task.input, SubagentInput).conversation
        self._messages += 1
        request_id = f"told-by:{self._runtime.task_id}:{self._messages}"  # the same one when the call runs again after a kill
        is_heard = False

        async def write(transaction: Transaction, _caller: Task) -> None:
            nonlocal is_heard
            subagent = await transaction.task(task_id)
            is_told = await transaction.submission_by_request(conversation_id, request_id) is not None
            desk = await Desk.take(transaction, conversation_id)
            is_heard = is_told or (subagent is not None and subagent.checkpoint is not None and subagent.abort_at_ms is None)
            if is_heard and not is_told:
                desk.hand_in("steer", (Text(text=clean_text(text)),), self._services.settings, request_id=request_id)
                desk.put_back()

        await self._runtime.commit(write)
        return is_heard

    async def stop(self, task_id: int) -> bool:
        """See the port."""
        if await self._running(task_id) is None:
            return False

        async def write(transaction: Transaction, _caller: Task) -> None:
            task = await transaction.task(task_id)
            if task is None or not task.is_live:
                return
            conversation_id = from_json(task.input, SubagentInput).conversation
            below = await transaction.tasks(conversation_id=conversation_id, limit=1_000)
            for each in (task, *below.items):
                if each.is_live and each.abort_at_ms is None:
                    transaction.put_task(msgspec.structs.replace(each, abort_at_ms=transaction.now_ms))

        await self._runtime.commit(write)
        return True

    async def _running(self, task_id: int) -> Task | None:
        task = await self._services.session.storage.task(task_id)
        is_own = task is not None and task.kind == SUBAGENT and task.conversation_id == self._conversation_id
        return task if is_own and task is not None and task.is_live else None

    async def _info(self, task: Task) -> SubagentInfo:
        wanted = from_json(task.input, SubagentInput)
        value = await said(self._services.session.storage, wanted.conversation)
        return SubagentInfo(
            task_id=task.id,
            conversation_id=wanted.conversation,
            name=wanted.name,
            is_running=task.is_live,
            background=task.background,
            said=str(value["text"])[-400:],
        )
