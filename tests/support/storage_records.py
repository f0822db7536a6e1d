"""Records and batches for tests of storage, and everything that a store holds as one comparable value."""

from __future__ import annotations

from typing import Any

from pi_durable_tui.records.commit import Batch, DocumentBase
from pi_durable_tui.records.conversation import Conversation, ForkPoint
from pi_durable_tui.records.document import Address
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.messages import Text, UserMessage
from pi_durable_tui.records.submission import Queued, Submission
from pi_durable_tui.records.task import Pending, Task

AT_MS = 1_700_000_000_000


def conversation(record_id: int, *, parent: ForkPoint | None = None, owner: int | None = None) -> Conversation:
    return Conversation(id=record_id, created_at_ms=AT_MS, parent=parent, owner=owner)


def entry(record_id: int, conversation_id: int = 1, text: str = "hello", **changes: Any) -> Entry:
    return Entry(id=record_id, conversation_id=conversation_id, kind="pi.user", at_ms=AT_MS, message=UserMessage(content=(Text(text=text),)), **changes)


def task(record_id: int, conversation_id: int = 1, **changes: Any) -> Task:
    fields: dict[str, Any] = {"kind": "test.count", "input": {"to": 5}, "state": Pending(checkpoint={"phase": "count", "n": 1}), **changes}
    return Task(id=record_id, conversation_id=conversation_id, created_at_ms=AT_MS, **fields)


def submission(record_id: int, conversation_id: int = 1, **changes: Any) -> Submission:
    fields: dict[str, Any] = {"mode": "followUp", "content": (Text(text="do it"),), "digest": "d", "state": Queued(), **changes}
    return Submission(id=record_id, conversation_id=conversation_id, at_ms=AT_MS, **fields)


def address(scope_id: int | None = 1, *, kind: str = "test.notes", scope: Any = "conversation") -> Address:
    return Address(kind=kind, scope=scope, scope_id=scope_id)


def base(document_id: int, value: Any, **changes: Any) -> DocumentBase:
    fields: dict[str, Any] = {"address": address(), "version": 1, "history": "latest", **changes}
    return DocumentBase(document_id=document_id, value=value, **fields)


def batch(next_id: int, **writes: Any) -> Batch:
    """A batch; lists may be given for the tuples."""
    return Batch(next_id=next_id, at_ms=writes.pop("at_ms", AT_MS), priority=writes.pop("priority", "record"), **{k: tuple(v) for k, v in writes.items()})


def first_chat() -> Batch:
    """A conversation 1 with the entry 2; the next id is 3."""
    return batch(3, conversations=[conversation(1)], entries=[entry(2)])


async def dump(storage: Any) -> dict[str, Any]:
    """All that the port shows: records, transcripts, documents and every revision that can be asked for."""
    counters = await storage.metadata()
    conversations = (await storage.conversations(limit=1000)).items
    documents = [
        document
        for scope, owners in (("session", [None]), ("conversation", [item.id for item in conversations]), ("task", range(1, counters.next_id)))
        for owner in owners
        for document in await storage.documents(scope, owner)
    ]
    return {
        "counters": counters,
        "conversations": conversations,
        "entries": {item.id: (await storage.entries(item.id, limit=1000)).items for item in conversations},
        "heads": {item.id: await storage.newest_head(item.id) for item in conversations},
        "tasks": (await storage.tasks(limit=1000)).items,
        "submissions": (await storage.submissions(limit=1000)).items,
        "documents": documents,
        "revisions": {item.id: [await storage.revisions(item.id, at_seq=seq) for seq in (*range(counters.next_seq), None)] for item in documents},
    }
