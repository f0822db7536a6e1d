"""Reading what a request is made of: the agent, and the part of the transcript that is the model's context."""

from __future__ import annotations

from pi_durable_tui.harness.live import AGENT, Agent
from pi_durable_tui.harness.requests.context import in_order
from pi_durable_tui.harness.services import Services
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.port import Storage

PAGE = 1_000


async def context_entries(reader: Storage | Transaction, conversation_id: int, *, cutoff: int | None = None) -> tuple[Entry, ...]:
    """The entries of the model's context through `cutoff` (None: the newest), in the order the model reads them."""
    marker = await reader.newest_head(conversation_id, at=cutoff)
    cursor = marker.entry.head if marker is not None else None
    entries: list[Entry] = []
    while True:
        page = await reader.entries(conversation_id, cursor=cursor, limit=PAGE)
        entries += [stored.entry for stored in page.items if cutoff is None or stored.entry.id <= cutoff]
        if page.next is None or (cutoff is not None and page.next > cutoff):
            return in_order(entries, marker.entry if marker is not None else None)
        cursor = page.next


async def agent_of(services: Services, conversation_id: int) -> Agent:
    """The agent of a conversation as of now."""
    return from_json(await services.session.snapshot(AGENT, conversation_id) or {}, Agent)
