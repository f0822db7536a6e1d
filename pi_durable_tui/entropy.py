"""The door for identity and chance: UUIDs and random numbers (architecture.md, "doors")."""

from __future__ import annotations

import random
from typing import Protocol

import uuid_utils


class Entropy(Protocol):
    """Identity and chance as the program sees them."""

    def uuid7(self) -> str:
        """A fresh UUIDv7 in its 36-character form; later ones sort after earlier ones."""
        ...

    def fraction(self) -> float:
        """A number in [0, 1), for jitter."""
        ...


class SystemEntropy:
    """The machine's own."""

    def uuid7(self) -> str:
        return str(uuid_utils.uuid7())

    def fraction(self) -> float:
        return random.random()  # noqa: S311 - jitter, not a secret


class SeededEntropy:
    """The same values for the same seed, for tests and recorded sessions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self._count = 0

    def uuid7(self) -> str:
        self._count += 1
        return f"00000000-0000-7000-8000-{self._count:012x}"

    def fraction(self) -> float:
        return self._random.random()
