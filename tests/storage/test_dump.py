"""A store copied whole into one of another kind: the same ids, seqs, texts, revisions and counters, and the same answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import BadRequest, ReadOnlySession, StorageRejected
from pi_durable_tui.records.commit import Batch, DocumentDelta
from pi_durable_tui.storage.dump import Convertible, Dump, StoredRevision, StoredText, contents_of, dump_of, first_difference
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Metadata
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.storage_backends import BACKENDS
from tests.support.storage_histories import History
from tests.support.storage_records import base, batch, conversation, dump, entry, first_chat, task

NAMES = ("memory", "jsonl+fsync", "sqlite")


async def filled(storage: Convertible, seed: int) -> History:
    """A store with a random history."""
    history, left = History(seed), 120
    while left:
        asked = history.draw()
        try:
            await storage.commit(asked)
        except StorageRejected:
            continue
        history.adopt(asked)
        left -= 1
    return history


def folder(tmp_path: Path, name: str) -> Path:
    made = tmp_path / name
    made.mkdir()
    return made


@pytest.mark.rule("ST-17", "ST-2", "ST-3")
@pytest.mark.slow
@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
async def test_a_copy_gives_every_answer_that_the_original_gives_also_after_a_reopen(tmp_path: Path, source: str, target: str, seed: int):
    original = await BACKENDS[source](folder(tmp_path, "original")).open()
    copy = await BACKENDS[target](folder(tmp_path, "copy")).open()
    history = await filled(original, seed)
    whole = await original.export()
    await copy.restore(whole)
    for _ in range(2):
        assert await copy.export() == whole
        assert await dump(copy) == await dump(original)
        if target != "memory":
            await copy.reopen()
    for _ in range(30):
        asked = history.draw()
        answers = [await answer(storage, asked) for storage in (original, copy)]
        assert answers[0] == answers[1]
        if isinstance(answers[0], int):
            history.adopt(asked)
    assert await copy.export() == await original.export()
    await original.close()
    await copy.close()


async def answer(storage: Convertible, asked: Batch) -> int | str:
    try:
        return await storage.commit(asked)
    except StorageRejected as refusal:
        return refusal.reason


@pytest.mark.rule("ST-19")
@pytest.mark.parametrize("name", NAMES)
async def test_keys_that_this_version_does_not_know_come_along(tmp_path: Path, name: str):
    original = MemoryStorage()
    await original.commit(batch(4, conversations=[conversation(1)], tasks=[task(2)], documents=[base(3, {"a": 1})]))
    whole = await original.export()
    later = Dump(
        counters=whole.counters,
        records=tuple(StoredText(item.kind, item.id, item.seq, item.text.replace('"id":', '"later":[1],"id":', 1)) for item in whole.records),
        revisions=whole.revisions,
    )
    storage = await BACKENDS[name](tmp_path).open()
    await storage.restore(later)
    await storage.reopen() if name != "memory" else None
    assert await storage.export() == later
    await storage.close()


@pytest.mark.rule("ST-1", "ST-6")
@pytest.mark.parametrize("name", NAMES)
async def test_only_an_empty_store_takes_a_dump(tmp_path: Path, name: str):
    storage = await BACKENDS[name](tmp_path).open()
    await storage.commit(first_chat())
    whole = await storage.export()
    with pytest.raises(BadRequest):
        await storage.restore(whole)
    assert await storage.commit(batch(4, entries=[entry(3)])) == 2
    await storage.close()


@pytest.mark.rule("ST-11")
async def test_a_store_opened_for_reading_takes_no_dump(tmp_path: Path):
    await (await open_jsonl(tmp_path / "s.jsonl", clock=ManualClock(), inline=True)).close()
    await (await open_sqlite(tmp_path / "s.sqlite", clock=ManualClock(), inline=True)).close()
    for reader in (
        await open_jsonl(tmp_path / "s.jsonl", clock=ManualClock(), inline=True, read_only=True),
        await open_sqlite(tmp_path / "s.sqlite", clock=ManualClock(), inline=True, read_only=True),
    ):
        with pytest.raises(ReadOnlySession):
            await reader.restore(Dump(counters=Metadata(next_id=1, next_seq=1, schema_version=1), records=(), revisions=()))
        await reader.close()


async def test_dumps_say_where_they_differ():
    storage = MemoryStorage()
    await storage.commit(batch(4, conversations=[conversation(1)], entries=[entry(2)], documents=[base(3, {"a": 1})]))
    one = await storage.export()
    assert first_difference(one, one) is None
    assert dump_of(contents_of(one)) == one
    await storage.commit(batch(4, documents=[DocumentDelta(document_id=3, ops=[["s", ["a"], 2]])]))
    other = await storage.export()
    assert str(first_difference(one, other)).startswith("the counters: Metadata(next_id=4, next_seq=2")
    same = Dump(counters=one.counters, records=one.records, revisions=other.revisions)
    assert first_difference(one, same) == f"revision {other.revisions[1]!r}"
    assert isinstance(other.revisions[1], StoredRevision)
    changed = Dump(counters=one.counters, records=one.records[:1], revisions=one.revisions)
    assert str(first_difference(changed, one)).startswith("record StoredText(kind='entry', id=2, seq=1,")
