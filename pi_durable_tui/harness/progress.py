"""Storing what runs, at a bounded pace: the newest value, one commit at a time (rules GE-2, TO-4)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import StorageRejected

REFUSED_AGAIN_MS = 500


class Pace:
    """Calls `store` for the newest state: `delay_ms` after the first change, and at most every `interval_ms`.

    One call is under way at a time, and the last change is never left behind: it is stored by the next call, also when no more
    changes come. After `stop` no call follows, and what a call had handed to the session's line comes before anything handed in later.

    A store that is refused, as on a full disk, is tried again later with what is newest then: nothing was shown of it, and the end of
    the work, for which room is kept, holds all of it (rule TO-9).

    Args:
        store: Stores the state as it is when called.
        delay_ms: From the first change that is not stored yet to its store, unless `interval_ms` or a running store asks for more.
        interval_ms: Between the starts of two stores.
    """

    def __init__(self, store: Callable[[], Awaitable[None]], *, clock: Clock, interval_ms: float, delay_ms: float = 0) -> None:
        self._store = store
        self._clock = clock
        self._interval_ms = interval_ms
        self._delay_ms = delay_ms
        self._is_changed = asyncio.Event()
        self._changed_at_ms = 0.0  # the first change that is not stored yet
        self._job: asyncio.Task[None] | None = None
        self._is_stopped = False

    def changed(self) -> None:
        """There is something new to store.

        Raises:
            Exception: What an earlier store raised; nothing is stored any more.
        """
        self._raise_failure()
        if self._is_stopped:
            return
        if self._job is None:
            self._job = asyncio.create_task(self._run(), name="progress")
        if not self._is_changed.is_set():
            self._changed_at_ms = self._clock.monotonic_ms()
            self._is_changed.set()

    async def stop(self) -> None:
        """Store nothing more.

        Raises:
            Exception: What the last store raised.
        """
        self._is_stopped = True
        if self._job is not None:
            self._job.cancel()
            await asyncio.wait({self._job})
            self._raise_failure()

    def _raise_failure(self) -> None:
        if self._job is not None and self._job.done() and not self._job.cancelled() and (error := self._job.exception()) is not None:
            raise error

    async def _run(self) -> None:
        last_ms = -float("inf")
        while True:
            await self._is_changed.wait()
            due_ms = max(self._changed_at_ms + self._delay_ms, last_ms + self._interval_ms)
            await self._sleep(due_ms - self._clock.monotonic_ms())
            self._is_changed.clear()
            last_ms = self._clock.monotonic_ms()
            try:
                await self._store()
            except StorageRejected:
                self._is_changed.set()
                await self._sleep(REFUSED_AGAIN_MS)

    async def _sleep(self, duration_ms: float) -> None:
        if duration_ms > 0:
            await self._clock.sleep_ms(duration_ms)
