"""Chats of many entries, written into the session that a started app has made."""

from __future__ import annotations

from pathlib import Path

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.harness.live import AGENT, Agent
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.entry import ASSISTANT, USER, Entry
from pi_durable_tui.records.messages import AssistantMessage, Text, UserMessage
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.journey_desk import MODEL

AT_ONCE = 5_000


async def fill(data: Path, work: Path, count: int) -> None:
    """Put a chat of so many entries into the session that is there, where `--continue` finds it; the last one says "one of N"."""
    (path,) = data.rglob("session.sqlite")
    session = await Session.open(await open_sqlite(path, clock=SystemClock()), clock=SystemClock())

    async def begin(transaction: Transaction) -> int:
        conversation = Conversation(id=transaction.new_id(), created_at_ms=transaction.now_ms)
        transaction.insert_conversation(conversation)
        agent = as_object(Agent(model=MODEL, approval="all", cwd=str(work)))
        (await transaction.document(AGENT, conversation.id)).value = agent
        return conversation.id

    conversation_id = await session.commit(begin)
    for first in range(0, count, AT_ONCE):

        async def write(transaction: Transaction, first: int = first) -> None:
            for number in range(first, min(count, first + AT_ONCE)):
                transaction.insert_entry(_entry(transaction, conversation_id, number))

        await session.commit(write)
    await session.close()


def _entry(transaction: Transaction, conversation_id: int, number: int) -> Entry:
    at = {"id": transaction.new_id(), "conversation_id": conversation_id, "at_ms": transaction.now_ms}
    if number % 2 == 0:
        return Entry(**at, kind=USER, message=UserMessage(content=(Text(text=f"Question {number} about the cart"),)))
    text = f"An answer with **bold** words, `code` and a list:\n\n- one of {number}\n- two\n\n```python\nx = {number}\n```"
    return Entry(**at, kind=ASSISTANT, message=AssistantMessage(content=(Text(text=text),), model=MODEL, stop_reason="stop"))
