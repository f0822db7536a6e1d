"""From what a callback has asked for to one batch, and to what observers will be told of it (rule SE-1, the step "prepare").

Reads which documents retire; writes nothing. A failure here changes nothing (rule SE-2).
"""

from __future__ import annotations

from dataclasses import dataclass

from pi_durable_tui.errors import StoreCorrupt
from pi_durable_tui.records.commit import Batch, Commit, Priority
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.session.documents import DocumentCache, DocumentStep, retirement, title_of
from pi_durable_tui.session.transaction import Work
from pi_durable_tui.storage.port import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A commit ready to be stored, adopted and published."""

    batch: Batch
    commit: Commit
    documents: tuple[DocumentStep, ...]


async def prepare(work: Work, *, storage: Storage, documents: DocumentCache, priority: Priority) -> Prepared:
    """The whole commit.

    Raises:
        BadRequest: A draft is not strict JSON; names where (rule SE-5).
        StoreCorrupt: A document that retires cannot be read.
    """
    steps = await _retirements(work, storage, documents)
    for address, draft in work.drafts.items():
        if (address.scope, address.scope_id) in work.retired:
            continue
        step = draft.step(work.new_id)
        if step is not None:
            steps.append(step)
    tasks, submissions = tuple(work.tasks.values()), tuple(work.submissions.values())
    batch = Batch(
        next_id=work.next_id,
        at_ms=work.now_ms,
        priority=priority,
        conversations=tuple(work.conversations),
        entries=tuple(work.entries),
        tasks=tasks,
        submissions=submissions,
        documents=tuple(step.write for step in steps),
    )
    commit = Commit(
        seq=work.seq,
        at_ms=work.now_ms,
        conversations=batch.conversations,
        entries=tuple(StoredEntry(seq=work.seq, entry=entry) for entry in batch.entries),
        tasks=tasks,
        submissions=submissions,
        documents=tuple(step.change for step in steps),
    )
    return Prepared(batch=batch, commit=commit, documents=tuple(steps))


async def _retirements(work: Work, storage: Storage, documents: DocumentCache) -> list[DocumentStep]:
    for task in work.tasks.values():
        if not task.is_live:
            work.retired["task", task.id] = None
    steps: list[DocumentStep] = []
    for scope, scope_id in work.retired:
        for stored in await storage.documents(scope, scope_id):
            committed = await documents.load(stored.address)
            if committed is None:
                raise StoreCorrupt(storage.name, where=f"document {stored.id}", what=f"{title_of(stored.address)} is listed and has no value")
            steps.append(retirement(stored.address, committed))
    return steps
