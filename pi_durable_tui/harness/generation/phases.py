"""The phases of `pi.generation`: prepare -> request -> (retry | poll | tools) -> end (rules GE-1 to GE-8).

A phase does its waiting outside the line and commits everything it found at once. What follows is decided in `decide`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from typing import TypeAlias

import msgspec

from pi_durable_tui.harness.compaction.estimate import context_tokens, pressure
from pi_durable_tui.harness.compaction.select import frees_enough
from pi_durable_tui.harness.extensions.hooks import changed
from pi_durable_tui.harness.extensions.task_definition import Advance, Move, Sleep, TaskDefinition
from pi_durable_tui.harness.generation.checkpoint import Poll, Prepare, Request, RetryAt, Tools
from pi_durable_tui.harness.generation.decide import COMPACTIONS
from pi_durable_tui.harness.generation.ending import close_generation, count_earlier, end_turn
from pi_durable_tui.harness.generation.limits import end_at_limit, limit_reached
from pi_durable_tui.harness.generation.pressure import compact_beside, compact_first
from pi_durable_tui.harness.generation.prompt import changed_sections, sections_sent
from pi_durable_tui.harness.generation.round import end_round, next_call
from pi_durable_tui.harness.kinds import GENERATION
from pi_durable_tui.harness.live import LIVE, PROVIDER, Generation, Live, Provider
from pi_durable_tui.harness.ports import Deferred, Finished, ModelEvent, ModelFailed, ModelRequest, ToolSpec, UsageReport
from pi_durable_tui.harness.progress import Pace
from pi_durable_tui.harness.requests.assembly import Assembly
from pi_durable_tui.harness.requests.context import derive, to_be_answered
from pi_durable_tui.harness.runs import Desk, as_object
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.tool.rights import acting
from pi_durable_tui.harness.tool.schema import parameters
from pi_durable_tui.harness.transcript import agent_of, context_entries
from pi_durable_tui.records.codec import from_json, to_json
from pi_durable_tui.records.entry import SYSTEM, Entry
from pi_durable_tui.records.json import Json
from pi_durable_tui.records.task import Task
from pi_durable_tui.session.transaction import Transaction

NO_MODEL = ModelFailed(reason="no_model", message="No model is chosen for this conversation.", retryable=False)
BROKEN_OFF = ModelFailed(reason="connection", message="The model's answer broke off.", retryable=True)

StreamEnd: TypeAlias = Finished | ModelFailed | Deferred


async def prepare(runtime: TaskRuntime) -> None:
    """Resolve the agent, bring the system prompt up to date, and fix what the request is made of (rule GE-1)."""
    services, conversation_id = runtime.services, runtime.task.conversation_id
    at = from_json(runtime.checkpoint, Prepare)
    if (problem := await limit_reached(runtime)) is not None:
        await end_at_limit(runtime, at, problem)
        return
    agent = await agent_of(services, conversation_id)
    window_tokens = (await services.models.info(agent.model or "")).context_window_tokens
    sections = services.registry.sections(agent)

    async def write(transaction: Transaction, task: Task) -> Move:
        # Read on the line: a summary that came in between would take instructions out of the context, and nobody would say them again.
        entries = await context_entries(transaction, conversation_id)
        change = changed_sections(sections_sent(entries), sections)
        weight = pressure(context_tokens(entries), window_tokens, services.settings.compaction) if at.compacted < COMPACTIONS else "none"
        desk = await Desk.take(transaction, conversation_id)
        if weight == "blocking":
            again = Prepare(attempt=at.attempt, compacted=at.compacted + 1, without_thinking=at.without_thinking)
            move = compact_first(runtime, desk, again, "threshold")
            desk.put_back()
            return move
        if weight == "background" and window_tokens is not None and frees_enough(entries, window_tokens, services.settings.compaction):
            compact_beside(desk)
        cutoff = max(entry.id for entry in entries)
        if change is not None:
            message, data = change
            cutoff = transaction.new_id()
            now_ms = transaction.now_ms
            transaction.insert_entry(Entry(id=cutoff, conversation_id=conversation_id, kind=SYSTEM, at_ms=now_ms, message=message, data=data))
        desk.change_live(generation=Generation(task_id=task.id, attempt=at.attempt, started_at_ms=transaction.now_ms))
        desk.put_back()
        request = Request(
            attempt=at.attempt,
            model=agent.model or "",
            cutoff=cutoff,
            thinking_level="off" if at.without_thinking else agent.thinking,
            stream_options=services.settings.stream,
            compacted=at.compacted,
            without_thinking=at.without_thinking,
        )
        return Advance(as_object(request))

    await runtime.commit(write)


async def request(runtime: TaskRuntime) -> None:
    """Send the request and take in the answer; after a kill count the attempt as failed instead (rules GE-2 to GE-4)."""
    at = from_json(runtime.checkpoint, Request)
    if runtime.task.restarts:
        await end_turn(runtime, at, None, None)
    elif not at.model:
        await end_turn(runtime, at, Assembly(at.model), NO_MODEL)
    else:
        await count_earlier(runtime, at)
        await _exchange(runtime, at, deferred=None)


async def retry(runtime: TaskRuntime) -> None:
    """The wait is over: prepare the next attempt."""
    at = from_json(runtime.checkpoint, RetryAt)
    await runtime.advance(as_object(Prepare(attempt=at.attempt + 1, compacted=at.compacted, without_thinking=at.without_thinking)))


async def poll(runtime: TaskRuntime) -> None:
    """Ask for a deferred answer again (rule GE-7); asking twice does no harm, so a kill here costs nothing."""
    at = from_json(runtime.checkpoint, Poll)
    await _show_poll(runtime, at)
    await _exchange(runtime, at, deferred=at.handle)


async def tools(runtime: TaskRuntime) -> None:
    """The running calls have their results: start the next one of a sequential round, or end the round (rule GE-5)."""
    at = from_json(runtime.checkpoint, Tools)
    await (next_call(runtime, at) if at.pending else end_round(runtime, at))


async def _show_poll(runtime: TaskRuntime, at: Poll) -> None:
    """The wait after a poll that failed is over."""
    generation = from_json(await runtime.services.session.snapshot(LIVE, runtime.task.conversation_id) or {}, Live).generation
    if generation is None or generation.retry is None:
        return

    async def write(transaction: Transaction, task: Task) -> None:
        desk = await Desk.take(transaction, task.conversation_id)
        if desk.live.generation is not None:
            desk.change_live(generation=msgspec.structs.replace(desk.live.generation, attempt=at.attempt, retry=None))
            desk.put_back()

    await runtime.commit(write)


async def _model_request(runtime: TaskRuntime, at: Request, deferred: Json) -> ModelRequest:
    services, conversation_id = runtime.services, runtime.task.conversation_id
    agent = await acting(runtime)
    provider = from_json(await services.session.snapshot(PROVIDER, conversation_id) or {}, Provider)
    entries = await context_entries(services.session.storage, conversation_id, cutoff=at.cutoff)
    offered = services.registry.tools(agent).values()
    specs = tuple(ToolSpec(name=tool.name, description=tool.description, parameters=parameters(tool)) for tool in offered)
    request = ModelRequest(
        model=at.model,
        messages=to_be_answered(derive(entries)),
        tools=specs,
        thinking=at.thinking_level,
        session_id=provider.session_id,
        options=at.stream_options,
        deferred=deferred,
    )
    hooks = [partial(hook.before_request, conversation_id) for hook in services.registry.hooks(agent) if hook.before_request is not None]
    return await changed("before_request", request, hooks, services.hook_failed)


async def _exchange(runtime: TaskRuntime, at: Request, *, deferred: Json) -> None:
    """One request and its answer. The partial answer is stored as it grows; the whole of it with what follows from it."""
    services = runtime.services
    assembly = Assembly(at.model)
    pace = Pace(lambda: _store_partial(runtime, assembly), clock=services.clock, interval_ms=services.settings.progress.partial_interval_ms)
    model_request = await _model_request(runtime, at, deferred)
    async with contextlib.aclosing(services.models.stream(model_request)) as events:
        try:
            ending = await _take_in(events, assembly, pace)
        finally:
            await pace.stop()
    if isinstance(ending, Deferred):
        await _sleep_until_poll(runtime, at, ending)
    else:
        await end_turn(runtime, at, assembly, ending)


async def _take_in(events: AsyncGenerator[ModelEvent, None], assembly: Assembly, pace: Pace) -> StreamEnd:
    async for event in events:
        match event:
            case UsageReport():
                assembly.usage = event.usage
                pace.changed()
            case Finished() | ModelFailed() | Deferred():
                return event
            case _:
                assembly.add(event)
                pace.changed()
    return BROKEN_OFF


async def _store_partial(runtime: TaskRuntime, assembly: Assembly) -> None:
    """Put the answer so far into `pi.live`; it stands there as what it would be if it were cut off now."""

    async def write(transaction: Transaction, task: Task) -> None:
        draft = await transaction.document(LIVE, task.conversation_id)
        generation = draft.value.get("generation")
        if isinstance(generation, dict):
            generation["message"] = to_json(assembly.message("aborted", is_partial=True))

    await runtime.commit(write, priority="partial")


async def _sleep_until_poll(runtime: TaskRuntime, at: Request, deferred: Deferred) -> None:
    async def write(transaction: Transaction, _task: Task) -> Move:
        poll_at = transaction.now_ms + deferred.poll_after_ms
        asked = {name: getattr(at, name) for name in Request.__struct_fields__}
        if isinstance(at, Poll):
            asked["attempt"] = 1  # the provider has answered: polls that fail are counted anew
        checkpoint = Poll(**asked, handle=deferred.handle, poll_at=poll_at)
        return Sleep(as_object(checkpoint), poll_at)

    await runtime.commit(write)


DEFINITION = TaskDefinition(
    kind=GENERATION,
    phases={"prepare": prepare, "request": request, "retry": retry, "poll": poll, "tools": tools},
    on_ending=close_generation,
    limit_report="task_interrupted",
)
"""The task kind `pi.generation`."""
