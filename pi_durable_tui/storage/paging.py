"""Pages of a scan, and the stretches of transcript that a fork sees through its parents. PURE.

A fork at entry 7 of its parent sees the parent's entries up to 7 and then its own. Ids grow, so every stretch lies wholly before
the next one, and a page is filled stretch by stretch (rule ST-7).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.records.conversation import ForkPoint
from pi_durable_tui.storage.port import Page

T = TypeVar("T")

LIMIT_MOST = 1000


@dataclass(frozen=True, slots=True)
class Stretch:
    """The entries of one conversation up to an id, itself included. `upto` None: all of them."""

    conversation_id: int
    upto: int | None


def checked_limit(limit: int) -> int:
    """The same limit.

    Raises:
        BadRequest: It is not 1 to 1,000. Nothing was read.
    """
    if not 1 <= limit <= LIMIT_MOST:
        raise BadRequest(f"A page has 1 to {LIMIT_MOST} items, and {limit} were asked for.")
    return limit


def page(found: Sequence[T], limit: int, id_of: Callable[[T], int]) -> Page[T]:
    """A page out of what a scan found.

    Args:
        found: The first items from the cursor on, in order; one more than `limit` when there are more.
    """
    return Page(tuple(found[:limit]), id_of(found[limit]) if len(found) > limit else None)


def stretches(conversation_id: int, parent_of: Callable[[int], ForkPoint | None]) -> list[Stretch]:
    """What a conversation sees, oldest stretch first.

    Args:
        parent_of: Where a conversation left its parent; None for one without a parent.
    """
    found = [Stretch(conversation_id, None)]
    while (point := parent_of(found[-1].conversation_id)) is not None:
        bound = found[-1].upto
        # A fork may have left at an entry that its parent itself inherited: then the grandparent is seen only that far.
        found.append(Stretch(point.conversation_id, point.entry_id if bound is None else min(bound, point.entry_id)))
    found.reverse()
    return found


def lowest(*bounds: int | None) -> int | None:
    """The smallest bound that is given; None when none is."""
    given = [bound for bound in bounds if bound is not None]
    return min(given) if given else None
