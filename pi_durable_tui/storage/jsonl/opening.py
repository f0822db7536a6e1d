"""Opens a session folder: lock first, then a look at all that is there, and only then repairs (rules ST-11 to ST-16)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import EnvironmentFailure, NotFound
from pi_durable_tui.storage.contents import Contents
from pi_durable_tui.storage.files import FileOps, RealFiles, check_own
from pi_durable_tui.storage.jsonl.folder import Folder
from pi_durable_tui.storage.jsonl.lines import MAIN
from pi_durable_tui.storage.jsonl.reclaim import ReclaimRule
from pi_durable_tui.storage.jsonl.recovery import Recovered
from pi_durable_tui.storage.jsonl.snapshot import main_of
from pi_durable_tui.storage.jsonl.source import Source
from pi_durable_tui.storage.jsonl.store import JsonlStorage
from pi_durable_tui.storage.jsonl.upgrade import upgrade
from pi_durable_tui.storage.jsonl.writer import Writer
from pi_durable_tui.storage.lock import acquire
from pi_durable_tui.storage.runner import InlineRunner, Runner, ThreadRunner, open_on
from pi_durable_tui.storage.space import Reserve, SpaceRule
from pi_durable_tui.storage.versions.steps import STEPS, Steps


async def open_jsonl(
    folder: Path,
    *,
    clock: Clock,
    files: FileOps | None = None,
    read_only: bool = False,
    inline: bool = False,
    fsync: bool = True,
    space: SpaceRule | None = None,
    reclaim: ReclaimRule | None = None,
    steps: Steps = STEPS,
) -> JsonlStorage:
    """An open store; for writing, this process owns it until it is closed or dies.

    Args:
        folder: Of the session; made, with its parents, when it is not there (not for reading only).
        files: The door for files; the machine's own when None.
        read_only: Follow a store that may be written by another process; nothing is written, locked or left behind.
        inline: Run on the calling thread instead of a thread of its own.
        fsync: Acknowledged commits survive a power cut. Without it they survive a killed process, and a power cut may leave a store
            that is refused as damaged.
        steps: How older versions become this one.

    Raises:
        StoreLocked: Another process owns it, named. Nothing was changed.
        Refused: It belongs to another user. Nothing was touched.
        NotFound: There is nothing to read.
        SchemaTooNew, StoreCorrupt: The files were not touched.
        EnvironmentFailure: The system said no; the text says what.
    """
    doors = files or RealFiles()
    runner: Runner = InlineRunner() if inline else ThreadRunner()

    def work() -> JsonlStorage:
        check_own(folder)
        real = Folder(Path(os.path.realpath(folder)), doors, steps)
        with _system(real.path):
            if read_only:
                return JsonlStorage(real.path, source=Source.following(real), writer=None, runner=runner, on_close=_nothing)
            return _open_owner(real, runner, since_ms=clock.now_ms(), fsync=fsync, space=space or SpaceRule(), reclaim=reclaim or ReclaimRule())

    return await open_on(runner, work)


def _open_owner(folder: Folder, runner: Runner, *, since_ms: int, fsync: bool, space: SpaceRule, reclaim: ReclaimRule) -> JsonlStorage:
    folder.files.create_folder(folder.path)
    lock = acquire(folder.path, since_ms=since_ms)
    try:
        notice = upgrade(folder.path, folder.files, folder.steps)
        found, notices = _recover(folder)
        notices = (*notices, *((notice,) if notice else ()))
        if fsync:
            # What an owner without it, or one that was killed, left to the system's leisure is what later commits build on.
            folder.sync([MAIN, *found.tails])
            folder.files.sync_folder(folder.path)
        reserve = Reserve(folder.path, folder.files, space)
        writer = Writer(folder, found, reserve=reserve, space=space, reclaim=reclaim, fsync=fsync)
    except BaseException:
        lock.release()
        raise
    return JsonlStorage(
        folder.path, source=Source(folder, found, notices, folder.put_aside(found.contents)), writer=writer, runner=runner, on_close=lock.release
    )


def _recover(folder: Folder) -> tuple[Recovered, tuple[str, ...]]:
    """What the files hold, repaired; a store that is not there is made."""
    try:
        found = folder.recover()
    except NotFound:
        folder.write_beside(MAIN, bytes(main_of(Contents(), {}).data))
        folder.put_in_place(MAIN)
        found = folder.recover()
    return found, folder.repair(found)


@contextlib.contextmanager
def _system(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentFailure(f"The session {path} cannot be opened: {error.strerror or error}.") from error


def _nothing() -> None: ...
