"""What is left of a JSONL store whose files fail, or whose process is killed, at every single operation."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import EnvironmentFailure, PidurableError, SessionFailed, StorageRejected
from pi_durable_tui.records.commit import Batch, DocumentDelta
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.task import Completed, Terminal
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.dump import Dump
from pi_durable_tui.storage.files import RealFiles
from pi_durable_tui.storage.jsonl import JsonlStorage, open_jsonl
from pi_durable_tui.storage.jsonl.reclaim import ReclaimRule
from pi_durable_tui.storage.memory import MemoryStorage
from tests.support.storage_backends import SMALL
from tests.support.storage_histories import History
from tests.support.storage_journal import JournalFiles, Kind, Moment
from tests.support.storage_process import child, kill, line
from tests.support.storage_records import base, batch, conversation, dump, entry, task

NEVER = ReclaimRule(main_bytes=10**9, sidecar_bytes=10**9, removals=10**9)
ALWAYS = ReclaimRule(main_bytes=1, sidecar_bytes=1, removals=1, rest_commits=1)
FIRST = batch(5, conversations=[conversation(1)], entries=[entry(2)], tasks=[task(3)], documents=[base(4, {"text": "x" * 2000})])
SECOND = batch(5, documents=[base(4, {"text": ""})])
ASKED = batch(9, entries=[entry(5, text="z" * 3000)], tasks=[task(3, state=Terminal(outcome=Completed())), task(6)], documents=[base(4, {"text": "new"})])
NEXT = batch(9, documents=[DocumentDelta(document_id=4, ops=[["s", ["text"], "newer"]])])


async def opened(folder: Path, **options: Any) -> JsonlStorage:
    return await open_jsonl(folder, clock=ManualClock(), inline=True, **options)


async def states() -> tuple[Dump, Dump]:
    """What a store holds before and after ASKED, as the memory store has it."""
    storage = MemoryStorage()
    await storage.commit(FIRST)
    await storage.commit(SECOND)
    before = await storage.export()
    await storage.commit(ASKED)
    return before, await storage.export()


async def failure_of(storage: JsonlStorage, asked: Batch) -> Exception | None:
    try:
        await storage.commit(asked)
    except (PidurableError, OSError) as error:
        return error
    return None


async def prepared(folder: Path, files: RealFiles, *, fsync: bool, reclaim: ReclaimRule) -> JsonlStorage:
    storage = await opened(folder, fsync=fsync, reclaim=NEVER)
    await storage.commit(FIRST)
    await storage.commit(SECOND)
    await storage.close()
    return await opened(folder, files=files, fsync=fsync, reclaim=reclaim)


async def each_operation(run: Callable[[int], Awaitable[bool]], *, least: int) -> None:
    """Run with the first, second, third … operation failing, until a run is clean."""
    operation = 1
    while await run(operation):
        operation += 1
    assert operation > least


@pytest.mark.rule("ST-1", "ST-6", "ST-16", "ST-18", "PR-1", "PR-13")
@pytest.mark.slow
@pytest.mark.parametrize("fsync", [True, False])
@pytest.mark.parametrize("reclaim", [NEVER, ALWAYS])
@pytest.mark.parametrize("moment", ["before", "short", "after"])
@pytest.mark.parametrize(("kind", "for_good"), [("io", False), ("io", True), ("full", False), ("full", True)])
async def test_files_that_fail_in_a_commit_leave_the_state_before_or_after(
    tmp_path: Path, *, moment: Moment, kind: Kind, for_good: bool, fsync: bool, reclaim: ReclaimRule
):
    before, after = await states()
    seen: set[str] = set()

    async def run(operation: int) -> bool:
        files, folder = JournalFiles(), tmp_path / str(operation)
        storage = await prepared(folder, files, fsync=fsync, reclaim=reclaim)
        files.arm(operation, moment, kind, for_good=for_good)
        error = await failure_of(storage, ASKED)
        if error is not None:
            assert not isinstance(error, StorageRejected), "an effect that may have happened is not a refusal"
            journal = list(files.journal)
            with pytest.raises(SessionFailed):
                await storage.commit(NEXT)
            assert files.journal == journal, "nothing more is written"
        else:
            assert await storage.export() == after
        happened = files.happened
        await storage.close()
        files.disarm()
        storage = await opened(folder, fsync=fsync)
        found = await storage.export()
        assert found in (before, after)
        assert found == after or error is not None, "an acknowledged commit is lost"
        seen.add("after" if found == after else "before")
        await assert_goes_on(storage, folder)
        return happened

    await each_operation(run, least=5 if fsync else 3)
    assert seen == {"before", "after"}


async def assert_goes_on(storage: JsonlStorage, folder: Path) -> None:
    """The next commits are stored and found by yet another owner."""
    await storage.commit(batch(9, documents=[base(4, {"text": "on"})]))
    expected = await storage.export()
    await storage.close()
    storage = await opened(folder)
    assert (await storage.export(), storage.notices) == (expected, ())
    await storage.close()


@pytest.mark.rule("ST-1", "ST-10", "PR-1", "PR-13")
@pytest.mark.slow
@pytest.mark.parametrize(("moment", "for_good"), [("before", False), ("short", False), ("after", False), ("short", True)])
async def test_files_that_fail_while_space_is_reclaimed_lose_nothing(tmp_path: Path, moment: Moment, for_good: bool):
    """Acknowledged commits only: the failure comes after the marker, in the middle of a rewrite or a removal."""

    async def run(operation: int) -> bool:
        files, folder = JournalFiles(), tmp_path / str(operation)
        storage = await opened(folder, files=files, reclaim=SMALL)
        reference = MemoryStorage()
        await both(storage, reference, FIRST)
        for number in range(8):
            write = base(4, {"text": str(number) * 300}) if number % 3 == 0 else DocumentDelta(document_id=4, ops=[["s", ["text"], str(number)]])
            asked = batch(7 + number, tasks=[task(3), task(6 + number, state=Terminal(outcome=Completed()))], documents=[write])
            ended = batch(7 + number, tasks=[task(3, state=Terminal(outcome=Completed()))])
            if number == 4:
                files.arm(operation, moment, "full", for_good=for_good)
            for item in (asked, ended):
                if await failure_of(storage, item) is None:
                    await reference.commit(item)
        happened = files.happened
        await storage.close()
        files.disarm()
        storage = await opened(folder)
        counters = await storage.metadata()
        assert counters.next_seq - (await reference.metadata()).next_seq in {0, 1}
        if counters == await reference.metadata():
            assert await storage.export() == await reference.export()
        await storage.close()
        return happened

    await each_operation(run, least=25)


async def both(storage: JsonlStorage, reference: MemoryStorage, asked: Batch) -> None:
    assert await storage.commit(asked) == await reference.commit(asked)


@pytest.mark.rule("ST-1", "PR-13")
@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "short", "after"])
@pytest.mark.parametrize("kind", ["io", "full"])
async def test_files_that_fail_while_a_store_is_made_leave_a_store_that_opens(tmp_path: Path, moment: Moment, kind: Kind):
    async def run(operation: int) -> bool:
        files, folder = JournalFiles(), tmp_path / str(operation)
        files.arm(operation, moment, kind)
        with contextlib.suppress(EnvironmentFailure):
            await (await opened(folder, files=files)).close()
        happened = files.happened
        files.disarm()
        storage = await opened(folder)
        assert await storage.commit(FIRST) == 1
        await storage.close()
        return happened

    await each_operation(run, least=5)


@pytest.mark.rule("ST-16", "ST-18", "PR-1", "PR-13")
@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "short", "after"])
async def test_files_that_fail_while_a_torn_store_is_repaired_leave_all_of_it_for_the_next_opening(tmp_path: Path, moment: Moment):
    before, _after = await states()

    async def run(operation: int) -> bool:
        files, folder = JournalFiles(), tmp_path / str(operation)
        await (await prepared(folder, files, fsync=True, reclaim=NEVER)).close()
        torn = {folder / "main.jsonl": b'{"sum":"torn', folder / "task-3.jsonl": b"unconfirmed", folder / "doc-99.jsonl": b"of nothing"}
        for path, data in torn.items():
            with path.open("ab") as file:
                file.write(data)
        files.arm(operation, moment, "io")
        with contextlib.suppress(EnvironmentFailure):
            await (await opened(folder, files=files)).close()
        happened = files.happened
        files.disarm()
        storage = await opened(folder)
        assert await storage.export() == before
        await storage.close()
        kept = {path.read_bytes() for path in folder.glob("*.cut-*")}
        assert set(torn.values()) <= kept
        return happened

    await each_operation(run, least=10)


@pytest.mark.rule("ST-1", "ST-6", "PR-13")
@pytest.mark.slow
async def test_random_batches_survive_files_that_fail_anywhere(tmp_path: Path, seed: int):
    draw, history, folder = random.Random(seed), History(seed), tmp_path / "session"
    failed = 0
    for _ in range(150):
        files = JournalFiles()
        storage = await opened(folder, files=files, fsync=draw.random() < 0.5, reclaim=SMALL)
        before, seq = await dump(storage), (await storage.metadata()).next_seq
        asked = history.draw()
        files.arm(draw.randint(1, 16), draw.choice(["before", "short", "after"]), draw.choice(["io", "full"]), for_good=draw.random() < 0.5)
        error = await failure_of(storage, asked)
        await storage.close()
        files.disarm()
        storage = await opened(folder)
        is_stored = (await storage.metadata()).next_seq == seq + 1
        assert is_stored or error is not None
        assert is_stored or await dump(storage) == before
        await storage.close()
        if is_stored:
            history.adopt(asked)
        failed += error is not None and not isinstance(error, StorageRejected)
    assert failed > 10


@pytest.mark.rule("PR-13", "ST-6", "ST-18")
async def test_a_session_over_files_that_fail_says_so_and_reopening_tells_the_truth(tmp_path: Path):
    notes = Definition(kind="test.notes", scope="session", initial=lambda: {"n": 0})

    async def count(tx: Transaction) -> None:
        draft = await tx.document(notes)
        draft.value["n"] += 1

    files = JournalFiles()
    session = await Session.open(await opened(tmp_path / "s", files=files), clock=ManualClock())
    await session.commit(count)
    files.arm(1, "short", "full")
    for _ in range(2):
        with pytest.raises(SessionFailed):
            await session.commit(count)
    assert session.failed is not None
    await session.close()
    storage = await opened(tmp_path / "s")
    assert ((await storage.metadata()).next_seq, len(storage.notices)) == (2, 1)
    await storage.close()


@pytest.mark.rule("ST-1", "ST-2", "ST-12", "FB-4", "PR-1")
@pytest.mark.slow
async def test_a_killed_process_loses_no_acknowledged_commit(tmp_path: Path, seed: int):
    """Killed again and again while it commits, sometimes at once after an answer, sometimes a moment later."""
    folder, draw, last = tmp_path / "session.jsonl", random.Random(seed), 0
    for _ in range(8):
        with child(folder, "commit") as process:
            said = [int(line(process)) for _ in range(draw.randint(1, 60))]
            said += [int(text) for text in kill(process) if text]
        assert said == list(range(last + 1, last + 1 + len(said)))
        storage = await opened(folder)
        last = (await storage.metadata()).next_seq - 1
        assert last in {said[-1], said[-1] + 1}
        found = (await storage.entries(1, limit=1000)).items
        assert [item.entry for item in found] == [entry(item.entry.id, text="y" * (item.entry.id * 37 % 9000)) for item in found]
        await storage.close()
