"""What one slow observer has not taken yet: commits in order, or the one marker that stands for too many (rule OB-2).

A watch only queues: it never slows a commit and never reads the store.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Self

from pi_durable_tui.errors import SessionFailed
from pi_durable_tui.records.commit import Commit


@dataclass(frozen=True, slots=True)
class Overflowed:
    """Commits were dropped: build the state anew, it holds at least commit `seq`. Later commits up to the state's own may still follow; skip them."""

    seq: int


class Watch:
    """An async iterator over commits, for one reader.

    It ends when the watch or the session is closed, and raises SessionFailed when the session failed; what waits is delivered first.

    Args:
        capacity: How many commits may wait; at least 1.
    """

    def __init__(self, *, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[Commit | Overflowed] = deque()
        self._changed = asyncio.Event()
        self._ended = False
        self._failure: SessionFailed | None = None

    def push(self, commit: Commit) -> None:
        """Queue a commit; when too many wait, they become one marker, which then stands for all that follow until it is taken."""
        if self._ended:
            return
        overflowed = bool(self._waiting) and isinstance(self._waiting[0], Overflowed)
        if overflowed or len(self._waiting) >= self._capacity:
            self._waiting.clear()
            self._waiting.append(Overflowed(commit.seq))
        else:
            self._waiting.append(commit)
        self._changed.set()

    def end(self, failure: SessionFailed | None = None) -> None:
        """Nothing more comes; may be called again, the first call counts."""
        if not self._ended:
            self._ended, self._failure = True, failure
            self._changed.set()

    def close(self) -> None:
        """Stop watching: what waits is dropped and the reader's loop ends."""
        self.end()
        self._waiting.clear()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Commit | Overflowed:
        while not self._waiting:
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if self._ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.popleft()
