"""The contract of every storage backend (durable.md, section 2).

One writer at a time. Calls come from one event loop, and commits one after another (the session's mutation line sees to it).

* `commit` is atomic: after a crash at any instant all of a batch is there or none of it (ST-1).
* `seq` and ids grow strictly and are never used twice, also after a reopen (ST-2, ST-3). The storage refuses a batch whose ids
  were used before by any kind of record, before it writes anything.
* Conversations and entries are insert-only, tasks and submissions are replaced whole (ST-4).
* Values given and returned are immutable records; plain JSON inside them is never shared with the store (ST-5).
* `StorageRejected` means that nothing was written, carry on. Any other error out of `commit` means that the outcome is unknown (ST-6).
* Reads of records that are not there return None or an empty page.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pi_durable_tui.records.commit import Batch
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import Address, Revisions, Scope, StoredDocument
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task, TaskStatus

T_co = TypeVar("T_co", covariant=True)

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The counters. `next_seq` is the number of the next commit, `next_id` the next free id; `last_at_ms` is the newest batch's time."""

    next_id: int
    next_seq: int
    schema_version: int
    last_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutAside:
    """Bytes of no stored commit that an opening cut off, and that are kept in a file beside the store (rule ST-18).

    Attributes:
        name: Of the copy; `digest` tells two apart that had the same name, one after the other.
        cut_from: The file that they stood at the end of.
        conversation_id: Whose they were; None: that cannot be told.
        what: What is to be said of them, after "… bytes at the end of …".
    """

    name: str
    digest: str
    size_bytes: int
    cut_from: str
    conversation_id: int | None = None
    what: str = "were of no stored commit"


@dataclass(frozen=True, slots=True)
class Page(Generic[T_co]):
    """One page of a scan. `next` is the id to pass as `cursor` for the following page; None at the end."""

    items: tuple[T_co, ...]
    next: int | None


class Storage(Protocol):
    """A place where commits go. See the module docstring for what every method promises."""

    @property
    def read_only(self) -> bool:
        """True: `commit` raises ReadOnlySession and opening wrote nothing at all (ST-11)."""
        ...

    @property
    def name(self) -> str:
        """What to call this store in messages: its path, or "memory"."""
        ...

    async def metadata(self) -> Metadata:
        """The counters as of the newest commit; 1 and 1 in a new store."""
        ...

    async def commit(self, batch: Batch) -> int:
        """Store the batch and return its seq (the `next_seq` of before).

        Raises:
            StorageRejected: id_used, request_used, not_found (a delta of an unknown document, a replaced record of another
                kind), no_space. Nothing was written.
            ReadOnlySession: Nothing was written.
        """
        ...

    async def has_room(self) -> bool:
        """True when there is space for an ordinary record; outcomes may use a further reserve (rule TO-9)."""
        ...

    async def put_aside(self) -> tuple[PutAside, ...]:
        """What this and earlier openings for writing cut off, as far as the copies are there; none where nothing is ever cut (ST-18)."""
        ...

    async def conversation(self, conversation_id: int) -> Conversation | None: ...

    async def conversations(
        self, *, owner: int | None = None, parent: int | None = None, cursor: int | None = None, limit: int = 100, descending: bool = False
    ) -> Page[Conversation]:
        """All conversations by id; with `owner` only those a task owns, with `parent` only direct forks of a conversation."""
        ...

    async def entry(self, entry_id: int) -> StoredEntry | None: ...

    async def entries(self, conversation_id: int, *, cursor: int | None = None, limit: int = 100, descending: bool = False) -> Page[StoredEntry]:
        """The transcript by id, a fork's parents included up to the fork point.

        Args:
            cursor: Start at this id, itself included: from the `next` of a page. None: from the first (or last) entry.
            limit: 1 to 1,000.
        """
        ...

    async def newest_head(self, conversation_id: int, *, at: int | None = None) -> StoredEntry | None:
        """The newest entry with a head marker whose id is at most `at` (None: any), through parents."""
        ...

    async def task(self, task_id: int) -> Task | None: ...

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
    ) -> Page[Task]: ...

    async def submission(self, submission_id: int) -> Submission | None: ...

    async def submission_by_request(self, conversation_id: int, request_id: str) -> Submission | None: ...

    async def submissions(
        self,
        *,
        conversation_id: int | None = None,
        statuses: Collection[str] | None = None,
        cursor: int | None = None,
        limit: int = 100,
        descending: bool = False,
    ) -> Page[Submission]: ...

    async def document(self, address: Address) -> StoredDocument | None:
        """The newest document of that address that is not retired; None when there is none."""
        ...

    async def documents(self, scope: Scope, scope_id: int | None) -> tuple[StoredDocument, ...]:
        """All documents of one owner that are not retired, by id."""
        ...

    async def revisions(self, document_id: int, *, at_seq: int | None = None) -> Revisions | None:
        """The newest base at or before `at_seq` (None: now) and the deltas after it up to `at_seq`; None: it did not exist then (ST-9)."""
        ...

    async def close(self) -> None:
        """Release everything, the lock last. May be called again. No other call may follow."""
        ...
