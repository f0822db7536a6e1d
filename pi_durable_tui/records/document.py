"""Mutable JSON beside the transcript: addresses, definitions and stored revisions (durable.md, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import Record

Scope: TypeAlias = Literal["session", "conversation", "task"]
History: TypeAlias = Literal["latest", "rewindable"]
Fork: TypeAlias = Literal["initial", "current", "asOf"]

Op: TypeAlias = list[Json]
"""One step of a delta, see records/delta.py for the forms."""


class Address(Record, frozen=True):
    """Which document: its kind and what it belongs to. `scope_id` is None only for the session scope."""

    kind: str
    scope: Scope
    scope_id: int | None = None


class StoredDocument(Record, frozen=True):
    """What the store knows of a document besides its revisions."""

    id: int
    address: Address
    version: int
    history: History
    retired_seq: int | None = None


class Revisions(Record, frozen=True):
    """A document at a point in time: the newest base at or before it and the deltas after that base (rule ST-9)."""

    base_seq: int
    base: Json
    version: int
    deltas: tuple[list[Op], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A document kind as the code knows it.

    Attributes:
        kind: Unique name, `pi.live`.
        version: Rises when the meaning of the value changes; then `migrate` is needed for older ones (rule DO-6).
        initial: The value of a document nobody has written yet.
        checkpoint_when: (value, ops of this change, deltas since the newest base) -> write a base instead of a delta.
    """

    kind: str
    scope: Scope
    version: int = 1
    history: History = "latest"
    fork: Fork = "initial"
    initial: Callable[[], JsonObject] = field(default=dict)
    migrate: Callable[[JsonObject, int], JsonObject] | None = None
    checkpoint_when: Callable[[Json, list[Op], int], bool] = lambda _value, _ops, deltas: deltas >= 64

    def address(self, scope_id: int | None = None) -> Address:
        """The address of this kind's document of `scope_id`."""
        return Address(kind=self.kind, scope=self.scope, scope_id=scope_id)
