from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pi_durable_tui.errors import SessionFailed
from pi_durable_tui.records.commit import Batch, Commit
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.watch import Overflowed
from pi_durable_tui.storage.memory import MemoryStorage
from tests.support.controlled_storage import ControlledStorage
from tests.support.session_builders import AGENT, NOTES, note, open_session

UNKNOWN = "A write to the session ended with an error whose effect is unknown (OSError: disk on fire). The session stopped; what was shown is stored."


async def opened() -> tuple[ControlledStorage, Session, list[int]]:
    """A session with one commit, and the numbers its observers hear from then on."""
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    await note(session, "first")
    heard: list[int] = []
    session.subscribe(lambda commit: heard.append(commit.seq))
    return storage, session, heard


async def reopened(storage: ControlledStorage) -> Session:
    inner: Any = storage.inner
    return await open_session(MemoryStorage(inner.contents))


@pytest.mark.rule("ST-6", "FB-12", "PR-13")
@pytest.mark.parametrize("stored", [True, False])
async def test_a_storage_error_of_unknown_outcome_stops_the_session_and_reopening_tells_the_truth(stored: bool) -> None:
    storage, session, heard = await opened()
    storage.fail_next_commit(OSError("disk on fire"), stored=stored)
    with pytest.raises(SessionFailed) as caught:
        await note(session, "unknown")
    assert caught.value.message == UNKNOWN
    assert repr(caught.value.__cause__) == "OSError('disk on fire')"
    assert session.failed is caught.value
    commits = storage.calls.count("commit")
    for use in (lambda: note(session, "later"), lambda: session.snapshot(NOTES), lambda: session.snapshot_as_of(AGENT, 1, 1)):
        with pytest.raises(SessionFailed) as again:
            await use()
        assert again.value.message == UNKNOWN
    for call in (lambda: session.subscribe(print), session.watch):
        with pytest.raises(SessionFailed):
            call()
    assert (heard, storage.calls.count("commit")) == ([], commits)
    await session.close()
    assert storage.calls[-1] == "close"
    assert await (await reopened(storage)).snapshot(NOTES) == {"lines": ["first", "unknown"] if stored else ["first"]}


@pytest.mark.rule("ST-6", "SE-1")
async def test_commits_queued_behind_the_failure_are_not_tried() -> None:
    storage, session, heard = await opened()
    storage.hold_commits()
    commits = [asyncio.ensure_future(note(session, line)) for line in ("a", "b", "c")]
    await storage.commit_held()
    storage.fail_next_commit(OSError("disk on fire"))
    storage.release_commits()
    results = await asyncio.gather(*commits, return_exceptions=True)
    assert [type(result) for result in results] == [SessionFailed] * 3
    assert (heard, len(storage.batches)) == ([], 1)


@pytest.mark.rule("ST-6", "OB-2")
async def test_watches_give_what_was_published_and_then_say_that_the_session_failed() -> None:
    storage, session, _ = await opened()
    reading, idle = session.watch(), session.watch()
    await note(session, "second")
    storage.fail_next_commit(OSError("disk on fire"))
    frames: list[Commit | Overflowed] = []

    async def read() -> None:
        frames.extend([frame async for frame in reading])

    waiting = asyncio.ensure_future(read())
    with pytest.raises(SessionFailed):
        await note(session, "unknown")
    with pytest.raises(SessionFailed) as caught:
        await waiting
    assert caught.value.message == UNKNOWN
    assert (await anext(idle)).seq == 2
    for _ in range(2):
        with pytest.raises(SessionFailed):
            await anext(idle)


@pytest.mark.rule("ST-6", "FB-12")
async def test_a_commit_stored_under_another_number_fails_the_session_before_anything_is_published() -> None:
    class Skipping(MemoryStorage):
        async def commit(self, batch: Batch) -> int:
            return await super().commit(batch) + 1

    session = await open_session(Skipping())
    heard: list[Commit] = []
    session.subscribe(heard.append)
    with pytest.raises(SessionFailed, match="the storage stored commit 2 where 1 was next"):
        await note(session, "x")
    assert heard == []
    assert session.failed is not None


@pytest.mark.rule("ST-6")
async def test_a_failure_that_the_storage_names_itself_is_passed_on() -> None:
    storage, session, _ = await opened()
    failure = SessionFailed("the store was opened again")
    storage.fail_next_commit(failure)
    with pytest.raises(SessionFailed, match="the store was opened again"):
        await note(session, "x")
    assert session.failed is failure


@pytest.mark.rule("ST-6")
async def test_a_commit_cancelled_while_it_is_being_stored_fails_the_session_and_stays_cancelled() -> None:
    storage, session, heard = await opened()
    storage.fail_next_commit(asyncio.CancelledError(), stored=True)
    with pytest.raises(asyncio.CancelledError):
        await note(session, "unknown")
    assert session.failed is not None
    with pytest.raises(SessionFailed):
        await note(session, "later")
    assert heard == []


@pytest.mark.rule("PR-1", "SE-1")
@pytest.mark.parametrize(("moment", "lines"), [("before", ["first"]), ("stored", ["first", "second"])])
async def test_a_crash_at_a_commit_leaves_the_state_before_or_after_it_and_nothing_is_shown(moment: Any, lines: list[str]) -> None:
    storage, session, heard = await opened()
    storage.crash_at(2, moment)
    lost = asyncio.ensure_future(note(session, "second"))
    await storage.crashed.wait()
    reading = asyncio.ensure_future(session.snapshot_as_of(AGENT, 1, 1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (heard, lost.done(), reading.done(), storage.refused) == ([], False, False, ["entry"])
    inner: Any = storage.inner
    again = storage.reopened(MemoryStorage(inner.contents))
    session = await open_session(again)
    assert await session.snapshot(NOTES) == {"lines": lines}
    await note(session, "third")
    assert await session.snapshot(NOTES) == {"lines": [*lines, "third"]}
    for frozen in (lost, reading):
        frozen.cancel()
