"""Turns a store of one kind into one of the other, without loss: the new one beside the old one, verified, and only then in its place.

Theory. While the new store is made, the old one is locked and only read. The new one gets its name when what was read back from it
equals what was read from the old one; after that the old one gets another name, and is kept. A conversion that was cut off has changed
nothing, or has left both under their names: then the same conversion, asked for again, compares them and ends what it had begun.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import EnvironmentFailure, InternalError, Refused
from pi_durable_tui.storage.dump import Convertible, Dump, first_difference
from pi_durable_tui.storage.files import FileOps, RealFiles
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.kind import StoreKind
from pi_durable_tui.storage.lock import acquire, lock_path
from pi_durable_tui.storage.sqlite import open_sqlite

_LOG_FILES = ("-wal", "-shm")  # what SQLite keeps beside a file that was not closed


async def open_store(kind: StoreKind, path: Path, *, clock: Clock, read_only: bool = False) -> Convertible:
    """An open store of that kind.

    Raises:
        StoreLocked, NotFound, SchemaTooNew, StoreCorrupt, EnvironmentFailure: As `open_sqlite` and `open_jsonl`.
    """
    match kind:
        case "sqlite":
            return await open_sqlite(path, clock=clock, read_only=read_only)
        case "jsonl":
            return await open_jsonl(path, clock=clock, read_only=read_only)


async def convert(source: Path, source_kind: StoreKind, target: Path, target_kind: StoreKind, *, clock: Clock, files: FileOps | None = None) -> Path:
    """The store stands at `target`, in the other kind, with the same ids, seqs, texts and revisions; where the old one is kept.

    Args:
        target: In the folder of `source`. If it is there already, it must hold the same: a conversion that was cut off is ended.

    Raises:
        StoreLocked: The store is open in another process. Nothing was changed.
        Refused: Both are there and differ. Nothing was changed.
        NotFound, SchemaTooNew, StoreCorrupt: The old store cannot be read. Nothing was changed.
        EnvironmentFailure: The old store is as it was, or the new one is whole under its name, and both are there.
    """
    doors = files or RealFiles()
    with _system(source):
        lock = acquire(source, since_ms=clock.now_ms())
        try:
            whole = await _read(source_kind, source, clock)
            if doors.size_bytes(target) is None:
                await write_store(whole, target, target_kind, clock=clock, files=doors)
            elif difference := first_difference(whole, await _read(target_kind, target, clock)):
                raise Refused(
                    f"The session is there twice, as {source} and as {target}, and the two differ in {difference}. Nothing was changed.",
                    hint="Move away the one that is not wanted.",
                )
            return _put_aside(source, doors)
        finally:
            lock.release()


async def copy_store(source: Path, target: Path, kind: StoreKind, *, clock: Clock) -> None:
    """A verified copy of the store, of the same kind, stands at `target`; others may write the source meanwhile.

    Raises:
        NotFound, SchemaTooNew, StoreCorrupt, EnvironmentFailure, OSError: No copy was made.
    """
    await write_store(await _read(kind, source, clock), target, kind, clock=clock)


async def write_store(whole: Dump, target: Path, kind: StoreKind, *, clock: Clock, files: FileOps | None = None) -> None:
    """A store that holds the dump stands at `target`, where none was: made beside, read back and compared, then given its name.

    Raises:
        EnvironmentFailure, OSError: There is none.
    """
    files = files or RealFiles()
    beside = target.with_name(target.name + ".new")
    _discard(beside, files)
    try:
        storage = await open_store(kind, beside, clock=clock)
        try:
            await storage.restore(whole)
        finally:
            await storage.close()
        if difference := first_difference(whole, await _read(kind, beside, clock)):
            raise InternalError(f"the converted session differs from the old one in {difference}")
        for suffix in _LOG_FILES:  # of a file of that name that was put aside; they would be taken for those of the new one
            files.remove(_beside(target, suffix))
        files.rename(beside, target)
        files.sync_folder(target.parent)
    finally:
        _discard(beside, files)


async def _read(kind: StoreKind, path: Path, clock: Clock) -> Dump:
    storage = await open_store(kind, path, clock=clock, read_only=True)
    try:
        return await storage.export()
    finally:
        await storage.close()


def _put_aside(source: Path, files: FileOps) -> Path:
    """The old store has another name. At every instant it is, under one of its names, there with the log in which its newest commits may stand."""
    number = 1
    while files.size_bytes(kept := source.with_name(f"{source.name}.converted-{number}")) is not None:
        number += 1
    for suffix in _LOG_FILES:
        files.remove(_beside(kept, suffix))
        if files.size_bytes(_beside(source, suffix)):
            files.create(_beside(kept, suffix))
            files.append(_beside(kept, suffix), files.read(_beside(source, suffix)))
            files.sync(_beside(kept, suffix))
    files.sync_folder(source.parent)
    files.rename(source, kept)
    files.sync_folder(source.parent)
    for suffix in (*_LOG_FILES, ".reserve"):
        files.remove(_beside(source, suffix))
    return kept


def _discard(path: Path, files: FileOps) -> None:
    """Nothing of an unfinished copy is left. Nobody else knows its name, so its lock file may go too."""
    if path.is_dir():
        files.remove_folder(path)
    for leftover in (path, *(_beside(path, suffix) for suffix in (*_LOG_FILES, ".reserve")), lock_path(path)):
        files.remove(leftover)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


@contextlib.contextmanager
def _system(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentFailure(f"The session {os.fspath(path)} cannot be converted: {error.strerror or error}. It is as it was.") from error
