"""The counting task of example 08, closed and killed in the middle: facts FA-1 to FA-11 of the recovery rules."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.extensions.task_definition import TaskDefinition
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.task import Completed, Pending
from tests.examples.e08_memo_and_recovery import Counter, begin_or_go_on
from tests.support.harness_rig import Rig
from tests.support.patience import RUN_S

COUNTER_ROWS = "SELECT id, status, record ->> '$.state.checkpoint.n' AS n, record ->> '$.memos' AS memos, record ->> '$.restarts' AS restarts FROM tasks;"


def run_example(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The example as a person runs it."""
    command = [sys.executable, "-m", "tests.examples.e08_memo_and_recovery", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=RUN_S, check=False)


def in_shell(path: Path, statement: str) -> list[dict[str, Any]]:
    """What the sqlite3 shell answers on a session file."""
    done = subprocess.run(["sqlite3", "-json", str(path), statement], capture_output=True, text=True, check=True)
    return json.loads(done.stdout) if done.stdout.strip() else []


async def counted(rig: Rig, counter: Counter) -> None:
    rig.extensions = (counter.extension(),)
    await begin_or_go_on(await rig.open())


@pytest.mark.rule("FA-1", "FA-2", "TK-5")
async def test_ticks_come_once_each_fifty_milliseconds_apart(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    counter = Counter(rig.clock)
    await counted(rig, counter)

    seen: list[tuple[int, float]] = []
    for n in range(1, 6):
        await rig.until(lambda n=n: len(counter.printed) == n)
        seen.append((n, rig.clock.monotonic_ms()))
        await rig.settle()
        rig.clock.advance(49)
        await rig.settle()
        assert len(counter.printed) == n
        rig.clock.advance(1)

    assert seen == [(1, 0), (2, 50), (3, 100), (4, 150), (5, 200)]
    assert counter.printed == ["tick 1", "tick 2", "tick 3", "tick 4", "tick 5"]


@pytest.mark.slow
@pytest.mark.rule("FA-1", "FA-3", "FA-4", "FA-8", "FA-9", "FA-11", "FA-43", "FB-15", "TK-9", "TK-10")
def test_closed_counter_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "session.sqlite"

    first = run_example(path, "--close-at", "2")
    (row,) = in_shell(path, COUNTER_ROWS)
    assert (first.returncode, first.stdout.split("\n")) == (0, ["tick 1", "tick 2", ""])
    assert {**row, "memos": json.loads(row["memos"])} == {
        "id": row["id"],
        "status": "pending",
        "n": 2,
        "memos": {"printed-1": True, "printed-2": True},
        "restarts": None,
    }

    second = run_example(path)
    (row,) = in_shell(path, COUNTER_ROWS)
    assert (second.returncode, second.stdout.split("\n")) == (0, ["tick 3", "tick 4", "tick 5", "counted to 5", ""])
    assert row == {"id": row["id"], "status": "terminal", "n": None, "memos": None, "restarts": None}
    outcome = in_shell(path, "SELECT record ->> '$.state.outcome.value' AS value FROM tasks")
    assert outcome == [{"value": "counted to 5"}]


@pytest.mark.slow
@pytest.mark.rule("FA-8", "FA-10", "FB-4", "FB-23", "TK-10")
def test_killed_counter_is_pending_with_one_restart_after_opening(tmp_path: Path) -> None:
    path = tmp_path / "session.sqlite"

    first = run_example(path, "--kill-at", "2")
    (before,) = in_shell(path, COUNTER_ROWS)
    opened = run_example(path, "--close-at", "2")
    (after,) = in_shell(path, COUNTER_ROWS)
    last = run_example(path)

    assert (first.returncode, first.stdout) == (-9, "tick 1\ntick 2\n")
    assert (before["status"], before["n"], before["restarts"]) == ("running", 2, None)
    assert opened.stdout == ""
    assert (after["status"], after["n"], json.loads(after["memos"]), after["restarts"]) == ("pending", 2, json.loads(before["memos"]), 1)
    assert last.stdout == "tick 3\ntick 4\ntick 5\ncounted to 5\n"


@pytest.mark.rule("FA-5", "FA-8", "FA-12")
@pytest.mark.parametrize("end", ["close", "kill"])
async def test_close_and_kill_leave_the_same_task_but_for_the_restart(tmp_path: Path, end: str) -> None:
    rig = Rig(tmp_path)
    first = Counter(rig.clock, stop_at=2)
    await counted(rig, first)
    await rig.until(first.stopped.is_set, jump=True)
    (running,) = await rig.tasks()
    await (rig.close() if end == "close" else rig.kill())

    second = Counter(rig.clock)
    rig.extensions = (second.extension(),)
    harness = await rig.open()
    (opened,) = await rig.tasks()

    state = Pending(checkpoint={"phase": "count", "n": 2})
    assert opened == msgspec.structs.replace(running, state=state, restarts=None if end == "close" else 1)

    await harness.resume()
    await rig.until(lambda: len(second.printed) == 3, jump=True)
    assert (first.steps, second.steps) == ([1, 2], [2, 3, 4, 5])
    assert first.printed + second.printed == ["tick 1", "tick 2", "tick 3", "tick 4", "tick 5"]


@pytest.mark.rule("FA-7", "TK-4")
async def test_crash_between_memo_and_print_loses_that_print_and_repeats_none(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    first = Counter(rig.clock)
    await counted(rig, first)
    await rig.until(lambda: len(first.printed) == 2, jump=True)
    memo_of_3 = len(rig.storage.batches) + 4  # the sleep of 2, the waking, the start, then the memo
    rig.storage.crash_at(memo_of_3, "stored")
    await rig.until(rig.storage.crashed.is_set, jump=True)
    await rig.kill()

    second = Counter(rig.clock)
    await counted(rig, second)
    await rig.until(lambda: "tick 5" in second.printed, jump=True)

    assert first.printed + second.printed == ["tick 1", "tick 2", "tick 4", "tick 5"]


@pytest.mark.rule("FA-6", "TK-4")
async def test_first_memo_wins_for_every_writer_and_reader(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    seen: list[object] = []

    async def race(runtime: TaskRuntime) -> None:
        seen.extend(await asyncio.gather(*(runtime.memo("winner", name) for name in ("first", "second", "third"))))
        seen.append(runtime.recall("winner"))
        await runtime.end(Completed())

    rig.extensions = (Extension(name="race", tasks=(TaskDefinition(kind="race", phases={"go": race}),)),)
    harness = await rig.open()
    conversation = await harness.create_conversation(Agent())
    await harness.start_task(conversation.id, "race", {}, {"phase": "go"})
    await rig.until(lambda: len(seen) == 4)

    assert seen == ["first"] * 4
    await rig.settle()
    (ended,) = await rig.tasks()
    assert ended.memos is None  # memos vanish when the task ends
