"""What is done to a session file as a whole, by people: a copy of it, and the removal of a chat (rules ST-14, ST-15, SA-16).

A copy goes through SQLite, which follows a writer at work; the bytes of the file are never read beside it. A removal is one
transaction in a file that nobody else has open: after a crash all of the chat is there or none of it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import EnvironmentFailure, NotFound, Refused
from pi_durable_tui.storage.files import FileOps, RealFiles
from pi_durable_tui.storage.lock import acquire
from pi_durable_tui.storage.sqlite.connection import inspect, open_for_reading, open_for_writing, read_mode, reading
from pi_durable_tui.storage.sqlite.reads import Reads
from pi_durable_tui.storage.sqlite.sql import Sql

_ATTEMPTS = 5

_CHAT = """
WITH RECURSIVE gone (id) AS (
    SELECT :chat UNION SELECT conversations.id FROM conversations JOIN tasks ON tasks.id = conversations.owner JOIN gone ON gone.id = tasks.conversation_id
)
SELECT id FROM gone ORDER BY id
"""

_REMOVALS = (
    "DELETE FROM document_revisions WHERE document_id IN (SELECT id FROM documents WHERE {documents})",
    "DELETE FROM documents WHERE {documents}",
    "DELETE FROM submissions WHERE conversation_id IN ({ids})",
    "DELETE FROM entries WHERE conversation_id IN ({ids})",
    "DELETE FROM conversations WHERE id IN ({ids})",
    "DELETE FROM tasks WHERE conversation_id IN ({ids})",
)
_UNFINISHED = """
SELECT id FROM tasks WHERE conversation_id IN ({ids}) AND status <> 'terminal'
UNION SELECT id FROM submissions WHERE conversation_id IN ({ids}) AND status IN ('queued', 'placed')
"""
_DOCUMENTS = "(scope = 'conversation' AND scope_id IN ({ids})) OR (scope = 'task' AND scope_id IN (SELECT id FROM tasks WHERE conversation_id IN ({ids})))"


def copy_to(source: Path, target: Path, *, files: FileOps | None = None) -> None:
    """A private, sound copy of a session file, as of one commit, stands at `target`; others may write the source meanwhile.

    Raises:
        FileExistsError: Something has that name. It was not touched.
        NotFound, StoreCorrupt, SchemaTooNew: The source cannot be read, or its copy is not sound. No copy was left.
        EnvironmentFailure, OSError: The system said no. No copy was left.
    """
    files = files or RealFiles()
    if not files.size_bytes(source):
        raise NotFound("session", where=str(source))
    files.create(target)
    try:
        _copy(source, target, files)
        files.sync(target)
        files.sync_folder(target.parent)
    except BaseException:
        files.remove(target)
        raise


def _copy(source: Path, target: Path, files: FileOps) -> None:
    with reading(source):
        for _ in range(_ATTEMPTS):
            mode, mark = read_mode(source, files), _mark(source, files)
            old = open_for_reading(source, mode)
            try:
                old.copy_to(target)
            finally:
                old.close()
            if mode != "unchanging" or mark == _mark(source, files):
                break  # else a writer came, and one part of the copy may be older than another
    if not inspect(target, files):
        raise NotFound("session", where=str(source))
    with reading(target):
        copied = open_for_reading(target, "unchanging")
        try:
            Reads(copied, target).verify()
        finally:
            copied.close()


def _mark(path: Path, files: FileOps) -> tuple[int | None, int | None]:
    """Another value once the file was written."""
    return files.changed_at_ns(path), files.size_bytes(path)


def remove_chat(path: Path, conversation_id: int, *, clock: Clock) -> tuple[int, ...]:
    """The chat, its subagents' conversations and all that belongs to them are gone, from the file's free pages too; their ids stay used.

    Returns:
        The ids of the conversations that are gone.

    Raises:
        StoreLocked: Another process has the session open. Nothing was changed.
        NotFound: There is no such conversation. Nothing was changed.
        Refused: It has unfinished work, or a fork of it is there, which shares its entries. Nothing was changed.
        StoreCorrupt, SchemaTooNew, EnvironmentFailure: Nothing was changed.
    """
    files = RealFiles()
    lock = acquire(path, since_ms=clock.now_ms())
    try:
        if not inspect(path, files):
            raise NotFound(f"conversation {conversation_id}", where=str(path))
        sql = open_for_writing(path, files, is_new=False)
        try:
            with reading(path):
                return _remove(sql, path, conversation_id)
        finally:
            sql.close()
    finally:
        lock.release()


def _remove(sql: Sql, path: Path, conversation_id: int) -> tuple[int, ...]:
    sql.pragma("secure_delete", "ON")
    gone = tuple(int(str(row[0])) for row in sql.rows(_CHAT, {"chat": conversation_id}))
    ids = ", ".join(map(str, gone))
    _check_removable(sql, path, conversation_id, ids)
    sql.run("BEGIN IMMEDIATE")
    try:
        for statement in _REMOVALS:
            sql.run(statement.format(ids=ids, documents=_DOCUMENTS.format(ids=ids)))
        Reads(sql, path).verify()
        sql.run("COMMIT")
    except BaseException:
        sql.run("ROLLBACK")
        raise
    with contextlib.suppress(EnvironmentFailure), reading(path):  # on a full disk the file stays as long as it was; what is gone was overwritten
        sql.run("PRAGMA wal_checkpoint(TRUNCATE)")
        sql.run("VACUUM")
    return gone


def _check_removable(sql: Sql, path: Path, conversation_id: int, ids: str) -> None:
    """Nobody else writes: the lock is held."""
    if sql.row("SELECT id FROM conversations WHERE id = ?", (conversation_id,)) is None:
        raise NotFound(f"conversation {conversation_id}", where=str(path))
    forks = sql.rows(f"SELECT id FROM conversations WHERE parent IN ({ids}) AND id NOT IN ({ids}) ORDER BY id")  # noqa: S608 - whole numbers
    if forks:
        named = ", ".join(str(row[0]) for row in forks)
        raise Refused(f"Conversation {conversation_id} has forks that share its entries ({named}). Nothing was changed.", hint="Delete these first.")
    if sql.row(_UNFINISHED.format(ids=ids)) is not None:
        raise Refused(f"Conversation {conversation_id} has unfinished work. Nothing was changed.", hint="Finish it with pidurable --continue, or stop it.")
