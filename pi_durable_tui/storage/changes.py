"""What a batch changes, as texts that are made before anything is stored, and how contents in memory take them in. PURE.

The memory backend adopts changes at once; the JSONL backend writes them to its files first, and makes its contents of the same changes
when it is opened again. So both hold the same for the same batches, and what cannot be written as JSON is found out before anything
has changed (rule ST-6).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import msgspec
from msgspec import structs

from pi_durable_tui.errors import StorageRejected
from pi_durable_tui.records import codec
from pi_durable_tui.records.commit import Batch, DocumentBase, DocumentDelta, DocumentRetired, DocumentWrite
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import StoredDocument
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task
from pi_durable_tui.storage.admission import RecordKind
from pi_durable_tui.storage.contents import Contents, Table
from pi_durable_tui.storage.revision import revision_of

AnyRecord: TypeAlias = Conversation | Entry | Task | Submission | StoredDocument

_KINDS: dict[RecordKind, type[AnyRecord]] = {
    "conversation": Conversation,
    "entry": Entry,
    "task": Task,
    "submission": Submission,
    "document": StoredDocument,
}


@dataclass(frozen=True, slots=True)
class Put:
    """The record of that kind and id is now `text`. `record` is what the text says, read from it and shared with nobody."""

    kind: RecordKind
    record_id: int
    text: str
    record: AnyRecord


@dataclass(frozen=True, slots=True)
class Revised:
    """A document got one more revision. `whole`: nothing before it is needed any more."""

    document_id: int
    text: str
    whole: bool


Change: TypeAlias = Put | Revised


def put_of(kind: RecordKind, record_id: int, text: str) -> Put:
    """The change that makes `text` the record of that kind and id.

    Raises:
        msgspec.MsgspecError: The text is no such record.
    """
    return Put(kind, record_id, text, codec.decode(text, _KINDS[kind]))


def changes_of(batch: Batch, contents: Contents) -> tuple[Change, ...]:
    """The changes of an admitted batch over what is stored, in the order in which they are to be adopted. Nothing is changed.

    Raises:
        StorageRejected: invalid: a record cannot be written as JSON.
    """
    try:
        return (
            *(put_of("conversation", item.id, contents.conversations.text_over(item.id, item)) for item in batch.conversations),
            *(put_of("entry", item.id, contents.entries.text_over(item.id, item)) for item in batch.entries),
            *(put_of("task", item.id, contents.tasks.text_over(item.id, item)) for item in batch.tasks),
            *(put_of("submission", item.id, contents.submissions.text_over(item.id, item)) for item in batch.submissions),
            *_document_changes(batch.documents, contents.documents, contents.next_seq),
        )
    except (UnicodeEncodeError, TypeError, OverflowError, msgspec.MsgspecError) as error:
        raise StorageRejected(f"A record cannot be written as JSON ({error}).", reason="invalid") from error


def adopt(contents: Contents, changes: Iterable[Change], seq: int) -> None:
    """The contents hold the changes of commit `seq`; its counters are for `Contents.count`."""
    for change in changes:
        match change:
            case Put():
                _put(contents, change, seq)
            case Revised():
                kept = contents.revisions.setdefault(change.document_id, [])
                if change.whole:
                    kept.clear()
                kept.append((seq, change.text))
            case _:
                assert_never(change)


def _document_changes(writes: Iterable[DocumentWrite], table: Table[StoredDocument], seq: int) -> Iterator[Change]:
    changed: dict[int, tuple[StoredDocument, str]] = {}  # in this batch: it may change a document and then retire it
    for write in writes:
        document_id = write.document_id
        before, text = changed.get(document_id) or (table.seen.get(document_id), table.texts.get(document_id))
        match write:
            case DocumentBase():
                document = StoredDocument(id=document_id, address=write.address, version=write.version, history=write.history)
                # Nobody may look back further than the newest base of a document without history (rule ST-10).
                whole = before is None or before.history == document.history == "latest"
                yield Revised(document_id, codec.encode(revision_of(write)), whole)
            case DocumentDelta():
                yield Revised(document_id, codec.encode(revision_of(write)), whole=False)
                continue
            case DocumentRetired():
                if before is None:
                    continue  # not admitted
                document = structs.replace(before, retired_seq=seq)
        if document != before:
            changed[document_id] = (document, codec.merged(text, document))
            yield put_of("document", document_id, changed[document_id][1])


def _put(contents: Contents, put: Put, seq: int) -> None:
    contents.kinds[put.record_id] = put.kind
    match put.record:
        case Conversation():
            contents.conversations.put(put.record_id, put.text, put.record, seq)
        case Entry():
            if put.record_id not in contents.entries.texts:
                bisect.insort(contents.own_entries.setdefault(put.record.conversation_id, []), put.record_id)
            contents.entries.put(put.record_id, put.text, put.record, seq)
        case Task():
            contents.tasks.put(put.record_id, put.text, put.record, seq)
        case Submission():
            _use_request(contents, put.record)
            contents.submissions.put(put.record_id, put.text, put.record, seq)
        case StoredDocument():
            contents.documents.put(put.record_id, put.text, put.record, seq)
            _place(contents, put.record)
        case _:
            assert_never(put.record)


def _use_request(contents: Contents, submission: Submission) -> None:
    before = contents.submissions.seen.get(submission.id)
    if before is not None and before.request_id is not None:
        del contents.requests[before.conversation_id, before.request_id]
    if submission.request_id is not None:
        contents.requests[submission.conversation_id, submission.request_id] = submission.id


def _place(contents: Contents, document: StoredDocument) -> None:
    """The address of a document leads to it, or, once it is retired, not to it any more."""
    kept = contents.revisions.setdefault(document.id, [])
    if document.retired_seq is None:
        contents.live[document.address] = document.id
        return
    if document.history == "latest":
        kept.clear()
    if contents.live.get(document.address) == document.id:
        del contents.live[document.address]
