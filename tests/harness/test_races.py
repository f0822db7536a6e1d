"""Many at once, and a crash among them: the first memo wins (PR-8), and a request id makes one submission (PR-9)."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pi_durable_tui.errors import RequestConflict
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.extensions.task_definition import TaskDefinition
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.tasks.runtime import Fenced, TaskRuntime
from pi_durable_tui.records.task import Completed
from tests.support.controlled_storage import Moment
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import say
from tests.support.sometimes import happened

RACERS = 32
SEEDS = 200
MOMENTS: tuple[Moment, ...] = ("before", "stored")


@dataclass(slots=True)
class Race:
    """A task in which many write the same memo; `seen` is what each of them then read, over all lives of the process."""

    chance: random.Random
    seen: list[str] = field(default_factory=list[str])

    async def run(self, runtime: TaskRuntime) -> None:
        await asyncio.gather(*(self.racer(runtime, number) for number in range(RACERS)))
        await runtime.end(Completed(value=runtime.recall("winner")))

    async def racer(self, runtime: TaskRuntime, number: int) -> None:
        for _ in range(self.chance.randrange(6)):
            await asyncio.sleep(0)
        self.seen += [str(await runtime.memo("winner", number)), str(runtime.recall("winner"))]

    def extension(self) -> Extension:
        return Extension(name="race", tasks=(TaskDefinition(kind="race", phases={"go": self.run}),))


async def raced(path: Path, seed: int, crash: tuple[int, Moment] | None, backend: Backend = "memory") -> tuple[Race, str, bool]:
    """A race, with a crash at a commit of its own if it comes to it, and the rest of it after that; the value the task ended with."""
    race = Race(random.Random(seed))
    rig = Rig(path, backend, extensions=(race.extension(),))
    harness = await rig.open()
    conversation = await harness.create_conversation(Agent())
    if crash is not None:
        rig.storage.crash_at(1 + crash[0], crash[1])  # the first commit made the conversation
    starting = asyncio.ensure_future(harness.start_task(conversation.id, "race", {}, {"phase": "go"}))
    await settled(rig)
    has_crashed = rig.storage.crashed.is_set()
    if has_crashed:
        await rig.kill()
        again = await rig.open()
        if await rig.tasks():
            await again.resume()
        else:
            await again.start_task(conversation.id, "race", {}, {"phase": "go"})
        await settled(rig)
    else:
        await starting
    (task,) = await rig.tasks()
    assert isinstance(task.outcome, Completed)
    await rig.close()
    return race, str(task.outcome.value), has_crashed


async def settled(rig: Rig) -> None:
    for _ in range(120):
        await asyncio.sleep(0)
    await rig.settle()


@pytest.mark.slow
@pytest.mark.rule("PR-8", "TK-4", "FA-6")
async def test_of_many_writers_of_a_memo_one_wins_for_all_of_them_whenever_the_process_dies(tmp_path: Path) -> None:
    crashes: set[tuple[int, Moment]] = set()
    winners: set[str] = set()
    for seed in range(SEEDS):
        chance = random.Random(seed)
        crash = (chance.randrange(1, 5), chance.choice(MOMENTS))
        race, value, has_crashed = await raced(tmp_path, seed, crash)
        assert set(race.seen) == {value}, f"seed {seed}, crash {crash}"
        winners.add(value)
        if has_crashed:
            crashes.add(crash)
    assert crashes == {(commit, moment) for commit in range(1, 5) for moment in MOMENTS}  # start, running, memo, end
    assert len(winners) > 5


@pytest.mark.rule("PR-8", "TK-4", "FA-6")
async def test_losers_of_a_memo_race_store_nothing(tmp_path: Path) -> None:
    race = Race(random.Random(1))
    rig = Rig(tmp_path, extensions=(race.extension(),))
    harness = await rig.open()
    conversation = await harness.create_conversation(Agent())
    await harness.start_task(conversation.id, "race", {}, {"phase": "go"})
    await settled(rig)

    assert len(race.seen) == 2 * RACERS
    happened("a memo raced for")
    assert len(rig.storage.batches) == 5  # the conversation, the task, running, one memo, the end


@pytest.mark.rule("TK-4", "TK-9", "PR-22")
async def test_memo_of_a_task_that_has_ended_is_refused(tmp_path: Path) -> None:
    late: list[TaskRuntime] = []

    async def end(runtime: TaskRuntime) -> None:
        late.append(runtime)
        await runtime.memo("early", 1)
        await runtime.end(Completed())

    rig = Rig(tmp_path, extensions=(Extension(name="race", tasks=(TaskDefinition(kind="race", phases={"go": end}),)),))
    harness = await rig.open()
    conversation = await harness.create_conversation(Agent())
    await harness.start_task(conversation.id, "race", {}, {"phase": "go"})
    await rig.settle()

    with pytest.raises(Fenced):
        await late[0].memo("late", 1)
    assert (await rig.tasks())[0].memos is None


# --------------------------------------------------------------------------------------------------------------- requests


@pytest.mark.slow
@pytest.mark.rule("PR-9", "SU-2", "FB-31")
async def test_one_request_sent_by_many_at_once_and_again_after_a_crash_is_one_submission(tmp_path: Path) -> None:
    crashes = 0
    for seed in range(SEEDS):
        chance = random.Random(seed)
        rig = Rig(tmp_path)
        chat = await rig.start(say("the answer"), say("the answer"))
        rig.storage.crash_at(1 + chance.randrange(1, 9), chance.choice(MOMENTS))

        async def send(turns: int, chat=chat) -> int:
            for _ in range(turns):
                await asyncio.sleep(0)
            return (await chat.submit("do it", request_id="r")).id

        sending = [asyncio.ensure_future(send(chance.randrange(40))) for _ in range(RACERS)]
        await settled(rig)
        acknowledged = {job.result() for job in sending if job.done()}
        if rig.storage.crashed.is_set():
            crashes += 1
            await rig.kill()
            chat = await (await rig.open()).conversation(chat.id)
        again = {(await chat.submit("do it", request_id="r")).id for _ in range(3)}

        submissions = (await rig.harness.session.storage.submissions()).items
        assert {one.id for one in submissions} == again, f"seed {seed}"
        assert acknowledged <= again, f"seed {seed}"
        await rig.run_out(chat)
        assert sum(entry.kind == "pi.user" for entry in await rig.entries(chat.id)) == 1, f"seed {seed}"
        await rig.close()
    assert crashes > SEEDS / 2


@pytest.mark.rule("SU-2", "PR-9")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_of_many_different_contents_under_one_request_id_one_wins_and_the_others_are_refused(tmp_path: Path, backend: Backend) -> None:
    rig = Rig(tmp_path, backend)
    chat = await rig.start(say("the answer"))

    results = await asyncio.gather(*(chat.submit(f"text {n}", request_id="r") for n in range(RACERS)), return_exceptions=True)
    await rig.run_out(chat)

    refused = [result for result in results if isinstance(result, RequestConflict)]
    assert len(refused) == RACERS - 1
    assert [entry.kind for entry in await rig.entries(chat.id)] == ["pi.user", "pi.assistant"]
    await rig.close()
