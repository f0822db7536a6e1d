"""The wall clock is set, stands still, or sleeps with the machine, while a session waits, streams or works (PR-18, TK-5)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.extensions.task_definition import TaskDefinition
from pi_durable_tui.harness.ports import Finished, TextDelta
from pi_durable_tui.harness.settings import Retry, Settings
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.messages import AssistantMessage
from pi_durable_tui.records.submission import Done
from pi_durable_tui.records.task import Completed
from pi_durable_tui.selftest.oracle import faults
from tests.support.harness_rig import Rig
from tests.support.scripted_model import Pause, fail, say

S, H, DAY = 1_000, 3_600_000, 86_400_000
NOW_MS = 1_700_000_000_000
JUMPS = {
    "one second on": S,
    "one second back": -S,
    "one hour on": H,
    "one hour back": -H,
    "one day on": DAY,
    "one day back": -DAY,
    "to 1970": -NOW_MS,
    "to 2100": 4_102_444_800_000 - NOW_MS,
}
WAIT_MS = 60_000
SETTINGS = Settings(retry=Retry(base_delay_ms=WAIT_MS, max_delay_ms=WAIT_MS))


class FrozenClock(ManualClock):
    """A wall clock that stands still, as with a broken battery; everything else goes on."""

    def now_ms(self) -> int:
        return NOW_MS


async def passes(rig: Rig, duration_ms: int) -> None:
    """Time passes in steps, so that everybody who wakes has their turn."""
    for _ in range(duration_ms // 5_000):
        rig.clock.advance(5_000)
        await rig.settle()


async def waiting(rig: Rig) -> Any:
    """A chat whose request waits a minute for its second attempt."""
    chat = await rig.start(fail("overloaded", message="503"), say("The answer."), say("And another."))
    submission = await chat.submit("the question")
    await rig.settle()
    return chat, submission


async def judged(rig: Rig, chat: Any, submission: Any) -> None:
    """The run was answered once, by two requests; a second one works, and the store is sound and in order."""
    assert isinstance((await chat.settled(submission.id)).state, Done)
    assert len(rig.model.requests) == 2
    again = await chat.submit("another question")
    await rig.run_out(chat)
    assert isinstance((await chat.settled(again.id)).state, Done)
    assert await faults(rig.storage.inner) == []
    ids = [entry.id for entry in await rig.entries(chat.id)]
    assert ids == sorted(ids)
    await rig.close()


@pytest.mark.rule("PR-18", "TK-5", "GE-6")
@pytest.mark.parametrize("name", JUMPS)
async def test_a_clock_that_is_set_while_a_request_waits_makes_the_wait_no_longer(tmp_path: Path, name: str) -> None:
    rig = Rig(tmp_path, settings=SETTINGS)
    chat, submission = await waiting(rig)
    await passes(rig, WAIT_MS // 2)
    rig.clock.jump_wall(JUMPS[name])
    await passes(rig, WAIT_MS // 2 + 30_000)
    await judged(rig, chat, submission)


@pytest.mark.rule("PR-18", "TK-5", "GE-6")
@pytest.mark.parametrize("name", JUMPS)
async def test_a_clock_that_was_set_before_a_request_waits_makes_the_wait_no_shorter(tmp_path: Path, name: str) -> None:
    rig = Rig(tmp_path, settings=SETTINGS)
    chat = await rig.start(say("Before."), fail("overloaded", message="503"), say("The answer."), say("And another."))
    await chat.submit("first of all")
    await rig.run_out(chat)
    rig.clock.jump_wall(JUMPS[name])
    rig.model.requests.clear()
    submission = await chat.submit("the question")
    await rig.settle()
    await passes(rig, WAIT_MS - 5_000)
    assert len(rig.model.requests) == 1
    await passes(rig, 35_000)
    await judged(rig, chat, submission)


@pytest.mark.rule("PR-18", "TK-5")
async def test_a_clock_that_is_set_back_while_many_sleep_wakes_each_at_its_time(tmp_path: Path) -> None:
    woken: list[int] = []

    async def sleep(runtime: TaskRuntime) -> None:
        await runtime.sleep_until(rig.clock.now_ms() + int(str(runtime.task.input["s"])) * S, {"phase": "awake"})

    async def awake(runtime: TaskRuntime) -> None:
        woken.append(int(str(runtime.task.input["s"])))
        await runtime.end(Completed())

    rig = Rig(tmp_path, extensions=(Extension(name="kinds", tasks=(TaskDefinition(kind="sleeper", phases={"go": sleep, "awake": awake}),)),))
    chat = await rig.start()
    for seconds, jump_ms in ((40, -H), (25, -DAY), (10, -S), (20, -H)):
        await rig.harness.start_task(chat.id, "sleeper", {"s": seconds}, {"phase": "go"})
        await rig.settle()
        rig.clock.jump_wall(jump_ms)
        await rig.settle()
    assert woken == []
    seen: list[int] = []
    for _ in range(8):
        await passes(rig, 5_000)
        seen.append(len(woken))
    assert woken == [10, 20, 25, 40]
    assert seen == [0, 1, 1, 2, 3, 3, 3, 4]
    await rig.close()


@pytest.mark.rule("PR-18", "TK-5", "PR-10")
@pytest.mark.parametrize("name", JUMPS)
@pytest.mark.parametrize("end", ["close", "kill"])
async def test_a_clock_that_is_set_while_the_program_is_away_makes_the_wait_no_longer(tmp_path: Path, name: str, end: str) -> None:
    rig = Rig(tmp_path, settings=SETTINGS)
    chat, submission = await waiting(rig)
    await (rig.close() if end == "close" else rig.kill())
    rig.clock.jump_wall(JUMPS[name])
    await rig.open()
    chat = await rig.harness.conversation(chat.id)
    await rig.harness.resume()
    await passes(rig, WAIT_MS + 30_000)
    await judged(rig, chat, submission)


@pytest.mark.rule("PR-18", "TK-5")
async def test_a_wall_clock_that_stands_still_does_not_keep_a_request_waiting(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=SETTINGS, clock=FrozenClock())
    chat, submission = await waiting(rig)
    await passes(rig, WAIT_MS + 30_000)
    await judged(rig, chat, submission)


@pytest.mark.rule("PR-18", "GE-2", "PR-3")
@pytest.mark.parametrize("name", JUMPS)
async def test_a_clock_that_is_set_while_an_answer_streams_changes_neither_the_answer_nor_its_rhythm(tmp_path: Path, name: str) -> None:
    rig = Rig(tmp_path, settings=SETTINGS)
    words = [f"w{number} " for number in range(10)]
    script = [*itertools.chain.from_iterable((TextDelta(word), Pause(100)) for word in words), Finished("stop")]
    chat = await rig.start(script, say("And another."))
    submission = await chat.submit("the question")
    await rig.settle()
    seen: list[str] = []
    for number in range(10):
        if number == 4:
            rig.clock.jump_wall(JUMPS[name])
        rig.clock.advance(100)
        await rig.settle()
        live = (await rig.live(chat.id)).generation
        seen.append(live.message.text if live is not None and live.message is not None else "")
    assert all(len(after) > len(before) for before, after in itertools.pairwise(seen[:9]))
    await rig.run_out(chat)
    answer = (await rig.entries(chat.id))[-1].message
    assert isinstance(answer, AssistantMessage)
    assert answer.text == "".join(words)
    assert isinstance((await chat.settled(submission.id)).state, Done)
    assert await faults(rig.storage.inner) == []
    await rig.close()
