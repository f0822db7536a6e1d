"""Commits: space, level of durability, one transaction, and which failures leave the outcome unknown; blocking.

Theory. Until COMMIT is executed nothing of a batch can be in the store, so every failure before it is certain. An error out of COMMIT
itself is not: the log may hold the whole batch although the disk said no. Then nothing more is written by this owner; whoever opens
the store again finds the state before or after that batch, never a part (rules ST-1, ST-6).
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import apsw
import msgspec

from pi_durable_tui.errors import SessionFailed, StorageRejected
from pi_durable_tui.records import codec
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.storage.dump import Dump, check_empty
from pi_durable_tui.storage.port import Metadata
from pi_durable_tui.storage.space import PLENTY_BYTES, Reserve, SpaceRule, decide
from pi_durable_tui.storage.sqlite.connection import SELECT_METADATA, UPDATE_METADATA, Synchronous, metadata_row, read_metadata
from pi_durable_tui.storage.sqlite.reads import Reads
from pi_durable_tui.storage.sqlite.row import Row
from pi_durable_tui.storage.sqlite.sql import Sql
from pi_durable_tui.storage.sqlite.writes import Writes, counters_after


class Writer:
    """The writing side of the one connection.

    Args:
        synchronous: The level for records and outcomes: full survives a power cut, normal a killed process. Partials are always normal.
    """

    def __init__(self, sql: Sql, path: Path, reads: Reads, *, reserve: Reserve, rule: SpaceRule, synchronous: Synchronous) -> None:
        self._sql = sql
        self._path = path
        self._writes = Writes(sql, path, reads)
        self._reserve = reserve
        self._rule = rule
        self._record_level: Synchronous = synchronous
        self._level: Synchronous | None = None
        self._failed: str | None = None
        self._counters = read_metadata(sql, path)
        self._counters_row = metadata_row(self._counters)
        self._reserve.refill(self._reserve.free_bytes())

    def commit(self, batch: Batch) -> int:
        """The batch is stored; its seq. Raises as the port says."""
        if self._failed is not None:
            raise SessionFailed(self._failed)
        free_bytes = self._make_room(batch)
        # With a journal (extra) normal would put the whole file at risk, not a partial's commit.
        self._use_level("normal" if batch.priority == "partial" and self._record_level != "extra" else self._record_level)
        try:
            self._sql.run("BEGIN IMMEDIATE")
        except apsw.BusyError as error:
            raise StorageRejected("Another program is writing to the session file.", reason="busy") from error
        try:
            after, row = self._transaction(batch)
            self._sql.run("COMMIT")
        except StorageRejected:
            self._roll_back()
            raise
        except apsw.BusyError as error:  # somebody reads a file that is kept with a journal, and does not end
            self._roll_back()
            raise StorageRejected("Another program is reading the session file.", reason="busy") from error
        except BaseException as error:
            self._fail(error)
            with contextlib.suppress(apsw.Error):
                self._roll_back()
            raise
        self._counters, self._counters_row = after, row
        self._reserve.refill(free_bytes)
        return after.next_seq - 1

    def restore(self, dump: Dump) -> None:
        """The empty file holds the dump, in one transaction.

        Raises:
            BadRequest: It is not empty. Nothing was written.
        """
        if self._failed is not None:
            raise SessionFailed(self._failed)
        check_empty(read_metadata(self._sql, self._path), str(self._path))
        self._use_level(self._record_level)
        try:
            self._sql.run("BEGIN IMMEDIATE")
            self._writes.restore(dump)
            self._sql.run("COMMIT")
        except BaseException as error:
            self._fail(error)
            with contextlib.suppress(apsw.Error):
                self._roll_back()
            raise
        self._counters, self._counters_row = dump.counters, metadata_row(dump.counters)

    def has_room(self) -> bool:
        """True when an effect may start, because its outcome will fit (rule TO-9)."""
        free_bytes = self._reserve.free_bytes()
        if not self._reserve.has_room(free_bytes):
            self._empty_log()
            free_bytes = self._reserve.free_bytes()
        self._reserve.refill(free_bytes)
        return self._reserve.has_room(self._reserve.free_bytes())

    def finish(self) -> None:
        """The log is moved into the file, unless the outcome of a commit is unknown: then the file stays for the next opener to judge."""
        if self._failed is None:
            self._empty_log()
        else:
            self._sql.leave_log_on_close()

    def _transaction(self, batch: Batch) -> tuple[Metadata, Row]:
        if self._sql.row(SELECT_METADATA) != self._counters_row:
            # The lock was got around, by removing its file or on a disk without locks. Whoever notices stops; the other may go on.
            found = read_metadata(self._sql, self._path)
            raise SessionFailed(f"another process wrote commit {found.next_seq - 1} to {self._path}")
        after = counters_after(self._counters, batch)
        row = metadata_row(after)
        try:
            self._writes.write(batch, self._counters)
            self._sql.run(UPDATE_METADATA, row)
        except apsw.ConstraintError as error:
            raise StorageRejected(f"The session file does not allow it ({error}).", reason="invalid") from error
        except apsw.FullError as error:
            raise StorageRejected("There is no space left on the disk.", reason="no_space") from error
        except (UnicodeEncodeError, TypeError, OverflowError, msgspec.MsgspecError) as error:
            raise StorageRejected(f"A record cannot be written as JSON ({error}).", reason="invalid") from error
        return after, row

    def _roll_back(self) -> None:
        try:
            if self._sql.in_transaction:  # a full disk may have rolled back by itself
                self._sql.run("ROLLBACK")
        except apsw.Error as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        self._failed = self._failed or f"{type(error).__name__}: {error}"

    def _use_level(self, level: Synchronous) -> None:
        if level != self._level:
            self._sql.pragma("synchronous", level)  # has an effect only outside a transaction
            self._level = level

    def _make_room(self, batch: Batch) -> int:
        """Free bytes before the commit.

        Raises:
            StorageRejected: no_space. Nothing was written.
        """
        free_bytes = self._reserve.free_bytes()
        if free_bytes >= PLENTY_BYTES:
            return free_bytes
        batch_bytes = len(codec.encode(batch).encode())
        if not self._rule.fits(free_bytes=free_bytes, batch_bytes=batch_bytes):
            self._empty_log()
            free_bytes = self._reserve.free_bytes()
        match decide(self._rule, free_bytes=free_bytes, batch_bytes=batch_bytes, priority=batch.priority, holds_reserve=self._reserve.is_held):
            case "go":
                return free_bytes
            case "release":
                self._reserve.release()
                return free_bytes
            case "refuse":
                raise StorageRejected(f"The disk of {self._path} has only {free_bytes} bytes left.", reason="no_space")

    def _empty_log(self) -> None:
        """The log takes no more space than it must; it is moved into the file. What fails here is still in the log."""
        with contextlib.suppress(apsw.Error):
            self._sql.run("PRAGMA wal_checkpoint(TRUNCATE)")
