"""Every read of the port, as SQL on one connection; blocking. Rows are verified as they are read (rule ST-15).

Nothing here writes, and nothing is cached: the answer is what is stored.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from pi_durable_tui.errors import StoreCorrupt
from pi_durable_tui.records.conversation import ForkPoint
from pi_durable_tui.records.document import Address, Revisions, Scope, StoredDocument
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.messages import Record
from pi_durable_tui.storage.dump import Dump, StoredRevision, StoredText
from pi_durable_tui.storage.paging import LIMIT_MOST, checked_limit, lowest, page, stretches
from pi_durable_tui.storage.port import Metadata, Page
from pi_durable_tui.storage.revision import Revision, collected
from pi_durable_tui.storage.sqlite.connection import read_metadata
from pi_durable_tui.storage.sqlite.row import CONVERSATIONS, DOCUMENTS, ENTRIES, SHAPES, SUBMISSIONS, TASKS, Column, Row, Shape, decoded, verified
from pi_durable_tui.storage.sqlite.sql import Sql

R = TypeVar("R", bound=Record)

_ENDED = frozenset({"terminal", "done", "unanswered"})
_COMMIT_SEQ = 1 + ENTRIES.columns.index("commit_seq")

SELECT_REVISIONS = """
SELECT document_id, seq, type, CAST(record AS BLOB), hash FROM document_revisions
WHERE document_id = :document AND seq <= :at AND seq >= (
    SELECT seq FROM document_revisions WHERE document_id = :document AND seq <= :at AND type = 'base' ORDER BY seq DESC LIMIT 1
)
ORDER BY seq
"""


SELECT_ALL_REVISIONS = "SELECT document_id, seq, type, CAST(record AS BLOB), hash FROM document_revisions WHERE document_id = ?"
SELECT_EVERY_REVISION = "SELECT document_id, seq, type, CAST(record AS BLOB), hash FROM document_revisions ORDER BY document_id, seq"


class Condition:
    """A WHERE clause that grows; column names are ours, values are bound."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.values: list[Column] = []

    def equals(self, column: str, value: Column) -> None:
        """Only rows with that value; None asks for nothing."""
        if value is not None:
            self.add(f"{column} = ?", value)

    def belongs_to(self, conversation_id: int | None, *, among: Collection[str] | None) -> None:
        """Only rows of that conversation; None asks for nothing.

        Args:
            among: The statuses that are asked for too. Unfinished work is little, and what has ended grows without end: so rows are looked up
                by status then, and not among all that the conversation ever had (rule PR-19). The plus sign keeps SQLite from its index.
        """
        is_unfinished = among is not None and not _ENDED & set(among)
        self.equals("+conversation_id" if is_unfinished else "conversation_id", conversation_id)

    def is_one_of(self, column: str, values: Collection[str] | None) -> None:
        """Only rows with one of the values; None asks for nothing, an empty collection leaves no row."""
        if values is not None:
            self.add(f"{column} IN ({', '.join('?' * len(values))})", *values)

    def add(self, sql: str, *values: Column) -> None:
        """One more condition."""
        self._parts.append(sql)
        self.values += values

    def __str__(self) -> str:
        return f" WHERE {' AND '.join(self._parts)}" if self._parts else ""


class Reads:
    """Reads of one connection.

    Args:
        path: Names the store in errors.
    """

    def __init__(self, sql: Sql, path: Path) -> None:
        self._sql = sql
        self._path = str(path)

    def metadata(self) -> Metadata:
        """The counters."""
        return read_metadata(self._sql, Path(self._path))

    def one(self, shape: Shape[R], record_id: int) -> R | None:
        """A record by id."""
        row = self._sql.row(f"{shape.select} WHERE id = ?", (record_id,))
        return None if row is None else decoded(shape, row, path=self._path)

    def text(self, shape: Shape[R], record_id: int) -> str | None:
        """A record's text by id, for keeping the keys that this version does not know."""
        row = self._sql.row(f"{shape.select} WHERE id = ?", (record_id,))
        return None if row is None else verified(shape.table, row, path=self._path).decode()

    def first(self, shape: Shape[R], condition: Condition) -> R | None:
        """The first record by id that fits."""
        rows = self._rows(shape, condition, cursor=None, most=1, descending=False)
        return decoded(shape, rows[0], path=self._path) if rows else None

    def page(self, shape: Shape[R], condition: Condition, *, cursor: int | None, limit: int, descending: bool) -> Page[R]:
        """A page of the records that fit, by id."""
        rows = self._rows(shape, condition, cursor=cursor, most=checked_limit(limit) + 1, descending=descending)
        found = page(rows, limit, _id_of)
        return Page(tuple(decoded(shape, row, path=self._path) for row in found.items), found.next)

    def entry(self, entry_id: int) -> StoredEntry | None:
        """An entry and its commit."""
        row = self._sql.row(f"{ENTRIES.select} WHERE id = ?", (entry_id,))
        return None if row is None else self._stored_entry(row)

    def entries(self, conversation_id: int, *, cursor: int | None, limit: int, descending: bool) -> Page[StoredEntry]:
        """A page of what a conversation sees, through parents."""
        rows = self._visible(conversation_id, cursor=cursor, most=checked_limit(limit) + 1, descending=descending, only_heads=False)
        found = page(rows, limit, _id_of)
        return Page(tuple(self._stored_entry(row) for row in found.items), found.next)

    def newest_head(self, conversation_id: int, *, at: int | None) -> StoredEntry | None:
        """The newest visible entry with a head marker."""
        rows = self._visible(conversation_id, cursor=at, most=1, descending=True, only_heads=True)
        return self._stored_entry(rows[0]) if rows else None

    def live_document(self, address: Address) -> StoredDocument | None:
        """The document of an address that is not retired."""
        condition = _owned_by(address.scope, address.scope_id)
        condition.add("kind = ?", address.kind)
        return self.first(DOCUMENTS, condition)

    def documents(self, scope: Scope, scope_id: int | None) -> tuple[StoredDocument, ...]:
        """All documents of one owner that are not retired."""
        rows = self._rows(DOCUMENTS, _owned_by(scope, scope_id), cursor=None, most=-1, descending=False)
        return tuple(decoded(DOCUMENTS, row, path=self._path) for row in rows)

    def revisions(self, document_id: int, *, at_seq: int | None) -> Revisions | None:
        """A document at a point in time."""
        document = self.one(DOCUMENTS, document_id)
        if document is None or (document.retired_seq is not None and (at_seq is None or at_seq >= document.retired_seq)):
            return None
        rows = self._sql.rows(SELECT_REVISIONS, {"document": document_id, "at": _LAST if at_seq is None else at_seq})
        if rows:
            return collected(_number(rows[0][1]), [self._revision(row) for row in rows])
        if document.retired_seq is None and at_seq is None:
            raise StoreCorrupt(self._path, where=f"document_revisions {document_id}", what="the document has no complete value")
        return None

    def verify(self) -> None:
        """Every row of every table fits its hash, and every index fits its table.

        A read verifies the rows that it finds; a damaged index can hide a row from it. Only this looks for those.

        Raises:
            StoreCorrupt: The first damage found.
        """
        verdict = self._sql.row("PRAGMA integrity_check(1)")
        if verdict != ("ok",):
            raise StoreCorrupt(self._path, where="SQLite", what=str(verdict[0] if verdict else "it cannot be checked"))
        if orphan := self._sql.row("PRAGMA foreign_key_check"):
            raise StoreCorrupt(self._path, where=f"{orphan[0]} {orphan[1]}", what=f"it refers to a row of {orphan[2]} that is not there")
        self.metadata()
        for shape in (CONVERSATIONS, ENTRIES, TASKS, SUBMISSIONS, DOCUMENTS):
            self._verify_table(shape)

    def export(self) -> Dump:
        """Everything, each row verified."""
        records = [
            StoredText(kind, _id_of(row), _number(row[_COMMIT_SEQ]) if shape is ENTRIES else 0, verified(shape.table, row, path=self._path).decode())
            for kind, shape in SHAPES.items()
            for row in self._rows(shape, Condition(), cursor=None, most=-1, descending=False)
        ]
        revisions = [
            StoredRevision(_id_of(row), _number(row[1]), verified("document_revisions", row, path=self._path, key=2).decode())
            for row in self._sql.rows(SELECT_EVERY_REVISION)
        ]
        return Dump(counters=self.metadata(), records=tuple(records), revisions=tuple(revisions))

    def _verify_table(self, shape: Shape[Any]) -> None:
        cursor: int | None = 0
        while cursor is not None:
            rows = self._rows(shape, Condition(), cursor=cursor, most=LIMIT_MOST + 1, descending=False)
            for row in rows[:LIMIT_MOST]:
                decoded(shape, row, path=self._path)
                if shape is DOCUMENTS:
                    for revision in self._sql.rows(SELECT_ALL_REVISIONS, (row[0],)):
                        self._revision(revision)
            cursor = page(rows, LIMIT_MOST, _id_of).next

    def _rows(self, shape: Shape[R], condition: Condition, *, cursor: int | None, most: int, descending: bool) -> list[Row]:
        if cursor is not None:
            condition.add("id <= ?" if descending else "id >= ?", cursor)
        sql = f"{shape.select}{condition} ORDER BY id{' DESC' if descending else ''} LIMIT ?"
        return self._sql.rows(sql, (*condition.values, most))

    def _visible(self, conversation_id: int, *, cursor: int | None, most: int, descending: bool, only_heads: bool) -> list[Row]:
        parts = stretches(conversation_id, self._parent_of)
        found: list[Row] = []
        for part in reversed(parts) if descending else parts:
            condition = Condition()
            condition.add("conversation_id = ?", part.conversation_id)
            if only_heads:
                condition.add("head IS NOT NULL")
            if not descending and part.upto is not None:
                condition.add("id <= ?", part.upto)
            start = lowest(cursor, part.upto) if descending else cursor
            found += self._rows(ENTRIES, condition, cursor=start, most=most - len(found), descending=descending)
            if len(found) >= most:
                break
        return found

    def _parent_of(self, conversation_id: int) -> ForkPoint | None:
        conversation = self.one(CONVERSATIONS, conversation_id)
        return None if conversation is None else conversation.parent

    def _stored_entry(self, row: Row) -> StoredEntry:
        return StoredEntry(entry=decoded(ENTRIES, row, path=self._path), seq=_number(row[_COMMIT_SEQ]))

    def _revision(self, row: Row) -> Revision:
        text = verified("document_revisions", row, path=self._path, key=2)
        try:
            return msgspec.json.decode(text, type=Revision)
        except msgspec.MsgspecError as error:
            raise StoreCorrupt(self._path, where=f"document_revisions {row[0]} {row[1]}", what=f"it is not a revision ({error})") from error


_LAST = 2**62


def _id_of(row: Row) -> int:
    return _number(row[0])


def _number(found: Column) -> int:
    """A column that the schema declares INTEGER NOT NULL; anything else in it is damage that SQLite has not noticed."""
    if not isinstance(found, int):
        raise apsw.CorruptError(f"a column of whole numbers holds {type(found).__name__}")
    return found


def _owned_by(scope: Scope, scope_id: int | None) -> Condition:
    condition = Condition()
    condition.add("retired_seq IS NULL")
    condition.add("scope = ?", scope)
    # The expression of the index, so that the index is used; no record has the id 0.
    condition.add("ifnull(scope_id, 0) = ?", scope_id or 0)
    return condition
