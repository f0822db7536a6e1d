"""Carrying a call out, once its intent is stored: what a tool is given, the hooks around it, and what is left of it after a kill.

How a call ends is stored by whoever asked for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec

from pi_durable_tui.errors import InternalError
from pi_durable_tui.harness.extensions.hooks import HookedCall, Hooks, asked, changed, must_pass
from pi_durable_tui.harness.extensions.task_definition import Advance, Move
from pi_durable_tui.harness.live import LIVE
from pi_durable_tui.harness.ports import Diagnostic, ToolContext, ToolResult
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.tasks.runtime import Fenced, TaskRuntime
from pi_durable_tui.harness.tool import decide
from pi_durable_tui.harness.tool.background_calls import OwnBackgroundCalls
from pi_durable_tui.harness.tool.decide import Admitted, Refusal
from pi_durable_tui.harness.tool.delegate import OwnSubagents
from pi_durable_tui.harness.tool.output import RunningOutput, slot_of
from pi_durable_tui.harness.transcript import agent_of
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.task import Task
from pi_durable_tui.session.transaction import Transaction


async def tool_context(runtime: TaskRuntime, output: RunningOutput | None = None, *, prepared: Json = None, in_background: bool = False) -> ToolContext:
    """What a tool is given; without `output` nothing that it says while it runs is shown."""
    services, conversation_id = runtime.services, runtime.task.conversation_id

    async def started(facts: JsonObject) -> None:
        await runtime.memo("started", facts)

    async def document(definition: Definition) -> JsonObject:
        return await services.session.snapshot(definition, conversation_id) or definition.initial()

    return ToolContext(
        environment=services.environment(conversation_id, await agent_of(services, conversation_id)),
        output=output.add if output is not None else lambda _text: None,
        prepared=prepared,
        started=started,
        call_id=f"call-{runtime.task_id}",
        subagents=OwnSubagents(runtime),
        background=OwnBackgroundCalls(services, conversation_id),
        document=document,
        in_background=runtime.task_id if in_background else None,
    )


async def intend(runtime: TaskRuntime) -> Refusal | None:
    """Store that a task is about to act, and only then let it (rule TO-1); a refusal where its outcome could not be stored (rule TO-9).

    From then on it is in phase `run`: found there after a kill, it may have done anything.
    """
    if not await runtime.services.session.storage.has_room():
        return decide.NO_ROOM

    async def write(transaction: Transaction, task: Task) -> Move:
        slot = slot_of((await transaction.document(LIVE, task.conversation_id)).value, task.id)
        if slot is not None:
            slot |= {"status": "running", "startedAtMs": transaction.now_ms}
        return Advance({"phase": "run"})

    await runtime.commit(write)
    return None


async def carry_out(runtime: TaskRuntime, admitted: Admitted, called: HookedCall, *, prepared: Json = None) -> ToolResult:
    """Do it, and let the hooks see the result. Stopped by somebody it cleans up, the hooks too; nothing of that can be stored."""
    services = runtime.services
    hooks = services.registry.hooks(await agent_of(services, called.conversation_id))
    output = RunningOutput(runtime)
    context = await tool_context(runtime, output, prepared=prepared, in_background=called.in_background)
    await asked("on_start", [partial(hook.on_start, called) for hook in hooks if hook.on_start is not None], services.hook_failed)
    try:
        result = await result_of(admitted, context)
    except asyncio.CancelledError:
        if runtime.is_aborted:
            await _clean_up(services, admitted, context, called, hooks)
        raise
    finally:
        await output.stop()
    after = [partial(hook.after_tool, called) for hook in hooks if hook.after_tool is not None]
    return await changed("after_tool", result, after, services.hook_failed)


async def result_of(admitted: Admitted, context: ToolContext) -> ToolResult:
    """What a tool gives back; what it raises is its result too."""
    execute = admitted.tool.execute
    if execute is None:
        raise InternalError(f"the tool {admitted.tool.name} neither executes nor delegates")
    try:
        return await execute(admitted.arguments, context)
    except BaseException as error:  # foreign code: what a tool raises is its result
        if isinstance(error, Fenced) or must_pass(error):
            raise
        return ToolResult(is_error=True, diagnostics=(decide.faulted(admitted.tool.name, f"{type(error).__name__}: {error}"),))


async def leftovers(runtime: TaskRuntime, name: str) -> tuple[Diagnostic, ...]:
    """After a kill: the tool ends what it had started and what is still there (rule PR-7), and says so."""
    facts = runtime.recall("started")
    agent = await agent_of(runtime.services, runtime.task.conversation_id)
    tool = runtime.services.registry.tools(msgspec.structs.replace(agent, tools=None)).get(name)
    if tool is None or tool.on_left is None or not isinstance(facts, dict):
        return ()
    try:
        return await tool.on_left(facts, await tool_context(runtime))
    except BaseException as error:  # foreign code: what it could not do is said
        if isinstance(error, Fenced) or must_pass(error):
            raise
        return (decide.faulted(name, f"what is left of it could not be looked at ({type(error).__name__}: {error})"),)


async def stored_output(runtime: TaskRuntime) -> str:
    """What a running call had said, as far as it is stored."""
    slot = slot_of(await runtime.services.session.snapshot(LIVE, runtime.task.conversation_id) or {}, runtime.task_id)
    return str(slot.get("output", "")) if slot is not None else ""


async def _clean_up(services: Services, admitted: Admitted, context: ToolContext, called: HookedCall, hooks: Sequence[Hooks]) -> None:
    on_abort = admitted.tool.on_abort
    own = [partial(on_abort, admitted.arguments, context)] if on_abort is not None else []
    await asked("on_abort", [*own, *(partial(hook.on_abort, called) for hook in hooks if hook.on_abort is not None)], services.hook_failed)
