"""What a memory store holds: the JSON text of every record, in tables by id. It decides nothing and outlives the store that opened it."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pi_durable_tui.records import codec
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import Address, StoredDocument
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.messages import Record
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task
from pi_durable_tui.storage.admission import RecordKind
from pi_durable_tui.storage.paging import checked_limit, page
from pi_durable_tui.storage.port import SCHEMA_VERSION, Metadata, Page

R = TypeVar("R", bound=Record)


@dataclass(slots=True)
class Table(Generic[R]):
    """Records of one kind by id, as text; `seen` is a private copy that filters may look at and nobody gets."""

    kind: type[R]
    texts: dict[int, str] = field(default_factory=dict[int, str])
    seen: dict[int, R] = field(default_factory=dict[int, R])
    seqs: dict[int, int] = field(default_factory=dict[int, int])  # the commit that inserted it
    ids: list[int] = field(default_factory=list[int])

    def text_over(self, record_id: int, record: R) -> str:
        """The text that replaces what is stored under that id (rule ST-19)."""
        return codec.merged(self.texts.get(record_id), record)

    def put(self, record_id: int, text: str, record: R, seq: int) -> None:
        """The record under that id is `text`; `record` is what it says, and nobody else's."""
        if record_id not in self.texts:
            bisect.insort(self.ids, record_id)
            self.seqs[record_id] = seq
        self.texts[record_id] = text
        self.seen[record_id] = record

    def get(self, record_id: int) -> R | None:
        text = self.texts.get(record_id)
        return None if text is None else codec.decode(text, self.kind)

    def scan(self, keep: Callable[[R], bool], *, cursor: int | None, limit: int, descending: bool) -> list[int]:
        """Up to `limit` + 1 ids from the cursor on."""
        found: list[int] = []
        for record_id in ids_from(self.ids, cursor, descending=descending):
            if keep(self.seen[record_id]):
                found.append(record_id)
                if len(found) > limit:
                    break
        return found

    def page(self, keep: Callable[[R], bool], *, cursor: int | None, limit: int, descending: bool) -> Page[R]:
        ids = page(self.scan(keep, cursor=cursor, limit=checked_limit(limit), descending=descending), limit, int)
        return Page(tuple(codec.decode(self.texts[record_id], self.kind) for record_id in ids.items), ids.next)


def ids_from(ids: Sequence[int], cursor: int | None, *, descending: bool) -> Iterator[int]:
    """The ids of a growing list from the cursor on, itself included if it is there."""
    if descending:
        end = len(ids) if cursor is None else bisect.bisect_right(ids, cursor)
        return (ids[index] for index in range(end - 1, -1, -1))
    start = 0 if cursor is None else bisect.bisect_left(ids, cursor)
    return (ids[index] for index in range(start, len(ids)))


@dataclass(slots=True)
class Contents:
    """What a memory store holds; give it to another MemoryStorage to open the same data again."""

    next_id: int = 1
    next_seq: int = 1
    last_at_ms: int | None = None
    kinds: dict[int, RecordKind] = field(default_factory=dict[int, RecordKind])
    conversations: Table[Conversation] = field(default_factory=lambda: Table(Conversation))
    entries: Table[Entry] = field(default_factory=lambda: Table(Entry))
    own_entries: dict[int, list[int]] = field(default_factory=dict[int, list[int]])  # of each conversation, by id
    tasks: Table[Task] = field(default_factory=lambda: Table(Task))
    submissions: Table[Submission] = field(default_factory=lambda: Table(Submission))
    requests: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    documents: Table[StoredDocument] = field(default_factory=lambda: Table(StoredDocument))
    live: dict[Address, int] = field(default_factory=dict[Address, int])
    revisions: dict[int, list[tuple[int, str]]] = field(default_factory=dict[int, list[tuple[int, str]]])  # (seq, text), oldest first
    owner: object = None  # the storage that opened it last: only that one may write

    def counters(self) -> Metadata:
        return Metadata(next_id=self.next_id, next_seq=self.next_seq, schema_version=SCHEMA_VERSION, last_at_ms=self.last_at_ms)

    def count(self, seq: int, *, next_id: int, at_ms: int | None) -> None:
        """Commit `seq` is the newest one."""
        self.next_id, self.next_seq, self.last_at_ms = next_id, seq + 1, at_ms

    def kind_of(self, record_id: int) -> RecordKind | None:
        return self.kinds.get(record_id)

    def submission_of(self, conversation_id: int, request_id: str) -> int | None:
        return self.requests.get((conversation_id, request_id))

    def stored_document(self, document_id: int) -> StoredDocument | None:
        return self.documents.seen.get(document_id)

    def live_document(self, address: Address) -> int | None:
        return self.live.get(address)
