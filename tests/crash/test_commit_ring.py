"""The commit ring: a crash at every commit of the core scenario, at every moment around it (proof.md, rig 1; PR-1, PR-2, PR-6, PR-8, PR-10, PR-13).

With memory as the store every commit meets every moment; in SQLite and JSONL a fifth of them, drawn by the seed. A second crash comes, before
and after it is stored, at every commit of the recovery from a few first ones, which lie behind the landmarks of the scenario or are drawn; in
SQLite and JSONL at some. All of it in all stores, at every commit of the recovery from every first one, where PIDURABLE_TEST_RING is "all".
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
from pi_durable_tui.harness.kinds import COMPACTION, GENERATION
from pi_durable_tui.records import entry
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage, Usage
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Metadata, Storage
from tests.support.controlled_storage import Moment
from tests.support.crash_deaths import died
from tests.support.crash_oracle import faults, faults_at_any_moment, faults_of_whole_work
from tests.support.crash_scenario import Crash, Failure, History, asks_model, collect_dead_lives
from tests.support.crash_world import RACERS, REQUEST_USAGE, UNSAFE, wants_summary
from tests.support.harness_oracle import held
from tests.support.harness_world import Backend
from tests.support.sometimes import happened
from tests.support.storage_records import dump
from tests.support.strict_provider import violations

T = TypeVar("T")

MOST_REQUESTS = 8  # one fails, two rounds of tools, the steered end, the follow-up; the summary; the fork's call and its end
DEATHS: tuple[Moment, ...] = get_args(Moment)
MOMENTS: tuple[Moment | Failure, ...] = (*DEATHS, *get_args(Failure))
ABSENT = ("before", "failed")
"""At these moments the commit is not in the store, at all others it is."""
TOLD = ("published", "acknowledged")
FIRSTS_FOLLOWED: dict[Backend, int] = {"memory": 1, "sqlite": 5, "jsonl": 5}  # beside the landmarks in memory
SECONDS_FOLLOWED = 6  # in SQLite and JSONL
WHOLE_RING = os.environ.get("PIDURABLE_TEST_RING") == "all"
SECOND_PARTS = 8 if WHOLE_RING else 5
SAME_CRASHES = 8
_FOLLOWED: set[bytes] = set()


@pytest.fixture(autouse=True)
def free_memory() -> Iterator[None]:
    yield
    collect_dead_lives()


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


async def spent(storage: Storage) -> tuple[int, Usage, Usage]:
    """What the store says was spent: attempts of the answers that came, the usage that was counted, and what the entries say of it."""
    now = await held(storage)
    entries = [each for chat in now.conversations for each in now.own(chat.id)]
    answers = [(each.data or {}, each.message) for each in entries if isinstance(each.message, AssistantMessage)]
    attempts = sum(int(str(data["attempt"])) for data, message in answers if message.stop_reason in {"stop", "toolUse"})
    summaries = [from_json((each.data or {})["usage"], Usage) for each in entries if each.kind == entry.COMPACTION]
    counted = [used for totals in now.usage.values() for used in totals.models.values()]
    told = [message.usage for _, message in answers if message.usage is not None] + summaries
    return attempts, sum(counted, Usage()), sum(told, Usage())


def silently_spent(history: History) -> list[str]:
    """What the provider was asked for, or told that it will charge, and the store does not say: a crash may hide the last words of what it cuts off.

    A request for an answer is counted before it leaves, so a crash may count one that never did. What an attempt that was cut off cost is known
    as far as the provider had said it; that there was the attempt is known always, of an answer. The entries tell all but what was cut off of summaries.
    """
    attempts, counted, told = looked(history, spent)
    summaries = sum(wants_summary(request) for request in history.world.requests)
    answers, each = len(history.world.requests) - summaries, REQUEST_USAGE.input_tokens
    unheard = (history.world.served.input_tokens - counted.input_tokens) // each
    found: list[str] = []
    if not 0 <= attempts - answers <= history.cut_off[GENERATION]:
        found.append(f"{answers} answers were asked for, {attempts} attempts are stored")
    if not 1 <= summaries <= 1 + history.cut_off[COMPACTION]:
        found.append(f"{summaries} summaries were asked for, {history.cut_off[COMPACTION]} were cut off")
    if not 0 <= unheard <= history.cut_off.total():
        found.append(f"the provider charges {history.world.served}, {counted} is counted")
    if counted != sum(history.used_in_vain.values(), told):
        found.append(f"{counted} is counted, the entries say {told}, summaries that were cut off had used {history.used_in_vain}")
    return found


def judged(history: History, *, may_give_up: bool = False) -> list[str]:
    """All that is wrong with a history that came to its end; opening it once more must change nothing."""
    world = history.world

    async def look(storage: Storage) -> tuple[list[str], Metadata, list[str]]:
        found = await faults(storage, effects=world.effects, unsafe=UNSAFE, acknowledged=world.acknowledged.values())
        found += await faults_at_any_moment(storage, world)
        found += [] if may_give_up else await faults_of_whole_work(storage)
        return found, await storage.metadata(), [one.status for one in (await storage.submissions()).items]

    found, counters, statuses = seen = looked(history, look)
    found += [violation for request in world.requests for violation in violations(request.messages)]
    if statuses != ["done"] * 4 and not may_give_up:
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


def points(path: Path, chance: random.Random) -> list[Crash]:
    """Every commit of a clean life, at every moment or at one that is drawn."""
    commits = range(1, len(clean(path).batches) + 1)
    return [(commit, moment) for commit in commits for moment in (MOMENTS if WHOLE_RING else (chance.choice(MOMENTS),))]


def firsts_to_follow(path: Path, backend: Backend, chance: random.Random) -> list[Crash]:
    """The first crashes whose recoveries are crashed at every commit: all, or the landmarks and drawn ones; of those that leave the same, one."""
    by_state: dict[bytes, Crash] = {}
    whole = clean(path).batches
    candidates = every_crash(len(whole))
    if not WHOLE_RING:
        drawn_ones = chance.sample(candidates, FIRSTS_FOLLOWED[backend])
        candidates = [*landmarks(whole), *drawn_ones] if backend == "memory" else drawn_ones
    for crash in candidates:
        history = History(path / "first", "memory")
        history.live(crash)
        by_state.setdefault(history.left(), crash)
    return list(by_state.values())


def landmarks(batches: list[Batch]) -> list[Crash]:
    """Behind the commits in which a request waits to be made again, a memo has its winner, a summary is being made, and a fork is there."""
    is_landmark: list[Callable[[Batch], bool]] = [
        lambda batch: any(task.status == "sleeping" and task.kind == GENERATION for task in batch.tasks),
        lambda batch: any(task.memos for task in batch.tasks),
        lambda batch: any(task.kind == COMPACTION and asks_model(task.checkpoint) for task in batch.tasks),
        lambda batch: any(conversation.parent for conversation in batch.conversations),
    ]
    return [(next(number for number, batch in enumerate(batches, 1) if test(batch)), "stored") for test in is_landmark]


def seconds_to_follow(start: History, path: Path, chance: random.Random) -> list[Crash]:
    """The crashes at the commits of the life that follows on `start`: all, or some, drawn."""
    recovery = start.branch(path)
    assert recovery.live()
    crashes = every_crash(len(recovery.batches) - len(start.batches))
    is_share = start.backend != "memory" and not WHOLE_RING
    return chance.sample(crashes, min(len(crashes), SECONDS_FOLLOWED)) if is_share else crashes


def every_crash(commits: int) -> list[Crash]:
    """Before and after each of so many commits was stored: of all the moments the two between which the store changes."""
    return [(commit, moment) for commit in range(1, commits + 1) for moment in ("before", "stored")]


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


def faults_after_crash(history: History) -> list[str]:
    """What is wrong in the store that a life has left, before the next one opens it."""
    return looked(history, lambda storage: faults_at_any_moment(storage, history.world))


def is_new(history: History) -> bool:
    """Whether no other history has gone on from the same: what is the same goes on in the same way, and is judged once."""
    left = history.left()
    is_known = left in _FOLLOWED
    _FOLLOWED.add(left)
    return not is_known


def after_the_next_life(history: History) -> list[str]:
    """Live to the end; all that is wrong then."""
    assert history.live()
    found = judged(history)
    if len(history.world.requests) > MOST_REQUESTS + history.cut_off.total():
        found.append(f"{len(history.world.requests)} requests were sent, {MOST_REQUESTS} without a crash, {history.cut_off} were cut off")
    return found


def tell_death(history: History, at_crash: dict[str, Any]) -> None:
    """Say between what the process died."""
    messages = [stored.entry.message for entries in at_crash["entries"].values() for stored in entries]
    results = {message.tool_call_id for message in messages if isinstance(message, ToolResultMessage)}
    for task in at_crash["tasks"]:
        if task.kind == "pi.tool" and task.is_live and (task.checkpoint or {}).get("phase") == "execute":
            call = task.input["callId"]
            if (call, "start") not in history.effects_at_crash:
                happened("a crash between intent and effect")
            if (call, "end") in history.effects_at_crash and call not in results:
                happened("a crash between effect and result")


def tell_what_came_of_it(history: History, at_crash: dict[str, Any]) -> None:
    """Say what the next life did with what the crash had left."""
    at_end = looked(history, steers)
    if any(one.status == "queued" and at_end.get(one.id) == "done" for one in at_crash["submissions"]):
        happened("a steering input placed after a crash")


def test_the_scenario_without_a_crash_holds_all_that_it_promises(tmp_path: Path) -> None:
    history = clean(tmp_path)
    assert judged(history) == []
    calls = [("c1", "start"), ("c2", "start"), ("c1", "end"), ("c2", "end"), ("c3", "start"), ("c4", "start"), ("c3", "end"), ("c4", "end")]
    assert history.world.effects == calls
    assert history.world.memos_read == ["racer 3 of life 0"] * (RACERS + 1)
    assert len(history.world.requests) == MOST_REQUESTS
    assert looked(history, spent) == (MOST_REQUESTS - 1, history.world.served, history.world.served)  # all but the summary are answers
    assert any(batch.priority == "partial" for batch in history.batches)


@pytest.mark.rule("ST-17")
def test_the_scenario_makes_the_same_records_in_every_store(tmp_path: Path) -> None:
    memory, *others = (clean(tmp_path / backend, backend) for backend in get_args(Backend))
    for other in others:
        assert other.batches == memory.batches
        assert looked(other, dump) == looked(memory, dump)


@pytest.mark.slow
@pytest.mark.rule("PR-1", "PR-2", "PR-6", "PR-8", "PR-9", "PR-10", "PR-13", "PR-21", "CASE-A1", "CASE-A2", "CASE-A5", "FB-43", "ST-6")
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
        found += [f"{commit}: {fault}" for fault in (*publication_faults(history, moment, stored), *faults_after_crash(history))]
        if moment in get_args(Failure):
            happened(f"an uncertain commit that was {'stored' if at_crash['counters'].next_seq > commit else 'not stored'}")
        if moment in DEATHS:
            tell_death(history, at_crash)
        if is_new(history):
            found += [f"{commit}: {fault}" for fault in after_the_next_life(history)]
            tell_what_came_of_it(history, at_crash)
    tell(f"{len(commits)} of {len(whole)} commits of the core scenario, {moment}, {backend}")
    assert found == []


@pytest.mark.slow
@pytest.mark.rule("ST-17", "PR-1")
def test_every_store_holds_the_same_when_the_work_of_the_same_crash_has_ended(tmp_path: Path, seed: int, tell: Callable[[str], None]) -> None:
    every = [(commit, moment) for commit in range(1, len(clean(tmp_path).batches) + 1) for moment in MOMENTS]
    crashes = every if WHOLE_RING else random.Random(seed).sample(every, SAME_CRASHES)
    found: list[str] = []
    for crash in crashes:
        histories = [History(tmp_path / f"{crash} {backend}", backend) for backend in get_args(Backend)]
        for history in histories:
            assert not history.live(crash)
            assert history.live()
        memory, *others = ((history.batches, looked(history, dump)) for history in histories)
        found += [f"{crash}: a store holds something else than memory" for other in others if other != memory]
    tell(f"{len(crashes)} crashes in all stores, seed {seed}")
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
    for number, first in enumerate(points(tmp_path, chance)):
        second: Crash = (chance.randint(1, 12), chance.choice(MOMENTS))
        history = History(tmp_path / f"{number}", "memory")
        assert not history.live(first)
        crashes += 1 + (not history.live(second))
        assert history.live()
        found += [f"{first}, then {second}: {fault}" for fault in judged(history)]
    tell(f"{crashes} crashes, seed {seed}")
    assert found == []


@pytest.mark.slow
@pytest.mark.rule("PR-1", "PR-6", "PR-8", "PR-10", "CASE-A5")
@pytest.mark.parametrize("part", range(SECOND_PARTS))
@pytest.mark.parametrize("backend", get_args(Backend))
def test_a_second_crash_at_every_commit_of_a_recovery_changes_nothing_of_that(
    tmp_path: Path, backend: Backend, part: int, seed: int, tell: Callable[[str], None]
) -> None:
    chance = random.Random(f"{seed} {backend}")
    firsts = firsts_to_follow(tmp_path, backend, chance)[part::SECOND_PARTS]
    found: list[str] = []
    crashes = followed = 0
    for number, first in enumerate(firsts):
        start = History(tmp_path / f"{number}", backend)
        assert not start.live(first)
        for second in seconds_to_follow(start, tmp_path / f"{number}-clean", chance):
            history = start.branch(tmp_path / f"{number}-{second}")
            assert not history.live(second)
            crashes += 1
            if is_new(history):
                followed += 1
                found += [f"{first}, then {second}: {fault}" for fault in (*faults_after_crash(history), *after_the_next_life(history))]
        collect_dead_lives()
    tell(f"{crashes} second crashes after {len(firsts)} first ones left {followed} different states, {backend}, seed {seed}")
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
