"""Everything a store holds, as one value that any backend can give and take: how one kind of store is turned into another.

A dump is what the port cannot show or set: the very text of every record, keys included that this version does not know (rule ST-19),
every entry's commit, every revision that is kept, and the counters. Two stores with equal dumps are equal in all that will ever be
read from them. PURE.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.storage.admission import RecordKind
from pi_durable_tui.storage.changes import adopt, put_of
from pi_durable_tui.storage.contents import Contents
from pi_durable_tui.storage.port import Metadata, Storage

KINDS: tuple[RecordKind, ...] = ("conversation", "entry", "task", "submission", "document")
"""The order of the records in a dump."""


@dataclass(frozen=True, slots=True)
class StoredText:
    """A record as it is stored. `seq` is the commit that inserted it; known of entries only, else 0."""

    kind: RecordKind
    id: int
    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class StoredRevision:
    """A revision that is kept of a document, and its commit."""

    document_id: int
    seq: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """All of a store: records by kind and id, revisions by document and commit."""

    counters: Metadata
    records: tuple[StoredText, ...]
    revisions: tuple[StoredRevision, ...]


class Convertible(Storage, Protocol):
    """A storage that can be copied whole."""

    async def export(self) -> Dump:
        """Everything, as of the newest commit."""
        ...

    async def restore(self, dump: Dump) -> None:
        """An empty store holds what the dump says: the same ids, seqs, texts and counters. Stored whole or not at all (rule ST-1).

        Raises:
            BadRequest: The store is not empty. Nothing was written.
            ReadOnlySession: Nothing was written.
        """
        ...

    async def verify(self) -> None:
        """All of it was read and is sound.

        Raises:
            StoreCorrupt: The first damage found. Nothing was changed.
        """
        ...


def dump_of(contents: Contents) -> Dump:
    """The dump of contents in memory."""
    entries = contents.entries
    texts = {
        "conversation": contents.conversations.texts,
        "entry": entries.texts,
        "task": contents.tasks.texts,
        "submission": contents.submissions.texts,
        "document": contents.documents.texts,
    }
    return Dump(
        counters=contents.counters(),
        records=tuple(
            StoredText(kind, record_id, entries.seqs[record_id] if kind == "entry" else 0, text)
            for kind in KINDS
            for record_id, text in sorted(texts[kind].items())
        ),
        revisions=tuple(StoredRevision(document_id, seq, text) for document_id, kept in sorted(contents.revisions.items()) for seq, text in kept),
    )


def contents_of(dump: Dump) -> Contents:
    """The contents that have that dump.

    Raises:
        msgspec.MsgspecError: A text is no record.
    """
    contents = Contents()
    for record in dump.records:
        adopt(contents, [put_of(record.kind, record.id, record.text)], record.seq)
    for revision in dump.revisions:
        contents.revisions[revision.document_id].append((revision.seq, revision.text))
    counters = dump.counters
    contents.count(counters.next_seq - 1, next_id=counters.next_id, at_ms=counters.last_at_ms)
    return contents


def check_empty(counters: Metadata, store: str) -> None:
    """Return if a dump may be restored into a store with these counters.

    Raises:
        BadRequest: It holds commits.
    """
    if (counters.next_id, counters.next_seq) != (1, 1):
        raise BadRequest(f"The session {store} is not empty, so nothing can be restored into it. Nothing was changed.")


def first_difference(one: Dump, other: Dump) -> str | None:
    """Where two dumps differ, for people; None: they are equal."""
    if one.counters != other.counters:
        return f"the counters: {one.counters} and {other.counters}"
    for what, ones, others in (("record", one.records, other.records), ("revision", one.revisions, other.revisions)):
        if ones != others:
            return f"{what} {_first(ones, others)}"
    return None


def _first(ones: Iterable[object], others: Iterable[object]) -> str:
    mine, theirs = list(ones), list(others)
    index = next((index for index, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1]), min(len(mine), len(theirs)))
    return repr((mine[index : index + 1] or theirs[index : index + 1])[0])[:200]
