"""Example 01: a conversation in a file, without any agent.

A session is one open store. Everything is written in commits: all of one is stored or none of it, and reopening gives it back.

    python -m tests.examples.e01_conversation

It prints:

    stored by commit 1: hello
    stored by commit 2: hello to you
    the third was given up: nobody likes it
    after reopening: hello | hello to you
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from pi_durable_tui.library import USER, ConversationRecord, Entry, Session, SystemClock, Text, Transaction, UserMessage, open_sqlite


def entry(transaction: Transaction, conversation_id: int, text: str) -> Entry:
    """A message of a person, at the time of the commit."""
    message = UserMessage(content=(Text(text=text),))
    return Entry(id=transaction.new_id(), conversation_id=conversation_id, kind=USER, at_ms=transaction.now_ms, message=message)


async def main(folder: Path) -> None:
    """Write two entries, fail at a third, and read them again."""
    clock = SystemClock()
    session = await Session.open(await open_sqlite(folder / "session.sqlite", clock=clock), clock=clock)

    async def begin(transaction: Transaction) -> int:
        conversation = ConversationRecord(id=transaction.new_id(), created_at_ms=transaction.now_ms)
        transaction.insert_conversation(conversation)
        transaction.insert_entry(entry(transaction, conversation.id, "hello"))
        return conversation.id

    conversation_id = await session.commit(begin)

    async def go_on(transaction: Transaction) -> None:
        transaction.insert_entry(entry(transaction, conversation_id, "hello to you"))

    await session.commit(go_on)
    for stored in (await session.storage.entries(conversation_id)).items:
        print(f"stored by commit {stored.seq}: {text_of(stored.entry)}")

    async def fail(transaction: Transaction) -> None:
        transaction.insert_entry(entry(transaction, conversation_id, "never stored"))
        raise ValueError("nobody likes it")

    try:
        await session.commit(fail)
    except ValueError as error:
        print(f"the third was given up: {error}")
    await session.close()

    again = await Session.open(await open_sqlite(folder / "session.sqlite", clock=clock), clock=clock)
    found = (await again.storage.entries(conversation_id)).items
    print("after reopening:", " | ".join(text_of(stored.entry) for stored in found))
    await again.close()


def text_of(stored: Entry) -> str:
    """The text of a message of a person."""
    assert isinstance(stored.message, UserMessage)  # this program writes no others
    return "".join(part.text for part in stored.message.content if isinstance(part, Text))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))
