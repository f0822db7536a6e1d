"""One kind of store turned into the other: nothing lost, the old one kept, and no moment at which neither is there."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import EnvironmentFailure, NotFound, Refused, StoreCorrupt, StoreLocked
from pi_durable_tui.storage.conversion import convert, open_store
from pi_durable_tui.storage.dump import Dump
from pi_durable_tui.storage.kind import StoreKind
from tests.storage.test_dump import filled
from tests.support.storage_journal import JournalFiles, Moment
from tests.support.storage_records import batch, conversation, entry, first_chat

KINDS: list[tuple[StoreKind, StoreKind]] = [("sqlite", "jsonl"), ("jsonl", "sqlite")]


def path(folder: Path, kind: StoreKind) -> Path:
    return folder / f"session.{kind}"


async def made(folder: Path, kind: StoreKind, seed: int) -> Dump:
    """A store with a random history, forks and documents included."""
    storage = await open_store(kind, path(folder, kind), clock=ManualClock())
    await filled(storage, seed)
    whole = await storage.export()
    await storage.close()
    return whole


async def held(kind: StoreKind, place: Path) -> Dump:
    storage = await open_store(kind, place, clock=ManualClock(), read_only=True)
    whole = await storage.export()
    await storage.close()
    return whole


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir() if item.suffix not in {".lock", ".reserve"})


@pytest.mark.rule("ST-1", "ST-2", "ST-3", "ST-14")
@pytest.mark.parametrize(("source", "target"), KINDS)
async def test_a_converted_store_holds_the_same_and_the_old_one_is_kept(tmp_path: Path, source: StoreKind, target: StoreKind, seed: int):
    whole = await made(tmp_path, source, seed)
    kept = await convert(path(tmp_path, source), source, path(tmp_path, target), target, clock=ManualClock())
    assert names(tmp_path) == sorted([f"session.{target}", f"session.{source}.converted-1"])
    assert (await held(target, path(tmp_path, target)), await held(source, kept)) == (whole, whole)
    assert {stat.S_IMODE(item.stat().st_mode) for item in tmp_path.rglob("*") if item.is_file()} == {0o600}
    back = await convert(path(tmp_path, target), target, path(tmp_path, source), source, clock=ManualClock())
    assert await held(source, path(tmp_path, source)) == whole
    assert names(tmp_path) == sorted([f"session.{source}", kept.name, back.name])


@pytest.mark.rule("ST-12")
@pytest.mark.parametrize(("source", "target"), KINDS)
async def test_a_store_that_is_open_is_not_converted(tmp_path: Path, source: StoreKind, target: StoreKind):
    storage = await open_store(source, path(tmp_path, source), clock=ManualClock())
    with pytest.raises(StoreLocked):
        await convert(path(tmp_path, source), source, path(tmp_path, target), target, clock=ManualClock())
    assert names(tmp_path) == [item for item in names(tmp_path) if item.startswith(f"session.{source}")]
    assert await storage.commit(first_chat()) == 1
    await storage.close()


@pytest.mark.rule("ST-15")
async def test_what_is_not_there_or_damaged_is_not_converted(tmp_path: Path):
    with pytest.raises(NotFound):
        await convert(path(tmp_path, "jsonl"), "jsonl", path(tmp_path, "sqlite"), "sqlite", clock=ManualClock())
    path(tmp_path, "sqlite").write_bytes(b"a letter" * 1000)
    with pytest.raises(StoreCorrupt):
        await convert(path(tmp_path, "sqlite"), "sqlite", path(tmp_path, "jsonl"), "jsonl", clock=ManualClock())
    assert names(tmp_path) == ["session.sqlite"]


@pytest.mark.rule("PR-13", "ST-1")
@pytest.mark.slow
@pytest.mark.parametrize("kinds", KINDS, ids=" to ".join)
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("was_killed", [False, True])
async def test_a_conversion_that_fails_anywhere_loses_nothing_and_can_be_asked_for_again(
    tmp_path: Path, kinds: tuple[StoreKind, StoreKind], moment: Moment, was_killed: bool, seed: int
):
    source, target = kinds
    operation, happened = 0, True
    while happened:
        operation += 1
        folder, files = tmp_path / str(operation), JournalFiles()
        folder.mkdir()
        whole = await made(folder, source, seed) if operation == 1 else await copied(tmp_path / "1", folder, source)
        if was_killed:
            whole = await killed(folder, source)
        files.arm(operation, moment, "io", for_good=True)
        failed = False
        try:
            await convert(path(folder, source), source, path(folder, target), target, clock=ManualClock(), files=files)
        except EnvironmentFailure:
            failed = True
        happened = files.happened
        assert failed == happened
        there = {kind for kind in (source, target) if path(folder, kind).exists()}
        assert there
        for kind in there:
            assert await held(kind, path(folder, kind)) == whole
        if source in there:
            await convert(path(folder, source), source, path(folder, target), target, clock=ManualClock())
        assert await held(target, path(folder, target)) == whole
        assert len([name for name in names(folder) if ".converted-" in name and not name.endswith(("-wal", "-shm"))]) == 1
    assert operation > 3


async def copied(original: Path, folder: Path, kind: StoreKind) -> Dump:
    """The store that an earlier run has converted and kept, made anew."""
    whole = await held(kind, next(item for item in original.glob(f"session.{kind}.converted-1")))
    storage = await open_store(kind, path(folder, kind), clock=ManualClock())
    await storage.restore(whole)
    await storage.close()
    return whole


async def killed(folder: Path, kind: StoreKind) -> Dump:
    """The store with one more commit, as a killed process leaves it: what is newest stands in the log of a file that was not closed."""
    storage = await open_store(kind, path(folder, kind), clock=ManualClock())
    next_id = (await storage.metadata()).next_id
    await storage.commit(batch(next_id + 1, conversations=[conversation(next_id)]))
    left = folder.with_name(folder.name + " left")
    shutil.copytree(folder, left)
    whole = await storage.export()
    await storage.close()
    shutil.rmtree(folder)
    left.rename(folder)
    return whole


@pytest.mark.rule("ST-1")
async def test_a_log_that_an_older_file_left_behind_is_not_taken_for_that_of_the_new_one(tmp_path: Path, seed: int):
    await made(tmp_path, "sqlite", seed)
    await killed(tmp_path, "sqlite")
    path(tmp_path, "sqlite").unlink()
    assert {"session.sqlite-wal", "session.sqlite-shm"} <= set(names(tmp_path))
    whole = await made(tmp_path, "jsonl", seed + 1)
    await convert(path(tmp_path, "jsonl"), "jsonl", path(tmp_path, "sqlite"), "sqlite", clock=ManualClock())
    assert await held("sqlite", path(tmp_path, "sqlite")) == whole
    storage = await open_store("sqlite", path(tmp_path, "sqlite"), clock=ManualClock())
    await storage.verify()
    await storage.close()


@pytest.mark.parametrize(("source", "target"), KINDS)
async def test_two_stores_of_one_name_that_differ_are_left_alone(tmp_path: Path, source: StoreKind, target: StoreKind, seed: int):
    whole = await made(tmp_path, source, seed)
    storage = await open_store(target, path(tmp_path, target), clock=ManualClock())
    await storage.restore(whole)
    next_id = (await storage.metadata()).next_id
    await storage.commit(batch(next_id + 1, entries=[entry(next_id)]))
    await storage.close()
    before = names(tmp_path)
    with pytest.raises(Refused, match="the two differ in the counters"):
        await convert(path(tmp_path, source), source, path(tmp_path, target), target, clock=ManualClock())
    assert names(tmp_path) == before
