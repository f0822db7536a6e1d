"""What can still be read of a damaged store is rescued into one that is whole; the damaged one is only read (PR-15, ST-15).

PIDURABLE_TEST_RESCUES says how many copies of each kind of store are damaged by a bit, and a tenth as many by a page; 150 unless set.
PIDURABLE_TEST_SEED says how they are drawn. Thousands want --timeout=0 besides.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.records.codec import decode
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.storage.conversion import open_store, write_store
from pi_durable_tui.storage.kind import STORE_KINDS, StoreKind
from pi_durable_tui.storage.salvage.tables import COLUMNS
from pi_durable_tui.storage.sqlite import open_sqlite
from pi_durable_tui.storage.sqlite.keeping import remove_chat
from pi_durable_tui.storage.sqlite.log_end import WHAT
from tests.support.damaged_stores import PAGE_BYTES, all_stores, bytes_of, exported, flip, long, lose_page, rescued, wrong

RESCUES = int(os.environ.get("PIDURABLE_TEST_RESCUES", "150"))
SEED = os.environ.get("PIDURABLE_TEST_SEED", "a rescue")
KEPT_AT_LEAST = 0.9


@pytest.mark.slow
@pytest.mark.rule("PR-15", "ST-15")
@pytest.mark.parametrize("kind", STORE_KINDS)
async def test_whatever_bit_or_page_is_lost_the_rest_is_kept_what_is_gone_is_told_and_the_new_store_is_whole(
    tmp_path: Path, kind: StoreKind, record_property: Callable[[str, object], None]
) -> None:
    stores = await all_stores(tmp_path / "whole", kind)
    chance, kept, done = random.Random(f"{SEED} {kind}"), Counter[str](), Counter[str]()
    for turn in range(RESCUES + RESCUES // 10):
        damage, what = (flip, "bits") if turn < RESCUES else (lose_page, "pages")
        whole = stores[turn % len(stores)]
        store = whole.copy(tmp_path / "copy")
        how = f"turn {turn}: {whole.name}, {damage(store, chance)}"
        before = bytes_of(store)
        found, result = rescued(store, kind)
        assert bytes_of(store) == before, f"{how}: the damaged store was changed"
        assert await wrong(whole.truth, found, result) == [], how
        if turn % 25 == 0:
            await check_new_one(tmp_path / "new" / store.name, kind, result.dump)
        done[what] += 1
        kept[what] += len(found.records)
        kept[f"{what} of"] += len(whole.truth.records)
        shutil.rmtree(store.parent)
    ratios = {what: kept[what] / kept[f"{what} of"] for what in done}
    record_property("told", f"{kind}: {dict(done)} damaged; kept {', '.join(f'{ratio:.2%} ({what})' for what, ratio in ratios.items())}; seed {SEED!r}")
    assert ratios["bits"] > KEPT_AT_LEAST


async def check_new_one(path: Path, kind: StoreKind, dump: Any) -> None:
    path.parent.mkdir()
    await write_store(dump, path, kind, clock=ManualClock())
    storage = await open_store(kind, path, clock=ManualClock(), read_only=True)
    await storage.verify()
    assert await storage.export() == dump
    await storage.close()
    shutil.rmtree(path.parent)


async def long_copy(tmp_path: Path) -> Path:
    """The session file of many pages, with its log."""
    return await long(tmp_path / "long", "sqlite")


@pytest.mark.rule("PR-15")
async def test_rows_are_found_by_their_checksums_where_the_pages_above_them_are_gone(tmp_path: Path) -> None:
    store = await long_copy(tmp_path)
    truth = await exported("sqlite", store)
    storage = await open_sqlite(store, clock=ManualClock(), inline=True)
    await storage.close()  # moves the log into the file
    data = bytearray(store.read_bytes())
    roots = [at for at in range(PAGE_BYTES, len(data), PAGE_BYTES) if data[at] == 5]  # pages that lead to other pages of a table
    assert roots
    for at in (0, *roots):
        data[at : at + PAGE_BYTES] = bytes(PAGE_BYTES)
    store.write_bytes(data)
    found, result = rescued(store, "sqlite")
    assert found.records == truth.records
    assert found.places[0] == "page 1"
    assert await wrong(truth, found, result) == []


@pytest.mark.rule("PR-15")
async def test_a_damaged_page_in_the_log_takes_neither_the_commits_after_it_nor_the_rest_of_itself(tmp_path: Path) -> None:
    store = await long_copy(tmp_path)
    truth = await exported("sqlite", store)
    log = store.with_name(store.name + "-wal")
    data = bytearray(log.read_bytes())
    frames = (len(data) - 32) // (24 + PAGE_BYTES)
    assert frames > 20
    middle = 32 + (frames // 2) * (24 + PAGE_BYTES) + 24 + PAGE_BYTES - 40
    data[middle] ^= 1
    log.write_bytes(data)
    assert len((await exported("sqlite", store)).records) < len(truth.records)  # SQLite takes the damage for the end of the log
    found, result = rescued(store, "sqlite")
    assert len(truth.records) - len(found.records) <= 1
    assert found.is_unsure
    assert await wrong(truth, found, result) == []


@pytest.mark.rule("PR-15", "SA-17")
async def test_what_was_deleted_is_not_found_again(tmp_path: Path) -> None:
    store = await long_copy(tmp_path)
    remove_chat(store, 1, clock=ManualClock())
    truth = await exported("sqlite", store)
    data = bytearray(store.read_bytes())
    data[:PAGE_BYTES] = bytes(PAGE_BYTES)
    store.write_bytes(data)
    found, result = rescued(store, "sqlite")
    assert found.records == truth.records
    assert [decode(record.text, Entry).conversation_id for record in result.dump.records if record.kind == "entry"].count(1) == 0
    assert 1 not in result.notes


@pytest.mark.rule("PR-15")
async def test_the_layout_that_rows_are_read_by_is_that_of_the_schema(tmp_path: Path) -> None:
    import apsw  # noqa: PLC0415 - to look, not to use

    storage = await open_sqlite(tmp_path / "session.sqlite", clock=ManualClock(), inline=True)
    await storage.close()
    connection = apsw.Connection(str(tmp_path / "session.sqlite"))
    columns = {table: tuple(str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")) for table in COLUMNS}
    connection.close()
    assert columns == COLUMNS


@pytest.mark.rule("PR-15")
async def test_a_store_without_damage_is_found_whole_and_comes_out_as_it_was(tmp_path: Path) -> None:
    for kind in STORE_KINDS:
        for whole in await all_stores(tmp_path / kind, kind):
            found, result = rescued(whole.path, kind)
            assert (found.is_sound, found.records, found.counters) == (True, whole.truth.records, whole.truth.counters)
            assert result.dump.records == whole.truth.records
            assert (result.lost, result.notes, result.ended) == ((), {}, ())


@pytest.mark.rule("PR-15", "ST-18")
async def test_a_log_that_is_damaged_in_the_middle_is_kept_and_told_and_what_it_holds_is_rescued(tmp_path: Path) -> None:
    store = await long_copy(tmp_path)
    truth = await exported("sqlite", store)
    log = store.with_name(store.name + "-wal")
    whole = log.read_bytes()
    frames = (len(whole) - 32) // (24 + PAGE_BYTES)
    at = 32 + (frames * 3 // 4) * (24 + PAGE_BYTES) + 24 + 100
    log.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    damaged = log.read_bytes()

    storage = await open_sqlite(store, clock=ManualClock(), inline=True)
    kept = store.with_name("session.sqlite-wal.cut-1")
    assert kept.read_bytes() == damaged
    (notice,) = storage.notices
    assert f"bytes at the end of session.sqlite-wal {WHAT}: the log is kept as {kept.name}." in notice
    (aside,) = await storage.put_aside()
    assert (aside.name, aside.size_bytes, aside.cut_from) == (kept.name, len(damaged), "session.sqlite-wal")
    left = {(record.kind, record.id) for record in (await storage.export()).records}
    await storage.close()
    found, result = rescued(kept, "sqlite")
    newest = [record for record in truth.records if record.kind == "entry" and (record.kind, record.id) not in left]
    assert len(newest) > 20
    assert len(set(newest) - set(found.records)) <= 1  # the one whose page is damaged
    assert await wrong(truth, found, result) == []

    storage = await open_sqlite(store, clock=ManualClock(), inline=True)
    assert (storage.notices, len(await storage.put_aside())) == ((), 1)
    await storage.close()


@pytest.mark.rule("PR-15", "ST-18", "ST-11")
async def test_a_whole_log_and_one_that_a_reader_looks_at_are_not_kept(tmp_path: Path) -> None:
    store = await long_copy(tmp_path)
    storage = await open_sqlite(store, clock=ManualClock(), inline=True)
    assert (storage.notices, await storage.put_aside()) == ((), ())
    await storage.close()
    assert list(store.parent.glob("*.cut-*")) == []
