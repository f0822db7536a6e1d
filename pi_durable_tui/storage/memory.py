"""The reference backend: everything in this process, gone with it.

It keeps the JSON text of every record, so nothing given or returned is ever shared with a caller (rule ST-5). The contents can be
kept and opened again: that is how a test drops a harness in the middle and looks at what a crash would have left. It never touches
a file.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection

import msgspec

from pi_durable_tui.errors import SessionFailed, StorageRejected
from pi_durable_tui.records import codec
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.records.conversation import Conversation, ForkPoint
from pi_durable_tui.records.document import Address, Revisions, Scope, StoredDocument
from pi_durable_tui.records.entry import Entry, StoredEntry
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task, TaskStatus
from pi_durable_tui.storage.admission import admit
from pi_durable_tui.storage.changes import adopt, changes_of
from pi_durable_tui.storage.contents import Contents, ids_from
from pi_durable_tui.storage.dump import Dump, check_empty, contents_of, dump_of
from pi_durable_tui.storage.paging import checked_limit, lowest, page, stretches
from pi_durable_tui.storage.port import Metadata, Page, PutAside
from pi_durable_tui.storage.revision import BaseRevision, Revision, collected

__all__ = ["Contents", "MemoryStorage"]


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
        return self.contents.counters()

    async def has_room(self) -> bool:
        return self._room()

    async def put_aside(self) -> tuple[PutAside, ...]:
        return ()

    async def commit(self, batch: Batch) -> int:
        if self.contents.owner is not self:
            raise SessionFailed("the store was opened again or closed")
        if batch.priority != "outcome" and not self._room():
            raise StorageRejected("There is no space left for the store.", reason="no_space")
        admit(batch, self.contents.counters(), self.contents)
        seq = self.contents.next_seq
        adopt(self.contents, changes_of(batch, self.contents), seq)
        self.contents.count(seq, next_id=batch.next_id, at_ms=batch.at_ms)
        return seq

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

    async def export(self) -> Dump:
        """See `storage.dump.Convertible`."""
        return dump_of(self.contents)

    async def restore(self, dump: Dump) -> None:
        """See `storage.dump.Convertible`."""
        if self.contents.owner is not self:
            raise SessionFailed("the store was opened again or closed")
        check_empty(self.contents.counters(), self.name)
        self.contents = contents_of(dump)
        self.contents.owner = self

    async def close(self) -> None:
        """Nothing more can be committed here; the contents may be opened by another storage."""
        if self.contents.owner is self:
            self.contents.owner = None

    def _stored_entry(self, entry_id: int) -> StoredEntry:
        table = self.contents.entries
        return StoredEntry(seq=table.seqs[entry_id], entry=codec.decode(table.texts[entry_id], Entry))

    def _visible(self, conversation_id: int, keep: Callable[[Entry], bool], *, cursor: int | None, limit: int, descending: bool) -> list[int]:
        """Ids of the entries that a conversation sees, through parents; up to `limit` + 1."""

        def parent_of(conversation: int) -> ForkPoint | None:
            known = self.contents.conversations.seen.get(conversation)
            return None if known is None else known.parent

        parts = stretches(conversation_id, parent_of)
        entries, found = self.contents.entries.seen, list[int]()
        for part in reversed(parts) if descending else parts:
            start = lowest(cursor, part.upto) if descending else cursor
            ids = ids_from(self.contents.own_entries.get(part.conversation_id, ()), start, descending=descending)
            seen = ids if part.upto is None or descending else itertools.takewhile(part.upto.__ge__, ids)
            found += itertools.islice((each for each in seen if keep(entries[each])), limit + 1)
            if len(found) > limit:
                break
        return found[: limit + 1]


def _revision(text: str) -> Revision:
    return msgspec.json.decode(text, type=Revision)
