"""What a commit callback may do: read committed records, write records, change documents (rules SE-3 to SE-5, DO-5).

Nothing here reaches the store's contents before the callback has ended; a transaction only collects.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from pi_durable_tui.errors import BadRequest, ReadAfterWrite, TransactionSettled
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import Address, Definition, Scope
from pi_durable_tui.records.entry import Entry, StoredEntry
from pi_durable_tui.records.json import clean_text
from pi_durable_tui.records.keys import Hide
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task, TaskStatus
from pi_durable_tui.session.cleaning import cleaned
from pi_durable_tui.session.documents import DocumentCache, Draft, address_of, object_of, readable, title_of
from pi_durable_tui.storage.port import Page, Storage


@dataclass(slots=True, kw_only=True)
class Work:
    """What one callback has asked for so far.

    Attributes:
        next_id: The id counter as moved by this commit.
        retired: Owners whose documents end with this commit.
        broken: A use that makes the commit fail even when the callback swallowed the error.
    """

    now_ms: int
    seq: int
    next_id: int
    conversations: list[Conversation] = field(default_factory=list[Conversation])
    entries: list[Entry] = field(default_factory=list[Entry])
    tasks: dict[int, Task] = field(default_factory=dict[int, Task])
    submissions: dict[int, Submission] = field(default_factory=dict[int, Submission])
    drafts: dict[Address, Draft] = field(default_factory=dict[Address, Draft])
    retired: dict[tuple[Scope, int], None] = field(default_factory=dict[tuple[Scope, int], None])
    broken: ReadAfterWrite | None = None
    hide: Hide | None = None
    settled: bool = False

    def new_id(self) -> int:
        """The next free id, used up."""
        self.next_id += 1
        return self.next_id - 1

    @property
    def has_table_writes(self) -> bool:
        """True once a record was written: from then on tables cannot be read."""
        return bool(self.conversations or self.entries or self.tasks or self.submissions)


class Transaction:
    """One commit while its callback runs; see the module docstring."""

    def __init__(self, work: Work, storage: Storage, documents: DocumentCache) -> None:
        self._work = work
        self._storage = storage
        self._documents = documents

    @property
    def now_ms(self) -> int:
        """The time of this commit: the clock when the callback started."""
        return self._work.now_ms

    @property
    def seq(self) -> int:
        """The number this commit gets when it writes something."""
        return self._work.seq

    def new_id(self) -> int:
        """A fresh id for a record of this commit. When the commit fails, the same number may be given out again."""
        self._check()
        return self._work.new_id()

    @property
    def tasks_written(self) -> Collection[Task]:
        """The tasks that this commit adds or replaces, as far as it has come."""
        return self._work.tasks.values()

    @property
    def conversations_written(self) -> Collection[Conversation]:
        """The conversations that this commit adds, as far as it has come."""
        return self._work.conversations

    # ------------------------------------------------------------------ reads: committed records only, before the first write

    async def conversation(self, conversation_id: int) -> Conversation | None:
        """See `Storage`; like all reads raises ReadAfterWrite after the first record written, and that gives up the commit (SE-3)."""
        return await self._reading("conversations").conversation(conversation_id)

    async def conversations(
        self, *, owner: int | None = None, parent: int | None = None, cursor: int | None = None, limit: int = 100, descending: bool = False
    ) -> Page[Conversation]:
        """See `Storage`."""
        return await self._reading("conversations").conversations(owner=owner, parent=parent, cursor=cursor, limit=limit, descending=descending)

    async def entry(self, entry_id: int) -> StoredEntry | None:
        """See `Storage`."""
        return await self._reading("entries").entry(entry_id)

    async def entries(self, conversation_id: int, *, cursor: int | None = None, limit: int = 100, descending: bool = False) -> Page[StoredEntry]:
        """See `Storage`."""
        return await self._reading("entries").entries(conversation_id, cursor=cursor, limit=limit, descending=descending)

    async def newest_head(self, conversation_id: int, *, at: int | None = None) -> StoredEntry | None:
        """See `Storage`."""
        return await self._reading("entries").newest_head(conversation_id, at=at)

    async def task(self, task_id: int) -> Task | None:
        """See `Storage`."""
        return await self._reading("tasks").task(task_id)

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
        """See `Storage`."""
        return await self._reading("tasks").tasks(
            kind=kind, statuses=statuses, conversation_id=conversation_id, owner=owner, cursor=cursor, limit=limit, descending=descending
        )

    async def submission(self, submission_id: int) -> Submission | None:
        """See `Storage`."""
        return await self._reading("submissions").submission(submission_id)

    async def submission_by_request(self, conversation_id: int, request_id: str) -> Submission | None:
        """See `Storage`; the request id is looked for as it would be stored."""
        return await self._reading("submissions").submission_by_request(conversation_id, clean_text(request_id))

    async def submissions(
        self,
        *,
        conversation_id: int | None = None,
        statuses: Collection[str] | None = None,
        cursor: int | None = None,
        limit: int = 100,
        descending: bool = False,
    ) -> Page[Submission]:
        """See `Storage`."""
        return await self._reading("submissions").submissions(
            conversation_id=conversation_id, statuses=statuses, cursor=cursor, limit=limit, descending=descending
        )

    # ----------------------------------------------------------------------------------------------------------------- writes

    def insert_conversation(self, conversation: Conversation) -> None:
        """Add a conversation.

        Raises:
            BadRequest: A value inside is not strict JSON; names where (rule SE-5). It was not added. So for the other writes.
        """
        self._check()
        self._work.conversations.append(cleaned(conversation, f"conversation {conversation.id}", self._work.hide))

    def insert_entry(self, entry: Entry) -> None:
        """Add an entry to the end of its conversation."""
        self._check()
        self._work.entries.append(cleaned(entry, f"entry {entry.id}", self._work.hide))

    def put_task(self, task: Task) -> None:
        """Add or replace a task; the last one written under an id counts. The documents of a terminal task retire (rule DO-7)."""
        self._check()
        self._work.tasks[task.id] = cleaned(task, f"task {task.id}", self._work.hide)

    def put_submission(self, submission: Submission) -> None:
        """Add or replace a submission; the last one written under an id counts."""
        self._check()
        self._work.submissions[submission.id] = cleaned(submission, f"submission {submission.id}", self._work.hide)

    # -------------------------------------------------------------------------------------------------------------- documents

    async def document(self, definition: Definition, scope_id: int | None = None) -> Draft:
        """The document to read and change; the same draft for every call of one address. Allowed after writes, too.

        A document nobody has written yet is created from `initial`, an older one is migrated: both are stored with this commit,
        even when the caller changes nothing (rule DO-5).

        Raises:
            Refused: Its stored version cannot be used with this definition (rule DO-6); the transaction goes on.
            BadRequest: The scope id does not fit, or the document was retired in this transaction.
        """
        self._check()
        address = address_of(definition, scope_id)
        draft = self._work.drafts.get(address)
        if draft is None:
            committed = await self._documents.load(address)
            self._check()
            value = object_of(definition.initial(), address) if committed is None else readable(definition, committed.version, committed.value, address)
            made = Draft(definition, address, committed, value, lambda: self._is_open(address), hide=self._work.hide)
            draft = self._work.drafts.setdefault(address, made)
        if not self._is_open(address):
            raise BadRequest(f"The document {title_of(address)} was retired in this transaction.")
        return draft

    async def retire_documents(self, scope: Scope, scope_id: int) -> None:
        """End all documents of one owner, drafts of this transaction included (rule DO-7)."""
        self._check()
        self._work.retired[scope, scope_id] = None

    def _is_open(self, address: Address) -> bool:
        return not self._work.settled and (address.scope, address.scope_id) not in self._work.retired

    def _reading(self, table: str) -> Storage:
        self._check()
        if self._work.has_table_writes:
            self._work.broken = ReadAfterWrite(table)
            raise self._work.broken
        return self._storage

    def _check(self) -> None:
        if self._work.settled:
            raise TransactionSettled("transaction")
