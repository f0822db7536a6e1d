"""The power goes out under a SQLite store: after any operation, with anything left of what was not flushed (proof.md, rig 3).

As many images per operation as PIDURABLE_TEST_IMAGES says, 3 unless set.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import NotFound, StorageRejected
from pi_durable_tui.storage.dump import Dump
from pi_durable_tui.storage.sqlite import SqliteStorage, open_sqlite
from tests.support.storage_histories import History
from tests.support.storage_journal import contents
from tests.support.storage_power_sqlite import RecordingDisk, WrittenDisk
from tests.support.storage_records import batch, entry, first_chat

IMAGES_PER_OPERATION = int(os.environ.get("PIDURABLE_TEST_IMAGES", "3"))
COMMITS = 48
STORE = "s.sqlite"


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[RecordingDisk]:
    recording = RecordingDisk(f"recording-{request.node.name}")
    yield recording
    recording.unregister()


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder for images; in memory where the machine has such a place, for flushes cost nothing there."""
    memory = Path("/dev/shm")  # noqa: S108 - a private folder is made in it
    if not memory.is_dir():
        return tmp_path
    folder = memory / f"pidurable-images-{os.getpid()}-{tmp_path.name}"
    folder.mkdir(0o700, exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def swept(shelf: Path) -> Iterator[None]:
    yield
    if shelf.parent == Path("/dev/shm"):  # noqa: S108
        for item in shelf.iterdir():
            item.unlink()
        shelf.rmdir()


async def opened(folder: Path, disk: RecordingDisk, **options: Any) -> SqliteStorage:
    storage = await open_sqlite(folder / STORE, clock=ManualClock(), inline=True, files=disk.files, vfs=disk.vfs_name, **options)
    storage._source.sql.pragma("wal_autocheckpoint", "12")  # the log is emptied and begun anew all the time, as a long session does
    return storage


async def lived(folder: Path, disk: RecordingDisk, history: History, *, commits: int = COMMITS, **options: Any) -> list[Dump]:
    """What the store held after each commit of a history; each acknowledged commit is noted on the disk, with whether a power cut may take it."""
    is_full = options["synchronous"] == "full"
    storage = await opened(folder, disk, **options)
    states = [await storage.export()]
    while len(states) < commits:
        asked = history.draw()
        try:
            seq = await storage.commit(asked)
        except StorageRejected:
            continue
        disk.files.operations.append(("acknowledged", seq, is_full and asked.priority != "partial"))
        history.adopt(asked)
        states.append(await storage.export())
        if len(states) % 16 == 0:
            await storage.close()
            storage = await opened(folder, disk, **options)
    await storage.close()
    return states


async def found_in(image: dict[str, bytes], shelf: Path, draw: random.Random) -> Dump:
    """What a store with these files holds when its next owner opens it."""
    for item in shelf.iterdir():
        item.unlink()
    for name, data in image.items():
        (shelf / name).write_bytes(data)
    if f"{STORE}-wal" in image and draw.random() < 0.5:
        # The index of the log is never flushed: it may be missing, empty, or full of anything.
        (shelf / f"{STORE}-shm").write_bytes(draw.choice([b"", bytes(32768), draw.randbytes(32768)]))
    storage = await open_sqlite(shelf / STORE, clock=ManualClock(), inline=True)
    try:
        await storage.verify()
        return await storage.export()
    finally:
        await storage.close()


@pytest.mark.rule("PR-4", "ST-1", "ST-6", "FB-3")
@pytest.mark.slow
@pytest.mark.parametrize("level", ["full", "normal"])
async def test_every_image_of_a_power_cut_is_the_store_after_some_commit_and_none_acknowledged_at_full_is_missing(
    tmp_path: Path, shelf: Path, disk: RecordingDisk, *, seed: int, level: str, record_property: Callable[[str, object], None]
):
    folder = tmp_path / "recorded"
    folder.mkdir()
    states = await lived(folder, disk, History(seed), synchronous=level)
    kinds = {operation[0] for operation in disk.files.operations}
    assert kinds >= {"create", "write", "truncate", "sync", "sync_folder", "remove"}
    written, draw = WrittenDisk(), random.Random(seed)
    seen: set[int] = set()
    images = lost = 0
    for operation in disk.files.operations:
        written.do(operation)
        for image in written.images(draw, IMAGES_PER_OPERATION):
            images += 1
            key = hash((written.acknowledged, tuple(sorted(image.items()))))
            if key in seen:
                continue
            seen.add(key)
            found = await found_in(image, shelf, draw)
            seq = found.counters.next_seq - 1
            assert found == states[seq], f"a state that never was, at commit {seq}"
            assert seq >= written.acknowledged, f"commit {written.acknowledged} was acknowledged, {seq} is the newest found"
            lost += seq < written.told
    record_property(
        "told", f"{images} images of power cuts under SQLite at {level}, {len(seen)} of them different, {lost} without a commit that may be lost, seed {seed}"
    )
    assert len(seen) > 1_000
    assert lost > (100 if level == "normal" else 0), "a rig whose power cuts never take what they may take proves nothing"


@pytest.mark.rule("PR-4", "ST-1", "ST-11")
@pytest.mark.parametrize("start", [b"\0\0\0\0", b"\xf2\x62\xea\x73"])
async def test_a_log_whose_torn_header_names_no_log_is_as_good_as_none_for_the_next_owner_and_for_readers(tmp_path: Path, start: bytes):
    """SQLite itself tries for ten seconds to read through such a log, and then says "locking protocol"."""
    path = tmp_path / STORE
    storage = await open_sqlite(path, clock=ManualClock(), inline=True)
    await storage.commit(first_chat())
    whole = await storage.export()
    await storage.close()
    (tmp_path / f"{STORE}-wal").write_bytes(start + bytes(5000))
    (tmp_path / f"{STORE}-shm").write_bytes(bytes(32768))
    before = contents(tmp_path)
    reader = await open_sqlite(path, clock=ManualClock(), inline=True, read_only=True)
    assert await reader.export() == whole
    await reader.close()
    assert contents(tmp_path) == before
    storage = await open_sqlite(path, clock=ManualClock(), inline=True)
    assert await storage.export() == whole
    assert await storage.commit(batch(4, entries=[entry(3)])) == 2
    await storage.close()


@pytest.mark.rule("PR-4", "ST-1")
@pytest.mark.parametrize("size", [512, 3072, 4096])
async def test_a_store_whose_first_page_was_torn_while_it_was_made_is_made_again(tmp_path: Path, size: int):
    """Found at seed 80414721: nothing had been acknowledged, and the file was called damaged for ever."""
    path = tmp_path / STORE
    path.write_bytes(bytes(size))
    header = bytes.fromhex("d9d505f920a163d7") + bytes(4) + b"nonc" + bytes(4) + (512).to_bytes(4, "big") + (4096).to_bytes(4, "big")
    path.with_name(f"{STORE}-journal").write_bytes(header.ljust(512, b"\0"))
    before = contents(tmp_path)
    with pytest.raises(NotFound):
        await open_sqlite(path, clock=ManualClock(), inline=True, read_only=True)
    assert contents(tmp_path) == before
    storage = await open_sqlite(path, clock=ManualClock(), inline=True)
    assert await storage.commit(first_chat()) == 1
    await storage.verify()
    await storage.close()
    assert sorted(item.name for item in tmp_path.iterdir()) == [STORE, f"{STORE}.lock", f"{STORE}.reserve"]
