"""A storage that a test holds, fails or cuts off, around any real one.

A crash is a freeze, not an exception: an exception would run `finally` blocks that a killed process never runs. After `crash` every
call is recorded in `refused` and never returns; drop whatever used the storage and go on with `reopened`.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from pi_durable_tui.records.commit import Batch
from pi_durable_tui.storage.port import Storage

Moment = Literal["before", "stored"]
"""before: the batch has not reached the store. stored: it has, and nobody heard of it."""


class ControlledStorage:
    """See the module docstring.

    Attributes:
        inner: The real storage.
        calls: The names of all calls, in order.
        batches: Every batch that was stored, in order.
        refused: The names of the calls that came after the crash.
        crashed: Set once the crash has happened.
    """

    def __init__(self, inner: Storage) -> None:
        self.inner = inner
        self.calls: list[str] = []
        self.batches: list[Batch] = []
        self.refused: list[str] = []
        self.crashed = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()
        self._held = asyncio.Event()
        self._failure: tuple[BaseException, bool] | None = None
        self._crash_at: tuple[int, Moment] | None = None
        self._commits = 0

    # ------------------------------------------------------------------------------------------------------------- verbs

    def hold_commits(self) -> None:
        """Let every commit wait, before it reaches the store, until `release_commits`."""
        self._open.clear()
        self._held.clear()

    def release_commits(self) -> None:
        """Let the held commits and all later ones go on."""
        self._open.set()

    async def commit_held(self) -> None:
        """Return once a commit is waiting."""
        await self._held.wait()

    def fail_next_commit(self, error: BaseException, *, stored: bool = False) -> None:
        """Raise `error` out of the next commit, after storing its batch when `stored`."""
        self._failure = (error, stored)

    def crash_at(self, commit: int, moment: Moment) -> None:
        """Crash at the `commit`-th commit of this storage, counted from 1."""
        self._crash_at = (commit, moment)

    def crash(self) -> None:
        """Freeze: no call returns from now on."""
        self.crashed.set()

    def reopened(self, inner: Storage) -> ControlledStorage:
        """The same calls and batches counted on around `inner`, which opens the same data again."""
        again = ControlledStorage(inner)
        again.calls, again.batches = self.calls, self.batches
        return again

    # ----------------------------------------------------------------------------------------------------------- storage

    @property
    def read_only(self) -> bool:
        return self.inner.read_only

    @property
    def name(self) -> str:
        return self.inner.name

    async def commit(self, batch: Batch) -> int:
        self._commits += 1
        await self._enter("commit")
        if not self._open.is_set():
            self._held.set()
            await self._open.wait()
        await self._point("before")
        error, stored = self._failure or (None, True)
        self._failure = None
        seq = 0
        if stored:
            seq = await self.inner.commit(batch)
            self.batches.append(batch)
        await self._point("stored")
        if error is not None:
            raise error
        return seq

    async def metadata(self) -> Any:
        return await self._read("metadata")

    async def has_room(self) -> bool:
        return await self._read("has_room")

    async def put_aside(self) -> Any:
        return await self.inner.put_aside()

    async def conversation(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("conversation", *args, **kwargs)

    async def conversations(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("conversations", *args, **kwargs)

    async def entry(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("entry", *args, **kwargs)

    async def entries(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("entries", *args, **kwargs)

    async def newest_head(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("newest_head", *args, **kwargs)

    async def task(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("task", *args, **kwargs)

    async def tasks(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("tasks", *args, **kwargs)

    async def submission(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("submission", *args, **kwargs)

    async def submission_by_request(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("submission_by_request", *args, **kwargs)

    async def submissions(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("submissions", *args, **kwargs)

    async def document(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("document", *args, **kwargs)

    async def documents(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("documents", *args, **kwargs)

    async def revisions(self, *args: Any, **kwargs: Any) -> Any:
        return await self._read("revisions", *args, **kwargs)

    async def close(self) -> None:
        await self._read("close")

    # -------------------------------------------------------------------------------------------------------------- inside

    async def _read(self, name: str, *args: Any, **kwargs: Any) -> Any:
        await self._enter(name)
        result = await getattr(self.inner, name)(*args, **kwargs)
        await self._freeze_if_crashed()
        return result

    async def _enter(self, name: str) -> None:
        if self.crashed.is_set():
            self.refused.append(name)
        await self._freeze_if_crashed()
        self.calls.append(name)

    async def _point(self, moment: Moment) -> None:
        if self._crash_at == (self._commits, moment):
            self.crash()
        await self._freeze_if_crashed()

    async def _freeze_if_crashed(self) -> None:
        if self.crashed.is_set():
            await asyncio.get_running_loop().create_future()
