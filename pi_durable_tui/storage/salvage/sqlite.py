"""A damaged session file: which of its rows are sound, wherever their pages lie, and which ones are gone (rules PR-15, ST-15). PURE.

Theory. Three ways lead to a row. The tree of its table, as far as its pages hold. Where a page above is damaged, the pages below it are
found by looking at all pages that belong to nothing. And where the log is damaged, the pages of doubtful frames. Whatever is found counts
only if its checksum fits, and for one id the newest one counts. What is gone is known from the other side: the indexes, which name ids and
conversations, and the list of all ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import msgspec

from pi_durable_tui.records.codec import encode
from pi_durable_tui.records.document import Address, StoredDocument
from pi_durable_tui.storage.admission import RecordKind
from pi_durable_tui.storage.changes import put_of
from pi_durable_tui.storage.dump import KINDS, StoredRevision, StoredText
from pi_durable_tui.storage.port import SCHEMA_VERSION, Metadata
from pi_durable_tui.storage.revision import BaseRevision, Revision
from pi_durable_tui.storage.salvage.cells import Cell
from pi_durable_tui.storage.salvage.findings import Found, Lost, LostKind, connected
from pi_durable_tui.storage.salvage.pages import pages_of
from pi_durable_tui.storage.salvage.tables import COLUMNS, LOST_KINDS, FoundRow, TableName, as_row, named, row_of
from pi_durable_tui.storage.salvage.trees import Forest

IDS = "record_ids"
BY_CONVERSATION: dict[RecordKind, str] = {
    "entry": "entries_by_conversation",
    "task": "tasks_by_conversation",
    "submission": "submissions_by_conversation",
}
BY_ADDRESS = "documents_live"
BY_DOCUMENT = "sqlite_autoindex_document_revisions_1"

_LIFE = {"queued": 0, "placed": 1, "done": 2, "unanswered": 2, "completing": 2, "terminal": 3}

_Key: TypeAlias = tuple[TableName, int, int]
"""Table, id, and for a revision its commit."""


def read_sqlite(file: bytes, log: bytes, journal: bytes) -> Found:
    """What these bytes of a session file, its log and its journal still say.

    Args:
        file, log, journal: As they lie there; empty where there is none.
    """
    pages = pages_of(file, log, journal)
    forest = Forest(pages, tables=(*COLUMNS, IDS), indexes=(*BY_CONVERSATION.values(), BY_ADDRESS, BY_DOCUMENT))
    return _Reading(forest, is_unsure=pages.is_unsure).found()


@dataclass(frozen=True, slots=True)
class _Kept:
    row: FoundRow
    age: int


class _Reading:
    def __init__(self, forest: Forest, *, is_unsure: bool) -> None:
        self._forest = forest
        self._is_unsure = is_unsure
        self._rows: dict[_Key, _Kept] = {}
        self._bad: dict[tuple[LostKind, int, int], Lost] = {}  # rows that are there, and whose checksum does not fit
        self._used: dict[int, str] = {}  # ids, and what they were used for

    def found(self) -> Found:
        for table in COLUMNS:
            self._take(table)
        self._list(cell for cell, _image in self._forest.tree(IDS).entries)
        for cell, image in self._forest.strays():
            row = row_of(cell)
            if row is not None:
                self._keep(row, image.age)
            else:
                self._list([cell])
        documents = dict(self._addressed())
        records = tuple(sorted((*self._records(), *documents.values()), key=lambda one: (KINDS.index(one.kind), one.id)))
        known = {(record.kind, record.id) for record in records}
        revisions, gone = self._revisions({record_id for kind, record_id in known if kind == "document"})
        lost = {(item.kind, item.id): item for item in self._missing(known) if self._is_lost(item, known)}
        return Found(
            counters=self._counters(records, revisions),
            records=records,
            revisions=tuple(revisions),
            lost=tuple(sorted((*lost.values(), *gone), key=lambda item: (item.kind, item.id, item.seq or 0))),
            places=tuple(self._forest.places),
            is_unsure=self._is_unsure or not all(self._is_told(kind) or (self._is_whole(IDS) and kind not in BY_CONVERSATION) for kind in KINDS),
        )

    # -------------------------------------------------------------------------------------------------------------- rows

    def _take(self, table: TableName) -> None:
        for cell, image in self._forest.tree(table).entries:
            row = as_row(table, cell)
            if row is not None:
                self._keep(row, image.age)
                continue
            self._forest.note(f"a row of {table}")
            if (kind := LOST_KINDS.get(table)) is not None:
                columns = named(table, cell)
                key, seq = _number(columns.get(COLUMNS[table][0])), _number(columns.get("seq"))
                self._bad[kind, key, seq] = Lost(kind, key, _number(columns.get("conversation_id")) or None, seq or None)

    def _keep(self, row: FoundRow, age: int) -> None:
        key = (row.table, row.number(COLUMNS[row.table][0]), row.number("seq") if row.table == "document_revisions" else 0)
        before = self._rows.get(key)
        if before is None or (age, _life(row)) >= (before.age, _life(before.row)):
            self._rows[key] = _Kept(row, age)

    def _list(self, cells: Iterable[Cell]) -> None:
        """Take over what ids were used for; these rows have no checksum."""
        for cell in cells:
            match cell.values:
                case (_, str(kind)) if kind in KINDS:
                    self._used[cell.key] = kind
                case _:
                    pass

    def _is_whole(self, name: str) -> bool:
        return self._forest.tree(name).is_whole

    def _is_told(self, kind: RecordKind) -> bool:
        """True when the tree of a table or that of its index is whole, so that every record that is gone is known."""
        index = BY_CONVERSATION.get(kind)
        table = next(table for table, its in LOST_KINDS.items() if its == kind)
        return self._is_whole(table) or (index is not None and self._is_whole(index))

    # ------------------------------------------------------------------------------------------------------- what is there

    def _records(self) -> Iterator[StoredText]:
        for (table, record_id, _seq), kept in self._rows.items():
            kind = LOST_KINDS.get(table)
            if kind is None or kind == "revision":
                continue
            try:
                put_of(kind, record_id, kept.row.text)
            except msgspec.MsgspecError:
                self._bad[kind, record_id, 0] = Lost(kind, record_id)
            else:
                yield StoredText(kind, record_id, kept.row.number("commit_seq") if kind == "entry" else 0, kept.row.text)

    def _addressed(self) -> Iterator[tuple[int, StoredText]]:
        """Documents whose row is gone, and whose revisions and place in the index are there, as they must have been.

        How much history they keep is not in the index. To keep all of it is safe, and the next full value says it anew.
        """
        known = {key[1] for key in self._rows if key[0] == "documents"}
        for cell, _image in self._forest.tree(BY_ADDRESS).entries:
            match cell.values:
                case (("session" | "conversation" | "task") as scope, int(scope_id), str(kind), int(document_id)) if document_id not in known:
                    version = self._version(document_id)
                    if version is not None and self._used.get(document_id, "document") == "document":
                        address = Address(kind=kind, scope=scope, scope_id=scope_id or None)
                        document = StoredDocument(id=document_id, address=address, version=version, history="rewindable")
                        yield document_id, StoredText("document", document_id, 0, encode(document))
                case _:
                    pass

    def _version(self, document_id: int) -> int | None:
        """The version that the newest full value of a document was written with."""
        found = [(seq, kept.row.text) for (table, key, seq), kept in self._rows.items() if (table, key) == ("document_revisions", document_id)]
        bases = [said.version for _seq, text in sorted(found) if isinstance(said := msgspec.json.decode(text, type=Revision), BaseRevision)]
        return bases[-1] if bases else None

    def _revisions(self, documents: set[int]) -> tuple[list[StoredRevision], set[Lost]]:
        """The revisions that make sense, and those that are gone or make none any more."""
        history: dict[int, dict[int, str | None]] = {document_id: {} for document_id in documents}
        listed = [cell.values[:2] for cell, _image in self._forest.tree(BY_DOCUMENT).entries]
        bad = [(item.id, item.seq) for item in self._bad.values() if item.kind == "revision"]
        for document_id, seq in (*listed, *bad):
            if isinstance(document_id, int) and document_id in documents and isinstance(seq, int) and seq < self._counted("next_seq", seq + 1):
                history[document_id][seq] = None
        for (table, document_id, seq), kept in self._rows.items():
            if table == "document_revisions" and document_id in documents:
                history[document_id][seq] = kept.row.text
        kept_ones: list[StoredRevision] = []
        lost: set[Lost] = set()
        for document_id, found in sorted(history.items()):
            whole, loose = connected(document_id, sorted(found.items()))
            kept_ones += whole
            lost |= {Lost("revision", document_id, None, seq) for seq, text in found.items() if text is None or seq in loose}
        return kept_ones, lost

    # ------------------------------------------------------------------------------------------------------- what is gone

    def _missing(self, known: Collection[tuple[str, int]]) -> Iterator[Lost]:
        """Records that something speaks of; the one that knows most comes last. What was deleted on purpose is in no index."""
        for kind in KINDS:
            if not self._is_told(kind):
                yield from (Lost(kind, record_id) for record_id, was in self._used.items() if was == kind and (kind, record_id) not in known)
        yield from (item for item in self._bad.values() if item.kind != "revision")
        for kind, index in BY_CONVERSATION.items():
            for cell, _image in self._forest.tree(index).entries:
                match cell.values:
                    case (int(conversation_id), *_, int(record_id)):
                        yield Lost(kind, record_id, conversation_id)
                    case _:
                        pass
        for cell, _image in self._forest.tree(BY_ADDRESS).entries:
            match cell.values:
                case ("conversation", int(conversation_id), _, int(record_id)):
                    yield Lost("document", record_id, conversation_id)
                case _:
                    pass

    def _is_lost(self, item: Lost, known: Collection[tuple[str, int]]) -> bool:
        """True for an id that was given to such a record, which is not there. A damaged key can name ids that never were."""
        taken = self._used.get(item.id, item.kind if not self._is_whole(IDS) else None)
        return item.id in range(1, self._counted("next_id", item.id + 1)) and taken == item.kind and not any((kind, item.id) in known for kind in KINDS)

    # ---------------------------------------------------------------------------------------------------------- counters

    @cached_property
    def _stored_counters(self) -> FoundRow | None:
        kept = self._rows.get(("durable_metadata", 1, 0))
        return kept.row if kept is not None else None

    def _counted(self, name: str, otherwise: int) -> int:
        row = self._stored_counters
        return row.number(name) if row is not None else otherwise

    def _counters(self, records: Iterable[StoredText], revisions: Iterable[StoredRevision]) -> Metadata:
        """As stored, or, where they are gone or older than a record, beyond all that was ever seen."""
        row = self._stored_counters
        ids = [*(record.id for record in records), *(self._used if row is None else ())]
        seqs = [*(record.seq for record in records), *(revision.seq for revision in revisions)]
        at_ms = row.columns["last_at_ms"] if row is not None else None
        return Metadata(
            next_id=max(self._counted("next_id", 1), max(ids, default=0) + 1),
            next_seq=max(self._counted("next_seq", 1), max(seqs, default=0) + 1),
            schema_version=SCHEMA_VERSION,
            last_at_ms=at_ms if isinstance(at_ms, int) else None,
        )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _life(row: FoundRow) -> int:
    """How far on in its life a record is: of two versions of one, the one that is further on is the newer one."""
    if row.table == "documents":
        return int(row.columns["retired_seq"] is not None)
    status = row.columns.get("status")
    return _LIFE.get(status, 0) if isinstance(status, str) else 0
