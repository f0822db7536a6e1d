"""Which documents a fork starts with (rule DO-7). Reads only; the transaction that makes the fork writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pi_durable_tui.errors import NotFound
from pi_durable_tui.records.conversation import Conversation, ForkPoint
from pi_durable_tui.records.document import Definition, Fork, StoredDocument
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.session.documents import value_of
from pi_durable_tui.storage.port import Storage


@dataclass(frozen=True, slots=True)
class CopiedDocument:
    """A value to begin with. `definition` says kind, version and history as they are stored."""

    definition: Definition
    value: JsonObject


async def fork_entry(storage: Storage, conversation_id: int, entry_id: int | None) -> StoredEntry:
    """The entry to fork at: `entry_id` as the conversation sees it, or its newest one.

    Raises:
        NotFound: The conversation does not see that entry, or has none yet.
    """
    page = await storage.entries(conversation_id, cursor=entry_id, limit=1, descending=True)
    if not page.items or (entry_id is not None and page.items[0].entry.id != entry_id):
        raise NotFound(f"entry {entry_id}" if entry_id is not None else "entry to fork at", where=f"conversation {conversation_id}")
    return page.items[0]


async def documents_at_fork(storage: Storage, known: Mapping[str, Definition], conversation_id: int, at: StoredEntry) -> tuple[CopiedDocument, ...]:
    """The documents a fork of `conversation_id` at that entry begins with, by kind.

    `asOf` copies the value as of the entry's commit, from the conversation that holds the entry; `current` the newest one of the
    forked conversation; `initial` nothing. A document whose code is not installed is copied as its history allows.
    """
    copies: dict[str, CopiedDocument] = {}
    for owner_id in dict.fromkeys((at.entry.conversation_id, conversation_id)):
        for document in await storage.documents("conversation", owner_id):
            policy = _policy(document, known)
            if owner_id == (at.entry.conversation_id if policy == "asOf" else conversation_id):
                revisions = None if policy == "initial" else await storage.revisions(document.id, at_seq=at.seq if policy == "asOf" else None)
                value = None if revisions is None else value_of(revisions, store=storage.name, document_id=document.id)
                if revisions is not None and isinstance(value, dict):
                    stored = Definition(kind=document.address.kind, scope="conversation", version=revisions.version, history=document.history)
                    copies[document.address.kind] = CopiedDocument(stored, value)
    return tuple(copies[kind] for kind in sorted(copies))


def _policy(document: StoredDocument, known: Mapping[str, Definition]) -> Fork:
    definition = known.get(document.address.kind)
    if definition is not None:
        return definition.fork
    return "asOf" if document.history == "rewindable" else "current"


def forked(conversation_id: int, at: StoredEntry, *, now_ms: int) -> Conversation:
    """The record of a fork: it shares everything up to and including the entry. PURE."""
    point = ForkPoint(conversation_id=at.entry.conversation_id, entry_id=at.entry.id, seq=at.seq)
    return Conversation(id=conversation_id, created_at_ms=now_ms, parent=point)
