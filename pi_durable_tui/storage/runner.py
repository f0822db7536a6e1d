"""Where the blocking calls of a store run: on one thread of their own, in order, or right where they are called.

A cancelled wait ends only the wait (rule SE-8): work that has begun goes on to its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")


class Runner(Protocol):
    """One place, one call at a time."""

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returned or raised."""
        ...

    def stop(self) -> None:
        """No thread of it is left; called once, when nothing is running."""
        ...


class ThreadRunner:
    """A thread of its own, so that a slow disk never delays a key."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pidurable-store")

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def stop(self) -> None:
        self._thread.shutdown(wait=True)


class InlineRunner:
    """The caller's own thread, for tests that must run the same way twice, and for short programs."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()

    def stop(self) -> None:
        """Nothing to end."""
