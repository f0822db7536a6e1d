"""A storage that a test holds, fails or cuts off, around any real one.

A crash is a freeze, not an exception: an exception would run `finally` blocks that a killed process never runs. After `crash` every
call is recorded in `refused` and never returns; drop whatever used the storage and go on with `reopened`.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any, Literal

from pi_durable_tui.records.commit import Batch
from pi_durable_tui.storage.port import Storage

Moment = Literal["before", "stored", "published", "acknowledged"]
"""Where a process dies. before: the batch has not reached the store. stored: it has, and nobody heard of it. published: observers were told,
and whoever committed was not. acknowledged: he was, and could take one step."""


class ControlledStorage:
    """See the module docstring.

    Attributes:
        inner: The real storage.
        calls: The names of all calls, in order.
        batches: Every batch that was stored, in order.
        refused: The names of the calls that came after the crash.
        crashed: Set once the crash has happened.
        failed: A commit has raised what it was told to.
    """

    def __init__(self, inner: Storage, *, die: Callable[[], None] | None = None) -> None:
        self._die = die
        self.inner = inner
        self.calls: list[str] = []
        self.batches: list[Batch] = []
        self.refused: list[str] = []
        self.crashed = asyncio.Event()
        self.failed = False
        self._open = asyncio.Event()
        self._open.set()
        self._held = asyncio.Event()
        self._failure: tuple[BaseException, bool] | None = None
        self._fail_at: tuple[int, bool] | None = None
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

    def fail_at(self, commit: int, *, stored: bool) -> None:
        """Let the `commit`-th commit of this storage, counted from 1, end in an I/O error, after storing its batch when `stored`."""
        self._fail_at = (commit, stored)

    def crash_at(self, commit: int, moment: Moment) -> None:
        """Crash at the `commit`-th commit of this storage, counted from 1."""
        self._crash_at = (commit, moment)

    def crash(self) -> None:
        """Freeze: no call returns from now on. A process that was made for it dies."""
        if self._die is not None:
            self._die()
        self.crashed.set()

    async def alive(self) -> None:
        """Return while the process lives, and never once it crashed: for all that acts on the world."""
        if self.crashed.is_set():
            await asyncio.get_running_loop().create_future()

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
        if self._fail_at is not None and self._fail_at[0] == self._commits:
            self.fail_next_commit(OSError(errno.EIO, "the disk failed"), stored=self._fail_at[1])
        error, stored = self._failure or (None, True)
        self._failure = None
        seq = 0
        if stored:
            seq = await self.inner.commit(batch)
            self.batches.append(batch)
        await self._point("stored")
        if error is not None:
            self.failed = True
            raise error
        self._crash_after()
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
        await self.alive()
        return result

    async def _enter(self, name: str) -> None:
        if self.crashed.is_set():
            self.refused.append(name)
        await self.alive()
        self.calls.append(name)

    async def _point(self, moment: Moment) -> None:
        if self._crash_at in ((self._commits, moment), (self._commits - 1, "published"), (self._commits - 1, "acknowledged")):
            self.crash()
        await self.alive()

    def _crash_after(self) -> None:
        """Crash once the session has done with this commit, which takes no step of the loop: its own step goes on to the end of that.

        The next step is the one of whoever waited for the commit.
        """
        loop = asyncio.get_running_loop()
        if self._crash_at == (self._commits, "published"):
            loop.call_soon(self.crash)
        elif self._crash_at == (self._commits, "acknowledged"):
            loop.call_soon(loop.call_soon, self.crash)
