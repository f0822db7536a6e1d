"""Brings a session file of an older version up to date in one transaction, after a copy was made (rules ST-13, PR-16); blocking.

A crash at any instant leaves the old file or the new one, and so does a full disk. Whoever only reads gets the same from a copy in memory.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import apsw
import msgspec

from pi_durable_tui.errors import EnvironmentFailure, StoreCorrupt
from pi_durable_tui.storage.files import FileOps
from pi_durable_tui.storage.port import SCHEMA_VERSION
from pi_durable_tui.storage.sqlite.connection import UPDATE_METADATA, metadata_row, read_metadata
from pi_durable_tui.storage.sqlite.reads import SELECT_EVERY_REVISION
from pi_durable_tui.storage.sqlite.row import SHAPES, row_hash, stored, verified
from pi_durable_tui.storage.sqlite.sql import Sql
from pi_durable_tui.storage.versions.steps import Steps, can_upgrade, told, upgraded

_UPDATE_REVISION = "UPDATE document_revisions SET record = ?, hash = ? WHERE document_id = ? AND seq = ?"


def upgrade(sql: Sql, path: Path, files: FileOps, steps: Steps) -> str | None:
    """The file is of this version; what was done, for people, or None when nothing had to be.

    Args:
        sql: The one writing connection, in no transaction.

    Raises:
        StoreCorrupt: A record is damaged. EnvironmentFailure: The system said no. The file is as it was.
    """
    version = _version(sql)
    if not can_upgrade(version, steps):
        return None
    kept = _keep(sql, path, files, version)
    try:
        _take_steps(sql, path, version, steps)
    except StoreCorrupt:
        files.remove(kept)  # nothing was changed
        raise
    return told(str(path), version, str(kept))


def upgraded_copy(old: Sql, path: Path, steps: Steps) -> Sql | None:
    """A connection to a copy in memory that is of this version; None when the file already is."""
    version = _version(old)
    if not can_upgrade(version, steps):
        return None
    memory = Sql(":memory:", flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MEMORY)
    try:
        old.copy_into(memory)
        _take_steps(memory, path, version, steps)
    except BaseException:
        memory.close()
        raise
    return memory


def _version(sql: Sql) -> int:
    found = sql.row("SELECT schema_version FROM durable_metadata")
    return found[0] if found is not None and isinstance(found[0], int) else SCHEMA_VERSION


def _keep(sql: Sql, path: Path, files: FileOps, version: int) -> Path:
    """A copy of the file as it is, on the disk, under a name that was free."""
    number, kept = 1, path.with_name(f"{path.name}.version-{version}")
    while files.size_bytes(kept) is not None:
        number += 1
        kept = path.with_name(f"{path.name}.version-{version}-{number}")
    try:
        files.create(kept)
        sql.copy_to(kept)
        files.sync(kept)
        files.sync_folder(kept.parent)
    except (OSError, apsw.Error) as error:
        with contextlib.suppress(OSError):
            files.remove(kept)
        raise EnvironmentFailure(
            f"The session {path} is of schema version {version}, and no copy of it could be made before it is brought up to date: {error}. It is as it was.",
            hint="Make room on its disk.",
        ) from error
    return kept


def _take_steps(sql: Sql, path: Path, version: int, steps: Steps) -> None:
    sql.run("BEGIN IMMEDIATE")
    try:
        for kind, shape in SHAPES.items():
            more = shape.columns[len(shape.columns) - 1 :] if shape.table == "entries" else ()  # the commit is in no record
            for row in sql.rows(shape.select):
                record_id, *columns = row[:-2]
                text = upgraded(kind, verified(shape.table, row, path=str(path)), version=version, steps=steps, store=str(path))
                values = stored(shape, int(str(record_id)), msgspec.json.decode(text, type=shape.kind), text, *columns[len(columns) - len(more) :])
                sql.run(shape.update, (*values[1:], record_id))
        for row in sql.rows(SELECT_EVERY_REVISION):
            columns = row[:3]
            text = upgraded("revision", verified("document_revisions", row, path=str(path), key=2), version=version, steps=steps, store=str(path))
            sql.run(_UPDATE_REVISION, (text, row_hash("document_revisions", columns, text.encode()), *columns[:2]))
        counters = replace(read_metadata(sql, path, version=version), schema_version=SCHEMA_VERSION)
        sql.run(UPDATE_METADATA, metadata_row(counters))
        sql.run("COMMIT")
    except BaseException:
        with contextlib.suppress(apsw.Error):
            if sql.in_transaction:
                sql.run("ROLLBACK")
        raise
