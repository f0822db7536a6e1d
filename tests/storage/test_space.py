"""A nearly full disk: ordinary commits are refused in time, outcomes still find room, and work goes on when space is back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import StorageRejected
from pi_durable_tui.records.commit import Priority
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.space import PLENTY_BYTES, SpaceRule, Verdict, decide
from pi_durable_tui.storage.sqlite import SqliteStorage, open_sqlite
from tests.support.storage_cramped import CrampedFiles
from tests.support.storage_records import batch, dump, entry, first_chat

RULE = SpaceRule(margin_bytes=1000, reserve_bytes=4096)


@pytest.mark.rule("TO-9")
@pytest.mark.parametrize(
    ("free_bytes", "priority", "holds_reserve", "verdict"),
    [
        (1200, "record", True, "go"),
        (1199, "record", True, "refuse"),
        (1199, "partial", True, "refuse"),
        (1200, "outcome", True, "go"),
        (1199, "outcome", True, "release"),
        (1199, "outcome", False, "go"),
        (0, "outcome", False, "go"),
        (0, "record", False, "refuse"),
    ],
)
def test_what_a_commit_of_100_bytes_meets(free_bytes: int, priority: Priority, holds_reserve: bool, verdict: Verdict):
    assert decide(RULE, free_bytes=free_bytes, batch_bytes=100, priority=priority, holds_reserve=holds_reserve) == verdict


async def opened(tmp_path: Path, files: CrampedFiles) -> SqliteStorage:
    return await open_sqlite(tmp_path / "session.sqlite", clock=ManualClock(), files=files, inline=True, space=RULE)


def reserve(tmp_path: Path) -> int | None:
    path = tmp_path / "session.sqlite.reserve"
    return path.stat().st_size if path.exists() else None


async def refusal(storage: SqliteStorage, **writes: Any) -> str:
    before = await dump(storage)
    with pytest.raises(StorageRejected) as caught:
        await storage.commit(batch(**writes))
    assert await dump(storage) == before
    return caught.value.reason


@pytest.mark.rule("TO-9", "PR-17")
async def test_a_full_disk_refuses_records_takes_the_outcome_and_recovers(tmp_path: Path):
    files = CrampedFiles(PLENTY_BYTES)
    storage = await opened(tmp_path, files)
    await storage.commit(first_chat())
    assert (reserve(tmp_path), await storage.has_room()) == (4096, True)
    files.free = 500
    assert not await storage.has_room()
    assert await refusal(storage, next_id=4, entries=[entry(3)]) == "no_space"
    assert await refusal(storage, next_id=4, entries=[entry(3)], priority="partial") == "no_space"
    assert reserve(tmp_path) == 4096
    assert await storage.commit(batch(4, entries=[entry(3)], priority="outcome")) == 2
    assert reserve(tmp_path) is None
    assert await storage.commit(batch(5, entries=[entry(4)], priority="outcome")) == 3
    files.free = 5000  # room for records, not yet for an effect whose outcome has no reserve
    assert (await storage.has_room(), reserve(tmp_path)) == (False, None)
    assert await storage.commit(batch(6, entries=[entry(5)])) == 4
    files.free = PLENTY_BYTES
    assert (await storage.has_room(), reserve(tmp_path)) == (True, 4096)
    assert await storage.commit(batch(7, entries=[entry(6)])) == 5
    await storage.close()


@pytest.mark.rule("TO-9", "PR-17")
async def test_an_open_on_a_full_disk_works_with_or_without_a_reserve(tmp_path: Path):
    files = CrampedFiles(0)
    storage = await opened(tmp_path, files)
    assert (reserve(tmp_path), await storage.has_room()) == (None, False)
    files.free = 1_000_000
    await storage.commit(first_chat())
    await storage.close()
    files.free = 2000
    storage = await opened(tmp_path, files)
    assert (reserve(tmp_path), await storage.has_room()) == (4096, True)
    await storage.close()


@pytest.mark.rule("PR-17")
async def test_a_large_batch_needs_more_room_than_a_small_one(tmp_path: Path):
    storage = await opened(tmp_path, CrampedFiles(20_000))
    await storage.commit(first_chat())
    assert await refusal(storage, next_id=4, entries=[entry(3, text="x" * 10_000)]) == "no_space"
    assert await storage.commit(batch(4, entries=[entry(3, text="x" * 5_000)])) == 2
    await storage.close()


async def test_a_disk_that_does_not_tell_its_space_is_taken_to_have_some(tmp_path: Path):
    storage = await opened(tmp_path, CrampedFiles(None))
    assert (await storage.commit(first_chat()), await storage.has_room()) == (1, True)
    await storage.close()


@pytest.mark.rule("TO-9")
async def test_a_memory_store_can_be_told_that_it_is_full():
    rooms = [True, False, False, True]
    storage = MemoryStorage(room=lambda: rooms.pop(0))
    await storage.commit(first_chat())
    assert not await storage.has_room()
    with pytest.raises(StorageRejected):
        await storage.commit(batch(4, entries=[entry(3)]))
    assert await storage.commit(batch(4, entries=[entry(3)], priority="outcome")) == 2
    assert await storage.has_room()
