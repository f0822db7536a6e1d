"""What `doctor --prove` tries in the data folder itself: a session on that very disk, and what can be known of the drive below it.

What was tried and read is judged by pure functions beside it. Nothing is left behind.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from pi_durable_tui.cli.check.findings import Finding
from pi_durable_tui.clock import Clock
from pi_durable_tui.entropy import Entropy
from pi_durable_tui.errors import PidurableError, StoreLocked
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.storage.files import MOUNTS, FileOps, Mount, is_remote, mount_of
from pi_durable_tui.storage.sqlite import open_sqlite

STORE, DRIVE = "store, tried", "drive"
COMMITS = 5


def store(folder: Path, files: FileOps, clock: Clock, entropy: Entropy) -> Finding:
    """Make a session in a folder of its own in `folder`, write it, have it read beside and claimed by a second owner, and remove it.

    Raises:
        OSError: The folder cannot be made or removed.
    """
    place = folder / f".probe-{entropy.uuid7()}"
    try:
        wrong, took_ms = asyncio.run(_try(place / "session.sqlite", clock))
    except PidurableError as error:
        wrong, took_ms = [error.message], 0.0
    finally:
        if files.size_bytes(place) is not None:
            files.remove_folder(place)
    return store_finding(wrong, took_ms / COMMITS, has_log=not is_remote(files.file_system(folder)))


def store_finding(wrong: list[str], commit_ms: float, *, has_log: bool) -> Finding:
    """PURE."""
    if wrong:
        return Finding(name=STORE, state="bad", text="; ".join(wrong), next_step="Set PIDURABLE_DATA_DIR to a folder on a local disk.")
    how = "a write-ahead log" if has_log else "a rollback journal"
    text = f"a session with {how}: a commit takes {commit_ms:.1f} ms, a reader follows, a second owner is refused, all of it is sound"
    return Finding(name=STORE, state="good", text=text)


async def _try(path: Path, clock: Clock) -> tuple[list[str], float]:
    """What went wrong, and how long COMMITS commits took."""
    wrong: list[str] = []
    owner = await open_sqlite(path, clock=clock)
    try:
        started_ms = clock.monotonic_ms()
        for number in range(1, COMMITS + 1):
            await owner.commit(Batch(next_id=number + 1, at_ms=clock.now_ms(), conversations=(Conversation(id=number, created_at_ms=clock.now_ms()),)))
        took_ms = clock.monotonic_ms() - started_ms
        reader = await open_sqlite(path, clock=clock, read_only=True)
        try:
            if (await reader.metadata()).next_seq != COMMITS + 1:
                wrong.append("a reader does not see what was committed")
            await reader.verify()
        finally:
            await reader.close()
        try:
            await (await open_sqlite(path, clock=clock)).close()
            wrong.append("a second owner is let in: this disk knows no locks")
        except StoreLocked:
            pass
    finally:
        await owner.close()
    return wrong, took_ms


def drive(folder: Path, files: FileOps, environ: Mapping[str, str]) -> Finding:
    """What the system tells of the way from fsync to the drive that `folder`, which exists, is on."""
    try:
        mount = mount_of(files.read(MOUNTS).decode("utf-8", "surrogateescape"), os.path.realpath(folder))
    except OSError:
        mount = None
    device = folder.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    cache = b""
    for queue in (block / "queue", block / ".." / "queue"):  # a partition has that of its disk
        cache = cache or files.start(queue / "write_cache", 64)
    return drive_finding(mount, cache.decode("ascii", "replace").strip(), environ.get("LD_PRELOAD", ""))


def drive_finding(mount: Mount | None, cache: str, preloaded: str) -> Finding:
    """PURE.

    Args:
        cache: What the kernel says of the drive's cache: "write back", "write through", or "" where it says nothing.
        preloaded: Libraries that were put under this program.
    """
    if "eatmydata" in preloaded:
        text = "libeatmydata swallows every flush of this program"
        return Finding(name=DRIVE, state="note", text=text, next_step="Take it out of LD_PRELOAD, where power cuts matter.")
    if mount is not None and mount.options & {"nobarrier", "barrier=0", "nobarriers"}:
        text = f"{mount.kind} is mounted without barriers: the drive is not told to flush"
        return Finding(name=DRIVE, state="note", text=text, next_step="Mount it with barriers, unless the drive has a battery.")
    match cache:
        case "write back":
            text = "has a cache, and is told to flush it with every fsync; whether it does cannot be known from here"
        case "write through":
            text = "says that nothing waits in a cache; whether a virtual machine or a controller below has one cannot be known from here"
        case _:
            text = "the system does not tell of its cache; whether it keeps what it was told to flush cannot be known from here"
    return Finding(name=DRIVE, state="good", text=text)
