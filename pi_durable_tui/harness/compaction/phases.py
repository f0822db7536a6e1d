"""The phases of `pi.compaction`: select -> summarize -> end (rules CO-1 to CO-5).

The summary is asked for as text over text: no call of the old part is sent as a call, so no provider can refuse a torn pair. The run goes
on meanwhile, so what is chosen, and what is kept, is looked at inside the commit that says so: a result that is about to come is in or out.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from functools import partial

import msgspec

from pi_durable_tui.harness.compaction.checkpoint import CompactionInput, Select, Summarize
from pi_durable_tui.harness.compaction.estimate import CHARS_PER_TOKEN, context_tokens
from pi_durable_tui.harness.compaction.select import INSTRUCTIONS, UNKNOWN_WINDOW_TOKENS, files_touched, kept_tokens, select_cut, shortened_results, transcript
from pi_durable_tui.harness.extensions.hooks import Blocked, HookedCompaction, asked
from pi_durable_tui.harness.extensions.task_definition import Advance, End, Ending, Move, Sleep, TaskDefinition
from pi_durable_tui.harness.kinds import COMPACTION
from pi_durable_tui.harness.live import LIVE, USAGE, Agent, Failure, Live, UsageTotals
from pi_durable_tui.harness.ports import Deferred, Finished, ModelEvent, ModelFailed, ModelRequest, TextDelta, UsageReport
from pi_durable_tui.harness.progress import Pace
from pi_durable_tui.harness.requests.assembly import Assembly
from pi_durable_tui.harness.requests.backoff import backoff_ms
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.transcript import agent_of, context_entries
from pi_durable_tui.records.codec import from_json, to_json
from pi_durable_tui.records.entry import COMPACTION as COMPACTION_ENTRY
from pi_durable_tui.records.entry import SYSTEM, Entry
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import Problem, Text, Usage, UserMessage
from pi_durable_tui.records.task import Aborted, Completed, Failed, Faulted, Outcome, Task
from pi_durable_tui.session.transaction import Transaction

SMALLEST_LIMIT_CHARS = 2_000
CUT = "\n[This summary was cut at the output limit.]"
INTERRUPTED = ModelFailed(reason="connection", message="The process ended while the summary was being made.", retryable=True)


async def select(runtime: TaskRuntime) -> None:
    """Choose what to summarize; nothing to compact is not an error (rule CO-3)."""
    services, conversation_id = runtime.services, runtime.task.conversation_id
    agent = await agent_of(services, conversation_id)
    model = agent.model or ""
    window = (await services.models.info(model)).context_window_tokens or UNKNOWN_WINDOW_TOKENS
    reason = from_json(runtime.task.input, CompactionInput).reason
    focus = await _hooked(runtime, agent)
    if isinstance(focus, Blocked):
        await _end(runtime, Failed(problem=Problem(reason="blocked", message=focus.message)), None)
        return

    async def write(transaction: Transaction, task: Task) -> Move:
        entries = await context_entries(transaction, conversation_id)
        keep_tokens = kept_tokens(entries, window, services.settings.compaction, reason)
        cut = select_cut(entries, keep_tokens=keep_tokens)
        if cut is None or not model:
            return await _leave(transaction, task, Completed(value="nothing"), None)
        checkpoint = Summarize(
            model=model,
            focus=focus,
            first_kept=cut.kept[0].id,
            newest=max(entry.id for entry in entries),
            keep_tokens=keep_tokens,
            limit_chars=window * CHARS_PER_TOKEN // 2,
        )
        return Advance(as_object(checkpoint))

    await runtime.commit(write, priority="outcome")


async def summarize(runtime: TaskRuntime) -> None:
    """Ask for the summary and append it; after a kill the attempt counts as failed, as with an answer (rule GE-3)."""
    at = from_json(runtime.checkpoint, Summarize)
    assembly = Assembly(at.model)
    if runtime.task.restarts:
        failure: ModelFailed | None = INTERRUPTED
    else:
        await _count_earlier(runtime)
        failure = await _ask(runtime, at, assembly)
    text = assembly.message("stop").text.strip()
    if failure is None and text:
        await _append(runtime, at, text, assembly.usage)
    else:
        await _try_again(runtime, at, failure or ModelFailed(reason="unknown", message="The summary was empty.", retryable=True), assembly.usage)


async def _hooked(runtime: TaskRuntime, agent: Agent) -> Blocked | str:
    """The focus that the hooks agree on, or a no."""
    services, wanted = runtime.services, from_json(runtime.task.input, CompactionInput)
    hooked = HookedCompaction(conversation_id=runtime.task.conversation_id, reason=wanted.reason, focus=wanted.focus)
    calls = [partial(hook.before_compact, hooked) for hook in services.registry.hooks(agent) if hook.before_compact is not None]
    answers = await asked("before_compact", calls, services.hook_failed, of=str | Blocked)
    blocked = [answer for answer in answers if isinstance(answer, Blocked)]
    return blocked[0] if blocked else next((answer for answer in reversed(answers) if isinstance(answer, str)), wanted.focus)


async def _ask(runtime: TaskRuntime, at: Summarize, assembly: Assembly) -> ModelFailed | None:
    """One request for the summary; None: it came whole."""
    entries = await context_entries(runtime.services.session.storage, runtime.task.conversation_id, cutoff=at.newest)
    old = entries[: next((index for index, entry in enumerate(entries) if entry.id == at.first_kept), 0)]
    wish = f"\nPay attention above all to: {at.focus}" if at.focus else ""
    text = f"{INSTRUCTIONS}{wish}\n\n<conversation>\n{transcript(old, limit_chars=at.limit_chars)}\n</conversation>"
    request = ModelRequest(model=at.model, messages=(UserMessage(content=(Text(text=text),)),), options=runtime.services.settings.stream)
    progress = runtime.services.settings.progress
    pace = Pace(lambda: _store_usage(runtime, assembly.usage), clock=runtime.services.clock, interval_ms=progress.partial_interval_ms)
    async with contextlib.aclosing(runtime.services.models.stream(request)) as events:
        try:
            return await _take_in(events, assembly, pace)
        finally:
            await pace.stop()


async def _take_in(events: AsyncGenerator[ModelEvent, None], assembly: Assembly, pace: Pace) -> ModelFailed | None:
    async for event in events:
        match event:
            case UsageReport():
                assembly.usage = event.usage
                pace.changed()
            case ModelFailed():
                return event
            case Finished():
                if event.stop_reason == "length" and not assembly.is_empty:
                    assembly.add(TextDelta(CUT))
                return None
            case Deferred():
                return ModelFailed(reason="invalid_request", message="A summary cannot be deferred.", retryable=False)
            case _:
                assembly.add(event)
    return ModelFailed(reason="connection", message="The summary broke off.", retryable=True)


async def _store_usage(runtime: TaskRuntime, usage: Usage | None) -> None:
    """Put what the request has used so far into `pi.live`: it counts as well when nothing comes of it."""

    async def write(transaction: Transaction, task: Task) -> None:
        draft = await transaction.document(LIVE, task.conversation_id)
        live = from_json(draft.value, Live)
        runs = tuple(msgspec.structs.replace(each, usage=usage) if each.task_id == task.id else each for each in live.compactions)
        draft.value = as_object(msgspec.structs.replace(live, compactions=runs))

    await runtime.commit(write, priority="partial")


async def _count_earlier(runtime: TaskRuntime) -> None:
    """After a clean close the request is sent again; what it had used before is used all the same (rule PR-21)."""
    live = from_json(await runtime.services.session.snapshot(LIVE, runtime.task.conversation_id) or {}, Live)
    if any(each.task_id == runtime.task_id and each.usage is not None for each in live.compactions):

        async def write(transaction: Transaction, task: Task) -> None:
            await _count(transaction, task, None)

        await runtime.commit(write)


async def _append(runtime: TaskRuntime, at: Summarize, text: str, usage: Usage | None) -> None:
    """Store the summary as the new start of the context, unless another one has overtaken it (rule CO-4)."""
    conversation_id = runtime.task.conversation_id

    async def write(transaction: Transaction, task: Task) -> Move:
        marker = await transaction.newest_head(conversation_id)
        entries = await context_entries(transaction, conversation_id)
        position = next((index for index, entry in enumerate(entries) if entry.id == at.first_kept), None)
        if position is None or (marker is not None and marker.entry.id > at.newest):
            return await _leave(transaction, task, Completed(value="stale"), usage)
        old, kept = entries[:position], entries[position:]
        files = files_touched(old)
        listed = f"\n\nFiles touched so far: {', '.join(files)}" if files else ""
        summarized = sum(entry.kind != SYSTEM for entry in old)  # instructions are said again, so they are no part of a summary
        data: JsonObject = {"tokensBefore": context_tokens(entries), "entriesSummarized": summarized, "files": list(files), "taskId": task.id}
        if usage is not None:
            data["usage"] = to_json(usage)
        entry = Entry(
            id=transaction.new_id(),
            conversation_id=conversation_id,
            kind=COMPACTION_ENTRY,
            at_ms=transaction.now_ms,
            message=UserMessage(content=(Text(text=f"<summary>\n{text}{listed}\n</summary>"),)),
            data=data,
            head=at.first_kept,
            edits=shortened_results(kept, keep_tokens=at.keep_tokens),
        )
        transaction.insert_entry(entry)
        return await _leave(transaction, task, Completed(value=entry.id), usage)

    await runtime.commit(write, priority="outcome")


async def _try_again(runtime: TaskRuntime, at: Summarize, failure: ModelFailed, usage: Usage | None) -> None:
    """A shorter text after an overflow, a wait after a passing failure, else the end."""
    retry = runtime.services.settings.retry
    if failure.reason == "context_overflow" and at.limit_chars // 2 >= SMALLEST_LIMIT_CHARS:
        checkpoint = as_object(msgspec.structs.replace(at, limit_chars=at.limit_chars // 2))
        until_ms = None
    elif failure.retryable and retry.enabled and at.attempt <= retry.max_retries:
        checkpoint = as_object(msgspec.structs.replace(at, attempt=at.attempt + 1))
        until_ms = runtime.services.clock.now_ms() + max(backoff_ms(at.attempt, retry), failure.retry_after_ms or 0)
    else:
        await _end(runtime, Failed(problem=Problem(reason=failure.reason, message=failure.message)), usage)
        return

    async def write(transaction: Transaction, task: Task) -> Move:
        await _count(transaction, task, usage)
        return Advance(checkpoint) if until_ms is None else Sleep(checkpoint, until_ms)

    await runtime.commit(write)


async def _end(runtime: TaskRuntime, outcome: Outcome, usage: Usage | None) -> None:
    async def write(transaction: Transaction, task: Task) -> Move:
        return await _leave(transaction, task, outcome, usage)

    await runtime.commit(write, priority="outcome")


async def _leave(transaction: Transaction, task: Task, outcome: Outcome, usage: Usage | None) -> Move:
    await _count(transaction, task, usage)
    problem = outcome.problem if isinstance(outcome, Failed) else None
    await _take_down(transaction, task, problem)
    return End(outcome)


async def _take_down(transaction: Transaction, task: Task, problem: Problem | None) -> None:
    """The compaction leaves the screen; a failure stays until the next one."""
    draft = await transaction.document(LIVE, task.conversation_id)
    live = from_json(draft.value, Live)
    failure = None
    if problem is not None:
        failure = Failure(reason=problem.reason, task_id=task.id, attempt=1, at_ms=transaction.now_ms, message=problem.message)
    running = tuple(each for each in live.compactions if each.task_id != task.id)
    draft.value = as_object(msgspec.structs.replace(live, compactions=running, compaction_failure=failure))


async def _count(transaction: Transaction, task: Task, usage: Usage | None) -> None:
    """A summary's spend counts, but says nothing about the size of the context (rule CO-5). `usage` None: what `pi.live` knows of it."""
    shown = await transaction.document(LIVE, task.conversation_id)
    live = from_json(shown.value, Live)
    for run in live.compactions:
        if run.task_id == task.id and run.usage is not None:
            usage = run.usage if usage is None else usage
            others = (each if each.task_id != task.id else msgspec.structs.replace(each, usage=None) for each in live.compactions)
            shown.value = as_object(msgspec.structs.replace(live, compactions=tuple(others)))
    model = (task.checkpoint or {}).get("model")
    if usage is not None and isinstance(model, str):
        draft = await transaction.document(USAGE, task.conversation_id)
        totals = from_json(draft.value, UsageTotals)
        models = {**totals.models, model: totals.models.get(model, Usage()) + usage}
        draft.value = as_object(msgspec.structs.replace(totals, models=models))


async def close_compaction(transaction: Transaction, task: Task, ending: Ending) -> Outcome:
    """End a compaction from outside; the context stays as it was, and what the request had used counts."""
    await _count(transaction, task, None)
    match ending.why:
        case "aborted":
            await _take_down(transaction, task, None)
            return Aborted()
        case "restart_limit":
            problem = Problem(reason="restart_limit", message=f"The summary was given up: {ending.message}.")
            await _take_down(transaction, task, problem)
            return Failed(problem=problem)
        case "fault":
            await _take_down(transaction, task, Problem(reason="fault", message=ending.message))
            return Faulted(message=ending.message)


DEFINITION = TaskDefinition(kind=COMPACTION, phases={"select": select, "summarize": summarize}, on_ending=close_compaction, limit_report="task_interrupted")
"""The task kind `pi.compaction`."""

FIRST = as_object(Select())
"""The checkpoint of a new compaction."""
