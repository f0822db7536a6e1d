"""Which queued submissions are placed at a boundary, and in which order (rules SU-3 to SU-5). PURE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

import msgspec

from pi_durable_tui.harness.live import Inbox, InboxItem
from pi_durable_tui.harness.settings import Settings
from pi_durable_tui.records.entry import NOTICE

Boundary: TypeAlias = Literal["start", "turn", "end"]
"""start: the conversation is idle and something was handed in. turn: a tool round has ended. end: the final answer has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What is placed now, each in order of ids, and the inbox that stays."""

    writes: tuple[InboxItem, ...]
    inputs: tuple[InboxItem, ...]
    rest: Inbox


def with_item(inbox: Inbox, item: InboxItem) -> Inbox:
    """The inbox with one more item, in order of ids."""
    return msgspec.structs.replace(inbox, items=tuple(sorted((*inbox.items, item), key=lambda each: each.submission_id)))


def without(inbox: Inbox, submission_ids: frozenset[int]) -> Inbox:
    """The inbox without those items."""
    return msgspec.structs.replace(inbox, items=tuple(item for item in inbox.items if item.submission_id not in submission_ids))


def take(inbox: Inbox, boundary: Boundary, settings: Settings) -> Taken:
    """What to place at `boundary`: every write first, then user items.

    After a tool round only steering items join the run. At its end steering items go before follow-ups. At a start the oldest item
    decides, so that what stayed queued after a failed run is placed before anything newer (rule SU-5). What the program itself has to
    tell takes nobody's turn: all of it goes along at each boundary.
    """
    writes = tuple(item for item in inbox.items if item.mode == "write")
    notices = [item for item in inbox.items if item.mode != "write" and item.kind == NOTICE]
    inputs = [item for item in inbox.items if item.mode != "write" and item.kind != NOTICE]
    steers = [item for item in inputs if item.mode == "steer"]
    match boundary:
        case "turn":
            candidates = steers
        case "end":
            candidates = steers or inputs
        case "start":
            candidates = [item for item in inputs if item.mode == inputs[0].mode]
        case _:
            assert_never(boundary)
    mode = settings.steering_mode if candidates and candidates[0].mode == "steer" else settings.follow_up_mode
    chosen = (*notices, *(candidates if mode == "all" else candidates[:1]))
    placed = frozenset(item.submission_id for item in (*writes, *chosen))
    return Taken(writes=writes, inputs=chosen, rest=without(inbox, placed))
