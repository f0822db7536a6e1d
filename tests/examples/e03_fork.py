"""Example 03: a fork, which starts with the documents as they were at its entry.

A rewindable document keeps its past: what it said when an entry was written can be read at any time, and a fork at that entry begins
with it. Of a document that keeps no past a fork gets the newest value (`current`) or nothing (`initial`).

    python -m tests.examples.e03_fork

It prints:

    now: plan='deploy' visits=2
    plan as of the first entry: build
    fork at the first entry: plan='build' visits=2
    the fork reads: first
    the old conversation reads: first, second
"""

from __future__ import annotations

import asyncio

from pi_durable_tui.library import Conversation, Definition, Done, Extension, Harness, Transaction
from tests.examples.parts import AGENT, line, open_harness

PLAN = Definition(kind="example.plan", scope="conversation", history="rewindable", fork="asOf")
VISITS = Definition(kind="example.visits", scope="conversation", fork="current")


async def note(harness: Harness, conversation: Conversation, plan: str, visits: int) -> None:
    """Change both documents in one commit."""

    async def write(transaction: Transaction) -> None:
        (await transaction.document(PLAN, conversation.id)).value["plan"] = plan
        (await transaction.document(VISITS, conversation.id)).value["visits"] = visits

    await harness.session.commit(write)


async def told(harness: Harness, conversation: Conversation) -> str:
    """Both documents in one line."""
    plan = await harness.session.snapshot(PLAN, conversation.id) or {}
    visits = await harness.session.snapshot(VISITS, conversation.id) or {}
    return f"plan={plan.get('plan')!r} visits={visits.get('visits')}"


async def texts(conversation: Conversation) -> str:
    """What stands in a conversation."""
    return ", ".join(line(stored.entry).removeprefix("user: ") for stored in await conversation.entries())


async def main() -> None:
    """Write two entries with different documents beside them, and fork at the first."""
    harness = await open_harness(extensions=(Extension(name="example", documents=(PLAN, VISITS)),))
    conversation = await harness.create_conversation(AGENT)

    await note(harness, conversation, "build", 1)
    first = await conversation.submit("first", mode="write")  # an entry that asks for no answer
    await note(harness, conversation, "deploy", 2)
    await conversation.submit("second", mode="write")
    assert isinstance(first.state, Done)  # nothing was going on, so it was written at once

    print("now:", await told(harness, conversation))
    past = await harness.session.snapshot_as_of(PLAN, conversation.id, first.state.entry_id)
    print("plan as of the first entry:", (past or {})["plan"])
    fork = await harness.fork(conversation.id, first.state.entry_id)
    print("fork at the first entry:", await told(harness, fork))
    print("the fork reads:", await texts(fork))
    print("the old conversation reads:", await texts(conversation))
    await harness.close()


if __name__ == "__main__":
    asyncio.run(main())
