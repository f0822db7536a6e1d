"""Every backend against the memory one, on random histories with reopenings in between."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pi_durable_tui.errors import StorageRejected
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Storage
from tests.support.storage_backends import BACKENDS, ReopenableStorage
from tests.support.storage_histories import History
from tests.support.storage_records import dump


async def answer(storage: Storage | ReopenableStorage, asked: Batch) -> int | str:
    try:
        return await storage.commit(asked)
    except StorageRejected as refusal:
        return refusal.reason


@pytest.mark.rule("ST-17")
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(BACKENDS) - {"memory"}))
async def test_a_backend_answers_a_random_history_as_the_memory_store_does(name: str, tmp_path: Path, seed: int):
    stored, refused = 0, 0
    for turn in range(4):
        folder = tmp_path / str(turn)
        folder.mkdir()
        history, reference, storage = History(seed + turn), MemoryStorage(), await BACKENDS[name](folder).open()
        draw = random.Random(seed + turn)
        for _ in range(50):
            asked = history.draw()
            expected = await answer(reference, asked)
            assert await answer(storage, asked) == expected
            if isinstance(expected, int):
                history.adopt(asked)
                stored += 1
            else:
                refused += 1
            if draw.random() < 0.1:
                await storage.reopen()
            if draw.random() < 0.1:
                assert await dump(storage) == await dump(reference)
        assert await dump(storage) == await dump(reference)
        await storage.close()
    assert stored > 100
    assert refused > 0
