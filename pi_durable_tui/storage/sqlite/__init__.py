"""The SQLite backend: one file per store, readable with the sqlite3 shell."""

from __future__ import annotations

from pi_durable_tui.storage.sqlite.opening import open_sqlite
from pi_durable_tui.storage.sqlite.store import SqliteStorage

__all__ = ["SqliteStorage", "open_sqlite"]
