"""One open store: every commit through one line, callback -> prepare -> store -> adopt -> publish (rules SE-1 to SE-8, ST-6).

Nothing is adopted or published before the storage has said that the batch is stored. A storage error that leaves the outcome
unknown fails the session for good: it publishes nothing more, and only `close` still works.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Self, TypeVar

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import InternalError, ReadOnlySession, SessionClosed, SessionFailed, StorageRejected
from pi_durable_tui.records.commit import Commit, Priority
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.keys import Hide
from pi_durable_tui.session.documents import DocumentCache, address_of, readable
from pi_durable_tui.session.history import value_as_of
from pi_durable_tui.session.line import Line
from pi_durable_tui.session.preparation import Prepared, prepare
from pi_durable_tui.session.publication import Publication
from pi_durable_tui.session.transaction import Transaction, Work
from pi_durable_tui.session.watch import Watch
from pi_durable_tui.storage.port import Metadata, Storage

T = TypeVar("T")

LOOK_AGAIN_MS = 100
"""How often a wait looks at what another process may have written (rule OB-6)."""


class Session:
    """See the module docstring; made by `open`. Used from one event loop."""

    def __init__(self, storage: Storage, clock: Clock, metadata: Metadata, hide: Hide | None) -> None:
        self._storage = storage
        self._clock = clock
        self._hide = hide
        self._newest_at_ms = metadata.last_at_ms or 0
        self._next_id = metadata.next_id
        self._next_seq = metadata.next_seq
        self._line = Line()
        self._documents = DocumentCache(storage)
        self._publication = Publication()
        self._failed: SessionFailed | None = None
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, storage: Storage, *, clock: Clock, hide: Hide | None = None) -> Self:
        """A session over an open storage, which it owns from now on. Writes nothing.

        Args:
            hide: Takes out of every text what must not be stored, on its way into a commit (rule SA-17).
        """
        return cls(storage, clock, await storage.metadata(), hide)

    @property
    def storage(self) -> Storage:
        """For reads outside a commit; never for writing."""
        return self._storage

    @property
    def read_only(self) -> bool:
        """True: commits that write something raise ReadOnlySession (rule ST-11)."""
        return self._storage.read_only

    @property
    def next_seq(self) -> int:
        """The number of the next commit that writes something."""
        return self._next_seq

    @property
    def newest_at_ms(self) -> int:
        """When the newest commit from before this opening was made, by the wall clock of then; 0 when there is none."""
        return self._newest_at_ms

    @property
    def failed(self) -> SessionFailed | None:
        """Why the session stopped; None while all is well (rule ST-6)."""
        return self._failed

    async def commit(self, callback: Callable[[Transaction], Awaitable[T]], *, priority: Priority = "record") -> T:
        """Run the callback in its turn and store what it wrote as one batch; observers hear of it afterwards.

        A callback that wrote nothing stores and publishes nothing. Cancelling the wait does not cancel the commit (rule SE-8).
        The callback must not wait for models, networks, processes or people (rule SE-6).

        Returns:
            What the callback returned, once the batch is stored and published.

        Raises:
            SessionClosed: The session was closed before; the callback was not called.
            SessionFailed: The outcome is unknown, of this commit or of an earlier one.
            ReadOnlySession, StorageRejected, BadRequest, ReadAfterWrite: Nothing was written.
            Exception: Whatever the callback raised; nothing was written (rule SE-2).
        """
        self._check("A commit")
        return await self._line.run(lambda: self._carry_out(callback, priority), what="A commit")

    async def snapshot(self, definition: Definition, scope_id: int | None = None) -> JsonObject | None:
        """The newest committed value, the caller's own copy; None when there is none. Never creates or migrates in the store (DO-5).

        Raises:
            Refused: The stored version cannot be used with this definition (rule DO-6).
            BadRequest: The scope id does not fit the definition.
            SessionClosed, SessionFailed: The session is not open any more.
        """
        address = address_of(definition, scope_id)

        async def read() -> JsonObject | None:
            committed = await self._documents.load(address)
            return None if committed is None else readable(definition, committed.version, committed.value, address)

        self._check("A read")
        return await self._line.beside(read, what="A read")

    async def snapshot_as_of(self, definition: Definition, conversation_id: int, entry_id: int) -> JsonObject | None:
        """The value as of the commit of an entry that the conversation sees, through parents; None when there was none (DO-8).

        Raises:
            NotFound: The conversation does not see that entry.
            BadRequest: The document keeps no history.
            Refused: The version stored then cannot be used with this definition (rule DO-6).
            SessionClosed, SessionFailed: The session is not open any more.
        """
        self._check("A read")
        return await self._line.beside(lambda: value_as_of(self._storage, definition, conversation_id, entry_id), what="A read")

    def subscribe(self, observer: Callable[[Commit], None]) -> Callable[[], None]:
        """Call `observer` with every later commit, in order, right after it is stored; values in it must not be changed.

        An observer that raises is reported to the event loop's exception handler and stays subscribed.

        Returns:
            What ends the subscription; may be called again.

        Raises:
            SessionClosed, SessionFailed: The session is not open any more.
        """
        self._check("A subscription")
        return self._publication.subscribe(observer)

    def watch(self, *, capacity: int = 100) -> Watch:
        """An async iterator over every later commit that never slows one (rule OB-2).

        Raises:
            SessionClosed, SessionFailed: The session is not open any more.
        """
        self._check("A watch")
        return self._publication.watch(capacity=capacity)

    async def until(self, look: Callable[[], Awaitable[T | None]], *, what: str) -> T:
        """Wait until `look` finds something; it looks now and again after commits. Cancelling ends only the wait (rule SE-8).

        In a session that was opened read-only commits are those of another process; so there it looks again every LOOK_AGAIN_MS.

        Args:
            what: What is waited for, for error texts: "The end of task 7".

        Raises:
            SessionClosed, SessionFailed: The session ended first.
        """
        with contextlib.closing(self.watch()) as watch:
            while (found := await look()) is None:
                if self.read_only:
                    await self._clock.sleep_ms(LOOK_AGAIN_MS)
                    self._check(what)
                elif await anext(watch, None) is None:
                    raise SessionClosed(what)
        return found

    async def close(self) -> None:
        """Admit nothing more, let what was admitted end, end the watches, close the storage (rule SE-7). May be called again."""
        self._line.forbid_inside("Closing the session")
        self._line.seal()
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._shut())
        await asyncio.shield(self._closing)

    async def _shut(self) -> None:
        await self._line.drained()
        self._publication.end()
        await self._storage.close()

    async def _carry_out(self, callback: Callable[[Transaction], Awaitable[T]], priority: Priority) -> T:
        self._check_failed()
        work = Work(now_ms=self._clock.now_ms(), seq=self._next_seq, next_id=self._next_id, hide=self._hide)
        try:
            result = await callback(Transaction(work, self._storage, self._documents))
        finally:
            work.settled = True
        if work.broken is not None:
            raise work.broken
        prepared = await prepare(work, storage=self._storage, documents=self._documents, priority=priority)
        if not prepared.batch.is_empty:
            await self._store(prepared)
        self._next_id = work.next_id
        return result

    async def _store(self, prepared: Prepared) -> None:
        if self.read_only:
            raise ReadOnlySession("A commit")
        try:
            seq = await self._storage.commit(prepared.batch)
        except (StorageRejected, ReadOnlySession):
            raise
        except Exception as error:
            raise self._fail(error) from error
        except BaseException as error:  # cancelled or interrupted in the middle: the outcome is just as unknown
            self._fail(error)
            raise
        try:
            self._adopt(prepared, seq)
        except Exception as error:
            raise self._fail(error) from error
        self._publication.publish(prepared.commit)

    def _adopt(self, prepared: Prepared, seq: int) -> None:
        if seq != prepared.commit.seq:
            raise InternalError(f"the storage stored commit {seq} where {prepared.commit.seq} was next")
        for step in prepared.documents:
            self._documents.adopt(step)
        self._next_id = prepared.batch.next_id
        self._next_seq = seq + 1

    def _fail(self, cause: BaseException) -> SessionFailed:
        self._failed = cause if isinstance(cause, SessionFailed) else SessionFailed(f"{type(cause).__name__}: {cause}")
        self._publication.end(self._failed)
        return self._failed

    def _check(self, what: str) -> None:
        if self._line.is_sealed:
            raise SessionClosed(what)
        self._check_failed()

    def _check_failed(self) -> None:
        if self._failed is not None:
            raise self._failed.with_traceback(None)
