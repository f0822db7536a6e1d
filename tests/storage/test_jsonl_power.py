"""The power goes out: after any operation, with anything left of what was not flushed, no acknowledged commit of a flushed store is lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import StorageRejected
from pi_durable_tui.storage.dump import Dump, dump_of
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.jsonl.recovery import is_sidecar, recovered
from tests.support.storage_backends import SMALL
from tests.support.storage_histories import History
from tests.support.storage_power import Disk, RecordingFiles

IMAGES_PER_OPERATION = 12


def held(image: dict[str, bytes]) -> Dump | None:
    """What a store with these files holds; None: there is none yet."""
    files = {name.removesuffix(".jsonl"): data for name, data in image.items() if name.endswith(".jsonl")}
    if "main" not in files:
        return None
    sidecars = {name: data for name, data in files.items() if is_sidecar(name)}
    return dump_of(recovered("image", files["main"], sidecars).contents)


@pytest.mark.rule("PR-4", "ST-1", "ST-16", "FB-9", "FB-10")
@pytest.mark.slow
async def test_every_image_of_a_power_cut_is_the_store_after_some_commit_and_none_acknowledged_is_missing(tmp_path: Path, seed: int):
    files, history = RecordingFiles(), History(seed)
    storage = await open_jsonl(tmp_path / "s", clock=ManualClock(), inline=True, files=files, reclaim=SMALL)
    states = [await storage.export()]
    while len(states) < 120:
        asked = history.draw()
        try:
            files.acknowledged(await storage.commit(asked))
        except StorageRejected:
            continue
        history.adopt(asked)
        states.append(await storage.export())
        if len(states) % 40 == 0:
            await storage.close()
            storage = await open_jsonl(tmp_path / "s", clock=ManualClock(), inline=True, files=files, reclaim=SMALL)
    await storage.close()
    kinds = {operation[0] for operation in files.operations}
    assert kinds >= {"create", "append", "sync", "sync_folder", "rename", "remove", "acknowledged"}
    disk, draw, images, older = Disk(), random.Random(seed), 0, 0
    for operation in files.operations:
        disk.do(operation)
        for image in disk.images(draw, IMAGES_PER_OPERATION):
            found = held(image)
            images += 1
            if found is None:
                assert disk.acknowledged == 0
                continue
            seq = found.counters.next_seq - 1
            assert found == states[seq]
            assert seq >= disk.acknowledged, "an acknowledged commit is lost"
            older += seq == disk.acknowledged
    assert images > 10_000
    assert 0 < older < images


@pytest.mark.rule("PR-4", "ST-16")
@pytest.mark.slow
async def test_a_store_is_opened_and_goes_on_after_a_power_cut(tmp_path: Path, seed: int):
    """Fewer images, on a real disk, repaired and written to, and cut off again."""
    draw, history = random.Random(seed), History(seed)
    image: dict[str, bytes] = {}
    commits = 0
    for round_ in range(25):
        folder = tmp_path / str(round_)
        folder.mkdir()
        disk, files = Disk(), RecordingFiles()
        for name, data in image.items():
            (folder / name).write_bytes(data)
            disk.do(("create", name))
            disk.do(("append", name, data))
            disk.do(("sync", name))
        disk.do(("sync_folder",))
        storage = await open_jsonl(folder, clock=ManualClock(), inline=True, files=files, reclaim=SMALL)
        assert (await storage.metadata()).next_seq - 1 == commits
        for _ in range(6):
            asked = history.draw()
            try:
                files.acknowledged(await storage.commit(asked))
            except StorageRejected:
                continue
            history.adopt(asked)
        wanted = (await storage.metadata()).next_seq - 1
        await storage.close()
        acknowledged = [index for index, operation in enumerate(files.operations) if operation == ("acknowledged", wanted)]
        for operation in files.operations[: acknowledged[0] + 1 if acknowledged else None]:
            disk.do(operation)
        image = draw.choice(list(disk.images(draw, 4)))
        commits = max(commits, disk.acknowledged)
    assert commits > 20
