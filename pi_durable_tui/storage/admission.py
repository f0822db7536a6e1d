"""Decides whether a batch may be stored, before anything is written. PURE: it asks what is known and answers with a refusal.

Every backend asks here, so that all refuse the same batches for the same reasons (rules ST-3, ST-4, ST-6, ST-8). The order of the
checks is fixed too: counters, ids, references, request ids, documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, TypeAlias

from pi_durable_tui.errors import StorageRejected
from pi_durable_tui.records.commit import Batch, DocumentBase, DocumentRetired
from pi_durable_tui.records.document import Address, StoredDocument
from pi_durable_tui.storage.port import Metadata

RecordKind: TypeAlias = Literal["conversation", "entry", "task", "submission", "document"]


class Known(Protocol):
    """What a backend knows before the batch."""

    def kind_of(self, record_id: int) -> RecordKind | None:
        """What an id was used for, ever; None: it is free."""
        ...

    def submission_of(self, conversation_id: int, request_id: str) -> int | None:
        """The submission that used a request id."""
        ...

    def stored_document(self, document_id: int) -> StoredDocument | None:
        """A document by id, retired ones included."""
        ...

    def live_document(self, address: Address) -> int | None:
        """The document of an address that is not retired."""
        ...


def admit(batch: Batch, counters: Metadata, known: Known) -> dict[int, RecordKind]:
    """The ids that the batch uses for the first time, each with its kind.

    Raises:
        StorageRejected: id_used, request_used, not_found or invalid. Nothing was written.
    """
    if batch.next_id < counters.next_id:
        raise _invalid(f"The batch would set the id counter back from {counters.next_id} to {batch.next_id}.")
    fresh = _fresh_ids(batch, known)
    if fresh and not (min(fresh) >= 1 and max(fresh) < batch.next_id):
        raise _invalid(f"The batch uses ids from {min(fresh)} to {max(fresh)}, and its id counter is {batch.next_id}.")
    if fresh or batch.tasks or batch.submissions:
        _check_references(batch, fresh, known)
    _check_requests(batch, known)
    _check_documents(batch, known)
    return fresh


def _fresh_ids(batch: Batch, known: Known) -> dict[int, RecordKind]:
    fresh: dict[int, RecordKind] = {}
    inserted = _named("conversation", (item.id for item in batch.conversations)) + _named("entry", (item.id for item in batch.entries))
    for record_id, kind in inserted:
        used = fresh.get(record_id) or known.kind_of(record_id)
        if used is not None:
            raise StorageRejected(f"The id {record_id} of a new {kind} is already that of a {used}.", reason="id_used")
        fresh[record_id] = kind
    replaced = _named("task", (item.id for item in batch.tasks)) + _named("submission", (item.id for item in batch.submissions))
    replaced += _named("document", (item.document_id for item in batch.documents if isinstance(item, DocumentBase)))
    written: set[int] = set()
    for record_id, kind in replaced:
        if record_id in written:
            raise _invalid(f"The batch writes record {record_id} twice.")
        written.add(record_id)
        if record_id in fresh:
            raise StorageRejected(f"The batch uses the id {record_id} for a {fresh[record_id]} and for a {kind}.", reason="id_used")
        used = known.kind_of(record_id)
        if used is None:
            fresh[record_id] = kind
        elif used != kind:
            raise StorageRejected(f"There is no {kind} {record_id} to replace: that id is a {used}.", reason="not_found")
    return fresh


def _check_references(batch: Batch, fresh: dict[int, RecordKind], known: Known) -> None:
    needed = _named("conversation", (item.conversation_id for item in (*batch.entries, *batch.tasks, *batch.submissions)))
    needed += _named("task", (item.owner for item in (*batch.conversations, *batch.tasks) if item.owner is not None))
    for conversation in batch.conversations:
        if conversation.parent is not None:
            needed += _named("conversation", [conversation.parent.conversation_id]) + _named("entry", [conversation.parent.entry_id])
    for record_id, kind in dict.fromkeys(needed):
        if (fresh.get(record_id) or known.kind_of(record_id)) != kind:
            raise StorageRejected(f"The batch refers to {kind} {record_id}, which is not there.", reason="not_found")


def _check_requests(batch: Batch, known: Known) -> None:
    seen: dict[tuple[int, str], int] = {}
    for submission in batch.submissions:
        if submission.request_id is None:
            continue
        key = (submission.conversation_id, submission.request_id)
        user = seen.get(key) or known.submission_of(*key)
        if user is not None and user != submission.id:
            raise StorageRejected(f"Request {key[1]!r} of conversation {key[0]} is already submission {user}.", reason="request_used")
        seen[key] = submission.id


def _check_documents(batch: Batch, known: Known) -> None:
    changed: set[int] = set()
    retired: set[int] = set()
    created: dict[int, Address] = {}
    for item in batch.documents:
        if item.document_id in retired or (item.document_id in changed and not isinstance(item, DocumentRetired)):
            raise _invalid(f"The batch changes document {item.document_id} twice, or after its end.")
        stored = known.stored_document(item.document_id)
        if stored is not None and stored.retired_seq is not None:
            raise StorageRejected(f"Document {item.document_id} is retired.", reason="not_found")
        if isinstance(item, DocumentBase):
            if stored is None:
                created[item.document_id] = item.address
            elif stored.address != item.address:
                raise _invalid(f"Document {item.document_id} has another address than the batch gives it.")
        elif stored is None and item.document_id not in created:
            raise StorageRejected(f"There is no document {item.document_id}.", reason="not_found")
        (retired if isinstance(item, DocumentRetired) else changed).add(item.document_id)
    addresses: set[Address] = set()
    for document_id, address in created.items():
        live = known.live_document(address)
        if address in addresses or (live is not None and live not in retired):
            raise _invalid(f"Document {document_id} would be a second {address.kind} of one owner.")
        addresses.add(address)


def _named(kind: RecordKind, ids: Iterable[int]) -> list[tuple[int, RecordKind]]:
    return [(record_id, kind) for record_id in ids]


def _invalid(message: str) -> StorageRejected:
    return StorageRejected(message, reason="invalid")
