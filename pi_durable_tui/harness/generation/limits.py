"""Ends a run that has used up what it was given, before its next request (rule SA-14).

A limit is never checked in the middle of a tool round: what was called gets its results, and the transcript stays valid.
"""

from __future__ import annotations

from typing import TypeVar

from pi_durable_tui.harness.extensions.task_definition import End, Move
from pi_durable_tui.harness.generation.checkpoint import Prepare
from pi_durable_tui.harness.live import LIVE, Budget, Failure, Live
from pi_durable_tui.harness.runs import Desk
from pi_durable_tui.harness.settings import Limits
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.transcript import agent_of
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.messages import AssistantMessage, Problem, Usage
from pi_durable_tui.records.task import Failed, Task
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.port import Storage

T = TypeVar("T", int, float)

LIMIT = "limit"
"""The reason of a run that ended here."""


async def limit_reached(runtime: TaskRuntime) -> Problem | None:
    """Why the run must not send another request; None: it may. What holds for all runs holds, and the agent's own budget."""
    session, conversation_id = runtime.services.session, runtime.task.conversation_id
    agent = await agent_of(runtime.services, conversation_id)
    limits = combined(runtime.services.settings.limits, agent.budget or Budget())
    if limits == Budget():
        return None
    run = from_json(await session.snapshot(LIVE, conversation_id) or {}, Live).run
    used = Usage()
    if (limits.max_tokens, limits.max_cost_usd) != (None, None):
        used = await used_by_run(session.storage, conversation_id, since_id=runtime.task_id)
    return reached(limits, turn=run.turn if run is not None else 1, used=used)


def combined(limits: Limits, own: Budget) -> Budget:
    """The stricter one of each. PURE."""

    def least(*values: T | None) -> T | None:
        return min((value for value in values if value is not None), default=None)

    return Budget(max_turns=least(limits.max_turns, own.max_turns), max_tokens=own.max_tokens, max_cost_usd=least(limits.max_cost_usd, own.max_cost_usd))


def reached(limits: Budget, *, turn: int, used: Usage) -> Problem | None:
    """The limit that stands before turn number `turn` of a run that has used so much. PURE."""
    spent_usd, tokens = used.cost_usd or 0.0, used.input_tokens + used.output_tokens
    if limits.max_turns is not None and turn > limits.max_turns:
        return Problem(reason=LIMIT, message=f"The run has had its {limits.max_turns} turn{'' if limits.max_turns == 1 else 's'}.")
    if limits.max_tokens is not None and tokens >= limits.max_tokens:
        return Problem(reason=LIMIT, message=f"The run has used {tokens:,} tokens, and {limits.max_tokens:,} were allowed.")
    if limits.max_cost_usd is not None and spent_usd >= limits.max_cost_usd:
        return Problem(reason=LIMIT, message=f"The run has cost ${spent_usd:.4f}, and ${limits.max_cost_usd:.4f} was allowed.")
    return None


async def used_by_run(storage: Storage, conversation_id: int, *, since_id: int) -> Usage:
    """What the answers with ids above `since_id` have used, those of its subagents that were begun since included; unknown prices count nothing."""
    total = await _used(storage, conversation_id, since_id)
    own = {conversation_id}
    cursor: int | None = since_id + 1
    while cursor is not None:
        page = await storage.conversations(cursor=cursor, limit=1_000)
        for conversation in page.items:
            owner = await storage.task(conversation.owner) if conversation.owner is not None else None
            if owner is not None and owner.conversation_id in own:
                own.add(conversation.id)
                total += await _used(storage, conversation.id, since_id)
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


async def _used(storage: Storage, conversation_id: int, since_id: int) -> Usage:
    used = Usage()
    cursor: int | None = since_id + 1
    while cursor is not None:
        page = await storage.entries(conversation_id, cursor=cursor, limit=1_000)
        used = sum((each.entry.message.usage or Usage() for each in page.items if isinstance(each.entry.message, AssistantMessage)), used)
        cursor = page.next
    return used
