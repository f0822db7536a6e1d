"""The kinds of store that a session can be."""

from __future__ import annotations

from typing import Literal, TypeAlias

StoreKind: TypeAlias = Literal["sqlite", "jsonl"]
"""sqlite: one file. jsonl: a folder of JSON lines."""

STORE_KINDS: tuple[StoreKind, ...] = ("sqlite", "jsonl")
