"""Small sessions and the records that tests put into them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.records.conversation import Conversation, ForkPoint
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.messages import Text, UserMessage
from pi_durable_tui.records.submission import Queued, Submission
from pi_durable_tui.records.task import Pending, Task
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Storage

START_MS = 1_700_000_000_000

NOTES = Definition(kind="test.notes", scope="session", initial=lambda: {"lines": []}, checkpoint_when=lambda _value, _ops, _deltas: False)
AGENT = Definition(kind="test.agent", scope="conversation", history="rewindable", fork="asOf")
SCRATCH = Definition(kind="test.scratch", scope="task")


async def open_session(storage: Storage | None = None, *, clock: ManualClock | None = None) -> Session:
    """A session on a memory store and a clock that stands still."""
    return await Session.open(MemoryStorage() if storage is None else storage, clock=clock or ManualClock(START_MS))


def conversation(record_id: int, *, parent: ForkPoint | None = None) -> Conversation:
    return Conversation(id=record_id, created_at_ms=START_MS, parent=parent)


def entry(record_id: int, conversation_id: int, text: str = "hello", **changes: Any) -> Entry:
    fields: dict[str, Any] = {"kind": "pi.user", "at_ms": START_MS, "message": UserMessage(content=(Text(text=text),)), **changes}
    return Entry(id=record_id, conversation_id=conversation_id, **fields)


def task(record_id: int, conversation_id: int, **changes: Any) -> Task:
    fields: dict[str, Any] = {"kind": "test.count", "input": {}, "state": Pending(checkpoint={"phase": "start"}), "created_at_ms": START_MS, **changes}
    return Task(id=record_id, conversation_id=conversation_id, **fields)


def submission(record_id: int, conversation_id: int, **changes: Any) -> Submission:
    fields: dict[str, Any] = {"mode": "followUp", "content": (Text(text="hi"),), "digest": "d", "at_ms": START_MS, "state": Queued(), **changes}
    return Submission(id=record_id, conversation_id=conversation_id, **fields)


async def new_conversation(session: Session) -> int:
    """A stored conversation's id."""

    async def create(tx: Transaction) -> int:
        created = tx.new_id()
        tx.insert_conversation(conversation(created))
        return created

    return await session.commit(create)


async def new_entry(session: Session, conversation_id: int, text: str = "hello") -> int:
    """A stored entry's id."""

    async def append(tx: Transaction) -> int:
        created = tx.new_id()
        tx.insert_entry(entry(created, conversation_id, text))
        return created

    return await session.commit(append)


async def note(session: Session, line: Any, definition: Definition = NOTES, scope_id: int | None = None) -> None:
    """One more line in a document."""

    async def add(tx: Transaction) -> None:
        draft: Any = await tx.document(definition, scope_id)
        draft.value.setdefault("lines", []).append(line)

    await session.commit(add)


async def change(session: Session, definition: Definition, scope_id: int | None, edit: Callable[[Any], object]) -> None:
    """Edit a document's value in place."""

    async def run(tx: Transaction) -> None:
        edit((await tx.document(definition, scope_id)).value)

    await session.commit(run)
