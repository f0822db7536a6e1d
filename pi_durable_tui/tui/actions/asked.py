"""Finds what was asked last in the conversation that is shown, however long ago that was."""

from __future__ import annotations

from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.entry import USER, StoredEntry
from pi_durable_tui.tui.bridge import OLDER_ENTRIES, Bridge


async def newest_message(bridge: Bridge, view: ConversationView) -> int | None:
    """The entry of the newest message of a person; None: nothing was asked yet."""
    entries, has_older = view.entries, view.has_older
    while (found := next((stored.entry.id for stored in reversed(entries) if _is_asked(stored)), None)) is None and has_older and entries:
        entries = await bridge.older(entries[0].entry.id)
        has_older = len(entries) == OLDER_ENTRIES
    return found


def _is_asked(stored: StoredEntry) -> bool:
    return stored.entry.kind == USER and "submissionId" in (stored.entry.data or {})
