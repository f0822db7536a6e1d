"""A session file as a Storage: every call hops to the one place where SQLite runs, one transaction is one commit (rule ST-1).

A commit is refused, with nothing written, for what is found out before its COMMIT: a batch that is not admitted, a constraint, no
space, another program that holds the file. Whatever else goes wrong leaves the outcome unknown: the original error is raised, and
every later commit raises SessionFailed; the same commit is never tried again (rules ST-6, PR-13).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from pi_durable_tui.errors import ReadOnlySession, SessionClosed
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import Address, Revisions, Scope, StoredDocument
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task, TaskStatus
from pi_durable_tui.storage.dump import Dump
from pi_durable_tui.storage.port import Metadata, Page, PutAside
from pi_durable_tui.storage.runner import Runner
from pi_durable_tui.storage.sqlite.reads import Condition, Reads
from pi_durable_tui.storage.sqlite.row import CONVERSATIONS, SUBMISSIONS, TASKS
from pi_durable_tui.storage.sqlite.source import Source
from pi_durable_tui.storage.sqlite.writer import Writer

T = TypeVar("T")


class SqliteStorage:
    """An open session file. Made by `open_sqlite` only.

    Args:
        writer: None for a read-only store.
        on_close: Called last: lets go of the lock.
        notices: What opening did to the file, for people.
        put_aside: What it, or an earlier one, kept beside the file.
    """

    def __init__(
        self,
        path: Path,
        *,
        source: Source,
        writer: Writer | None,
        runner: Runner,
        on_close: Callable[[], None],
        notices: tuple[str, ...] = (),
        put_aside: tuple[PutAside, ...] = (),
    ) -> None:
        self.notices = notices
        self._put_aside = put_aside
        self._path = path
        self._source = source
        self._writer = writer
        self._runner = runner
        self._on_close = on_close
        self._closing: asyncio.Future[None] | None = None

    @property
    def read_only(self) -> bool:
        return self._writer is None

    @property
    def name(self) -> str:
        return str(self._path)

    async def metadata(self) -> Metadata:
        return await self._read(lambda reads: reads.metadata())

    async def commit(self, batch: Batch) -> int:
        writer = self._owner("A commit")
        return await self._runner.run(lambda: writer.commit(batch))

    async def has_room(self) -> bool:
        self._check_open("A look at the free space")
        writer = self._writer
        return False if writer is None else await self._runner.run(writer.has_room)

    async def put_aside(self) -> tuple[PutAside, ...]:
        self._check_open("A read")
        return self._put_aside

    async def conversation(self, conversation_id: int) -> Conversation | None:
        return await self._read(lambda reads: reads.one(CONVERSATIONS, conversation_id))

    async def conversations(
        self, *, owner: int | None = None, parent: int | None = None, cursor: int | None = None, limit: int = 100, descending: bool = False
    ) -> Page[Conversation]:
        condition = Condition()
        condition.equals("owner", owner)
        condition.equals("parent", parent)
        return await self._read(lambda reads: reads.page(CONVERSATIONS, condition, cursor=cursor, limit=limit, descending=descending))

    async def entry(self, entry_id: int) -> StoredEntry | None:
        return await self._read(lambda reads: reads.entry(entry_id))

    async def entries(self, conversation_id: int, *, cursor: int | None = None, limit: int = 100, descending: bool = False) -> Page[StoredEntry]:
        return await self._read(lambda reads: reads.entries(conversation_id, cursor=cursor, limit=limit, descending=descending))

    async def newest_head(self, conversation_id: int, *, at: int | None = None) -> StoredEntry | None:
        return await self._read(lambda reads: reads.newest_head(conversation_id, at=at))

    async def task(self, task_id: int) -> Task | None:
        return await self._read(lambda reads: reads.one(TASKS, task_id))

    async def tasks(
        self,
        *,
        kind: str | None = None,
        statuses: Collection[TaskStatus] | None = None,
        conversation_id: int | None = None,
        owner: int | None = None,
        cursor: int | None = None,
        limit: int = 100,
        descending: bool = False,
    ) -> Page[Task]:
        condition = Condition()
        condition.equals("kind", kind)
        condition.is_one_of("status", statuses)
        condition.belongs_to(conversation_id, among=statuses)
        condition.equals("owner", owner)
        return await self._read(lambda reads: reads.page(TASKS, condition, cursor=cursor, limit=limit, descending=descending))

    async def submission(self, submission_id: int) -> Submission | None:
        return await self._read(lambda reads: reads.one(SUBMISSIONS, submission_id))

    async def submission_by_request(self, conversation_id: int, request_id: str) -> Submission | None:
        condition = Condition()
        condition.equals("conversation_id", conversation_id)
        condition.equals("request_id", request_id)
        return await self._read(lambda reads: reads.first(SUBMISSIONS, condition))

    async def submissions(
        self,
        *,
        conversation_id: int | None = None,
        statuses: Collection[str] | None = None,
        cursor: int | None = None,
        limit: int = 100,
        descending: bool = False,
    ) -> Page[Submission]:
        condition = Condition()
        condition.belongs_to(conversation_id, among=statuses)
        condition.is_one_of("status", statuses)
        return await self._read(lambda reads: reads.page(SUBMISSIONS, condition, cursor=cursor, limit=limit, descending=descending))

    async def document(self, address: Address) -> StoredDocument | None:
        return await self._read(lambda reads: reads.live_document(address))

    async def documents(self, scope: Scope, scope_id: int | None) -> tuple[StoredDocument, ...]:
        return await self._read(lambda reads: reads.documents(scope, scope_id))

    async def revisions(self, document_id: int, *, at_seq: int | None = None) -> Revisions | None:
        return await self._read(lambda reads: reads.revisions(document_id, at_seq=at_seq))

    async def export(self) -> Dump:
        """See `storage.dump.Convertible`."""
        return await self._read(Reads.export)

    async def restore(self, dump: Dump) -> None:
        """See `storage.dump.Convertible`."""
        writer = self._owner("A restored copy")
        await self._runner.run(lambda: writer.restore(dump))

    async def verify(self) -> None:
        """The whole store was read and is sound; takes time with its size, and commits wait: on a live store use a read-only one.

        Raises:
            StoreCorrupt: The first damage found, by table and id (rule ST-15). Nothing was changed.
        """
        await self._read(Reads.verify)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._shut())
        await asyncio.shield(self._closing)  # a cancelled wait must not leave the store locked (rule SE-8)

    async def _read(self, work: Callable[[Reads], T]) -> T:
        self._check_open("A read")
        return await self._runner.run(lambda: self._source.read(work))

    def _owner(self, what: str) -> Writer:
        self._check_open(what)
        if self._writer is None:
            raise ReadOnlySession(what)
        return self._writer

    def _check_open(self, what: str) -> None:
        if self._closing is not None:
            raise SessionClosed(what)

    async def _shut(self) -> None:
        try:
            await self._runner.run(self._close)
        finally:
            self._runner.stop()

    def _close(self) -> None:
        try:
            if self._writer is not None:
                self._writer.finish()
            self._source.close()
        finally:
            self._on_close()
