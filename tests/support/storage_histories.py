"""Random histories of batches, most of them good, some refused; the same seed and the same answers give the same history."""

from __future__ import annotations

import random
from typing import Any

from pi_durable_tui.records.commit import Batch, DocumentBase, DocumentDelta, DocumentRetired
from pi_durable_tui.records.conversation import ForkPoint
from pi_durable_tui.records.document import Address
from pi_durable_tui.records.submission import Done, Placed, Queued
from pi_durable_tui.records.task import Completed, Pending, Running, Sleeping, Terminal
from tests.support.storage_records import address, base, batch, conversation, entry, submission, task

KINDS = ("test.notes", "test.agent", "test.live", "test.usage")
RECORDS = ("conversations", "entries", "entries", "tasks", "tasks", "submissions", "documents", "documents", "documents")


class History:
    """Draws batches that build on what was stored; now and then one that must be refused.

    Args:
        seed: Of all choices.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._next_id = 1
        self._entries: dict[int, int] = {}  # entry to conversation
        self._ids: dict[str, list[int]] = {"conversations": [], "tasks": [], "submissions": []}
        self._documents: dict[int, Address] = {}

    def draw(self) -> Batch:
        """The next batch; tell with `adopt` when it was stored."""
        if not self._ids["conversations"]:
            return batch(self._next_id + 1, conversations=[conversation(self._fresh())])
        writes: dict[str, list[Any]] = {name: [] for name in set(RECORDS)}
        used: set[int] = set()
        for _ in range(self._random.randint(1, 4)):
            name = self._random.choice(RECORDS)
            record = self._record(name)
            record_id = record.document_id if name == "documents" else record.id
            if record_id not in used or self._chance(0.05):
                used.add(record_id)
                writes[name].append(record)
        return batch(self._next_id, priority=self._random.choice(["record", "partial", "outcome"]), at_ms=self._next_id, **writes)

    def adopt(self, stored: Batch) -> None:
        """Later batches may build on this one."""
        self._entries |= {item.id: item.conversation_id for item in stored.entries}
        for name, items in (("conversations", stored.conversations), ("tasks", stored.tasks), ("submissions", stored.submissions)):
            self._ids[name] += [item.id for item in items if item.id not in self._ids[name]]
        for write in stored.documents:
            match write:
                case DocumentBase():
                    self._documents[write.document_id] = write.address
                case DocumentRetired():
                    del self._documents[write.document_id]
                case DocumentDelta():
                    pass

    def _record(self, name: str) -> Any:
        draw = self._random
        match name:
            case "conversations":
                parent = None
                if self._entries and self._chance(0.6):
                    entry_id = draw.choice(list(self._entries))
                    parent = ForkPoint(conversation_id=self._entries[entry_id], entry_id=entry_id, seq=1)
                return conversation(self._fresh(), parent=parent, owner=self._known("tasks") if self._ids["tasks"] and self._chance(0.3) else None)
            case "entries":
                return entry(self._fresh(), self._known("conversations"), "x" * draw.randint(0, 300), head=draw.choice([None, None, 1]))
            case "tasks":
                states = [
                    Pending(checkpoint={"n": draw.randint(0, 9)}),
                    Running(checkpoint={}),
                    Sleeping(checkpoint={}, until=5),
                    Terminal(outcome=Completed()),
                ]
                return task(self._fresh_or_known("tasks"), self._known("conversations"), kind=draw.choice(KINDS), state=draw.choice(states))
            case "submissions":
                request, state = draw.choice([None, f"r{draw.randint(0, 40)}"]), draw.choice([Queued(), Placed(entry_id=1), Done(entry_id=1)])
                return submission(self._fresh_or_known("submissions"), self._known("conversations"), request_id=request, state=state)
            case _:
                return self._document()

    def _document(self) -> Any:
        draw = self._random
        if not self._documents or self._chance(0.25):
            record_id = self._fresh()
            return base(record_id, {"n": 0}, address=address(self._known("conversations"), kind=draw.choice(KINDS)), history=self._kind_of_history(record_id))
        record_id = draw.choice(list(self._documents))
        match draw.choice(["base", "delta", "delta", "delta", "retired"]):
            case "base":
                return base(record_id, {"n": draw.randint(0, 99)}, address=self._documents[record_id], history=self._kind_of_history(record_id))
            case "delta":
                return DocumentDelta(document_id=record_id, ops=[["s", ["n"], draw.randint(0, 99)]])
            case _:
                return DocumentRetired(document_id=record_id)

    def _kind_of_history(self, record_id: int) -> str:
        return "latest" if record_id % 2 else "rewindable"

    def _fresh(self) -> int:
        if self._next_id > 1 and self._chance(0.02):
            return self._random.randint(1, self._next_id)  # a clash, most likely
        self._next_id += 1
        return self._next_id - 1

    def _known(self, name: str) -> int:
        return 1_000_000 if self._chance(0.01) else self._random.choice(self._ids[name])

    def _fresh_or_known(self, name: str) -> int:
        return self._known(name) if self._ids[name] and self._chance(0.5) else self._fresh()

    def _chance(self, share: float) -> bool:
        return self._random.random() < share
