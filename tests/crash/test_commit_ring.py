"""The commit ring: a crash at every commit of the core scenario, at every moment around it (proof.md, rig 1; PR-1, PR-2, PR-6, PR-10, PR-13).

With memory as the store every commit meets every moment; in SQLite and JSONL a fifth of them, drawn by the seed, and all of them when
PIDURABLE_TEST_RING is "all", which also begins the second crashes at every moment.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage, Usage
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Metadata, Storage
from tests.support.controlled_storage import Moment
from tests.support.crash_deaths import died
from tests.support.crash_oracle import faults
from tests.support.crash_scenario import REQUEST_USAGE, Crash, Failure, History
from tests.support.harness_world import Backend
from tests.support.sometimes import happened
from tests.support.storage_records import dump
from tests.support.strict_provider import violations

T = TypeVar("T")

UNSAFE = ("c2", "c3")
MOST_REQUESTS = 5  # one fails, two rounds of tools, the steered end, the follow-up
DEATHS: tuple[Moment, ...] = get_args(Moment)
MOMENTS: tuple[Moment | Failure, ...] = (*DEATHS, *get_args(Failure))
ABSENT = ("before", "failed")
"""At these moments the commit is not in the store, at all others it is."""
TOLD = ("published", "acknowledged")
WHOLE_RING = os.environ.get("PIDURABLE_TEST_RING") == "all"


def looked(history: History, look: Callable[[Storage], Awaitable[T]]) -> T:
    """What `look` sees in the store as it is now."""

    async def open_and_look() -> T:
        storage = await history.open_store(ManualClock(history.now_ms))
        try:
            return await look(storage)
        finally:
            await storage.close()

    return asyncio.run(open_and_look())


def replayed(batches: list[Batch]) -> list[dict[str, Any]]:
    """What a store holds after none of these commits, after the first, … after all of them."""

    async def replay() -> list[dict[str, Any]]:
        storage = MemoryStorage()
        states = [await dump(storage)]
        for batch in batches:
            await storage.commit(batch)
            states.append(await dump(storage))
        return states

    return asyncio.run(replay())


async def steers(storage: Storage) -> dict[int, str]:
    """Where the steering inputs are."""
    return {one.id: one.status for one in (await storage.submissions()).items if one.mode == "steer"}


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


def clean(path: Path, backend: Backend = "memory") -> History:
    """The scenario without a crash."""
    history = History(path / "clean", backend)
    assert history.live()
    return history


def points(path: Path) -> Iterator[Crash]:
    """Every commit of a clean life, before and after it is stored, or at every moment."""
    for commit in range(1, len(clean(path).batches) + 1):
        for moment in MOMENTS if WHOLE_RING else ("before", "stored"):
            yield commit, moment


def drawn(backend: Backend, commits: int, chance: random.Random) -> list[int]:
    """At which of so many commits a store is crashed."""
    numbers = range(1, commits + 1)
    return list(numbers) if backend == "memory" or WHOLE_RING else sorted(chance.sample(numbers, commits // 5))


def publication_faults(history: History, moment: Moment | Failure, stored: int) -> list[str]:
    """What is wrong with what observers were told before the crash; what opening commits, nobody can watch yet."""
    newest = history.world.newest_seen
    if moment in TOLD and not history.is_opening and newest != stored:
        return [f"commit {stored} was published, {newest} was seen last"]
    is_ahead = newest > stored - (moment not in ABSENT and moment not in TOLD)
    return [f"commit {newest} was shown, {stored} are stored"] if is_ahead else []


def tell_moments(history: History, at_crash: dict[str, Any]) -> None:
    """Say between what the crash came, and what became of it."""
    messages = [stored.entry.message for entries in at_crash["entries"].values() for stored in entries]
    results = {message.tool_call_id for message in messages if isinstance(message, ToolResultMessage)}
    for task in at_crash["tasks"]:
        if task.kind == "pi.tool" and task.is_live and (task.checkpoint or {}).get("phase") == "execute":
            call = task.input["callId"]
            if (call, "start") not in history.effects_at_crash:
                happened("a crash between intent and effect")
            if (call, "end") in history.effects_at_crash and call not in results:
                happened("a crash between effect and result")
    at_end = looked(history, steers)
    if any(one.status == "queued" and at_end.get(one.id) == "done" for one in at_crash["submissions"]):
        happened("a steering input placed after a crash")


def test_the_scenario_without_a_crash_holds_all_that_it_promises(tmp_path: Path) -> None:
    history = clean(tmp_path)
    assert judged(history) == []
    assert history.world.effects == [("c1", "start"), ("c2", "start"), ("c1", "end"), ("c2", "end"), ("c3", "start"), ("c3", "end")]
    assert len(history.world.requests) == MOST_REQUESTS
    assert looked(history, spent) == (MOST_REQUESTS, history.world.served)
    assert any(batch.priority == "partial" for batch in history.batches)


@pytest.mark.slow
@pytest.mark.rule("PR-1", "PR-2", "PR-6", "PR-9", "PR-10", "PR-13", "PR-21", "CASE-A1", "CASE-A2", "CASE-A5", "FB-43", "ST-6")
@pytest.mark.parametrize("backend", get_args(Backend))
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_crash_at_any_commit_leaves_a_prefix_and_the_next_life_finishes_the_work(
    tmp_path: Path, backend: Backend, moment: Moment | Failure, seed: int, tell: Callable[[str], None]
) -> None:
    whole = clean(tmp_path, backend).batches
    states = replayed(whole)
    commits = drawn(backend, len(whole), random.Random(f"{seed} {backend} {moment}"))
    found: list[str] = []
    for commit in commits:
        history = History(tmp_path / f"{commit}", backend)
        assert not history.live((commit, moment))
        stored = commit - (moment in ABSENT)
        at_crash = looked(history, dump)
        if history.batches != whole[:stored] or at_crash != states[stored]:
            found.append(f"{commit}: the store is not the state after {stored} commits")
        found += [f"{commit}: {fault}" for fault in publication_faults(history, moment, stored)]
        if moment in get_args(Failure):
            happened(f"an uncertain commit that was {'stored' if at_crash['counters'].next_seq > commit else 'not stored'}")
        assert history.live()
        found += [f"{commit}: {fault}" for fault in judged(history)]
        if len(history.world.requests) > MOST_REQUESTS + 1:
            found.append(f"{commit}: {len(history.world.requests)} requests were sent, {MOST_REQUESTS} without a crash")
        if moment in DEATHS:
            tell_moments(history, at_crash)
    tell(f"{len(commits)} of {len(whole)} commits of the core scenario, {moment}, {backend}")
    assert found == []


@pytest.mark.slow
@pytest.mark.rule("PR-1", "PR-13")
@pytest.mark.parametrize("backend", ["sqlite", "jsonl"])
def test_a_process_that_really_dies_at_a_commit_leaves_what_a_frozen_one_leaves(
    tmp_path: Path, backend: Backend, seed: int, tell: Callable[[str], None]
) -> None:
    states = replayed(clean(tmp_path, backend).batches)
    chance = random.Random(f"{seed} {backend}")
    points = [(commit, moment) for moment in DEATHS for commit in chance.sample(range(1, len(states)), len(states) - 1 if WHOLE_RING else 2)]
    folders = died(tmp_path, backend, points)
    found: list[str] = []
    for (commit, moment), folder in zip(points, folders, strict=True):
        frozen = History(tmp_path / f"{commit}-{moment}-frozen", backend)
        frozen.live((commit, moment))
        if not looked(History(folder, backend), dump) == looked(frozen, dump) == states[commit - (moment in ABSENT)]:
            found.append(f"{commit}, {moment}: the dead process left something else")
    tell(f"{len(points)} processes ended at a commit, {backend}")
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
        for moment in MOMENTS if WHOLE_RING else ("before", "stored"):
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
