"""How one request of a run ends, in one commit: what came becomes an entry, and the run moves on (rules GE-3, GE-5, GE-6, FB-30)."""

from __future__ import annotations

from functools import partial
from typing import assert_never

import msgspec

from pi_durable_tui.harness.extensions.hooks import asked, changed
from pi_durable_tui.harness.extensions.task_definition import Advance, End, Ending, Move, Sleep
from pi_durable_tui.harness.generation import decide
from pi_durable_tui.harness.generation.checkpoint import Poll, Prepare, Request, RetryAt
from pi_durable_tui.harness.generation.pressure import compact_first
from pi_durable_tui.harness.generation.round import begin_round, unstarted_calls
from pi_durable_tui.harness.live import LIVE, USAGE, Failure, Live, RetryWait, UsageTotals
from pi_durable_tui.harness.ports import Finished, ModelFailed
from pi_durable_tui.harness.requests.assembly import Assembly, with_own_ids
from pi_durable_tui.harness.runs import Desk, as_object
from pi_durable_tui.harness.services import Report, Services
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.tool.finish import enter_unstarted
from pi_durable_tui.harness.transcript import agent_of, context_entries
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import ASSISTANT, THOUGHTS_REFUSED, Entry
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import AssistantMessage, Problem, Usage
from pi_durable_tui.records.task import Aborted, Completed, Failed, Faulted, Outcome, Task
from pi_durable_tui.session.documents import Draft
from pi_durable_tui.session.transaction import Transaction

STOPPED = Problem(reason="aborted", message="Stopped before the answer was complete.")


async def end_turn(runtime: TaskRuntime, at: Request, assembly: Assembly | None, ending: Finished | ModelFailed | None) -> None:
    """Commit what came of a request and what follows from it.

    Args:
        assembly: What came; None after a kill, when only what `pi.live` holds is left.
        ending: How the stream ended; None after a kill.
    """
    services, conversation_id = runtime.services, runtime.task.conversation_id
    answer = await _whole_answer(runtime, assembly, ending)
    following = await _following(runtime, at, answer, ending)

    async def write(transaction: Transaction, task: Task) -> Move:
        desk = await Desk.take(transaction, task.conversation_id)
        usage = await transaction.document(USAGE, task.conversation_id)
        message = _as_recorded(desk, answer, assembly, ending, following)
        entry_id = _record(desk, task, message, at.attempt) if message is not None else None
        _count(usage, at.model, message.usage if message is not None else (assembly.usage if assembly is not None else None))
        move = _move(runtime, desk, at, following, message=message, entry_id=entry_id)
        desk.put_back()
        return move

    await runtime.commit(write, priority="outcome")
    if ending is None and isinstance(following, decide.GiveUp):
        _report_cut_off(services, runtime.task_id, conversation_id)


async def count_earlier(runtime: TaskRuntime, at: Request) -> None:
    """After a clean close a request is sent again; what it had used before is used all the same (rule PR-21)."""
    live = from_json(await runtime.services.session.snapshot(LIVE, runtime.task.conversation_id) or {}, Live)
    if live.generation is None or live.generation.message is None or live.generation.message.usage is None:
        return

    async def write(transaction: Transaction, task: Task) -> None:
        desk = await Desk.take(transaction, task.conversation_id)
        usage = await transaction.document(USAGE, task.conversation_id)
        generation = desk.live.generation
        if generation is not None and generation.message is not None:
            _count(usage, at.model, generation.message.usage)
            desk.change_live(generation=msgspec.structs.replace(generation, message=msgspec.structs.replace(generation.message, usage=None)))
            desk.put_back()

    await runtime.commit(write)


async def close_generation(transaction: Transaction, task: Task, ending: Ending) -> Outcome:
    """End a run from outside: what had come becomes an `aborted` answer, its inputs are unanswered."""
    desk = await Desk.take(transaction, task.conversation_id)
    usage = await transaction.document(USAGE, task.conversation_id)
    unstarted = await unstarted_calls(transaction, task)
    generation, run = desk.live.generation, desk.live.run
    limit = run.limit if run is not None and run.task_id == task.id and ending.why == "aborted" else None
    problem = limit or _problem(ending)
    if generation is not None and generation.message is not None:
        message = msgspec.structs.replace(generation.message, problem=problem)
        _record(desk, task, message, generation.attempt)
        _count(usage, message.model, message.usage)
    for call in unstarted:
        enter_unstarted(transaction, task, call, why=_why(ending, limit))
    if run is not None and run.task_id == task.id:
        attempt = generation.attempt if generation is not None else 1
        failure = Failure(reason=problem.reason, task_id=task.id, attempt=attempt, at_ms=transaction.now_ms, message=problem.message)
        desk.fail_run(problem, None if ending.why == "aborted" and limit is None else failure)
    desk.put_back()
    if limit is not None:
        return Failed(problem=limit)
    match ending.why:
        case "aborted":
            return Aborted()
        case "restart_limit":
            return Failed(problem=problem)
        case "fault":
            return Faulted(message=ending.message)


def _why(ending: Ending, limit: Problem | None) -> str:
    """Why a call did not begin, in the words of a result."""
    if ending.why != "aborted":
        return "because its run was given up"
    return "by the user" if limit is None else "because the time of the run was used up"


def _problem(ending: Ending) -> Problem:
    match ending.why:
        case "aborted":
            return STOPPED
        case "restart_limit":
            return Problem(reason="restart_limit", message=f"The run was given up: {ending.message}.")
        case "fault":
            return Problem(reason="fault", message=f"The run was given up after an internal error: {ending.message}.")


async def _whole_answer(runtime: TaskRuntime, assembly: Assembly | None, ending: Finished | ModelFailed | None) -> AssistantMessage | None:
    """The complete answer, after the hooks have seen it; None when it did not come to its end."""
    if assembly is None or not isinstance(ending, Finished):
        return None
    services, conversation_id = runtime.services, runtime.task.conversation_id
    hooks = services.registry.hooks(await agent_of(services, conversation_id))
    calls = [partial(hook.after_response, conversation_id) for hook in hooks if hook.after_response is not None]
    return with_own_ids(await changed("after_response", assembly.message(ending.stop_reason), calls, services.hook_failed))


async def _following(runtime: TaskRuntime, at: Request, answer: AssistantMessage | None, ending: Finished | ModelFailed | None) -> decide.Next:
    services, settings = runtime.services, runtime.services.settings
    now_ms = services.clock.now_ms()
    if isinstance(ending, ModelFailed):
        jitter = services.entropy.fraction()
        return decide.after_failure(ending, at, settings=settings, now_ms=now_ms, jitter=jitter)
    if answer is None:
        return decide.after_cut_off(attempt=at.attempt, retry=settings.retry, now_ms=now_ms)
    conversation_id = runtime.task.conversation_id
    agent = await agent_of(services, conversation_id)
    sequential = frozenset(name for name, tool in services.registry.tools(agent).items() if tool.sequential)
    history = await context_entries(services.session.storage, conversation_id, cutoff=at.cutoff)
    following = decide.after_answer(answer, history, sequential=sequential, settings=settings)
    if not isinstance(following, decide.FinalAnswer):
        return following
    calls = [partial(hook.on_yield, conversation_id, answer) for hook in services.registry.hooks(agent) if hook.on_yield is not None]
    texts = tuple(text for text in await asked("on_yield", calls, services.hook_failed, of=str) if text.strip())  # a blank one says nothing to go on with
    return decide.GoOn(texts) if texts else following


def _as_recorded(
    desk: Desk, answer: AssistantMessage | None, assembly: Assembly | None, ending: Finished | ModelFailed | None, following: decide.Next
) -> AssistantMessage | None:
    """The answer as it enters the transcript; None when nothing came that a person should see."""
    if assembly is not None and isinstance(ending, ModelFailed):
        problem = Problem(reason=ending.reason, message=ending.message)
        return None if assembly.is_empty else assembly.message("error", problem=problem)
    if answer is None:
        partial_answer = desk.live.generation.message if desk.live.generation is not None else None
        return msgspec.structs.replace(partial_answer, problem=decide.CUT_OFF) if partial_answer is not None else None
    if isinstance(following, decide.GiveUp):
        return msgspec.structs.replace(answer, stop_reason="error", problem=following.problem)
    is_calling = isinstance(following, decide.CallTools) and answer.stop_reason != "length"
    return msgspec.structs.replace(answer, stop_reason="toolUse") if is_calling else answer


def _record(desk: Desk, task: Task, message: AssistantMessage, attempt: int) -> int:
    transaction, generation = desk.transaction, desk.live.generation
    started_at_ms = generation.started_at_ms if generation is not None else transaction.now_ms
    entry = Entry(
        id=transaction.new_id(),
        conversation_id=task.conversation_id,
        kind=ASSISTANT,
        at_ms=transaction.now_ms,
        message=message,
        data={"taskId": task.id, "attempt": attempt, "durationMs": max(0, transaction.now_ms - started_at_ms)},
    )
    transaction.insert_entry(entry)
    return entry.id


def _count(draft: Draft, model: str, used: Usage | None) -> None:
    """Every attempt's usage counts, once, in the commit that ends the attempt (rule GE-6)."""
    if used is not None:
        totals = from_json(draft.value, UsageTotals)
        models = {**totals.models, model: totals.models.get(model, Usage()) + used}
        draft.value = as_object(msgspec.structs.replace(totals, models=models, context_tokens=used.input_tokens + used.output_tokens))


def _move(runtime: TaskRuntime, desk: Desk, at: Request, following: decide.Next, *, message: AssistantMessage | None, entry_id: int | None) -> Move:
    match following:
        case decide.FinalAnswer():
            assert entry_id is not None  # a final answer has text
            desk.end_run(answer_entry_id=entry_id, settings=runtime.services.settings)
            return End(Completed(value=entry_id))
        case decide.GoOn():
            for text in following.texts:
                desk.say(text)
            desk.join(runtime.services.settings)
            return Advance(as_object(Prepare()))
        case decide.CallTools():
            assert entry_id is not None  # the answer made the calls
            assert message is not None  # and so it is there
            return begin_round(runtime, desk, entry_id, message, at_once=following.at_once)
        case decide.TryAgain():
            if following.without_thinking:
                _leave_out_thoughts(desk, following.problem)
            _show_retry(desk, at, following)
            return Sleep(as_object(_again(at, following)), following.until_ms)
        case decide.Compact():
            return compact_first(runtime, desk, Prepare(attempt=at.attempt, compacted=at.compacted + 1, without_thinking=at.without_thinking), "overflow")
        case decide.GiveUp():
            problem = following.problem
            failure = Failure(reason=problem.reason, task_id=runtime.task_id, attempt=at.attempt, at_ms=desk.transaction.now_ms, message=problem.message)
            desk.fail_run(problem, failure)
            return End(Failed(problem=problem))
        case _ as never:
            assert_never(never)


def _again(at: Request, following: decide.TryAgain) -> RetryAt | Poll:
    """Where the run goes on after the wait: with a new request, or, of an answer that the provider still has, with the same question (rule GE-7)."""
    if isinstance(at, Poll) and not following.without_thinking:
        return msgspec.structs.replace(at, attempt=at.attempt + 1, poll_at=following.until_ms)
    return RetryAt(
        attempt=at.attempt,
        until=following.until_ms,
        problem=following.problem,
        compacted=at.compacted,
        without_thinking=at.without_thinking or following.without_thinking,
    )


def _leave_out_thoughts(desk: Desk, problem: Problem) -> None:
    """Say so in the transcript; from there on the thoughts before it are not sent any more, also after a kill and in forks (CASE-B9)."""
    transaction = desk.transaction
    data: JsonObject = {"message": problem.message}
    entry = Entry(id=transaction.new_id(), conversation_id=desk.conversation_id, kind=THOUGHTS_REFUSED, at_ms=transaction.now_ms, data=data)
    transaction.insert_entry(entry)


def _show_retry(desk: Desk, at: Request, following: decide.TryAgain) -> None:
    wait = RetryWait(attempt=at.attempt, until_ms=following.until_ms, problem=following.problem)
    generation = desk.live.generation
    if generation is not None:
        desk.change_live(generation=msgspec.structs.replace(generation, message=None, retry=wait))


def _report_cut_off(services: Services, task_id: int, conversation_id: int) -> None:
    """After a kill that used up the retries, say so (FA-17)."""
    message = "The run ended: the process was killed while the answer was coming in, and no retry is left."
    at_ms = services.clock.now_ms()
    services.report(Report(kind="task_interrupted", reason="interrupted", message=message, at_ms=at_ms, task_id=task_id, conversation_id=conversation_id))
