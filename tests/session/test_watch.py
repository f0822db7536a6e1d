from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from pi_durable_tui.records.commit import Commit
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.watch import Overflowed, Watch
from pi_durable_tui.storage.memory import MemoryStorage
from tests.support.controlled_storage import ControlledStorage
from tests.support.session_builders import NOTES, note, open_session


def seqs(frames: list[Commit | Overflowed]) -> list[str]:
    return [f"overflowed at {frame.seq}" if isinstance(frame, Overflowed) else str(frame.seq) for frame in frames]


async def read(watch: Watch, count: int) -> list[Commit | Overflowed]:
    return [await anext(watch) for _ in range(count)]


async def read_out(watch: Watch) -> list[Commit | Overflowed]:
    return [frame async for frame in watch]


async def notes(session: Session, count: int) -> None:
    for number in range(count):
        await note(session, number)


@pytest.mark.rule("OB-1", "SE-1")
async def test_a_watch_gives_every_later_commit_in_order() -> None:
    session = await open_session()
    await note(session, "before")
    heard: list[Commit] = []
    session.subscribe(heard.append)
    watch = session.watch()
    await notes(session, 3)
    frames = await read(watch, 3)
    assert seqs(frames) == ["2", "3", "4"]
    assert frames == heard


async def test_a_reader_that_waits_is_woken_by_the_next_commit() -> None:
    session = await open_session()
    watch = session.watch()
    reading = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    assert not reading.done()
    await note(session, "x")
    assert seqs([await reading]) == ["1"]


@pytest.mark.rule("SE-8")
async def test_a_cancelled_reader_loses_no_commit() -> None:
    session = await open_session()
    watch = session.watch()
    reading = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    reading.cancel()
    await notes(session, 2)
    assert seqs(await read(watch, 2)) == ["1", "2"]


@pytest.mark.rule("OB-2")
async def test_a_hundred_commits_wait_for_a_slow_observer_and_one_more_replaces_them_all() -> None:
    session = await open_session()
    slow, slower = session.watch(), session.watch()
    await notes(session, 100)
    assert seqs(await read(slow, 100)) == [str(number) for number in range(1, 101)]
    await notes(session, 1)
    assert seqs(await read(slow, 1)) == ["101"]
    assert seqs(await read(slower, 1)) == ["overflowed at 101"]


@pytest.mark.rule("OB-2")
async def test_the_marker_stands_for_all_that_follows_until_it_is_taken_and_then_commits_queue_again() -> None:
    session = await open_session()
    watch = session.watch(capacity=2)
    await notes(session, 4)
    assert seqs(await read(watch, 1)) == ["overflowed at 4"]
    await notes(session, 2)
    assert seqs(await read(watch, 2)) == ["5", "6"]


@pytest.mark.rule("OB-2")
async def test_an_observer_that_never_reads_slows_no_commit() -> None:
    session = await open_session()
    session.watch(capacity=1)
    idle = session.watch(capacity=1)
    await notes(session, 50)
    assert session.next_seq == 51
    assert seqs(await read(idle, 1)) == ["overflowed at 50"]


async def test_a_closed_watch_ends_and_drops_what_waited() -> None:
    session = await open_session()
    watch = session.watch()
    await notes(session, 2)
    waiting = session.watch()
    reading = asyncio.ensure_future(read_out(waiting))
    await asyncio.sleep(0)
    watch.close()
    watch.close()
    waiting.close()
    await note(session, "later")
    assert await read_out(watch) == []
    assert await reading == []


async def test_a_forgotten_watch_is_not_filled_for_ever() -> None:
    session = await open_session()
    session.watch()
    kept = session.watch()
    gc.collect()
    assert list(session._publication._watches.values()) == [kept]


@pytest.mark.rule("SE-7")
async def test_closing_the_session_ends_watches_after_their_last_frame() -> None:
    session = await open_session()
    watch, waiting = session.watch(), session.watch()
    await note(session, "x")
    reading = asyncio.ensure_future(read_out(waiting))
    await asyncio.sleep(0)
    await session.close()
    assert seqs(await read_out(watch)) == ["1"]
    assert seqs(await reading) == ["1"]


@pytest.mark.rule("SE-1", "OB-2")
async def test_a_watch_and_an_observer_hear_nothing_before_the_batch_is_stored() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    heard: list[int] = []
    session.subscribe(lambda commit: heard.append(commit.seq))
    reading = asyncio.ensure_future(anext(session.watch()))
    storage.hold_commits()
    committing = asyncio.ensure_future(note(session, "x"))
    await storage.commit_held()
    assert (heard, reading.done()) == ([], False)
    storage.release_commits()
    await committing
    assert heard == [1]
    assert seqs([await reading]) == ["1"]


# -------------------------------------------------------------------------------------------------------------- observers


@pytest.mark.rule("SE-1")
@pytest.mark.parametrize("kind", [ValueError, asyncio.CancelledError])
async def test_an_observer_that_raises_is_reported_and_hurts_neither_the_line_nor_the_others(kind: type[BaseException]) -> None:
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reports.append(context))
    session = await open_session()
    heard: list[int] = []

    def bad(commit: Commit) -> None:
        raise kind(f"bad at {commit.seq}")

    session.subscribe(bad)
    session.subscribe(lambda commit: heard.append(commit.seq))
    await notes(session, 2)
    assert heard == [1, 2]
    assert [(report["message"], repr(report["exception"])) for report in reports] == [
        (f"An observer of a session raised at commit {seq}. The commit is stored and the session goes on.", f"{kind.__name__}('bad at {seq}')")
        for seq in (1, 2)
    ]
    assert await session.snapshot(NOTES) == {"lines": [0, 1]}
    assert session.failed is None


async def test_observers_that_come_and_go_during_a_commit_are_called_from_the_next_one_or_not_any_more() -> None:
    session = await open_session()
    story: list[str] = []

    def first(commit: Commit) -> None:
        story.append(f"first {commit.seq}")
        if commit.seq == 1:
            end_second()
            end_second()
            session.subscribe(lambda later: story.append(f"third {later.seq}"))

    end_first = session.subscribe(first)
    end_second = session.subscribe(lambda commit: story.append(f"second {commit.seq}"))
    await notes(session, 2)
    end_first()
    await note(session, "x")
    assert story == ["first 1", "first 2", "third 2", "third 3"]
