"""The tables of a session file as their rows lie in it, and how a row is known to be one of a table. PURE.

A row's checksum covers the name of its table, so a row is found to be whose it is wherever its page was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_durable_tui.storage.admission import RecordKind
from pi_durable_tui.storage.salvage.cells import Cell
from pi_durable_tui.storage.sqlite.row import SHAPES, Column, row_hash

TableName: TypeAlias = Literal["durable_metadata", "conversations", "entries", "tasks", "submissions", "documents", "document_revisions"]

COLUMNS: dict[TableName, tuple[str, ...]] = {
    "durable_metadata": ("singleton", "next_id", "next_seq", "schema_version", "last_at_ms", "hash"),
    "conversations": ("id", "parent", "owner", "record", "hash"),
    "entries": ("id", "conversation_id", "commit_seq", "kind", "head", "record", "hash"),
    "tasks": ("id", "conversation_id", "owner", "kind", "status", "record", "hash"),
    "submissions": ("id", "conversation_id", "request_id", "status", "record", "hash"),
    "documents": ("id", "kind", "scope", "scope_id", "retired_seq", "record", "hash"),
    "document_revisions": ("document_id", "seq", "type", "record", "hash"),
}
"""In the order in which they are stored, which is that of the schema; a test compares the two."""

HASHED: dict[TableName, tuple[str, ...]] = {
    "durable_metadata": ("next_id", "next_seq", "schema_version", "last_at_ms"),
    "document_revisions": ("document_id", "seq", "type"),
    **{shape.table: ("id", *shape.columns) for shape in SHAPES.values()},  # type: ignore[dict-item]
}
"""In the order in which they are covered by the checksum."""

LOST_KINDS: dict[TableName, RecordKind | Literal["revision"]] = {
    **{shape.table: kind for kind, shape in SHAPES.items()},  # type: ignore[dict-item]
    "document_revisions": "revision",
}


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row whose checksum fits."""

    table: TableName
    columns: dict[str, Column]
    text: str

    def number(self, name: str) -> int:
        """A column that the schema declares a whole number."""
        value = self.columns[name]
        return value if isinstance(value, int) else 0


def row_of(cell: Cell) -> FoundRow | None:
    """The row that a cell of any page holds; None when it fits no table's checksum."""
    for table, names in COLUMNS.items():
        if len(names) == len(cell.values) and (found := as_row(table, cell)) is not None:
            return found
    return None


def as_row(table: TableName, cell: Cell) -> FoundRow | None:
    """The cell as a row of that table; None when its checksum does not fit."""
    columns = named(table, cell)
    text = columns.get("record", "")
    if not isinstance(text, str):
        return None
    covered = tuple(columns.get(name) for name in HASHED[table])
    try:
        is_sound = row_hash(table, covered, text.encode("utf-8", "surrogateescape")) == columns.get("hash")
    except UnicodeEncodeError:
        return None
    return FoundRow(table, columns, text) if is_sound else None


def named(table: TableName, cell: Cell) -> dict[str, Column]:
    """The columns of a cell by name, as far as it has them; the key stands where the schema says INTEGER PRIMARY KEY."""
    columns = dict(zip(COLUMNS[table], cell.values, strict=False))
    if table != "document_revisions":
        columns[COLUMNS[table][0]] = cell.key
    return columns
