"""Room for the outcome first (rule TO-9): what may be written when the disk is nearly full.

An ordinary commit needs a margin of free space. An effect that has already happened must be recorded even then, so a file of
allocated blocks lies beside the store and is given up for an outcome; it comes back when there is space again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pi_durable_tui.records.commit import Priority
from pi_durable_tui.storage.files import FileOps

KIB = 1024
PLENTY_BYTES = 16 * KIB * KIB  # above it no batch is measured

Verdict: TypeAlias = Literal["go", "release", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceRule:
    """How much is kept back.

    Attributes:
        margin_bytes: An ordinary commit leaves at least that much free; a few pages of each table it touches.
        reserve_bytes: Enough for the largest tool result (50 KiB), its rows, its indexes and their copy in the WAL.
    """

    margin_bytes: int = 64 * KIB
    reserve_bytes: int = 128 * KIB

    def fits(self, *, free_bytes: int, batch_bytes: int) -> bool:
        """True when a batch leaves the margin free; its text goes to the log and later to the file, so it counts twice."""
        return free_bytes >= self.margin_bytes + 2 * batch_bytes


def decide(rule: SpaceRule, *, free_bytes: int, batch_bytes: int, priority: Priority, holds_reserve: bool) -> Verdict:
    """What to do with a commit. PURE.

    Returns:
        go: it fits, or it is an outcome that must be tried. release: give up the reserve, then go. refuse: no space.
    """
    if rule.fits(free_bytes=free_bytes, batch_bytes=batch_bytes):
        return "go"
    if priority != "outcome":
        return "refuse"
    return "release" if holds_reserve else "go"


class Reserve:
    """The file of allocated blocks beside the store; blocking calls."""

    def __init__(self, store: Path, files: FileOps, rule: SpaceRule) -> None:
        self._path = store.with_name(store.name + ".reserve")
        self._folder = store.parent
        self._files = files
        self._rule = rule
        self.is_held = files.size_bytes(self._path) == rule.reserve_bytes

    def free_bytes(self) -> int:
        """Free space of the disk; plenty where the system cannot tell, so that work goes on."""
        try:
            return self._files.free_bytes(self._folder)
        except OSError:
            return PLENTY_BYTES

    def has_room(self, free_bytes: int) -> bool:
        """True when an effect may start: its outcome will fit, by the reserve or by free space in its place."""
        return free_bytes >= self._rule.margin_bytes + (0 if self.is_held else self._rule.reserve_bytes)

    def release(self) -> None:
        """The space is free for the commit that follows."""
        self._files.remove(self._path)
        self.is_held = False

    def refill(self, free_bytes: int) -> None:
        """The reserve is there again, if that leaves room for ordinary commits."""
        if self.is_held or free_bytes < self._rule.reserve_bytes + 2 * self._rule.margin_bytes:
            return
        try:
            self._files.remove(self._path)  # one of another length
            self._files.reserve(self._path, self._rule.reserve_bytes)
            self.is_held = True
        except OSError:
            return  # somebody else took the space in between; the next commit looks again
