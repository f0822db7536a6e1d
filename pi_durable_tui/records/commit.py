"""One atomic write: what goes into storage (a batch), and what observers get once it is stored (a commit)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import Address, History, Op
from pi_durable_tui.records.entry import Entry, StoredEntry
from pi_durable_tui.records.json import Json
from pi_durable_tui.records.messages import Record
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task

Priority: TypeAlias = Literal["record", "partial", "outcome"]
"""record: durable against power loss. partial: a piece of a running answer or output, durable against a killed process; a later
record makes it durable against power loss too. outcome: like record, and may use the space kept back for outcomes (rule TO-9)."""


class DocumentBase(Record, frozen=True, tag="base"):
    """A complete value; creates the document when `document_id` is new."""

    document_id: int
    address: Address
    version: int
    history: History
    value: Json


class DocumentDelta(Record, frozen=True, tag="delta"):
    """A change of an existing document."""

    document_id: int
    ops: list[Op]


class DocumentRetired(Record, frozen=True, tag="retired"):
    """The document ends with this commit (rule DO-7)."""

    document_id: int


DocumentWrite: TypeAlias = DocumentBase | DocumentDelta | DocumentRetired


class Batch(Record, frozen=True):
    """All writes of one commit. Stored whole or not at all (rule ST-1)."""

    next_id: int  # the id counter after this commit
    at_ms: int
    priority: Priority = "record"
    conversations: tuple[Conversation, ...] = ()
    entries: tuple[Entry, ...] = ()
    tasks: tuple[Task, ...] = ()
    submissions: tuple[Submission, ...] = ()
    documents: tuple[DocumentWrite, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when storing it would change nothing."""
        return not (self.conversations or self.entries or self.tasks or self.submissions or self.documents)


class DocumentChange(Record, frozen=True):
    """A document before and after a commit. `value` shares unchanged subtrees with `previous` (rule DO-3)."""

    address: Address
    previous: Json  # None: it did not exist
    value: Json  # None: it was retired
    ops: list[Op]


class Commit(Record, frozen=True):
    """A stored batch as observers see it: `seq` rises by one with each commit."""

    seq: int
    at_ms: int
    conversations: tuple[Conversation, ...] = ()
    entries: tuple[StoredEntry, ...] = ()
    tasks: tuple[Task, ...] = ()
    submissions: tuple[Submission, ...] = ()
    documents: tuple[DocumentChange, ...] = ()
