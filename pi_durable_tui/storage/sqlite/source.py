"""Where reads get their connection: the writer's own, or one that follows a file that another process may be writing.

A follower never writes and leaves nothing behind (rule ST-11). While nobody writes it takes the file as unchanging, so it looks
before every read whether that is still true, and opens again when it is not (rule OB-6).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from pi_durable_tui.errors import EnvironmentFailure, NotFound, StoreCorrupt
from pi_durable_tui.storage.files import FileOps
from pi_durable_tui.storage.sqlite.connection import check_schema, open_for_reading, read_mode, reading, was_being_made
from pi_durable_tui.storage.sqlite.reads import Reads
from pi_durable_tui.storage.sqlite.sql import Sql
from pi_durable_tui.storage.sqlite.upgrade import upgraded_copy
from pi_durable_tui.storage.versions.steps import STEPS, Steps

T = TypeVar("T")

_Mark: TypeAlias = tuple[int | None, int | None]

_OLD: _Mark = (None, None)
"""An older program is writing: what was copied from its file is copied anew for every read."""


class Source(Protocol):
    """A connection to read from; blocking."""

    def read(self, work: Callable[[Reads], T]) -> T:
        """What `work` found, all of it as of one commit."""
        ...

    def close(self) -> None:
        """The connection is closed."""
        ...


class Own:
    """The writer's connection: nobody else changes the file."""

    def __init__(self, sql: Sql, path: Path) -> None:
        self.sql = sql
        self.reads = Reads(sql, path)
        self._path = path

    def read(self, work: Callable[[Reads], T]) -> T:
        with reading(self._path):
            return work(self.reads)

    def close(self) -> None:
        self.sql.close()


class Follower:
    """A connection of a read-only store.

    Args:
        path: The real path of the file.

    Raises:
        NotFound, StoreCorrupt, SchemaTooNew, EnvironmentFailure: Nothing was changed.
    """

    def __init__(self, path: Path, files: FileOps, *, vfs: str | None = None, steps: Steps = STEPS) -> None:
        self._path = path
        self._files = files
        self._vfs = vfs
        self._steps = steps
        self._sql: Sql | None = None
        self._mark: _Mark | None = None
        self.read(Reads.metadata)

    def read(self, work: Callable[[Reads], T]) -> T:
        if self._has_changed():
            self.close()
        try:
            found = self._attempt(work)
            if not self._was_written():
                return found
        except StoreCorrupt:
            if not self._has_changed():
                raise
            # A writer came while the file was taken as unchanging: what looked like damage was its work.
        except EnvironmentFailure:
            self.close()  # the next read opens again, in the way that fits then
            raise
        self.close()
        return self._attempt(work)

    def close(self) -> None:
        if self._sql is not None:
            self._sql.close()
            self._sql = None

    def _attempt(self, work: Callable[[Reads], T]) -> T:
        with reading(self._path):
            sql = self._open() if self._sql is None else self._sql
            sql.run("BEGIN")  # a read of several statements sees one commit
            try:
                return work(Reads(sql, self._path))
            finally:
                if sql.in_transaction:
                    sql.run("ROLLBACK")

    def _open(self) -> Sql:
        self._mark = _mark(self._path, self._files, self._vfs)
        mode = read_mode(self._path, self._files, vfs=self._vfs)
        if mode == "recovering":
            raise EnvironmentFailure(
                f"The session {self._path} was not closed, and its -shm file is missing. Reading it would have to write one. Nothing was changed.",
                hint="Open it for writing once, or put the missing file back; an empty one will do.",
            )
        if not self._files.size_bytes(self._path) or was_being_made(self._path, self._files):
            raise NotFound("session", where=str(self._path))
        sql = open_for_reading(self._path, mode, vfs=self._vfs)
        try:
            is_whole = check_schema(sql, self._path, self._steps)
            newer = upgraded_copy(sql, self._path, self._steps) if is_whole else None
        except BaseException:
            sql.close()
            raise
        if not is_whole:
            sql.close()
            raise NotFound("session", where=str(self._path))
        if newer is not None:
            sql.close()
            self._mark = self._mark or _OLD
        self._sql = newer or sql
        return self._sql

    def _was_written(self) -> bool:
        """True when a file that was taken as unchanging was written meanwhile: one part of what was read may be older than another."""
        return self._mark not in (None, _OLD) and self._mark != (self._files.changed_at_ns(self._path), self._files.size_bytes(self._path))

    def _has_changed(self) -> bool:
        """True when a file that was taken as unchanging may have been written; one read through the log may change at will."""
        return self._mark is not None and self._mark != _mark(self._path, self._files, self._vfs)


def _mark(path: Path, files: FileOps, vfs: str | None) -> _Mark | None:
    """Another value whenever somebody may have written; None while SQLite itself notices that."""
    if read_mode(path, files, vfs=vfs) != "unchanging":
        return None
    return files.changed_at_ns(path), files.size_bytes(path)
