"""How stores of older versions become those of this one: the table of steps, each a function of one record (rules ST-13, PR-16). PURE.

The schema version rises only for what an older program must not touch (rule ST-19). A step says what a record of one version is in the next;
both kinds of store use the same table, keep a copy of what was, and take all steps in one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import msgspec

from pi_durable_tui.errors import StoreCorrupt
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.storage.admission import RecordKind
from pi_durable_tui.storage.port import SCHEMA_VERSION

Kind: TypeAlias = RecordKind | Literal["revision"]
Step: TypeAlias = Callable[[Kind, JsonObject], JsonObject]
"""From a record of one version to that of the next. It may change and return what it is given."""

Steps: TypeAlias = Mapping[int, Step]

STEPS: Steps = {}
"""By the version that a step begins at. There is one version so far."""


def can_upgrade(version: int, steps: Steps) -> bool:
    """True for an older version from which steps lead to this one."""
    return version < SCHEMA_VERSION and all(each in steps for each in range(version, SCHEMA_VERSION))


def upgraded(kind: Kind, text: str | bytes, *, version: int, steps: Steps, store: str) -> str:
    """The text of a record in this version.

    Args:
        version: That of `text`.
        store: Names the store in errors.

    Raises:
        StoreCorrupt: The text is no record of that version.
    """
    try:
        record = msgspec.json.decode(text, type=JsonObject)
        for each in range(version, SCHEMA_VERSION):
            record = steps[each](kind, record)
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
        raise StoreCorrupt(store, where=f"a {kind}", what=f"it is no record of version {version} ({error})") from error
    return msgspec.json.encode(record).decode()


def told(store: str, version: int, kept: str) -> str:
    """What people are told of it."""
    return f"{store} was of schema version {version} and is of version {SCHEMA_VERSION} now; as it was it is kept as {kept}."
