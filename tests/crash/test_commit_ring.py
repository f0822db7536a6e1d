"""The commit ring: a crash at every commit of the core scenario, before and after it is stored (proof.md, rig 1; PR-1, PR-2, PR-6, PR-10)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.records.messages import AssistantMessage, Usage
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Metadata, Storage
from tests.support.controlled_storage import Moment
from tests.support.crash_oracle import faults
from tests.support.crash_scenario import REQUEST_USAGE, Crash, History
from tests.support.harness_rig import Backend
from tests.support.storage_records import dump
from tests.support.strict_provider import violations

T = TypeVar("T")

UNSAFE = ("c2", "c3")
MOST_REQUESTS = 5  # one fails, two rounds of tools, the steered end, the follow-up
MOMENTS: tuple[Moment, ...] = ("before", "stored")


def looked(history: History, look: Callable[[Storage], Awaitable[T]]) -> T:
    """What `look` sees in the store as it is now."""

    async def open_and_look() -> T:
        storage = await history.open_store(ManualClock(history.now_ms))
        try:
            return await look(storage)
        finally:
            await storage.close()

    return asyncio.run(open_and_look())


def replayed(batches: list[Batch]) -> dict[str, Any]:
    """What a store holds after these commits."""

    async def replay() -> dict[str, Any]:
        storage = MemoryStorage()
        for batch in batches:
            await storage.commit(batch)
        return await dump(storage)

    return asyncio.run(replay())


async def spent(storage: Storage) -> tuple[int, Usage]:
    """What the store says was spent: attempts of the answers that came, and usage."""
    chats = (await storage.conversations()).items
    entries = [stored.entry for chat in chats for stored in (await storage.entries(chat.id, limit=1_000)).items]
    answers = [(entry.data or {}, entry.message) for entry in entries if isinstance(entry.message, AssistantMessage)]
    attempts = sum(int(str(data["attempt"])) for data, message in answers if message.stop_reason in {"stop", "toolUse"})
    return attempts, sum((message.usage for _, message in answers if message.usage is not None), Usage())


def silently_spent(history: History) -> list[str]:
    """What the provider was asked for, or told that it will charge, and the store does not say: each crash may hide the last words of one attempt.

    A request is counted before it leaves, so a crash may count one that never did. What an attempt that was cut off cost is known as far as
    the provider had said it; that there was the attempt is known always. The oracle holds the sum of the session to what the entries say.
    """
    attempts, used = looked(history, spent)
    requests, each = len(history.world.requests), REQUEST_USAGE.input_tokens
    never_left, unheard = attempts - requests, (history.world.served.input_tokens - used.input_tokens) // each
    found: list[str] = []
    if not 0 <= never_left <= history.crashes:
        found.append(f"{requests} requests were sent, {attempts} attempts are stored")
    if not 0 <= unheard <= history.crashes:
        found.append(f"the provider charges {history.world.served}, {used} is stored")
    return found


def judged(history: History, *, may_give_up: bool = False) -> list[str]:
    """All that is wrong with a history that came to its end; opening it once more must change nothing."""
    world = history.world

    async def look(storage: Storage) -> tuple[list[str], Metadata, list[str]]:
        found = await faults(storage, effects=world.effects, unsafe=UNSAFE, acknowledged=world.acknowledged.values())
        return found, await storage.metadata(), [one.status for one in (await storage.submissions()).items]

    found, counters, statuses = seen = looked(history, look)
    found += [violation for request in world.requests for violation in violations(request.messages)]
    if statuses != ["done"] * 3 and not may_give_up:
        found.append(f"not all are answered: {statuses}")
    if not may_give_up:
        found += silently_spent(history)
    if counters.next_seq != len(history.batches) + 1:
        found.append(f"{len(history.batches)} commits were stored, the counter says {counters}")
    history.live()
    if looked(history, look) != seen:
        found.append("another opening changed something")
    return found


def clean(path: Path) -> History:
    """The scenario without a crash."""
    history = History(path, "memory")
    assert history.live()
    return history


def points(path: Path) -> Iterator[Crash]:
    """Every commit of a clean life, before and after it is stored."""
    for commit in range(1, len(clean(path).batches) + 1):
        for moment in MOMENTS:
            yield commit, moment


def test_the_scenario_without_a_crash_holds_all_that_it_promises(tmp_path: Path) -> None:
    history = clean(tmp_path)
    assert judged(history) == []
    assert history.world.effects == [("c1", "start"), ("c2", "start"), ("c1", "end"), ("c2", "end"), ("c3", "start"), ("c3", "end")]
    assert len(history.world.requests) == MOST_REQUESTS
    assert looked(history, spent) == (MOST_REQUESTS, history.world.served)
    assert any(batch.priority == "partial" for batch in history.batches)


@pytest.mark.slow
@pytest.mark.rule("PR-1", "PR-2", "PR-6", "PR-9", "PR-10", "PR-21", "CASE-A1", "CASE-A2", "CASE-A5", "FB-43")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_crash_at_any_commit_leaves_a_prefix_and_the_next_life_finishes_the_work(
    tmp_path: Path, backend: Backend, moment: Moment, tell: Callable[[str], None]
) -> None:
    whole = clean(tmp_path).batches
    found: list[str] = []
    for commit in range(1, len(whole) + 1):
        history = History(tmp_path / f"{commit}", backend)
        assert not history.live((commit, moment))
        stored = commit - (moment == "before")
        if history.batches != whole[:stored]:
            found.append(f"{commit}: what was stored is not what a clean life stores")
        if looked(history, dump) != replayed(history.batches):
            found.append(f"{commit}: the store is not the state after {stored} commits")
        if history.world.newest_seen > stored:
            found.append(f"{commit}: commit {history.world.newest_seen} was shown, {stored} are stored")
        assert history.live()
        found += [f"{commit}: {fault}" for fault in judged(history)]
        if len(history.world.requests) > MOST_REQUESTS + 1:
            found.append(f"{commit}: {len(history.world.requests)} requests were sent, {MOST_REQUESTS} without a crash")
    tell(f"{len(whole)} commits of the core scenario, crash {moment}, {backend}")
    assert found == []


@pytest.mark.slow
@pytest.mark.rule("PR-1", "PR-6", "PR-10", "CASE-A5")
def test_a_second_crash_in_the_recovery_from_any_first_one_changes_nothing_of_that(tmp_path: Path, seed: int, tell: Callable[[str], None]) -> None:
    chance = random.Random(seed)
    found: list[str] = []
    crashes = 0
    for number, first in enumerate(points(tmp_path)):
        second: Crash = (chance.randint(1, 12), chance.choice(MOMENTS))
        history = History(tmp_path / f"{number}", "memory")
        assert not history.live(first)
        crashes += 1 + (not history.live(second))
        assert history.live()
        found += [f"{first}, then {second}: {fault}" for fault in judged(history)]
    tell(f"{crashes} crashes, seed {seed}")
    assert found == []


@pytest.mark.slow
@pytest.mark.rule("PR-1", "PR-6", "PR-10", "CASE-A5")
@pytest.mark.parametrize("first", [(8, "stored"), (24, "stored"), (37, "before")])
def test_a_second_crash_at_every_commit_of_a_recovery_changes_nothing_of_that(tmp_path: Path, first: Crash, tell: Callable[[str], None]) -> None:
    found: list[str] = []
    commit = 0
    came_to_end = False
    while not came_to_end:
        commit += 1
        for moment in MOMENTS:
            history = History(tmp_path, "memory")
            assert not history.live(first)
            came_to_end = history.live((commit, moment))
            if not came_to_end:
                assert history.live()
            found += [f"{first}, then {(commit, moment)}: {fault}" for fault in judged(history)]
    tell(f"{2 * commit - 2} second crashes after {first}")
    assert found == []


@pytest.mark.slow
@pytest.mark.rule("PR-1", "PR-6", "PR-10", "PR-11", "CASE-A5")
def test_many_crashes_in_one_session_end_with_everything_settled(tmp_path: Path, seed: int, tell: Callable[[str], None]) -> None:
    chance = random.Random(seed)
    found: list[str] = []
    crashes = 0
    for number in range(40):
        history = History(tmp_path / f"{number}", "memory")
        points: list[Crash] = [(chance.randint(1, 14), chance.choice(MOMENTS)) for _ in range(20)]
        for point in points:
            crashes += not history.live(point)
        assert history.live()
        found += [f"{number} {points}: {fault}" for fault in judged(history, may_give_up=True)]
    tell(f"{crashes} crashes in 40 sessions, seed {seed}")
    assert found == []
