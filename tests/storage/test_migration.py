"""Older stores are brought up to date in one step with a copy kept, newer ones are not touched (PR-16, ST-13).

There is no older version yet: the machinery is tried with one that never was, `tests/support/older_version.py`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import PidurableError, SchemaTooNew, StoreCorrupt
from pi_durable_tui.storage.dump import Dump
from pi_durable_tui.storage.files import RealFiles
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.jsonl.frame import GENESIS, framed
from pi_durable_tui.storage.kind import STORE_KINDS, StoreKind
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import SCHEMA_VERSION
from pi_durable_tui.storage.sqlite import open_sqlite
from pi_durable_tui.storage.versions.steps import STEPS as REAL_STEPS
from pi_durable_tui.storage.versions.steps import can_upgrade
from tests.support.damaged_stores import exported, shelved
from tests.support.older_version import STEPS, write_old
from tests.support.storage_faults import FaultyDisk
from tests.support.storage_journal import JournalFiles, contents
from tests.support.storage_records import base, batch, conversation, entry, task

DISKS = itertools.count()


async def opened(kind: StoreKind, path: Path, **options: Any) -> Any:
    return await (open_jsonl if kind == "jsonl" else open_sqlite)(path, clock=ManualClock(), inline=True, **options)


async def old_store(tmp_path: Path, kind: StoreKind) -> tuple[Path, Dump]:
    """A store of version 0 in a folder of its own, and what it holds in the words of this version."""
    truth = await exported(kind, shelved(tmp_path / "made", kind, "tool"))
    path = tmp_path / "old" / f"session.{kind}"
    path.parent.mkdir()
    await write_old(truth, path, kind)
    return path, truth


def bytes_below(folder: Path) -> dict[str, bytes]:
    """Without what may lie beside any open store."""
    return {name: data for name, (_, data) in contents(folder).items() if not name.endswith((".reserve", "-shm", "-wal"))}


@pytest.mark.rule("PR-16", "ST-13")
@pytest.mark.parametrize("kind", STORE_KINDS)
async def test_an_older_store_is_brought_up_to_date_when_it_is_opened_and_kept_as_it_was(tmp_path: Path, kind: StoreKind) -> None:
    path, truth = await old_store(tmp_path, kind)
    before = bytes_below(path.parent)
    storage = await opened(kind, path, steps=STEPS)
    kept = path.with_name(f"{path.name}.version-0")
    assert storage.notices == (f"{path} was of schema version 0 and is of version {SCHEMA_VERSION} now; as it was it is kept as {kept}.",)
    assert await storage.export() == truth
    await storage.close()
    if kind == "jsonl":
        assert {str(Path(name).relative_to(kept.name)): data for name, data in bytes_below(path.parent).items() if name.startswith(f"{kept.name}/")} == {
            str(Path(name).relative_to(path.name)): data for name, data in before.items() if name.endswith(".jsonl")
        }
    again = await opened(kind, kept, steps=STEPS, read_only=True)
    assert await again.export() == truth
    await again.close()
    assert kept.stat().st_mode & 0o077 == 0

    storage = await opened(kind, path)  # this version knows nothing of the other one any more
    assert (storage.notices, await storage.export()) == ((), truth)
    await storage.close()
    assert [item.name for item in path.parent.glob("*version*")] == [kept.name]


@pytest.mark.rule("PR-16", "ST-11", "ST-13")
@pytest.mark.parametrize("kind", STORE_KINDS)
async def test_an_older_store_is_read_in_the_words_of_this_version_and_stays_as_it_is(tmp_path: Path, kind: StoreKind) -> None:
    path, truth = await old_store(tmp_path, kind)
    before = contents(path.parent)
    storage = await opened(kind, path, steps=STEPS, read_only=True)
    assert await storage.export() == truth
    await storage.verify()
    await storage.close()
    assert contents(path.parent) == before


@pytest.mark.rule("PR-16", "ST-13")
@pytest.mark.parametrize("kind", STORE_KINDS)
async def test_a_version_from_which_no_way_leads_is_refused_and_not_touched(tmp_path: Path, kind: StoreKind) -> None:
    path, _ = await old_store(tmp_path, kind)
    before = bytes_below(path.parent)
    with pytest.raises(StoreCorrupt, match="there never was a schema version 0"):
        await opened(kind, path)
    assert bytes_below(path.parent) == before
    assert all(can_upgrade(version, REAL_STEPS) for version in range(1, SCHEMA_VERSION))


@pytest.mark.rule("PR-16", "ST-13")
@pytest.mark.parametrize("kind", STORE_KINDS)
@pytest.mark.parametrize("read_only", [True, False])
async def test_a_newer_store_is_refused_and_not_touched(tmp_path: Path, kind: StoreKind, read_only: bool) -> None:
    path, _ = await old_store(tmp_path, kind)
    if kind == "sqlite":
        connection = apsw.Connection(str(path))
        connection.execute("UPDATE durable_metadata SET schema_version = ?", (SCHEMA_VERSION + 1,))
        connection.close()
    else:
        line, _ = framed(b'{"type":"store","schema":%d,"more":true}' % (SCHEMA_VERSION + 1), seq=0, prev=GENESIS)
        (path / "main.jsonl").write_bytes(line)
    before = bytes_below(path.parent)
    with pytest.raises(SchemaTooNew, match=f"schema version {SCHEMA_VERSION + 1}; this program knows versions up to {SCHEMA_VERSION}"):
        await opened(kind, path, steps=STEPS, read_only=read_only)
    assert bytes_below(path.parent) == before


@pytest.mark.rule("PR-16", "PR-15")
@pytest.mark.parametrize("kind", STORE_KINDS)
async def test_a_damaged_older_store_is_refused_and_not_touched(tmp_path: Path, kind: StoreKind) -> None:
    path, _ = await old_store(tmp_path, kind)
    file = path if kind == "sqlite" else path / "main.jsonl"
    data = bytearray(file.read_bytes())
    data[data.find(b"The first answer.") + 4] ^= 1
    file.write_bytes(data)
    before = bytes_below(path.parent)
    with pytest.raises(StoreCorrupt):
        await opened(kind, path, steps=STEPS)
    assert bytes_below(path.parent) == before


@contextlib.contextmanager
def failing(kind: StoreKind, operation: int, moment: Any, fault: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """How to open a store on a disk whose `operation`-th change fails, with all later ones; and what tells whether it came to that."""
    if kind == "jsonl":
        files = JournalFiles()
        files.arm(operation, moment, fault, for_good=True)
        yield files, {"files": files}
        return
    disk = FaultyDisk(f"migrating-{next(DISKS)}")
    disk.fault.arm(operation, moment, fault, for_good=True)
    try:
        yield disk.fault, {"vfs": disk.vfs_name}
    finally:
        disk.unregister()


@pytest.mark.slow
@pytest.mark.rule("PR-16", "PR-1", "PR-13", "PR-17")
@pytest.mark.parametrize("kind", STORE_KINDS)
@pytest.mark.parametrize(("moment", "fault"), [("before", "full"), ("short", "io"), ("after", "io")])
async def test_a_disk_that_fails_for_good_at_any_operation_leaves_the_old_store_or_the_new_one(
    tmp_path: Path, kind: StoreKind, moment: str, fault: str
) -> None:
    memory = MemoryStorage()
    await memory.commit(batch(5, conversations=[conversation(1)], entries=[entry(2)], tasks=[task(3)], documents=[base(4, {"a": 1})]))
    truth, source = await memory.export(), tmp_path / f"session.{kind}"
    await write_old(truth, source, kind)
    for operation in itertools.count(1):
        path = tmp_path / str(operation) / source.name
        path.parent.mkdir()
        await copy_of(source, path)
        with failing(kind, operation, moment, fault) as (told, options):
            storage = None
            with contextlib.suppress(PidurableError, OSError, apsw.Error):
                storage = await opened(kind, path, steps=STEPS, **options)
            if storage is not None:
                with contextlib.suppress(PidurableError, OSError, apsw.Error):
                    await storage.close()
            came_to_it = told.happened
        reader = await opened(kind, path, steps=STEPS, read_only=True)
        assert await reader.export() == truth, operation
        await reader.close()
        storage = await opened(kind, path, steps=STEPS)
        assert await storage.export() == truth, operation
        await storage.verify()
        await storage.close()
        kept = sorted(path.parent.glob("*.version-0*"))
        assert kept, operation
        assert all([await whole(kind, each, truth) for each in kept[-1:]]), operation
        if not came_to_it:
            break
    assert operation > 5


async def copy_of(source: Path, target: Path) -> None:
    files = RealFiles()
    if source.is_dir():
        target.mkdir()
        for item in source.iterdir():
            files.create(target / item.name)
            files.append(target / item.name, item.read_bytes())
    else:
        files.create(target)
        files.append(target, source.read_bytes())


async def whole(kind: StoreKind, path: Path, truth: Dump) -> bool:
    """True when a kept copy holds what was."""
    storage = await opened(kind, path, steps=STEPS, read_only=True)
    try:
        return await storage.export() == truth
    finally:
        await storage.close()
