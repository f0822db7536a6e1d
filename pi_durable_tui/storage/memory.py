"""The reference backend: everything in this process, gone with it.

It keeps the JSON text of every record, so nothing given or returned is ever shared with a caller (rule ST-5). The contents can be
kept and opened again: that is how a test drops a harness in the middle and looks at what a crash would have left. It never touches
a file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import structs

from pi_durable_tui.errors import SessionFailed, StorageRejected
from pi_durable_tui.records import codec
from pi_durable_tui.records.commit import Batch, DocumentBase, DocumentDelta, DocumentRetired
from pi_durable_tui.records.conversation import Conversation, ForkPoint
from pi_durable_tui.records.document import Address, Revisions, Scope, StoredDocument
from pi_durable_tui.records.entry import Entry, StoredEntry
from pi_durable_tui.records.messages import Record
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task, TaskStatus
from pi_durable_tui.storage.admission import admit
from pi_durable_tui.storage.contents import Contents, Table
from pi_durable_tui.storage.paging import checked_limit, lowest, page, stretches
from pi_durable_tui.storage.port import SCHEMA_VERSION, Metadata, Page
from pi_durable_tui.storage.revision import BaseRevision, Revision, collected, revision_of

__all__ = ["Contents", "MemoryStorage"]

R = TypeVar("R", bound=Record)


class MemoryStorage:
    """A store in memory, see the module docstring.

    Args:
        contents: What another memory store held, to open the same data again. That other one can commit no more.
        room: Asked by `has_room` and before every commit that is no outcome; lets a test say that the disk is full.
    """

    def __init__(self, contents: Contents | None = None, *, room: Callable[[], bool] = lambda: True) -> None:
        self.contents = Contents() if contents is None else contents
        self.contents.owner = self
        self._room = room

    @property
    def read_only(self) -> bool:
        return False

    @property
    def name(self) -> str:
        return "memory"

    async def metadata(self) -> Metadata:
        return self._counters()

    async def has_room(self) -> bool:
        return self._room()

    async def commit(self, batch: Batch) -> int:
        if self.contents.owner is not self:
            raise SessionFailed("the store was opened again or closed")
        if batch.priority != "outcome" and not self._room():
            raise StorageRejected("There is no space left for the store.", reason="no_space")
        fresh = admit(batch, self._counters(), self.contents)
        try:
            steps = list(self._steps(batch))
        except (UnicodeEncodeError, TypeError, msgspec.MsgspecError) as error:
            raise StorageRejected(f"A record cannot be written as JSON ({error}).", reason="invalid") from error
        for step in steps:
            step()
        self.contents.kinds.update(fresh)
        self.contents.next_id = batch.next_id
        self.contents.last_at_ms = batch.at_ms
        self.contents.next_seq += 1
        return self.contents.next_seq - 1

    async def conversation(self, conversation_id: int) -> Conversation | None:
        return self.contents.conversations.get(conversation_id)

    async def conversations(
        self, *, owner: int | None = None, parent: int | None = None, cursor: int | None = None, limit: int = 100, descending: bool = False
    ) -> Page[Conversation]:
        def keep(item: Conversation) -> bool:
            return (owner is None or item.owner == owner) and (parent is None or (item.parent is not None and item.parent.conversation_id == parent))

        return self.contents.conversations.page(keep, cursor=cursor, limit=limit, descending=descending)

    async def entry(self, entry_id: int) -> StoredEntry | None:
        return self._stored_entry(entry_id) if entry_id in self.contents.entries.texts else None

    async def entries(self, conversation_id: int, *, cursor: int | None = None, limit: int = 100, descending: bool = False) -> Page[StoredEntry]:
        found = self._visible(conversation_id, lambda _entry: True, cursor=cursor, limit=checked_limit(limit), descending=descending)
        ids = page(found, limit, int)
        return Page(tuple(self._stored_entry(entry_id) for entry_id in ids.items), ids.next)

    async def newest_head(self, conversation_id: int, *, at: int | None = None) -> StoredEntry | None:
        found = self._visible(conversation_id, lambda entry: entry.head is not None, cursor=at, limit=1, descending=True)
        return self._stored_entry(found[0]) if found else None

    async def task(self, task_id: int) -> Task | None:
        return self.contents.tasks.get(task_id)

    async def tasks(
        self,
        *,
        kind: str | None = None,
        statuses: Collection[TaskStatus] | None = None,
        conversation_id: int | None = None,
        owner: int | None = None,
        cursor: int | None = None,
        limit: int = 100,
        descending: bool = False,
    ) -> Page[Task]:
        def keep(item: Task) -> bool:
            return (
                (kind is None or item.kind == kind)
                and (statuses is None or item.status in statuses)
                and (conversation_id is None or item.conversation_id == conversation_id)
                and (owner is None or item.owner == owner)
            )

        return self.contents.tasks.page(keep, cursor=cursor, limit=limit, descending=descending)

    async def submission(self, submission_id: int) -> Submission | None:
        return self.contents.submissions.get(submission_id)

    async def submission_by_request(self, conversation_id: int, request_id: str) -> Submission | None:
        found = self.contents.requests.get((conversation_id, request_id))
        return None if found is None else self.contents.submissions.get(found)

    async def submissions(
        self,
        *,
        conversation_id: int | None = None,
        statuses: Collection[str] | None = None,
        cursor: int | None = None,
        limit: int = 100,
        descending: bool = False,
    ) -> Page[Submission]:
        def keep(item: Submission) -> bool:
            return (conversation_id is None or item.conversation_id == conversation_id) and (statuses is None or item.status in statuses)

        return self.contents.submissions.page(keep, cursor=cursor, limit=limit, descending=descending)

    async def document(self, address: Address) -> StoredDocument | None:
        found = self.contents.live.get(address)
        return None if found is None else self.contents.documents.get(found)

    async def documents(self, scope: Scope, scope_id: int | None) -> tuple[StoredDocument, ...]:
        found = sorted(document_id for address, document_id in self.contents.live.items() if (address.scope, address.scope_id) == (scope, scope_id))
        return tuple(codec.decode(self.contents.documents.texts[document_id], StoredDocument) for document_id in found)

    async def revisions(self, document_id: int, *, at_seq: int | None = None) -> Revisions | None:
        document = self.contents.documents.seen.get(document_id)
        if document is None or (document.retired_seq is not None and (at_seq is None or at_seq >= document.retired_seq)):
            return None
        found: list[Revision] = []
        base_seq = 0
        for seq, text in self.contents.revisions[document_id]:
            if at_seq is not None and seq > at_seq:
                break
            revision = _revision(text)
            if isinstance(revision, BaseRevision):
                found, base_seq = [], seq
            found.append(revision)
        return collected(base_seq, found) if found else None

    async def close(self) -> None:
        """Nothing more can be committed here; the contents may be opened by another storage."""
        if self.contents.owner is self:
            self.contents.owner = None

    def _counters(self) -> Metadata:
        return Metadata(next_id=self.contents.next_id, next_seq=self.contents.next_seq, schema_version=SCHEMA_VERSION, last_at_ms=self.contents.last_at_ms)

    def _stored_entry(self, entry_id: int) -> StoredEntry:
        table = self.contents.entries
        return StoredEntry(seq=table.seqs[entry_id], entry=codec.decode(table.texts[entry_id], Entry))

    def _visible(self, conversation_id: int, keep: Callable[[Entry], bool], *, cursor: int | None, limit: int, descending: bool) -> list[int]:
        """Ids of the entries that a conversation sees, through parents; up to `limit` + 1."""

        def parent_of(conversation: int) -> ForkPoint | None:
            known = self.contents.conversations.seen.get(conversation)
            return None if known is None else known.parent

        parts = stretches(conversation_id, parent_of)
        found: list[int] = []
        for part in reversed(parts) if descending else parts:
            upto = part.upto

            def inside(entry: Entry, conversation: int = part.conversation_id, upto: int | None = upto) -> bool:
                return entry.conversation_id == conversation and (upto is None or entry.id <= upto) and keep(entry)

            start = lowest(cursor, upto) if descending else cursor
            found += self.contents.entries.scan(inside, cursor=start, limit=limit, descending=descending)
            if len(found) > limit:
                break
        return found[: limit + 1]

    def _steps(self, batch: Batch) -> Iterator[Callable[[], None]]:
        """What to do, every text already made: an error while making them has changed nothing."""
        seq = self.contents.next_seq
        for conversation in batch.conversations:
            yield _put(self.contents.conversations, conversation.id, conversation, seq)
        for entry in batch.entries:
            yield _put(self.contents.entries, entry.id, entry, seq)
        for task in batch.tasks:
            yield _put(self.contents.tasks, task.id, task, seq)
        for submission in batch.submissions:
            yield _put(self.contents.submissions, submission.id, submission, seq)
            yield partial(self._use_request, submission, self.contents.submissions.seen.get(submission.id))
        for write in batch.documents:
            match write:
                case DocumentBase():
                    before = self.contents.documents.texts.get(write.document_id)
                    stored = StoredDocument(id=write.document_id, address=write.address, version=write.version, history=write.history)
                    yield partial(self._store_base, stored, codec.merged(before, stored), codec.encode(revision_of(write)), seq)
                case DocumentDelta():
                    yield partial(self._store_delta, write.document_id, codec.encode(revision_of(write)), seq)
                case DocumentRetired():
                    yield partial(self._retire, write.document_id, seq)

    def _use_request(self, submission: Submission, before: Submission | None) -> None:
        if before is not None and before.request_id is not None:
            del self.contents.requests[before.conversation_id, before.request_id]
        if submission.request_id is not None:
            self.contents.requests[submission.conversation_id, submission.request_id] = submission.id

    def _store_base(self, document: StoredDocument, text: str, base: str, seq: int) -> None:
        before = self.contents.documents.seen.get(document.id)
        kept = self.contents.revisions.setdefault(document.id, [])
        if before is not None and before.history == document.history == "latest":
            kept.clear()  # nobody may look back further than the newest base (rule ST-10)
        kept.append((seq, base))
        self.contents.documents.put(document.id, text, seq)
        self.contents.live[document.address] = document.id

    def _store_delta(self, document_id: int, delta: str, seq: int) -> None:
        self.contents.revisions[document_id].append((seq, delta))

    def _retire(self, document_id: int, seq: int) -> None:
        table = self.contents.documents
        document = structs.replace(table.seen[document_id], retired_seq=seq)
        table.put(document_id, table.text_over(document_id, document), seq)
        if document.history == "latest":
            self.contents.revisions[document_id].clear()
        if self.contents.live.get(document.address) == document_id:
            del self.contents.live[document.address]


def _put(table: Table[R], record_id: int, record: R, seq: int) -> Callable[[], None]:
    return partial(table.put, record_id, table.text_over(record_id, record), seq)


def _revision(text: str) -> Revision:
    return msgspec.json.decode(text, type=Revision)
