"""One batch as one SQL transaction; blocking. The caller has begun it and will commit or roll back.

Ids and references are checked up front (storage/admission.py); a constraint of the schema that is hit nevertheless makes the caller
roll back. Unknown keys of a replaced record are kept (rule ST-19).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import structs

from pi_durable_tui.errors import StoreCorrupt
from pi_durable_tui.records import codec
from pi_durable_tui.records.commit import Batch, DocumentBase, DocumentDelta, DocumentRetired, DocumentWrite
from pi_durable_tui.records.document import Address, StoredDocument
from pi_durable_tui.records.messages import Record
from pi_durable_tui.storage.admission import RecordKind, admit
from pi_durable_tui.storage.dump import Dump
from pi_durable_tui.storage.port import Metadata
from pi_durable_tui.storage.revision import BaseRevision, Revision, revision_of
from pi_durable_tui.storage.sqlite.connection import UPDATE_METADATA, metadata_row
from pi_durable_tui.storage.sqlite.reads import Reads
from pi_durable_tui.storage.sqlite.row import CONVERSATIONS, DOCUMENTS, ENTRIES, SHAPES, SUBMISSIONS, TASKS, Column, Shape, row_hash, stored
from pi_durable_tui.storage.sqlite.sql import Sql

R = TypeVar("R", bound=Record)

INSERT_REVISION = "INSERT INTO document_revisions (document_id, seq, type, record, hash) VALUES (?, ?, ?, ?, ?)"


class Writes:
    """Writes of the one writing connection."""

    def __init__(self, sql: Sql, path: Path, reads: Reads) -> None:
        self._sql = sql
        self._path = str(path)
        self._reads = reads
        self._documents: dict[int, StoredDocument] = {}  # as committed: nobody else writes, and what a transaction changes is forgotten here

    def write(self, batch: Batch, counters: Metadata) -> None:
        """The batch is in the open transaction; the counters after it are for the caller to write.

        Args:
            counters: As stored before.

        Raises:
            StorageRejected: The batch is not admitted; nothing was written in the transaction.
            StoreCorrupt: A row that the batch builds on is damaged. The transaction must be rolled back.
        """
        fresh = admit(batch, counters, self)
        seq = counters.next_seq
        if fresh:
            self._sql.run_many("INSERT INTO record_ids (id, kind) VALUES (?, ?)", fresh.items())
        for conversation in batch.conversations:
            self._insert(CONVERSATIONS, conversation.id, conversation)
        for entry in batch.entries:
            self._insert(ENTRIES, entry.id, entry, seq)
        for task in batch.tasks:
            self._put(TASKS, task.id, task, is_new=task.id in fresh)
        for submission in batch.submissions:
            self._put(SUBMISSIONS, submission.id, submission, is_new=submission.id in fresh)
        for write in _retired_first(batch):
            self._write_document(write, seq, fresh)

    def restore(self, dump: Dump) -> None:
        """Everything in the dump is in the open transaction of an empty store.

        Raises:
            msgspec.MsgspecError: A text is no record. The transaction must be rolled back.
        """
        self._sql.run_many("INSERT INTO record_ids (id, kind) VALUES (?, ?)", ((record.id, record.kind) for record in dump.records))
        for record in dump.records:
            shape = SHAPES[record.kind]
            more = (record.seq,) if shape is ENTRIES else ()
            self._sql.run(shape.insert, stored(shape, record.id, codec.decode(record.text, shape.kind), record.text, *more))
        for revision in dump.revisions:
            kind = "base" if isinstance(msgspec.json.decode(revision.text, type=Revision), BaseRevision) else "delta"
            self._insert_revision(revision.document_id, revision.seq, kind, revision.text)
        self._sql.run(UPDATE_METADATA, metadata_row(dump.counters))

    def kind_of(self, record_id: int) -> RecordKind | None:
        row = self._sql.row("SELECT kind FROM record_ids WHERE id = ?", (record_id,))
        if row is None:
            return None
        try:
            return msgspec.convert(row[0], RecordKind)
        except msgspec.ValidationError as error:
            raise StoreCorrupt(self._path, where=f"record_ids {record_id}", what=f"there is no kind {row[0]!r}") from error

    def submission_of(self, conversation_id: int, request_id: str) -> int | None:
        row = self._sql.row("SELECT id FROM submissions WHERE conversation_id = ? AND request_id = ?", (conversation_id, request_id))
        return None if row is None else msgspec.convert(row[0], int)

    def stored_document(self, document_id: int) -> StoredDocument | None:
        found = self._documents.get(document_id) or self._reads.one(DOCUMENTS, document_id)
        if found is not None:
            self._documents[document_id] = found
        return found

    def live_document(self, address: Address) -> int | None:
        document = self._reads.live_document(address)
        return None if document is None else document.id

    def _insert(self, shape: Shape[R], record_id: int, record: R, *more: Column) -> None:
        self._sql.run(shape.insert, stored(shape, record_id, record, _readable(shape, codec.encode(record)), *more))

    def _put(self, shape: Shape[R], record_id: int, record: R, *, is_new: bool) -> None:
        if is_new:
            self._insert(shape, record_id, record)
            return
        before = self._reads.text(shape, record_id)
        if before is None:
            raise StoreCorrupt(self._path, where=f"{shape.table} {record_id}", what="its id is known but its row is missing")
        _id, *values = stored(shape, record_id, record, _readable(shape, codec.merged(before, record)))
        self._sql.run(shape.update, (*values, record_id))

    def _write_document(self, write: DocumentWrite, seq: int, fresh: dict[int, RecordKind]) -> None:
        match write:
            case DocumentBase():
                self._write_base(write, seq, is_new=write.document_id in fresh)
            case DocumentDelta():
                self._add_revision(write, "delta", seq)
            case DocumentRetired():
                document = self._document(write.document_id)
                self._put_document(structs.replace(document, retired_seq=seq), is_new=False)
                if document.history == "latest":
                    self._sql.run("DELETE FROM document_revisions WHERE document_id = ?", (document.id,))

    def _write_base(self, write: DocumentBase, seq: int, *, is_new: bool) -> None:
        document = StoredDocument(id=write.document_id, address=write.address, version=write.version, history=write.history)
        before = None if is_new else self._document(write.document_id)
        if before != document:
            self._put_document(document, is_new=is_new)
        if before is not None and before.history == document.history == "latest":
            # Nobody may look back further than the newest base (rule ST-10).
            self._sql.run("DELETE FROM document_revisions WHERE document_id = ?", (document.id,))
        self._add_revision(write, "base", seq)

    def _put_document(self, document: StoredDocument, *, is_new: bool) -> None:
        self._documents.pop(document.id, None)
        self._put(DOCUMENTS, document.id, document, is_new=is_new)

    def _add_revision(self, write: DocumentBase | DocumentDelta, kind: str, seq: int) -> None:
        self._insert_revision(write.document_id, seq, kind, codec.encode(revision_of(write)))

    def _insert_revision(self, document_id: int, seq: int, kind: str, text: str) -> None:
        columns = (document_id, seq, kind)
        self._sql.run(INSERT_REVISION, (*columns, text, row_hash("document_revisions", columns, text.encode())))

    def _document(self, document_id: int) -> StoredDocument:
        document = self._reads.one(DOCUMENTS, document_id)
        if document is None:
            raise StoreCorrupt(self._path, where=f"documents {document_id}", what="its id is known but its row is missing")
        return document


def _readable(shape: Shape[R], text: str) -> str:
    """The text, once it was read as such a record: one that could not be read again would be damage of our own making (rule SE-5). PURE.

    Raises:
        msgspec.MsgspecError: It is no such record.
    """
    codec.decode(text, shape.kind)
    return text


def counters_after(counters: Metadata, batch: Batch) -> Metadata:
    """The counters after a batch. PURE."""
    return Metadata(next_id=batch.next_id, next_seq=counters.next_seq + 1, schema_version=counters.schema_version, last_at_ms=batch.at_ms)


def _retired_first(batch: Batch) -> Iterator[DocumentWrite]:
    """The document writes in an order in which an address is free before it is given to a new document. PURE."""
    ending = {write.document_id for write in batch.documents if isinstance(write, DocumentRetired)}
    yield from (write for write in batch.documents if write.document_id in ending)
    yield from (write for write in batch.documents if write.document_id not in ending)
