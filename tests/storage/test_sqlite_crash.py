"""What is left of a store whose process was killed, or whose disk failed, in the middle of a commit."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import EnvironmentFailure, NotFound, PidurableError, SchemaTooNew, SessionFailed, StorageRejected, StoreCorrupt
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.storage.sqlite import SqliteStorage, open_sqlite
from tests.support.storage_faults import FaultyDisk, Kind, Moment
from tests.support.storage_histories import History
from tests.support.storage_process import child, kill, line
from tests.support.storage_records import batch, dump, entry, first_chat

KILLS = 12


async def opened(path: Path, **options: Any) -> SqliteStorage:
    return await open_sqlite(path, clock=ManualClock(), inline=True, **options)


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[FaultyDisk]:
    faulty = FaultyDisk(f"faulty-{request.node.name}")
    yield faulty
    faulty.unregister()


async def assert_whole(path: Path, acknowledged: int) -> int:
    """Every commit up to the newest is there, in order, and the newest is the last acknowledged one or the one after it; its seq."""
    storage = await opened(path)
    counters = await storage.metadata()
    assert counters.next_seq - 1 in {acknowledged, acknowledged + 1}
    page = await storage.entries(1, limit=1000)  # empty where the child died before its first entry
    found = [*page.items]
    while page.next is not None:
        page = await storage.entries(1, cursor=page.next, limit=1000)
        found += page.items
    seqs = [item.seq for item in found]
    assert seqs == sorted(set(seqs))
    assert [item.entry for item in found] == [entry(item.entry.id, text="y" * (item.entry.id * 37 % 9000)) for item in found]
    assert [item.entry.id for item in found] == list(range(3, counters.next_id))
    document = await storage.revisions(2)
    assert document is not None
    await storage.verify()
    await storage.close()
    return counters.next_seq - 1


@pytest.mark.rule("ST-1", "ST-2", "ST-12", "FB-4", "PR-1")
@pytest.mark.slow
async def test_a_killed_process_loses_no_acknowledged_commit(tmp_path: Path, seed: int):
    """Killed again and again while it commits, sometimes at once after an answer, sometimes a moment later."""
    path, draw, last = tmp_path / "session.sqlite", random.Random(seed), 0
    for _ in range(KILLS):
        with child(path, "commit") as process:
            said = [int(line(process)) for _ in range(draw.randint(1, 40))]
            for _ in range(draw.choice([0, 0, 50, 2000])):
                sys.getsizeof(said)  # a few microseconds in which the child goes on
            said += [int(text) for text in kill(process) if text]
        assert said == list(range(last + 1, last + 1 + len(said)))
        last = await assert_whole(path, said[-1])


async def prepared(path: Path, history: History, commits: int) -> None:
    """A store with a history, closed."""
    storage = await opened(path)
    while commits:
        asked = history.draw()
        try:
            await storage.commit(asked)
        except StorageRejected:
            continue
        history.adopt(asked)
        commits -= 1
    await storage.close()


async def contents_after(path: Path, asked: Batch) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a store holds before and after a good batch; the batch is stored."""
    storage = await opened(path)
    before = await dump(storage)
    await storage.commit(asked)
    after = await dump(storage)
    await storage.close()
    return before, after


@pytest.mark.rule("ST-1", "ST-6", "PR-1", "PR-13")
@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "short", "after"])
@pytest.mark.parametrize(("kind", "for_good"), [("io", False), ("io", True), ("full", False), ("full", True)])
async def test_a_disk_that_fails_in_a_commit_leaves_the_state_before_or_after(tmp_path: Path, disk: FaultyDisk, moment: Moment, kind: Kind, for_good: bool):
    asked = batch(4, entries=[entry(3, text="z" * 10_000)])
    states: set[str] = set()
    operation = 0
    while True:
        operation += 1
        path, twin = tmp_path / f"{operation}.sqlite", tmp_path / f"{operation}-twin.sqlite"
        for store in (path, twin):
            storage = await opened(store)
            await storage.commit(first_chat())
            await storage.close()
        before, after = await contents_after(twin, asked)
        storage = await opened(path, vfs=disk.vfs_name)
        disk.fault.arm(operation, moment, kind, for_good=for_good)
        error = await failure_of(storage, asked)
        if error is not None and not isinstance(error, StorageRejected):
            with pytest.raises(SessionFailed):
                await storage.commit(batch(5, entries=[entry(4)]))
        happened = disk.fault.happened
        await close_anyhow(storage)
        disk.fault.disarm()
        storage = await opened(path)
        found = await dump(storage)
        await storage.close()
        assert found in (before, after)
        assert found == after or error is not None, "an acknowledged commit is lost"
        assert found == before or not isinstance(error, StorageRejected), "a refused commit is stored"
        states.add("after" if found == after else "before")
        if not happened:
            break
    assert operation > 3
    assert states == {"before", "after"}


@pytest.mark.rule("ST-1", "PR-13")
@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "short", "after"])
@pytest.mark.parametrize("kind", ["io", "full"])
async def test_a_disk_that_fails_while_a_store_is_made_leaves_a_store_that_opens(tmp_path: Path, disk: FaultyDisk, moment: Moment, kind: Kind):
    operation = 0
    while True:
        operation += 1
        path = tmp_path / f"{operation}.sqlite"
        disk.fault.arm(operation, moment, kind)
        with contextlib.suppress(EnvironmentFailure):
            await close_anyhow(await opened(path, vfs=disk.vfs_name))
        happened = disk.fault.happened
        disk.fault.disarm()
        storage = await opened(path)
        assert await storage.commit(first_chat()) == 1
        await storage.close()
        if not happened:
            break
    assert operation > 10


@pytest.mark.rule("ST-1", "ST-6", "PR-13")
@pytest.mark.slow
async def test_random_batches_survive_a_disk_that_fails_anywhere(tmp_path: Path, disk: FaultyDisk, seed: int):
    draw, history, path = random.Random(seed), History(seed), tmp_path / "session.sqlite"
    await prepared(path, history, 10)
    failed = 0
    for _ in range(40):
        storage = await opened(path, vfs=disk.vfs_name)
        before, seq = await dump(storage), (await storage.metadata()).next_seq
        asked = history.draw()
        disk.fault.arm(draw.randint(1, 12), draw.choice(["before", "short", "after"]), draw.choice(["io", "full"]), for_good=draw.random() < 0.5)
        error = await failure_of(storage, asked)
        await close_anyhow(storage)
        disk.fault.disarm()
        storage = await opened(path)
        is_stored = (await storage.metadata()).next_seq == seq + 1
        assert is_stored or error is not None
        assert is_stored or await dump(storage) == before
        await storage.close()
        if is_stored:
            history.adopt(asked)
        failed += error is not None and not isinstance(error, StorageRejected)
    assert failed > 3


@pytest.mark.rule("ST-15", "PR-15")
@pytest.mark.slow
async def test_a_flipped_bit_or_a_lost_page_changes_nothing_or_is_named(tmp_path: Path, seed: int):
    path, draw, answers = tmp_path / "session.sqlite", random.Random(seed), set[str]()
    await prepared(path, History(seed), 40)
    whole = path.read_bytes()
    reader = await opened(path, read_only=True)
    expected = await dump(reader)
    await reader.close()
    for turn in range(80):
        damaged = bytearray(whole)
        if draw.random() < 0.8:
            damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        else:
            page = 4096 * draw.randrange(len(whole) // 4096)
            damaged[page : page + 4096] = draw.choice([bytes(4096), draw.randbytes(4096)])
        store = tmp_path / f"{turn}.sqlite"
        store.write_bytes(damaged)
        try:
            reader = await opened(store, read_only=True)
            try:
                found = await dump(reader)
                await reader.verify()  # a damaged index can hide a row from a read, and only this finds it
                assert found == expected
                answers.add("unchanged")
            finally:
                await reader.close()
        except (StoreCorrupt, SchemaTooNew, NotFound, EnvironmentFailure) as error:
            answers.add(type(error).__name__)
        assert store.read_bytes() == damaged
    assert {"unchanged", "StoreCorrupt"} <= answers


async def failure_of(storage: SqliteStorage, asked: Batch) -> Exception | None:
    try:
        await storage.commit(asked)
    except (PidurableError, apsw.Error) as error:
        return error
    return None


async def close_anyhow(storage: SqliteStorage) -> None:
    with contextlib.suppress(apsw.Error):  # the disk may fail for good; the process would end here
        await storage.close()
