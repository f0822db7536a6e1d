"""Example 04: watching commits, without ever slowing one.

A watch is an async iterator over commits. Each tells exactly which records came and which operations changed which document. An
observer who takes too long gets one marker instead of too many commits, and reads the state anew.

    python -m tests.examples.e04_watch

It prints:

    commit 1: [["r", {"text": "a"}]]
    commit 2: [["a", ["text"], "b"]]
    commit 3: [["a", ["text"], "c"]]
    the slow one is told to read anew, commit 3 or later: abc
"""

from __future__ import annotations

import asyncio
import json

from pi_durable_tui.library import Definition, MemoryStorage, Overflowed, Session, SystemClock, Transaction, Watch

TEXT = Definition(kind="example.text", scope="session", initial=lambda: {"text": ""})


async def add(session: Session, letter: str) -> None:
    """Put a letter behind the text."""

    async def write(transaction: Transaction) -> None:
        draft = await transaction.document(TEXT)
        draft.value["text"] = f"{draft.value['text']}{letter}"

    await session.commit(write)


async def tell(watch: Watch) -> None:
    """Print every commit until the session is closed."""
    async for commit in watch:
        if not isinstance(commit, Overflowed):
            print(f"commit {commit.seq}:", *(json.dumps(change.ops) for change in commit.documents))


async def main() -> None:
    """Three commits, one quick observer and one slow one."""
    session = await Session.open(MemoryStorage(), clock=SystemClock())
    quick = asyncio.create_task(tell(session.watch()))
    slow = session.watch(capacity=2)
    for letter in "abc":
        await add(session, letter)

    marker = await anext(slow)
    assert isinstance(marker, Overflowed)
    state = await session.snapshot(TEXT) or {}
    await session.close()
    await quick  # what was waiting for it is delivered first
    print(f"the slow one is told to read anew, commit {marker.seq} or later: {state['text']}")


if __name__ == "__main__":
    asyncio.run(main())
