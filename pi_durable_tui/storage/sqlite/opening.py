"""Opens a session file: lock first, then a look at what is there, then the connection (rules ST-11 to ST-15)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.storage.files import FileOps, RealFiles, check_own
from pi_durable_tui.storage.lock import acquire
from pi_durable_tui.storage.runner import InlineRunner, Runner, ThreadRunner, open_on
from pi_durable_tui.storage.space import Reserve, SpaceRule
from pi_durable_tui.storage.sqlite.connection import (
    Synchronous,
    check_schema,
    has_journal,
    inspect,
    is_cut_off,
    is_kept_with_journal,
    open_for_writing,
    reading,
)
from pi_durable_tui.storage.sqlite.log_end import keep_end, kept_ends, read_log
from pi_durable_tui.storage.sqlite.source import Follower, Own
from pi_durable_tui.storage.sqlite.store import SqliteStorage
from pi_durable_tui.storage.sqlite.upgrade import upgrade
from pi_durable_tui.storage.sqlite.writer import Writer
from pi_durable_tui.storage.versions.steps import STEPS, Steps


async def open_sqlite(
    path: Path,
    *,
    clock: Clock,
    files: FileOps | None = None,
    read_only: bool = False,
    inline: bool = False,
    synchronous: Synchronous = "full",
    space: SpaceRule | None = None,
    vfs: str | None = None,
    steps: Steps = STEPS,
) -> SqliteStorage:
    """An open store; for writing, this process owns it until it is closed or dies.

    Args:
        path: The session file; made, with its folders, when it is not there (not for reading only).
        files: The door for files; the machine's own when None.
        read_only: Follow a store that may be written by another process; nothing is written, locked or left behind.
        inline: Run on the calling thread instead of a thread of its own.
        synchronous: full: acknowledged commits survive a power cut. normal: they survive a killed process.
        vfs: Name of a registered SQLite VFS, for tests that make the disk fail.
        steps: How older versions become this one.

    Raises:
        StoreLocked: Another process owns it, named. Nothing was changed.
        Refused: It belongs to another user. Nothing was touched.
        NotFound: There is nothing to read.
        SchemaTooNew, StoreCorrupt: The file was not touched.
        EnvironmentFailure: The system said no; the text says what.
    """
    doors = files or RealFiles()
    runner: Runner = InlineRunner() if inline else ThreadRunner()

    def work() -> SqliteStorage:
        check_own(path)
        real = Path(os.path.realpath(path))
        if read_only:
            return SqliteStorage(real, source=Follower(real, doors, vfs=vfs, steps=steps), writer=None, runner=runner, on_close=_nothing)
        return _open_owner(real, doors, runner, since_ms=clock.now_ms(), synchronous=synchronous, rule=space or SpaceRule(), vfs=vfs, steps=steps)

    return await open_on(runner, work)


def _open_owner(
    path: Path, files: FileOps, runner: Runner, *, since_ms: int, synchronous: Synchronous, rule: SpaceRule, vfs: str | None, steps: Steps
) -> SqliteStorage:
    with _system(path):
        files.create_folder(path.parent)
    lock = acquire(path, since_ms=since_ms)
    try:
        with _system(path):
            if files.size_bytes(path) is None:
                files.create(path)
            is_whole = inspect(path, files, vfs=vfs, steps=steps)
            log = read_log(path, files) if is_whole else b""
            was_cut_off, had_journal = is_cut_off(path, files), has_journal(path, vfs)
            own = Own(open_for_writing(path, files, is_new=not is_whole, vfs=vfs), path)
        try:
            with reading(path):
                if was_cut_off:
                    check_schema(own.sql, path, steps)
                notices = [keep_end(own.sql, path, files, log), upgrade(own.sql, path, files, steps)]
                if is_kept_with_journal(own.sql):
                    synchronous = "extra"
                    notices += [] if had_journal and is_whole else [journal_words(path, files.file_system(path.parent))]
                put_aside = kept_ends(path, files)
                writer = Writer(own.sql, path, own.reads, reserve=Reserve(path, files, rule), rule=rule, synchronous=synchronous)
        except BaseException:
            own.close()
            raise
    except BaseException:
        lock.release()
        raise
    return SqliteStorage(path, source=own, writer=writer, runner=runner, on_close=lock.release, notices=tuple(filter(None, notices)), put_aside=put_aside)


def journal_words(path: Path, kind: str | None) -> str:
    """What people are told once of a store on a network file system. PURE."""
    return (
        f"{path} is on {kind}, a network file system: it is kept with a rollback journal instead of a write-ahead log, which is slower, and "
        "that no two machines write at once is up to the locks of its server. PIDURABLE_DATA_DIR names another folder."
    )


@contextlib.contextmanager
def _system(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentFailure(f"The session {path} cannot be opened: {error.strerror or error}.") from error


def _nothing() -> None: ...
