"""The records that a damaged store still had, in memory, while they are made consistent. PURE: nothing here reaches a disk.

What is sound stays as it is, byte for byte. Whatever has to be added is part of one commit, the one after the newest that was found.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from pi_durable_tui.errors import StoreCorrupt
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.records.codec import encode, from_json
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import Definition, StoredDocument
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import Record
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task
from pi_durable_tui.session.documents import value_of
from pi_durable_tui.storage.admission import RecordKind
from pi_durable_tui.storage.changes import AnyRecord, Revised, adopt, put_of
from pi_durable_tui.storage.contents import Contents, Table
from pi_durable_tui.storage.dump import Dump, contents_of
from pi_durable_tui.storage.paging import stretches
from pi_durable_tui.storage.revision import BaseRevision, Revision, collected
from pi_durable_tui.storage.salvage.findings import Found, Lost

R = TypeVar("R", bound=Record)


@dataclass(slots=True)
class Rescue:
    """The contents so far, and what is known to be gone.

    Attributes:
        seq: The commit that everything added is part of.
        lost: What is gone; grows when a sound record turns out to be of no use without another one.
        notes: What was done about it, by conversation, for people.
        ended: The conversations in which something was at work, and is not any more.
    """

    contents: Contents
    seq: int
    now_ms: int
    lost: list[Lost]
    notes: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    ended: set[int] = field(default_factory=set[int])
    _ids: dict[tuple[RecordKind, int], list[int]] = field(default_factory=dict[tuple[RecordKind, int], list[int]])  # by kind and conversation

    @classmethod
    def begun(cls, found: Found, *, now_ms: int) -> Rescue:
        """The sound records, without those documents that have no complete value, or an address that a newer one has."""
        documents = {record.id: msgspec.json.decode(record.text, type=StoredDocument) for record in found.records if record.kind == "document"}
        valued = {revision.document_id for revision in found.revisions}
        newest = {document.address: document.id for document in sorted(documents.values(), key=lambda item: item.id) if document.retired_seq is None}
        useless = {key for key, each in documents.items() if each.retired_seq is None and (key not in valued or newest[each.address] != key)}
        ended = {key for key, each in documents.items() if each.retired_seq is not None and each.history == "latest"}
        contents = contents_of(
            Dump(
                counters=found.counters,
                records=tuple(record for record in found.records if not (record.kind == "document" and record.id in useless)),
                revisions=tuple(revision for revision in found.revisions if revision.document_id in documents.keys() - useless - ended),
            )
        )
        gone = [Lost("document", document_id, scope_of(documents[document_id], contents)) for document_id in sorted(useless)]
        rescue = cls(contents, found.counters.next_seq, now_ms, [*found.lost, *gone])
        for table in (contents.entries, contents.tasks, contents.submissions):
            for record_id in table.ids:
                rescue._list(table.seen[record_id])
        for document_id in contents.live.values():
            rescue._value(document_id)
        return rescue

    def new_id(self) -> int:
        """An id that nothing ever had."""
        self.contents.next_id += 1
        return self.contents.next_id - 1

    def put(self, record: AnyRecord, *, seq: int | None = None) -> None:
        """The record is there, in the place of the one with its id.

        Args:
            seq: The commit that it belongs to; None: that of the rescue.
        """
        kind, table = self._table(record)
        if record.id not in table.seen:
            self._list(record)
            self.contents.next_id = max(self.contents.next_id, record.id + 1)  # an end that is gone may have taken the counter with it
        adopt(self.contents, [put_of(kind, record.id, table.text_over(record.id, record))], self.seq if seq is None else seq)

    def note(self, conversation_id: int, text: str) -> None:
        """Something was done in that conversation."""
        self.notes.setdefault(conversation_id, []).append(text)

    def entries(self, conversation_id: int) -> list[Entry]:
        """The conversation's own entries, in order."""
        return [self.contents.entries.seen[each] for each in self._ids.get(("entry", conversation_id), ())]

    def tasks(self, conversation_id: int) -> list[Task]:
        """The conversation's tasks, in order."""
        return [self.contents.tasks.seen[each] for each in self._ids.get(("task", conversation_id), ())]

    def submissions(self, conversation_id: int) -> list[Submission]:
        """What was handed to the conversation, in order."""
        return [self.contents.submissions.seen[each] for each in self._ids.get(("submission", conversation_id), ())]

    def inherited(self, conversation_id: int) -> list[Entry]:
        """What it sees of the conversations that it was forked from."""
        seen = self.contents.conversations.seen
        parts = stretches(conversation_id, lambda each: seen[each].parent if each in seen else None)[:-1]
        return [entry for part in parts for entry in self.entries(part.conversation_id) if part.upto is None or entry.id <= part.upto]

    def document(self, definition: Definition, scope_id: int) -> JsonObject | None:
        """The newest value of a document as far as its changes fit; None when there is none."""
        document_id = self.contents.live.get(definition.address(scope_id))
        value = None if document_id is None else self._value(document_id)
        return value if isinstance(value, dict) else None

    def read(self, definition: Definition, scope_id: int, kind: type[R]) -> R | None:
        """The newest value of a document as a record; None when there is none, or it is no such record."""
        value = self.document(definition, scope_id)
        try:
            return None if value is None else from_json(value, kind)
        except msgspec.ValidationError:
            return None

    def write(self, definition: Definition, scope_id: int, value: Record) -> None:
        """The document has that value; what it was before stays where it keeps its history."""
        address = definition.address(scope_id)
        document_id = self.contents.live.get(address)
        if document_id is None:
            document_id = self.new_id()
        stored = StoredDocument(id=document_id, address=address, version=definition.version, history=definition.history)
        self.put(stored)
        revision = encode(BaseRevision(version=definition.version, value=as_object(value)))
        kept = self.contents.revisions[document_id]
        kept[:] = [each for each in kept if each[0] < self.seq]
        adopt(self.contents, [Revised(document_id, revision, whole=definition.history == "latest")], self.seq)

    def _value(self, document_id: int) -> Json:
        """The newest value that a document's changes make. Those that fit no more are taken out: one before them is gone, and nothing told so."""
        kept = self.contents.revisions[document_id]
        while True:
            found = [msgspec.json.decode(text, type=Revision) for _seq, text in kept]
            first = max(index for index, each in enumerate(found) if isinstance(each, BaseRevision))
            try:
                return value_of(collected(kept[first][0], found[first:]), store="", document_id=document_id)
            except StoreCorrupt:
                self.lost.append(Lost("revision", document_id, None, kept.pop()[0]))

    def _list(self, record: AnyRecord) -> None:
        kind, _table = self._table(record)
        if isinstance(record, Entry | Task | Submission):
            bisect.insort(self._ids.setdefault((kind, record.conversation_id), []), record.id)

    def _table(self, record: AnyRecord) -> tuple[RecordKind, Table[Any]]:
        match record:
            case Conversation():
                return "conversation", self.contents.conversations
            case Entry():
                return "entry", self.contents.entries
            case Task():
                return "task", self.contents.tasks
            case Submission():
                return "submission", self.contents.submissions
            case StoredDocument():
                return "document", self.contents.documents


def scope_of(document: StoredDocument, contents: Contents) -> int | None:
    """The conversation that a document belongs to, as far as that is known."""
    scope_id = document.address.scope_id
    match document.address.scope:
        case "conversation":
            return scope_id
        case "task":
            task = contents.tasks.seen.get(scope_id or 0)
            return task.conversation_id if task is not None else None
        case "session":
            return None
