"""Decides when files are worth being made smaller. PURE."""

from __future__ import annotations

from dataclasses import dataclass

from pi_durable_tui.storage.jsonl.lines import Tail

KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimRule:
    """How much garbage is put up with.

    A file is rewritten only when that may halve it, so all rewriting together costs no more than all writing did.

    Attributes:
        main_bytes: `main.jsonl` is compacted when it has grown by that much, and to twice what it was when it was last compacted.
        sidecar_bytes: A sidecar is cut when that much of it is not needed, and no less than what is.
        removals: Without `fsync`: how many files that nobody needs may wait for their removal, which needs a flush.
        rest_commits: After a failure: how many commits to wait with the next attempt.
    """

    main_bytes: int = 1024 * KIB
    sidecar_bytes: int = 64 * KIB
    removals: int = 32
    rest_commits: int = 64

    def is_main_due(self, *, size_bytes: int, snapshot_bytes: int) -> bool:
        """True when `main.jsonl` is to be compacted."""
        return size_bytes >= snapshot_bytes + max(self.main_bytes, snapshot_bytes)

    def is_sidecar_due(self, tail: Tail) -> bool:
        """True when what stands before the newest whole line is to be cut off."""
        return tail.whole_at >= max(self.sidecar_bytes, tail.size_bytes - tail.whole_at)
