"""A second process follows a conversation that is being written (OB-6, ST-11)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.errors import EnvironmentFailure, NotFound, SessionClosed
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.observation.following import PATIENCE_MS, POLL_MS, follow_view
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Completed
from pi_durable_tui.session.session import Session
from pi_durable_tui.storage.port import Metadata
from pi_durable_tui.storage.sqlite import SqliteStorage, open_sqlite
from tests.support.harness_rig import Folder, Rig
from tests.support.scripted_model import Finished, Hold, Pause, ScriptedModel, TextDelta, say


class Looks:
    """A read-only store of which the test says what a look at its counters gives (around a real one)."""

    def __init__(self, inner: SqliteStorage) -> None:
        self._inner = inner
        self.fails = False
        self.sooner: list[int] = []  # what the next looks say instead of the newest commit

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def metadata(self) -> Metadata:
        if self.fails:
            raise EnvironmentFailure("It is being opened.")
        found = await self._inner.metadata()
        return Metadata(next_id=found.next_id, next_seq=self.sooner.pop(0), schema_version=1) if self.sooner else found


async def following(path: Path, clock: ManualClock) -> tuple[Session, Looks]:
    looks = Looks(await open_sqlite(path, clock=clock, read_only=True, inline=True))
    return await Session.open(looks, clock=clock), looks


async def collect(session: Session, conversation_id: int, clock: ManualClock, seen: list[ConversationView]) -> None:
    async for frame in follow_view(session, conversation_id, clock=clock):
        seen += [frame.view]


def texts(view: ConversationView) -> list[str]:
    generation = view.live.generation
    partial = [generation.message.text] if generation and generation.message else []
    return [stored.entry.message.text for stored in view.entries if hasattr(stored.entry.message, "text")] + partial


@pytest.mark.rule("OB-6", "ST-11")
async def test_what_another_process_commits_is_seen_piece_by_piece_and_nothing_is_written(tmp_path: Path) -> None:
    rig = Rig(tmp_path, backend="sqlite")
    chat = await rig.start([TextDelta("one "), Pause(200), TextDelta("two "), Hold()])
    await chat.submit("hello")
    await rig.settle()
    before = sorted(item.name for item in tmp_path.iterdir())
    session, _ = await following(rig.file, rig.clock)
    seen: list[ConversationView] = []

    watching = asyncio.ensure_future(collect(session, chat.id, rig.clock, seen))
    await rig.until(lambda: bool(seen))
    await rig.until(lambda: texts(seen[-1])[-1:] == ["one two "], jump=True)
    assert seen[-1] == await chat.view()
    assert [view.seq for view in seen] == sorted({view.seq for view in seen})
    count = len(seen)
    for _ in range(10):  # nothing new: nothing is told
        rig.clock.advance(POLL_MS)
        await rig.settle()
    assert len(seen) == count
    assert sorted(item.name for item in tmp_path.iterdir()) == before
    watching.cancel()
    await session.close()
    await rig.kill()


@pytest.mark.rule("OB-6")
async def test_it_goes_on_over_the_death_of_the_owner_and_its_successor(tmp_path: Path) -> None:
    rig = Rig(tmp_path, backend="sqlite")
    chat = await rig.start([TextDelta("half"), Hold()])
    await chat.submit("hello")
    await rig.settle()
    session, _ = await following(rig.file, rig.clock)
    seen: list[ConversationView] = []

    watching = asyncio.ensure_future(collect(session, chat.id, rig.clock, seen))
    await rig.until(lambda: bool(seen))
    await rig.kill()
    harness = await rig.open(say("whole"))
    await harness.resume()
    await rig.until(lambda: texts(seen[-1])[-1:] == ["whole"] and not seen[-1].is_busy, jump=True)
    await rig.close()
    rig.clock.advance(POLL_MS)
    await rig.settle()
    assert not watching.done()
    watching.cancel()
    await session.close()
    await rig.open()
    await rig.close()
    assert not (tmp_path / "session.sqlite-wal").exists()  # the last one to leave takes the log along, and that is an owner


@pytest.mark.rule("OB-6")
async def test_a_view_between_two_commits_is_not_told(tmp_path: Path) -> None:
    rig = Rig(tmp_path, backend="sqlite")
    chat = await rig.start(say("fine"))
    await chat.submit("hello")
    await rig.run_out(chat)
    session, looks = await following(rig.file, rig.clock)
    newest = (await looks.metadata()).next_seq
    looks.sooner = [newest - 2, newest - 1]  # while the view is read for the first time, a commit comes; then another
    frames = follow_view(session, chat.id, clock=rig.clock)
    view = (await anext(frames)).view
    assert (view.seq, view) == (newest - 1, await chat.view())
    await frames.aclose()
    await session.close()
    await rig.close()


@pytest.mark.rule("OB-6")
async def test_a_store_that_cannot_be_read_for_a_moment_is_waited_for_and_not_for_ever(tmp_path: Path) -> None:
    rig = Rig(tmp_path, backend="sqlite")
    chat = await rig.start(say("fine"))
    session, looks = await following(rig.file, rig.clock)
    looks.fails = True
    frames = follow_view(session, chat.id, clock=rig.clock)
    first = asyncio.ensure_future(anext(frames))
    await rig.settle()
    rig.clock.advance(PATIENCE_MS / 2)
    await rig.settle()
    looks.fails = False
    await rig.until(first.done, jump=True)
    assert first.result().view.conversation.id == chat.id
    looks.fails = True
    second = asyncio.ensure_future(anext(frames))
    await rig.until(second.done, jump=True)
    with pytest.raises(EnvironmentFailure, match="being opened"):
        second.result()
    await session.close()
    await rig.close()


async def test_a_conversation_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path, backend="sqlite")
    await rig.start()
    session, _ = await following(rig.file, rig.clock)
    with pytest.raises(NotFound):
        await anext(follow_view(session, 999, clock=rig.clock))
    await session.close()
    await rig.close()


@pytest.mark.rule("OB-6", "OB-3", "OB-5", "FA-14")
async def test_a_harness_that_may_only_read_waits_for_what_another_process_does_and_runs_nothing_itself(tmp_path: Path) -> None:
    rig = Rig(tmp_path, backend="sqlite")
    hold = Hold()
    chat = await rig.start([TextDelta("half"), hold, TextDelta(" and whole"), Finished("stop")])
    asked = await chat.submit("hello")
    await rig.close()  # what runs is handed back, and would be there to be taken

    storage = await open_sqlite(rig.file, clock=rig.clock, read_only=True, inline=True)
    model = ScriptedModel(rig.clock)
    reader = await Harness.open(storage, models=model, clock=rig.clock, entropy=SeededEntropy(2), environment=lambda _id, agent: Folder(agent.cwd))
    seen = await reader.conversation(chat.id)
    (task,) = (await reader.inspect()).tasks
    told: list[object] = []

    async def listen() -> None:
        nonlocal told
        async for event in seen.watch_events():
            told += [event["type"]]

    waits = [asyncio.ensure_future(wait) for wait in (seen.settled(asked.id), seen.idle(), reader.ended(task.task.id), listen())]
    await rig.settle()
    rig.clock.advance(60_000)
    await rig.settle()
    assert not any(wait.done() for wait in waits)

    hold.event.set()
    await (await rig.open([TextDelta("all of it"), Finished("stop")])).resume()
    await rig.until(lambda: all(wait.done() for wait in waits[:3]), jump=True)
    assert [type(wait.result()) for wait in waits[:3]] == [Submission, type(None), Completed]
    assert (await reader.inspect()).tasks == ()
    assert model.requests == []
    assert await seen.view() == await (await rig.harness.conversation(chat.id)).view()

    await rig.until(lambda: told[-1] == "run_end", jump=True)
    assert told[0] == "snapshot"
    assert "message_end" in told

    await reader.close()
    await rig.until(waits[3].done, jump=True)
    assert waits[3].exception() is None
    for wait in (seen.settled(asked.id), anext(seen.watch()), reader.ended(task.task.id)):
        with pytest.raises(SessionClosed):
            await wait
    await rig.close()
