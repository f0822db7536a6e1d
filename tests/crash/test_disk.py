"""A disk that is full, read-only or failing: no crash, nothing of the past is lost, and work goes on when there is room (PR-17, TO-9).

The disk is a real one of 512 KiB (a tmpfs; skipped where none may be mounted) that holds the store, its log, its reserve and what
commands spill. At the end what was shown, what was sent to the model and what is stored are compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.errors import EnvironmentFailure, PidurableError
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Finished, TextDelta
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.messages import Text
from pi_durable_tui.records.submission import Done
from pi_durable_tui.selftest.oracle import faults
from pi_durable_tui.storage.kind import STORE_KINDS, StoreKind
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.sqlite import open_sqlite
from pi_durable_tui.tools.bash import bash_tool
from pi_durable_tui.tools.environment import LocalEnvironment
from tests.support.harness_rig import Rig
from tests.support.old_stores import SETTINGS, OldRig
from tests.support.scripted_model import Pause, ScriptedModel, Step, call, say
from tests.support.small_disk import SmallDisk, small_disk
from tests.support.storage_faults import FaultyDisk, Kind, Moment
from tests.support.strict_provider import violations

WORDS = tuple(step for number in range(30) for step in (TextDelta(f"word{number} " * 30), Pause(130)))
FLOOD = call(("bash", {"command": "seq 30000; echo the end"}), text="I print a lot.")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as made:
        if made is None:
            pytest.skip("no disk may be mounted here")
        yield made


class Willing(ScriptedModel):
    """Plays its scripts, then answers whatever it is asked, a summary included."""

    def _script(self, request: Any) -> list[Step]:
        return super()._script(request) if self._played < len(self._scripts) else list(say("All right."))


class Onlooker:
    """Sees what a screen would be given.

    Attributes:
        entries: Everything that was shown of the transcript, by id.
    """

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self._jobs: list[asyncio.Task[None]] = []

    def look(self, chat: Conversation) -> None:
        self._jobs.append(asyncio.create_task(self._look(chat)))

    async def _look(self, chat: Conversation) -> None:
        with contextlib.suppress(PidurableError):  # the end of the session
            async for frame in chat.watch():
                self.entries |= {stored.entry.id: stored.entry for stored in frame.view.entries}

    async def stop(self) -> None:
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)


def rig_on(path: Path, kind: StoreKind) -> OldRig:
    """A rig whose store and whose commands' files are on the disk."""
    rig = OldRig(path, backend="sqlite", settings=SETTINGS, tools=(bash_tool(),))
    rig.place = lambda _id, agent: LocalEnvironment(agent.cwd, path / "files", SystemClock(), os.environ)
    rig.kind = kind
    rig.model = Willing(rig.clock)
    return rig


async def comes_to_an_end(rig: Rig, chat: Conversation, turns: int = 2_000) -> bool:
    """Let the run go on, with real commands on the way; False when it waits for something that the clock does not bring, such as room."""
    idle = asyncio.ensure_future(chat.idle())
    for _ in range(turns):
        await rig.settle()
        if idle.done():
            await idle
            return True
        if (gap_ms := rig.clock.next_wake_ms()) is not None:
            rig.clock.advance(gap_ms)
        await asyncio.sleep(0.003)
    idle.cancel()
    return False


async def finished(rig: Rig, chat: Conversation) -> None:
    """The run came to its end."""
    assert await comes_to_an_end(rig, chat)


async def ask(rig: Rig, chat: Conversation, text: str) -> Any:
    submission = await chat.submit(text)
    await finished(rig, chat)
    return (await chat.settled(submission.id)).state


async def fill_while(phase: str, rig: OldRig, disk: SmallDisk, chat: Conversation) -> None:
    """Fill the disk in the middle of something, and let that come to an end, or wait for room; or close."""
    match phase:
        case "stream":
            rig.model.then((*WORDS, Finished("stop")))
            await chat.submit("tell me a lot")
            await rig.settle()
            rig.clock.advance(400)
            await rig.settle()
            disk.fill()
        case "tool":
            rig.model.then(FLOOD)
            await chat.submit("print a lot")
            disk.fill(leave_bytes=12 * 1024)
        case "compaction":
            rig.model.then((TextDelta("The gist "), Pause(300), TextDelta("of it."), Finished("stop")))
            await chat.compact("everything")
            await rig.settle()
            disk.fill()
        case _:
            rig.model.then((TextDelta("Half "), Pause(10_000), Finished("stop")))
            await chat.submit("begin")
            await rig.settle()
            disk.fill()
            assert disk.free_bytes == 0
            await rig.close()
            return
    assert disk.free_bytes <= 12 * 1024
    if await comes_to_an_end(rig, chat, 250):
        await ask_full(rig, chat)
    await rig.close()


@pytest.mark.slow
@pytest.mark.rule("PR-17", "TO-9", "PR-13")
@pytest.mark.parametrize("kind", STORE_KINDS)
@pytest.mark.parametrize("phase", ["stream", "tool", "compaction", "close"])
async def test_a_disk_that_fills_up_costs_nothing_of_the_past_and_work_goes_on_when_there_is_room(
    disk: SmallDisk, tmp_path: Path, phase: str, kind: StoreKind
) -> None:
    rig, seen = rig_on(disk.path, kind), Onlooker()
    chat = await rig.start(say("The first answer."), agent=Agent(model="test/model", approval="all", cwd=str(tmp_path)))
    seen.look(chat)
    assert isinstance(await ask(rig, chat, "the first question"), Done)
    before = await rig.entries(chat.id)
    await fill_while(phase, rig, disk, chat)
    disk.free()
    await rig.open()
    assert (await rig.entries(chat.id))[: len(before)] == before
    chat = await rig.harness.conversation(chat.id)
    seen.look(chat)
    await rig.harness.resume()
    await finished(rig, chat)
    assert [type(await ask(rig, chat, text)) for text in ("once more", "and again")] == [Done, Done]
    await seen.stop()
    await rig.close()

    await rig.open()
    stored = {entry.id: entry for entry in await rig.entries(chat.id)}
    assert [stored[entry.id] for entry in before] == before
    assert {entry_id: stored.get(entry_id) for entry_id in seen.entries} == seen.entries, "what was shown is not what is stored"
    assert [problem for request in rig.model.requests for problem in violations(request.messages)] == []
    known = {part.text for entry in stored.values() if entry.message is not None for part in entry.message.content if isinstance(part, Text)}
    sent = {part.text for request in rig.model.requests for message in request.messages for part in message.content if isinstance(part, Text)}
    if phase != "compaction":  # whose request is made of the transcript as text
        assert sent - known == set(), "what was sent is not what is stored"
    found = await faults(rig.storage.inner)
    assert [fault for fault in found if not fault.startswith("usage is")] == []
    await rig.close()


async def ask_full(rig: Rig, chat: Conversation) -> None:
    """Without room an input is refused and leaves nothing, or it is taken; the run that answers it may have to wait for room."""
    count = len((await rig.storage.inner.submissions(limit=1_000)).items)
    try:
        submission = await chat.submit("is there room?")
    except PidurableError:
        assert len((await rig.storage.inner.submissions(limit=1_000)).items) == count
    else:
        assert (await rig.storage.inner.submission(submission.id)) is not None
        await comes_to_an_end(rig, chat, 150)


@pytest.mark.slow
@pytest.mark.rule("PR-17", "ST-11")
@pytest.mark.parametrize("kind", STORE_KINDS)
async def test_a_disk_that_is_read_only_is_read_and_refused_for_writing_and_is_the_same_afterwards(disk: SmallDisk, tmp_path: Path, kind: StoreKind) -> None:
    rig = rig_on(disk.path, kind)
    chat = await rig.start(say("The first answer."), agent=Agent(model="test/model", cwd=str(tmp_path)))
    await ask(rig, chat, "the first question")
    entries = await rig.entries(chat.id)
    await rig.close()
    disk.remount("ro")
    with pytest.raises(EnvironmentFailure):
        await rig.open()
    reader: Storage = await (open_sqlite(rig.file, clock=rig.clock, inline=True, read_only=True) if kind == "sqlite" else read_jsonl(rig))
    assert [stored.entry for stored in (await reader.entries(chat.id)).items] == entries
    await reader.close()
    disk.remount("rw")
    await rig.open()
    chat = await rig.harness.conversation(chat.id)
    assert isinstance(await ask(rig, chat, "once more"), Done)
    await rig.close()


async def read_jsonl(rig: OldRig) -> Storage:
    from pi_durable_tui.storage.jsonl import open_jsonl  # noqa: PLC0415 - the other kind only

    return await open_jsonl(rig.path / "session.jsonl", clock=rig.clock, inline=True, read_only=True)


class FailingRig(Rig):
    """A rig over a SQLite file whose disk fails when it is told to."""

    vfs: str | None = None

    async def _inner(self) -> Storage:
        return await open_sqlite(self.file, clock=self.clock, inline=True, vfs=self.vfs)


@pytest.mark.slow
@pytest.mark.rule("PR-17", "PR-13", "ST-6")
@pytest.mark.parametrize("fault", ["io", "full"])
@pytest.mark.parametrize("moment", ["before", "short", "after"])
async def test_an_error_of_the_disk_anywhere_in_a_run_shows_nothing_that_is_not_stored_and_the_run_is_finished_later(
    tmp_path: Path, fault: Kind, moment: Moment, tell: Callable[[str], None]
) -> None:
    failing, operation, failures = FaultyDisk(f"failing-{fault}-{moment}"), 0, 0
    try:
        while True:
            operation += 3
            path = tmp_path / f"{operation}"
            path.mkdir()
            if not await run_on(failing, path, operation, moment, fault):
                break
            failures += 1
    finally:
        failing.unregister()
    tell(f"{failures} runs with an error of the disk ({fault}, {moment})")
    assert failures > 10


async def run_on(failing: FaultyDisk, path: Path, operation: int, moment: Moment, fault: Kind) -> bool:
    """Run on a disk that fails at an operation, for good; then on a sound one. False: the run ended before."""
    rig, seen = FailingRig(path, backend="sqlite", settings=SETTINGS), Onlooker()
    rig.vfs, rig.model = failing.vfs_name, Willing(rig.clock)
    chat = await rig.start()
    seen.look(chat)
    await rig.settle()
    rig.model.then((*WORDS[:10], Finished("stop")))
    failing.fault.arm(operation, moment, fault, for_good=True)
    with contextlib.suppress(PidurableError):
        await ask(rig, chat, "the question")
    happened = failing.fault.happened
    await seen.stop()
    failing.fault.disarm()
    await rig.kill()
    rig.vfs = None
    await rig.open()
    stored = {entry.id: entry for entry in await rig.entries(chat.id)}
    assert {entry_id: stored.get(entry_id) for entry_id in seen.entries} == seen.entries
    chat = await rig.harness.conversation(chat.id)
    await rig.harness.resume()
    await finished(rig, chat)
    assert isinstance(await ask(rig, chat, "once more"), Done)
    assert await faults(rig.storage.inner) == []
    await rig.close()
    return happened
