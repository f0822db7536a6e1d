"""The backends that the conformance suite runs against, each as something that can be closed and opened again over the same data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.storage.contents import Contents
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.jsonl.reclaim import ReclaimRule
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.sqlite import open_sqlite

SMALL = ReclaimRule(main_bytes=2000, sidecar_bytes=200, removals=2, rest_commits=3)
"""Files are made smaller all the time, as those of a store of weeks are now and then."""

Opener = Callable[[], Awaitable[Storage]]


class ReopenableStorage:
    """A storage, and the way to open its data again.

    Args:
        opener: Opens the data; called for the first time by `open`.
        eager: Close and open again after every commit.
    """

    def __init__(self, opener: Opener, *, eager: bool = False) -> None:
        self._opener = opener
        self._eager = eager
        self.inner: Any = None

    async def open(self) -> ReopenableStorage:
        self.inner = await self._opener()
        return self

    async def reopen(self) -> None:
        await self.inner.close()
        self.inner = await self._opener()

    async def commit(self, batch: Batch) -> int:
        seq = await self.inner.commit(batch)
        if self._eager:
            await self.reopen()
        return seq

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _memory(_folder: Path) -> ReopenableStorage:
    contents = Contents()

    async def opener() -> Storage:
        return MemoryStorage(contents)

    return ReopenableStorage(opener)


def _sqlite(folder: Path, *, eager: bool = False) -> ReopenableStorage:
    async def opener() -> Storage:
        return await open_sqlite(folder / "session.sqlite", clock=ManualClock(), inline=True, synchronous="normal")

    return ReopenableStorage(opener, eager=eager)


def _jsonl(folder: Path, *, eager: bool = False, fsync: bool = False) -> ReopenableStorage:
    async def opener() -> Storage:
        return await open_jsonl(folder / "session.jsonl", clock=ManualClock(), inline=True, fsync=fsync, reclaim=SMALL)

    return ReopenableStorage(opener, eager=eager)


# Another backend is another line here; everything in test_contract.py then holds for it too.
BACKENDS: dict[str, Callable[[Path], ReopenableStorage]] = {
    "memory": _memory,
    "jsonl": _jsonl,
    "jsonl+fsync": lambda folder: _jsonl(folder, fsync=True),
    "jsonl+reopen": lambda folder: _jsonl(folder, eager=True),
    "sqlite": _sqlite,
    "sqlite+reopen": lambda folder: _sqlite(folder, eager=True),
}
