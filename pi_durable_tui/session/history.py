"""A conversation's document as it was at one of its entries, through the conversations it was forked from (rules DO-8, ST-9)."""

from __future__ import annotations

from pi_durable_tui.errors import BadRequest, NotFound
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.session.documents import readable, value_of
from pi_durable_tui.storage.port import Storage


async def value_as_of(storage: Storage, definition: Definition, conversation_id: int, entry_id: int) -> JsonObject | None:
    """The value as of the commit that inserted the entry; None when the document did not exist then. Writes nothing (DO-5).

    Raises:
        BadRequest: The document is no conversation's, or keeps no history.
        NotFound: The conversation does not see that entry.
        Refused: The version stored then cannot be used with this definition (rule DO-6).
    """
    if definition.scope != "conversation" or definition.history != "rewindable":
        raise BadRequest(f"The document {definition.kind} keeps no history of a conversation, so there is no value of then.")
    stored = await _visible_entry(storage, conversation_id, entry_id)
    address = definition.address(stored.entry.conversation_id)
    document = await storage.document(address)
    revisions = None if document is None else await storage.revisions(document.id, at_seq=stored.seq)
    if document is None or revisions is None:
        return None
    return readable(definition, revisions.version, value_of(revisions, store=storage.name, document_id=document.id), address)


async def _visible_entry(storage: Storage, conversation_id: int, entry_id: int) -> StoredEntry:
    """The entry, if it belongs to the conversation or lies before the fork point of one on the way up."""
    stored = await storage.entry(entry_id)
    conversation = await storage.conversation(conversation_id)
    newest_id = entry_id
    while stored is not None and conversation is not None and entry_id <= newest_id:
        if stored.entry.conversation_id == conversation.id:
            return stored
        if conversation.parent is None:
            break
        newest_id = conversation.parent.entry_id
        conversation = await storage.conversation(conversation.parent.conversation_id)
    raise NotFound(f"entry {entry_id}", where=f"conversation {conversation_id}")
