"""A transcript scope: a chat, a fork of one, or a subagent's own. Insert-only (rule ST-4)."""

from __future__ import annotations

from pi_durable_tui.records.messages import Record


class ForkPoint(Record, frozen=True):
    """Where a fork left its parent: everything up to and including `entry_id` is shared."""

    conversation_id: int
    entry_id: int
    seq: int  # the commit that inserted the entry


class Conversation(Record, frozen=True):
    """One transcript. A chat has no owner; a subagent is owned by the task that called it; a fork has a parent."""

    id: int
    created_at_ms: int
    parent: ForkPoint | None = None
    owner: int | None = None  # task id
