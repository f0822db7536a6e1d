"""How a document's history is stored: one revision per commit that changed it, a whole value or a delta (rule ST-9)."""

from __future__ import annotations

from typing import TypeAlias

from pi_durable_tui.errors import InternalError
from pi_durable_tui.records.commit import DocumentBase, DocumentDelta
from pi_durable_tui.records.document import Op, Revisions
from pi_durable_tui.records.json import Json
from pi_durable_tui.records.messages import Record


class BaseRevision(Record, frozen=True, tag="base"):
    """A complete value, written by the definition of that version."""

    version: int
    value: Json


class DeltaRevision(Record, frozen=True, tag="delta"):
    """What changed since the revision before."""

    ops: list[Op]


Revision: TypeAlias = BaseRevision | DeltaRevision


def revision_of(write: DocumentBase | DocumentDelta) -> Revision:
    """The revision that a write adds."""
    if isinstance(write, DocumentBase):
        return BaseRevision(version=write.version, value=write.value)
    return DeltaRevision(ops=write.ops)


def collected(base_seq: int, found: list[Revision]) -> Revisions:
    """A document at a point in time.

    Args:
        found: The base of commit `base_seq`, then every delta after it, oldest first.
    """
    base, *rest = found
    if not isinstance(base, BaseRevision):
        raise InternalError("a document's revisions were collected from a delta on")
    return Revisions(base_seq=base_seq, base=base.value, version=base.version, deltas=tuple(item.ops for item in rest if isinstance(item, DeltaRevision)))
