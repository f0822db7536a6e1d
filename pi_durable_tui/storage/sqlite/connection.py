"""How a session file is opened: the order of its creation, the pragmas, and what is looked at before anything is touched.

A file is inspected through a connection that cannot write, and only then opened for writing; so a damaged or newer file is refused
with its bytes as they were (rules ST-13, ST-15). A reading connection maps the shared memory of the WAL read-only, or, when there is
no WAL, takes the file as unchanging: both leave no file behind (rule ST-11).

On a network file system there is no shared memory between machines, and so no WAL: a file there is kept with a rollback journal, at the
level EXTRA, which flushes the folder too when the journal goes; readers take the locks of the file.

REMINDER: nothing else in this process may open and close the store's file: that would drop SQLite's locks.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote

import apsw
import msgspec

from pi_durable_tui.errors import EnvironmentFailure, SchemaTooNew, StoreCorrupt
from pi_durable_tui.storage.files import FileOps, is_remote
from pi_durable_tui.storage.port import SCHEMA_VERSION, Metadata
from pi_durable_tui.storage.space import SpaceRule
from pi_durable_tui.storage.sqlite import schema
from pi_durable_tui.storage.sqlite.row import Column, row_hash, verified
from pi_durable_tui.storage.sqlite.sql import Sql
from pi_durable_tui.storage.versions.steps import STEPS, Steps, can_upgrade

Synchronous: TypeAlias = Literal["extra", "full", "normal"]
ReadMode: TypeAlias = Literal["unchanging", "shared", "recovering", "locked"]

WAL_HEADER_BYTES = 32
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_VERSIONS_AT, _JOURNAL_VERSIONS = 18, b"\x01\x01"  # the versions of the format that are needed to write and to read; 2 is the WAL's
WAL_MAGICS = frozenset({bytes.fromhex("377f0682"), bytes.fromhex("377f0683")})

SELECT_METADATA = "SELECT next_id, next_seq, schema_version, last_at_ms, hash FROM durable_metadata WHERE singleton = 1"
INSERT_METADATA = "INSERT INTO durable_metadata (singleton, next_id, next_seq, schema_version, last_at_ms, hash) VALUES (1, ?, ?, ?, ?, ?)"
UPDATE_METADATA = "UPDATE durable_metadata SET next_id = ?, next_seq = ?, schema_version = ?, last_at_ms = ?, hash = ? WHERE singleton = 1"


@contextlib.contextmanager
def reading(path: Path) -> Generator[None]:
    """What goes wrong inside is told in our words: damage as StoreCorrupt, the rest as EnvironmentFailure. Nothing was changed."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, UnicodeDecodeError) as error:
        raise StoreCorrupt(str(path), where="SQLite", what=str(error)) from error
    except apsw.Error as error:
        if isinstance(error, apsw.FullError | apsw.IOError) and _is_full(path):
            text = f"The disk of the session {path} is full, so it cannot be opened for writing. Nothing was changed."
            raise EnvironmentFailure(text, hint="Make room there. To look at it needs none: pidurable log.") from error
        raise EnvironmentFailure(f"The session {path} cannot be read: {error}. Nothing was changed.") from error


def _is_full(path: Path) -> bool:
    with contextlib.suppress(OSError):
        disk = os.statvfs(path.parent)
        return disk.f_bavail * disk.f_frsize < SpaceRule().margin_bytes
    return False


def metadata_row(counters: Metadata) -> tuple[Column, ...]:
    """The values of INSERT_METADATA and UPDATE_METADATA."""
    columns = (counters.next_id, counters.next_seq, counters.schema_version, counters.last_at_ms)
    return (*columns, row_hash("durable_metadata", columns))


def read_metadata(sql: Sql, path: Path, *, version: int = SCHEMA_VERSION) -> Metadata:
    """The counters as stored.

    Args:
        version: That of the file; another one is only met on the way to this one.

    Raises:
        SchemaTooNew: Written by a newer program; found out before the row is verified, whose form may be newer too.
        StoreCorrupt: The row is missing or damaged.
    """
    found = (sql.row("SELECT schema_version FROM durable_metadata") or (None,))[0]
    if isinstance(found, int) and found > SCHEMA_VERSION:
        raise SchemaTooNew(str(path), found=found, known=SCHEMA_VERSION)
    row = sql.row(SELECT_METADATA)
    if row is None:
        raise StoreCorrupt(str(path), where="durable_metadata", what="the counters are not there")
    *counters, digest = row
    verified("durable_metadata", (*counters, b"", digest), path=str(path), key=0)
    if counters[2] != version:
        raise StoreCorrupt(str(path), where="durable_metadata", what=f"there never was a schema version {counters[2]}")
    return msgspec.convert(dict(zip(("next_id", "next_seq", "schema_version", "last_at_ms"), counters, strict=True)), Metadata)


def read_mode(path: Path, files: FileOps, *, vfs: str | None = None) -> ReadMode:
    """How a file can be read just now without leaving anything behind.

    Returns:
        unchanging: the WAL is missing or holds nothing that counts, so all is in the file. shared: through the WAL and its index, whether its
        writer lives or died. recovering: the index is missing, as after copying a file away from it; reading would have to make one.
        locked: the file is kept with a journal, and its locks say when it can be read.
    """
    # A WAL of a header alone is what a kill between its first two writes leaves, and a power cut may have torn that header; SQLite's
    # read-only index cannot cope with either: it tries for ten seconds and gives up.
    log = _beside(path, "-wal")
    if (files.size_bytes(log) or 0) <= WAL_HEADER_BYTES or files.start(log, 4) not in WAL_MAGICS:
        return "locked" if has_journal(path, vfs) else "unchanging"
    return "recovering" if files.size_bytes(_beside(path, "-shm")) is None else "shared"


def open_for_reading(path: Path, mode: ReadMode, *, vfs: str | None = None) -> Sql:
    """A connection that cannot write. In the mode `recovering` it makes the missing index file."""
    option = {"unchanging": "&immutable=1", "shared": "&readonly_shm=1", "recovering": "", "locked": ""}[mode]
    sql = Sql(f"file:{quote(str(path))}?mode=ro{option}", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, vfs=vfs)
    # The last one to close would move the log into the file: that is for the next writer to do.
    sql.leave_log_on_close()
    return sql


def inspect(path: Path, files: FileOps, *, vfs: str | None = None, steps: Steps = STEPS) -> bool:
    """True when the file is a whole session file; False when its creation was cut off before the first commit.

    Raises:
        StoreCorrupt, SchemaTooNew, EnvironmentFailure: It was not touched.
    """
    if not files.size_bytes(path) or was_being_made(path, files):
        return False
    if is_cut_off(path, files):
        return True  # in the middle of a commit: whoever writes takes that back first, and looks then
    with reading(path):
        sql = open_for_reading(path, read_mode(path, files, vfs=vfs), vfs=vfs)
        try:
            return check_schema(sql, path, steps)
        finally:
            sql.close()


def was_being_made(path: Path, files: FileOps) -> bool:
    """True when a power cut may have left half of the first page: the journal of an empty file lies beside it, and whoever writes goes back to that."""
    head = files.start(_beside(path, "-journal"), len(JOURNAL_MAGIC) + 12)
    return head.startswith(JOURNAL_MAGIC) and head[16:20] == bytes(4)  # how many pages there were before


def is_cut_off(path: Path, files: FileOps) -> bool:
    """True when a journal lies beside the file by which SQLite will take back a commit that did not come to its end."""
    return files.start(_beside(path, "-journal"), 1) not in {b"", b"\0"}


def has_journal(path: Path, vfs: str | None) -> bool:
    """True for a file that is kept with a rollback journal. Read through SQLite, which knows which locks this process has on it."""
    try:
        file = apsw.VFSFile(vfs or "", str(path), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
    except apsw.Error:
        return False
    try:
        return file.xRead(len(_JOURNAL_VERSIONS), _VERSIONS_AT) == _JOURNAL_VERSIONS
    except apsw.Error:
        return False
    finally:
        file.xClose()


def is_kept_with_journal(sql: Sql) -> bool:
    """True when this connection writes with a rollback journal."""
    return sql.pragma("journal_mode") == "delete"


def check_schema(sql: Sql, path: Path, steps: Steps = STEPS) -> bool:
    """False when there are no tables yet; else True, and the counters were read.

    Args:
        steps: From which older versions there is a way to this one.

    Raises:
        StoreCorrupt: Another program's file, or tables are missing. SchemaTooNew: as in `read_metadata`.
    """
    tables = {row[0] for row in sql.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    application = sql.pragma("application_id")
    if not tables and application == 0:
        return False
    if application != schema.APPLICATION_ID:
        raise StoreCorrupt(str(path), where="its header", what="it is a SQLite file of another program")
    if "durable_metadata" not in tables:
        raise StoreCorrupt(str(path), where="its schema", what="the table durable_metadata is missing")
    found = (sql.row("SELECT schema_version FROM durable_metadata") or (None,))[0]
    read_metadata(sql, path, version=found if isinstance(found, int) and can_upgrade(found, steps) else SCHEMA_VERSION)
    if missing := sorted(schema.TABLES - tables):
        raise StoreCorrupt(str(path), where="its schema", what=f"the table {missing[0]} is missing")
    return True


def open_for_writing(path: Path, files: FileOps, *, is_new: bool, vfs: str | None = None) -> Sql:
    """The one writing connection of a store whose file exists and was inspected; a new one gets its tables.

    Raises:
        EnvironmentFailure, StoreCorrupt: The connection is closed.
    """
    with reading(path):
        sql = Sql(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
        try:
            sql.pragma("foreign_keys", "ON")
            has_log = not is_remote(files.file_system(path.parent))
            if is_new:
                _create(sql, path, has_log=has_log)
                files.sync_folder(path.parent)
            else:
                _use(sql, path, has_log=has_log)
            sql.pragma("synchronous", "FULL" if has_log else "EXTRA")
        except BaseException:
            sql.close()
            raise
    return sql


def _create(sql: Sql, path: Path, *, has_log: bool) -> None:
    # The order matters: without EXTRA while the file becomes a WAL file, a power cut can lose commits that were acknowledged later.
    sql.pragma("synchronous", "EXTRA")
    _use(sql, path, has_log=has_log)
    sql.pragma("synchronous", "FULL" if has_log else "EXTRA")
    sql.run("BEGIN IMMEDIATE")
    sql.run(schema.CREATE)
    sql.pragma("application_id", str(schema.APPLICATION_ID))
    sql.run(INSERT_METADATA, metadata_row(Metadata(next_id=1, next_seq=1, schema_version=SCHEMA_VERSION)))
    sql.run("COMMIT")
    sql.run("PRAGMA wal_checkpoint(TRUNCATE)")


def _use(sql: Sql, path: Path, *, has_log: bool) -> None:
    wanted = "wal" if has_log else "delete"
    if sql.pragma("journal_mode", wanted) != wanted:
        what = "a write-ahead log" if has_log else "a rollback journal"
        raise EnvironmentFailure(f"The disk of {path} cannot hold {what}. The session was not opened.")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
