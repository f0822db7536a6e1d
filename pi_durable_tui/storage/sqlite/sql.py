"""An open SQLite connection, cut down to the few calls that this backend makes. It decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import apsw

from pi_durable_tui.records.json import clean_text
from pi_durable_tui.storage.sqlite.row import Column, Row

BUSY_TIMEOUT_MS = 5000


class Sql:
    """One connection; used by one thread at a time. Statements are prepared once and kept by the library.

    Args:
        target: A path, or a URI when the flags say so.
        vfs: Name of a registered VFS; None for the system's own.

    Raises:
        apsw.Error: It cannot be opened; nothing is left open.
    """

    def __init__(self, target: str, *, flags: int, vfs: str | None = None) -> None:
        self._connection = apsw.Connection(target, flags=flags, vfs=vfs)
        self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        self.pragma("trusted_schema", "OFF")  # a hostile file shall not call functions
        self.pragma("cell_size_check", "ON")  # damage is found on the page, not behind it

    @property
    def in_transaction(self) -> bool:
        """True between BEGIN and its end."""
        return self._connection.in_transaction

    def run(self, statement: str, values: Row = ()) -> None:
        """The statement was carried out to its end."""
        self._connection.execute(statement, values).fetchall()  # pyright: ignore[reportUnknownMemberType]

    def run_many(self, statement: str, rows: Iterable[Row]) -> None:
        """The statement was carried out once for every row."""
        self._connection.executemany(statement, rows).fetchall()  # pyright: ignore[reportUnknownMemberType]

    def rows(self, statement: str, values: Row | Mapping[str, Column] = ()) -> list[Row]:
        """All rows of a query. Values that no row can have are asked for all the same, and are found to be greater, less or other than all there are."""
        try:
            return cast("list[Row]", self._connection.execute(statement, values).fetchall())  # pyright: ignore[reportUnknownMemberType]
        except (OverflowError, UnicodeEncodeError):
            return self.rows(statement, {key: _fitting(value) for key, value in values.items()} if isinstance(values, Mapping) else [*map(_fitting, values)])

    def row(self, statement: str, values: Row = ()) -> Row | None:
        """The first row of a query."""
        found = self.rows(statement, values)
        return found[0] if found else None

    def pragma(self, name: str, value: str | None = None) -> Column:
        """The value of a pragma, after setting it when one is given."""
        found = self.rows(f"PRAGMA {name}" if value is None else f"PRAGMA {name} = {value}")
        return found[0][0] if found else None

    def copy_to(self, path: Path) -> None:
        """The existing, empty file holds what is in this one, as of one commit."""
        target = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            self._copy(target)
        finally:
            target.close()

    def copy_into(self, other: Sql) -> None:
        """The other, empty one holds what is in this one, as of one commit."""
        self._copy(other._connection)

    def _copy(self, target: apsw.Connection) -> None:
        with target.backup("main", self._connection, "main") as backup:
            backup.step(-1)

    def leave_log_on_close(self) -> None:
        """Closing does not move the log into the file."""
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def close(self) -> None:
        """Nothing is open. May be called again."""
        self._connection.close()


def _fitting(value: Column) -> Column:
    """The nearest number that SQLite has, and NULL, which equals nothing, for text with half a surrogate pair, which is never stored (rule SE-5)."""
    if isinstance(value, int):
        return max(-(2**63), min(value, 2**63 - 1))
    return None if isinstance(value, str) and clean_text(value) != value else value
