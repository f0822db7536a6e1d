"""Records to rows and back. PURE. Every row carries a hash over its table, its columns and its text, looked at whenever it is read.

A row that does not fit its hash is damage (rule ST-15): it is named by table and id, and never returned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from pi_durable_tui.errors import StoreCorrupt
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import StoredDocument
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.messages import Record
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task
from pi_durable_tui.storage.admission import RecordKind

R = TypeVar("R", bound=Record)

Column: TypeAlias = int | str | bytes | float | None
Row: TypeAlias = Sequence[Column]

HASH_BYTES = 16


@dataclass(frozen=True, slots=True)
class Shape(Generic[R]):
    """One record table: its name, its query columns after the id, and how they follow from a record.

    A row is read as id, the columns, record, hash. Tables whose row needs a number that is not in the record (the commit) name it
    as their last column.
    """

    table: str
    kind: type[R]
    columns: tuple[str, ...]
    columns_of: Callable[[R], tuple[Column, ...]]

    @property
    def select(self) -> str:
        """The beginning of every query on it."""
        # As bytes: a flipped bit may have made it other than UTF-8, and that shall be said of this row, not of the query.
        return f"SELECT id, {', '.join(self.columns)}, CAST(record AS BLOB), hash FROM {self.table}"  # noqa: S608 - names of ours only

    @property
    def insert(self) -> str:
        """The statement that adds a row."""
        marks = ", ".join("?" * (len(self.columns) + 3))
        return f"INSERT INTO {self.table} (id, {', '.join(self.columns)}, record, hash) VALUES ({marks})"  # noqa: S608

    @property
    def update(self) -> str:
        """The statement that replaces a row; the id comes last."""
        names = ", ".join(f"{column} = ?" for column in (*self.columns, "record", "hash"))
        return f"UPDATE {self.table} SET {names} WHERE id = ?"  # noqa: S608


CONVERSATIONS = Shape("conversations", Conversation, ("parent", "owner"), lambda item: (item.parent and item.parent.conversation_id, item.owner))
ENTRIES = Shape("entries", Entry, ("conversation_id", "kind", "head", "commit_seq"), lambda item: (item.conversation_id, item.kind, item.head))
TASKS = Shape("tasks", Task, ("conversation_id", "owner", "kind", "status"), lambda item: (item.conversation_id, item.owner, item.kind, item.status))
SUBMISSIONS = Shape("submissions", Submission, ("conversation_id", "request_id", "status"), lambda item: (item.conversation_id, item.request_id, item.status))
DOCUMENTS = Shape(
    "documents",
    StoredDocument,
    ("kind", "scope", "scope_id", "retired_seq"),
    lambda item: (item.address.kind, item.address.scope, item.address.scope_id, item.retired_seq),
)

SHAPES: Mapping[RecordKind, Shape[Any]] = {"conversation": CONVERSATIONS, "entry": ENTRIES, "task": TASKS, "submission": SUBMISSIONS, "document": DOCUMENTS}


def stored(shape: Shape[R], record_id: int, record: R, text: str, *more: Column) -> tuple[Column, ...]:
    """The values of a row in the order of `shape.insert`.

    Args:
        more: The last columns, where the record does not hold them.
    """
    columns = (record_id, *shape.columns_of(record), *more)
    return (*columns, text, row_hash(shape.table, columns, text.encode()))


def row_hash(table: str, columns: Row, text: bytes = b"") -> bytes:
    """16 bytes that fit exactly these columns and this text of that table."""
    digest = hashlib.blake2b(msgspec.json.encode((table, *columns)), digest_size=HASH_BYTES)
    digest.update(text)
    return digest.digest()


def verified(table: str, row: Row, *, path: str, key: int = 1) -> bytes:
    """The text of a row.

    Args:
        row: Its columns, its text as bytes, its hash.
        key: How many columns at the front name the row.

    Raises:
        StoreCorrupt: The hash does not fit; names table and id. Nothing was changed.
    """
    *columns, text, found = row
    if not isinstance(text, bytes) or row_hash(table, columns, text) != found:
        raise StoreCorrupt(path, where=" ".join([table, *map(str, columns[:key])]), what="its checksum does not fit its content")
    return text


def decoded(shape: Shape[R], row: Row, *, path: str) -> R:
    """The record of a row that was selected with `shape.select`.

    Raises:
        StoreCorrupt: The hash does not fit, or the text is no such record.
    """
    text = verified(shape.table, row, path=path)
    try:
        return msgspec.json.decode(text, type=shape.kind)
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(path, where=f"{shape.table} {row[0]}", what=f"it is not a record ({error})") from error
