"""Storing what runs at a bounded pace (harness/progress.py)."""

from __future__ import annotations

import asyncio
import itertools
import random
from dataclasses import dataclass, field

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import StorageRejected
from pi_durable_tui.harness.progress import Pace
from tests.support.event_loop import settle


class Broken(Exception):
    """What a store of these tests raises."""


@dataclass
class Bench:
    """A growing value, a pace that stores it, and what was stored when."""

    interval_ms: float = 100
    delay_ms: float = 0
    clock: ManualClock = field(default_factory=ManualClock)
    value: int = 0
    stored: list[tuple[float, int]] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    takes_ms: float = 0
    failure: Exception | None = None

    def __post_init__(self):
        self.pace = Pace(self._store, clock=self.clock, interval_ms=self.interval_ms, delay_ms=self.delay_ms)

    async def _store(self) -> None:
        if self.failure is not None:
            raise self.failure
        self.stored.append((self.clock.monotonic_ms(), self.value))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if self.takes_ms:
                await self.clock.sleep_ms(self.takes_ms)
        finally:
            self.running -= 1

    async def change(self) -> None:
        self.value += 1
        self.pace.changed()
        await settle()

    async def after(self, duration_ms: float) -> None:
        """Let time pass in small steps, so that whoever wakes up has its turn."""
        for _ in range(round(duration_ms / 5)):
            self.clock.advance(5)
            await settle(6)


@pytest.mark.rule("GE-2", "FB-28", "FB-29")
async def test_the_first_change_is_stored_at_once_and_later_ones_at_most_every_interval():
    bench = Bench()
    for _ in range(25):
        await bench.change()
        await bench.after(10)
    await bench.pace.stop()
    assert bench.stored == [(0, 1), (100, 10), (200, 20)]


@pytest.mark.rule("GE-2", "FB-28")
async def test_the_last_change_is_stored_though_no_more_come():
    bench = Bench()
    await bench.change()
    await bench.after(10)
    await bench.change()
    await bench.after(500)
    assert bench.stored == [(0, 1), (100, 2)]
    await bench.pace.stop()


async def test_after_a_quiet_time_a_change_is_stored_at_once_again():
    bench = Bench()
    await bench.change()
    await bench.after(300)
    await bench.change()
    await bench.pace.stop()
    assert bench.stored == [(0, 1), (300, 2)]


@pytest.mark.rule("GE-2", "FB-28")
async def test_one_store_is_under_way_at_a_time_and_what_came_meanwhile_follows_it():
    bench = Bench(takes_ms=250)
    for _ in range(60):
        await bench.change()
        await bench.after(10)
    await bench.after(500)
    await bench.pace.stop()
    assert bench.most_running == 1
    assert bench.stored == [(0, 1), (250, 25), (500, 50), (750, 60)]


@pytest.mark.rule("TO-4", "FA-39", "FB-41")
async def test_with_a_delay_a_change_is_stored_that_long_after_it():
    bench = Bench(interval_ms=1_000, delay_ms=1_000)
    await bench.after(20)
    await bench.change()
    await bench.after(995)
    assert bench.stored == []
    await bench.change()
    await bench.after(5)
    assert bench.stored == [(1_020, 2)]
    await bench.after(300)
    await bench.change()
    await bench.after(1_000)
    assert bench.stored == [(1_020, 2), (2_320, 3)]
    await bench.pace.stop()


@pytest.mark.rule("TO-4", "FB-41")
async def test_the_delay_of_a_change_that_comes_during_a_store_counts_from_the_change():
    bench = Bench(interval_ms=100, delay_ms=1_000, takes_ms=600)
    await bench.change()
    await bench.after(1_010)
    await bench.change()
    await bench.after(2_000)
    assert bench.stored == [(1_000, 1), (2_010, 2)]
    await bench.pace.stop()


@pytest.mark.rule("TO-4", "FB-41")
async def test_no_delay_is_the_default():
    clock, stored = ManualClock(), []

    async def store() -> None:
        stored.append(clock.monotonic_ms())

    pace = Pace(store, clock=clock, interval_ms=100)
    pace.changed()
    await settle()
    assert stored == [0]
    await pace.stop()


@pytest.mark.rule("GE-2")
async def test_nothing_is_stored_after_the_stop():
    bench = Bench()
    await bench.change()
    await bench.change()
    await bench.pace.stop()
    bench.pace.changed()
    await bench.after(500)
    assert bench.stored == [(0, 1)]
    await bench.pace.stop()


async def test_stopping_ends_the_wait_for_a_store_that_is_under_way():
    bench = Bench(takes_ms=1_000)
    await bench.change()
    await bench.pace.stop()
    assert (bench.stored, bench.running) == ([(0, 1)], 0)


async def test_stopping_what_never_started_does_nothing():
    bench = Bench()
    await bench.pace.stop()
    assert bench.stored == []


async def test_a_change_after_the_stop_of_what_never_started_stores_nothing():
    bench = Bench()
    await bench.pace.stop()
    await bench.change()
    await bench.after(500)
    assert bench.stored == []


async def test_stopping_right_after_the_first_change_stores_nothing():
    bench = Bench()
    bench.pace.changed()
    await bench.pace.stop()
    assert bench.stored == []


async def test_a_failed_store_is_raised_at_the_next_change_and_at_the_stop_and_nothing_is_stored_any_more():
    bench = Bench()
    await bench.change()
    bench.failure = Broken("full")
    await bench.change()
    await bench.after(100)
    bench.failure = None
    with pytest.raises(Broken, match="full"):
        bench.pace.changed()
    await bench.after(500)
    with pytest.raises(Broken, match="full"):
        await bench.pace.stop()
    assert bench.stored == [(0, 1)]


async def test_a_store_that_fails_without_a_further_change_is_raised_at_the_stop():
    bench = Bench(failure=Broken("full"))
    await bench.change()
    with pytest.raises(Broken, match="full"):
        await bench.pace.stop()


async def test_cancelling_a_stop_passes_the_cancellation_on():
    bench = Bench(takes_ms=1_000)
    await bench.change()
    stopping = asyncio.create_task(bench.pace.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    await settle()
    assert bench.running == 0


@pytest.mark.rule("GE-2", "PR-3", "FB-28", "FB-29")
async def test_at_any_rhythm_stores_keep_their_distance_and_lag_by_the_interval_at_most(seed):
    chance = random.Random(seed)
    bench = Bench(takes_ms=chance.choice([0, 30, 80]))
    changes: list[tuple[float, int]] = []
    for _ in range(150):
        await bench.change()
        changes.append((bench.clock.monotonic_ms(), bench.value))
        await bench.after(chance.choice([0, 5, 5, 20, 95, 100, 130]))
    await bench.after(200)
    await bench.pace.stop()
    times = [at_ms for at_ms, _ in bench.stored]
    assert all(later - earlier >= 100 for earlier, later in itertools.pairwise(times))
    assert bench.most_running == 1
    assert bench.stored[-1][1] == bench.value
    for changed_ms, value in changes:
        assert min(at_ms for at_ms, stored in bench.stored if stored >= value) - changed_ms <= 100


@pytest.mark.rule("GE-2", "TO-4", "PR-17")
async def test_a_store_that_is_refused_is_tried_again_later_with_what_is_newest_then():
    bench = Bench(failure=StorageRejected("There is no space.", reason="no_space"))
    began_ms = bench.clock.monotonic_ms()
    for _ in range(7):
        await bench.change()
        await bench.after(100)
    bench.failure = None
    await bench.after(1_000)
    assert [(at_ms - began_ms <= 1_300, value) for at_ms, value in bench.stored] == [(True, 7)]
    await bench.change()
    await bench.after(100)
    assert [value for _, value in bench.stored] == [7, 8]
    await bench.pace.stop()
