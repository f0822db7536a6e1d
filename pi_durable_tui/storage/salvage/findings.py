"""What was found in a damaged store: the records that are sound, and what is known of those that are not (rule PR-15). PURE."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from pi_durable_tui.storage.admission import RecordKind
from pi_durable_tui.storage.dump import StoredRevision, StoredText
from pi_durable_tui.storage.port import Metadata
from pi_durable_tui.storage.revision import BaseRevision, Revision

LostKind: TypeAlias = RecordKind | Literal["revision", "record"]
"""record: of one that cannot be told; only its id is known."""


@dataclass(frozen=True, slots=True, order=True)
class Lost:
    """A record that was stored and cannot be read any more.

    Attributes:
        id: Of the record; of its document for a revision.
        conversation_id: Where it belonged, as far as that can be told; None: unknown.
        seq: The commit of a revision, where it is known.
    """

    kind: LostKind
    id: int
    conversation_id: int | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All that a damaged store still says.

    Attributes:
        counters: At least as high as any id and commit that was seen.
        records, revisions: Those that are sound, in the order of a dump. A document's revisions can be applied from a base on.
        lost: By kind and id.
        places: Where the damage is, for people; empty when none was found.
        is_unsure: Something was lost that cannot be told, or a record may be older than it should be.
    """

    counters: Metadata
    records: tuple[StoredText, ...]
    revisions: tuple[StoredRevision, ...]
    lost: tuple[Lost, ...] = ()
    places: tuple[str, ...] = ()
    is_unsure: bool = False

    @property
    def is_sound(self) -> bool:
        """True when nothing is wrong with the store."""
        return not (self.lost or self.places or self.is_unsure)


def connected(document_id: int, history: Iterable[tuple[int, str | None]]) -> tuple[list[StoredRevision], list[int]]:
    """The revisions that still make sense, and the commits of the sound ones that do not, because what they changed is lost.

    Args:
        history: Commit and text of every revision of the document, oldest first; None for one that cannot be read.
    """
    kept: list[StoredRevision] = []
    loose: list[int] = []
    is_whole = False
    for seq, text in history:
        if text is not None and isinstance(msgspec.json.decode(text, type=Revision), BaseRevision):
            is_whole = True
        elif text is None:
            is_whole = False
        if text is not None and is_whole:
            kept.append(StoredRevision(document_id, seq, text))
        elif text is not None:
            loose.append(seq)
    return kept, loose
