"""A folder of JSONL files as a Storage: everything is held in memory, and a commit is in the files before it is in memory (rule ST-1).

Reads never touch a file of an owned store. A follower looks before every read whether the files have changed, and reads them again.
Whatever goes wrong while a commit is written leaves its outcome unknown: the original error is raised, every later commit raises
SessionFailed, and the same commit is never tried again (rules ST-6, PR-13).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path

from pi_durable_tui.errors import ReadOnlySession, SessionClosed
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import Address, Revisions, Scope, StoredDocument
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task, TaskStatus
from pi_durable_tui.storage.admission import admit
from pi_durable_tui.storage.changes import adopt, changes_of
from pi_durable_tui.storage.dump import Dump, check_empty, contents_of, dump_of
from pi_durable_tui.storage.jsonl.lines import planned
from pi_durable_tui.storage.jsonl.snapshot import sidecars_of
from pi_durable_tui.storage.jsonl.source import Source
from pi_durable_tui.storage.jsonl.writer import Writer
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Metadata, Page, PutAside
from pi_durable_tui.storage.runner import Runner


class JsonlStorage:
    """An open folder. Made by `open_jsonl` only.

    Args:
        writer: None for a read-only store.
        on_close: Called last: lets go of the lock.
    """

    def __init__(self, path: Path, *, source: Source, writer: Writer | None, runner: Runner, on_close: Callable[[], None]) -> None:
        self._path = path
        self._source = source
        self._writer = writer
        self._runner = runner
        self._on_close = on_close
        self._closing: asyncio.Future[None] | None = None
        self._turn = asyncio.Lock()  # one at a time on the files: a commit whose caller has gone still ends before the next

    @property
    def read_only(self) -> bool:
        return self._writer is None

    @property
    def name(self) -> str:
        return str(self._path)

    @property
    def notices(self) -> tuple[str, ...]:
        """What opening found in the files that was part of no commit, and where it is now; for people (rule ST-18)."""
        return self._source.notices

    async def metadata(self) -> Metadata:
        return await (await self._read()).metadata()

    async def commit(self, batch: Batch) -> int:
        writer = self._owner("A commit")
        # A cancelled wait ends only the wait (rule SE-8): what is being written must also be adopted.
        return await asyncio.shield(asyncio.ensure_future(self._commit(writer, batch)))

    async def has_room(self) -> bool:
        self._check_open("A look at the free space")
        writer = self._writer
        return False if writer is None else await self._runner.run(writer.has_room)

    async def put_aside(self) -> tuple[PutAside, ...]:
        self._check_open("A read")
        return self._source.put_aside

    async def conversation(self, conversation_id: int) -> Conversation | None:
        return await (await self._read()).conversation(conversation_id)

    async def conversations(
        self, *, owner: int | None = None, parent: int | None = None, cursor: int | None = None, limit: int = 100, descending: bool = False
    ) -> Page[Conversation]:
        return await (await self._read()).conversations(owner=owner, parent=parent, cursor=cursor, limit=limit, descending=descending)

    async def entry(self, entry_id: int) -> StoredEntry | None:
        return await (await self._read()).entry(entry_id)

    async def entries(self, conversation_id: int, *, cursor: int | None = None, limit: int = 100, descending: bool = False) -> Page[StoredEntry]:
        return await (await self._read()).entries(conversation_id, cursor=cursor, limit=limit, descending=descending)

    async def newest_head(self, conversation_id: int, *, at: int | None = None) -> StoredEntry | None:
        return await (await self._read()).newest_head(conversation_id, at=at)

    async def task(self, task_id: int) -> Task | None:
        return await (await self._read()).task(task_id)

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
        memory = await self._read()
        return await memory.tasks(kind=kind, statuses=statuses, conversation_id=conversation_id, owner=owner, cursor=cursor, limit=limit, descending=descending)

    async def submission(self, submission_id: int) -> Submission | None:
        return await (await self._read()).submission(submission_id)

    async def submission_by_request(self, conversation_id: int, request_id: str) -> Submission | None:
        return await (await self._read()).submission_by_request(conversation_id, request_id)

    async def submissions(
        self,
        *,
        conversation_id: int | None = None,
        statuses: Collection[str] | None = None,
        cursor: int | None = None,
        limit: int = 100,
        descending: bool = False,
    ) -> Page[Submission]:
        memory = await self._read()
        return await memory.submissions(conversation_id=conversation_id, statuses=statuses, cursor=cursor, limit=limit, descending=descending)

    async def document(self, address: Address) -> StoredDocument | None:
        return await (await self._read()).document(address)

    async def documents(self, scope: Scope, scope_id: int | None) -> tuple[StoredDocument, ...]:
        return await (await self._read()).documents(scope, scope_id)

    async def revisions(self, document_id: int, *, at_seq: int | None = None) -> Revisions | None:
        return await (await self._read()).revisions(document_id, at_seq=at_seq)

    async def export(self) -> Dump:
        """See `storage.dump.Convertible`."""
        return dump_of((await self._read()).contents)

    async def restore(self, dump: Dump) -> None:
        """See `storage.dump.Convertible`."""
        writer = self._owner("A restored copy")
        async with self._turn:
            check_empty(self._source.memory.contents.counters(), self.name)
            contents = contents_of(dump)
            await self._runner.run(lambda: writer.fill(sidecars_of(contents), contents))
            self._source.memory = MemoryStorage(contents)

    async def verify(self) -> None:
        """The files were read again as a whole and are sound.

        Raises:
            StoreCorrupt: The first damage found, by file and line (rule ST-15). Nothing was changed.
        """
        self._check_open("A read")
        async with self._turn:
            await self._runner.run(self._source.verify)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._shut())
        await asyncio.shield(self._closing)  # a cancelled wait must not leave the store locked (rule SE-8)

    async def _commit(self, writer: Writer, batch: Batch) -> int:
        async with self._turn:
            self._check_open("A commit")
            writer.check()
            contents = self._source.memory.contents
            admit(batch, contents.counters(), contents)
            seq = contents.next_seq
            changes = changes_of(batch, contents)
            plan = planned(changes, seq, next_id=batch.next_id, at_ms=batch.at_ms, main=writer.main, tails=writer.tails)
            await self._runner.run(lambda: writer.write(plan, batch))
            adopt(contents, changes, seq)
            contents.count(seq, next_id=batch.next_id, at_ms=batch.at_ms)
            if writer.wants_reclaiming():
                await self._runner.run(lambda: writer.reclaim(contents))
            return seq

    async def _read(self) -> MemoryStorage:
        self._check_open("A read")
        if self._writer is None:
            async with self._turn:
                await self._runner.run(self._source.refresh)
        return self._source.memory

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
            async with self._turn:
                await self._runner.run(self._close)
        finally:
            self._runner.stop()

    def _close(self) -> None:
        try:
            if self._writer is not None:
                self._writer.finish()
        finally:
            self._on_close()
