"""Ends a run that has used up what it was given, before its next request (rule SA-14).

A limit is never checked in the middle of a tool round: what was called gets its results, and the transcript stays valid.
"""

from __future__ import annotations

from pi_durable_tui.harness.generation.checkpoint import Prepare
from pi_durable_tui.harness.live import LIVE, Failure, Live
from pi_durable_tui.harness.runs import Desk
from pi_durable_tui.harness.settings import Limits
from pi_durable_tui.harness.tasks.definition import End, Move
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.messages import AssistantMessage, Problem, Usage
from pi_durable_tui.records.task import Failed, Task
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.port import Storage

LIMIT = "limit"
"""The reason of a run that ended here."""


async def limit_reached(runtime: TaskRuntime) -> Problem | None:
    """Why the run must not send another request; None: it may."""
    limits = runtime.services.settings.limits
    if limits.max_turns is None and limits.max_cost_usd is None:
        return None
    session, conversation_id = runtime.services.session, runtime.task.conversation_id
    run = from_json(await session.snapshot(LIVE, conversation_id) or {}, Live).run
    turn = run.turn if run is not None else 1
    spent_usd = await run_cost_usd(session.storage, conversation_id, since_id=runtime.task_id) if limits.max_cost_usd is not None else 0.0
    return reached(limits, turn=turn, spent_usd=spent_usd)


def reached(limits: Limits, *, turn: int, spent_usd: float) -> Problem | None:
    """The limit that stands before turn number `turn` of a run that has cost `spent_usd`. PURE."""
    if limits.max_turns is not None and turn > limits.max_turns:
        return Problem(reason=LIMIT, message=f"The run has had its {limits.max_turns} turn{'' if limits.max_turns == 1 else 's'}.")
    if limits.max_cost_usd is not None and spent_usd >= limits.max_cost_usd:
        return Problem(reason=LIMIT, message=f"The run has cost ${spent_usd:.4f}, and ${limits.max_cost_usd:.4f} was allowed.")
    return None


async def run_cost_usd(storage: Storage, conversation_id: int, *, since_id: int) -> float:
    """What the answers with ids above `since_id` have cost, those of subagents that were begun since included; unknown prices count nothing."""
    total = await _cost_usd(storage, conversation_id, since_id)
    cursor: int | None = since_id + 1
    while cursor is not None:
        page = await storage.conversations(cursor=cursor, limit=1_000)
        for conversation in page.items:
            if conversation.owner is not None:
                total += await _cost_usd(storage, conversation.id, since_id)
        cursor = page.next
    return total


async def end_at_limit(runtime: TaskRuntime, at: Prepare, problem: Problem) -> None:
    """The run ends without an answer; what it did stays."""

    async def write(transaction: Transaction, task: Task) -> Move:
        desk = await Desk.take(transaction, task.conversation_id)
        failure = Failure(reason=problem.reason, task_id=task.id, attempt=at.attempt, at_ms=transaction.now_ms, message=problem.message)
        desk.fail_run(problem, failure)
        desk.put_back()
        return End(Failed(problem=problem))

    await runtime.commit(write, priority="outcome")


async def _cost_usd(storage: Storage, conversation_id: int, since_id: int) -> float:
    used = Usage()
    cursor: int | None = since_id + 1
    while cursor is not None:
        page = await storage.entries(conversation_id, cursor=cursor, limit=1_000)
        used = sum((each.entry.message.usage or Usage() for each in page.items if isinstance(each.entry.message, AssistantMessage)), used)
        cursor = page.next
    return used.cost_usd or 0.0
