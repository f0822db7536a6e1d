"""The door for time: wall clock, monotonic clock and sleeping (architecture.md, "doors").

Nothing else in the package may ask the system for the time or sleep; a lint rule holds it. That is what lets a test jump over
a backoff of a minute, and a crash be enumerated instead of awaited.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from typing import Protocol


class Clock(Protocol):
    """Time as the program sees it."""

    def now_ms(self) -> int:
        """Wall clock: integer milliseconds since 1970 UTC. May jump either way."""
        ...

    def monotonic_ms(self) -> float:
        """Milliseconds since some fixed moment of this process. Never goes back."""
        ...

    async def sleep_ms(self, duration_ms: float) -> None:
        """Return once `duration_ms` have passed on the monotonic clock; at once (after one turn of the loop) for 0 or less."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1_000_000

    async def sleep_ms(self, duration_ms: float) -> None:
        await asyncio.sleep(max(0.0, duration_ms) / 1000)


class ManualClock:
    """A clock that stands still until it is told to move; sleepers wake in the order of their times.

    Args:
        start_ms: The first value of `now_ms`.
    """

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = float(start_ms)
        self._monotonic_ms = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return int(self._wall_ms)

    def monotonic_ms(self) -> float:
        return self._monotonic_ms

    async def sleep_ms(self, duration_ms: float) -> None:
        if duration_ms <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic_ms + duration_ms, next(self._order), woken))
        await woken

    def next_wake_ms(self) -> float | None:
        """Milliseconds until the earliest sleeper wakes; None when nobody sleeps."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] - self._monotonic_ms if self._sleepers else None

    def advance(self, duration_ms: float) -> None:
        """Move both clocks forward and wake every sleeper whose time has come, earliest first."""
        target_ms = self._monotonic_ms + duration_ms
        while (gap_ms := self.next_wake_ms()) is not None and self._monotonic_ms + gap_ms <= target_ms:
            self._move(gap_ms)
            heapq.heappop(self._sleepers)[2].set_result(None)
        self._move(target_ms - self._monotonic_ms)

    def jump_wall(self, duration_ms: float) -> None:
        """Move only the wall clock, either way, as when somebody sets it (rule PR-18)."""
        self._wall_ms += duration_ms

    def _move(self, duration_ms: float) -> None:
        self._wall_ms += duration_ms
        self._monotonic_ms += duration_ms
