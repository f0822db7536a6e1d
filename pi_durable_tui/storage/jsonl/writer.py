"""Commits: space, the order of the writes, and which failures leave the outcome unknown; blocking.

Theory. A commit's lines go to the sidecars first, then its rows and its marker to `main.jsonl` in one append; with `fsync` every file is
flushed before the next step. Until the marker is there the commit is not (rule ST-16). Whatever goes wrong once the first byte may have
been written leaves the outcome unknown: nothing more is written by this owner, nothing is cut or tried again, and whoever opens the
store next finds the state before or after that commit (rules ST-6, PR-13).

What is no longer needed is reclaimed after a commit, never as a part of it: files shrink by being replaced whole, and what stays keeps
its bytes, so every marker holds before and after (rule ST-10).
"""

from __future__ import annotations

import contextlib

from pi_durable_tui.errors import SessionFailed, StorageRejected
from pi_durable_tui.records.commit import Batch
from pi_durable_tui.storage.contents import Contents
from pi_durable_tui.storage.jsonl.folder import Folder
from pi_durable_tui.storage.jsonl.frame import chain
from pi_durable_tui.storage.jsonl.lines import MAIN, ClosedLine, Growth, Plan, Tail
from pi_durable_tui.storage.jsonl.reclaim import ReclaimRule
from pi_durable_tui.storage.jsonl.recovery import Recovered
from pi_durable_tui.storage.jsonl.snapshot import main_of
from pi_durable_tui.storage.space import PLENTY_BYTES, Reserve, SpaceRule, decide


class Writer:
    """The one writer of a folder that was recovered and repaired.

    Attributes:
        main, tails: The ends of the files, for planning the next commit.
    """

    def __init__(self, folder: Folder, found: Recovered, *, reserve: Reserve, space: SpaceRule, reclaim: ReclaimRule, fsync: bool) -> None:
        self.main = found.main
        self.tails = found.tails
        self._folder = folder
        self._reserve = reserve
        self._space = space
        self._reclaim = reclaim
        self._fsync = fsync
        self._seq = found.contents.next_seq - 1
        self._snapshot_bytes = found.snapshot_bytes
        self._is_sealed = found.is_sealed
        self._over: set[str] = set()  # sidecars nobody needs, still to be removed
        self._long = {name for name, tail in self.tails.items() if reclaim.is_sidecar_due(tail)}  # sidecars worth cutting
        self._failed: str | None = None
        self._resting = 0  # commits until a reclamation that failed is tried again
        self._reserve.refill(self._reserve.free_bytes())

    def check(self) -> None:
        """Return if a commit may be tried.

        Raises:
            SessionFailed: The outcome of an earlier write is unknown.
        """
        if self._failed is not None:
            raise SessionFailed(self._failed)

    def write(self, plan: Plan, batch: Batch) -> None:
        """The commit is stored.

        Raises:
            StorageRejected: no_space. Nothing was written.
            SessionFailed: Another process wrote to the files; nothing was written, and nothing more will be.
            OSError: The outcome is unknown, and nothing more will be written.
        """
        try:
            free_bytes = self._make_room(plan, batch)
            self._check_alone(plan)
            self._append(plan)
        except StorageRejected:
            raise
        except BaseException as error:
            self._fail(error)
            raise
        self._seq += 1
        self.main = plan.main.tail
        self.tails.update({name: growth.tail for name, growth in plan.sidecars.items()})
        self._is_sealed = False
        self._long |= {name for name, growth in plan.sidecars.items() if self._reclaim.is_sidecar_due(growth.tail)}
        self._over = (self._over - plan.sidecars.keys()) | plan.over
        self._reserve.refill(free_bytes)

    def has_room(self) -> bool:
        """True when an effect may start, because its outcome will fit (rule TO-9)."""
        self._reserve.refill(self._reserve.free_bytes())
        return self._reserve.has_room(self._reserve.free_bytes())

    def wants_reclaiming(self) -> bool:
        """True when enough can be reclaimed to be worth it."""
        if self._failed is not None:
            return False
        if self._resting:
            self._resting -= 1
            return False
        return bool(
            self._reclaim.is_main_due(size_bytes=self.main.size_bytes, snapshot_bytes=self._snapshot_bytes)
            or len(self._over) >= (1 if self._fsync else self._reclaim.removals)
            or self._long
        )

    def reclaim(self, contents: Contents) -> None:
        """What nobody needs is gone from the files, as far as that works; an outcome that is unknown stops later commits.

        Args:
            contents: As of the newest commit.
        """
        try:
            if not self._fsync:
                self._folder.sync([MAIN])  # the markers that make older lines superfluous must not be lost after those
            self._remove_over()
            for name in sorted(self._long):
                self._cut_front(name)
            if self._reclaim.is_main_due(size_bytes=self.main.size_bytes, snapshot_bytes=self._snapshot_bytes):
                growth = main_of(contents, self.tails)
                self._replace(MAIN, bytes(growth.data))
                self.main, self._snapshot_bytes, self._is_sealed = growth.tail, growth.tail.size_bytes, True
        except OSError:
            self._resting = self._reclaim.rest_commits  # a full disk, most likely; the commit itself is stored

    def fill(self, sidecars: dict[str, Growth], contents: Contents) -> None:
        """An empty store holds these contents.

        Raises:
            OSError: The outcome is unknown, and nothing more will be written.
        """
        self.check()
        try:
            for name, growth in sidecars.items():
                self._folder.write_beside(name, bytes(growth.data))
                self._folder.put_in_place(name)
                self.tails[name] = growth.tail
            growth = main_of(contents, self.tails)
            self._folder.write_beside(MAIN, bytes(growth.data))
            self._folder.put_in_place(MAIN)
        except BaseException as error:
            self._fail(error)
            raise
        self._seq = contents.next_seq - 1
        self.main, self._snapshot_bytes, self._is_sealed = growth.tail, growth.tail.size_bytes, True

    def finish(self) -> None:
        """The store is closed in order, unless the outcome of a commit is unknown: then its files stay as they are."""
        if self._failed is not None:
            return
        # What fails here is no part of any commit: the next opening does it.
        with contextlib.suppress(OSError):
            if self._over:
                self._folder.sync([MAIN])
                self._remove_over()
            if not self._is_sealed:
                growth = Growth(self.main)
                growth.add(ClosedLine(), self._seq)
                self._folder.files.append(self._folder.file(MAIN), bytes(growth.data))
                if self._fsync:
                    self._folder.sync([MAIN])
            if self._folder.closed_seq() < self._seq:
                self._folder.note_closed(self._seq)

    def _append(self, plan: Plan) -> None:
        files = self._folder.files
        fresh = [name for name in plan.sidecars if name not in self.tails]
        for name, growth in plan.sidecars.items():
            if name in fresh:
                files.create(self._folder.file(name))
            files.append(self._folder.file(name), bytes(growth.data))
        if self._fsync:
            self._folder.sync(plan.sidecars)
            if fresh:
                files.sync_folder(self._folder.path)
        files.append(self._folder.file(MAIN), bytes(plan.main.data))
        if self._fsync:
            self._folder.sync([MAIN])

    def _check_alone(self, plan: Plan) -> None:
        """The lock can be got around, by removing its file or on a disk without locks. Whoever notices stops; the other may go on."""
        expected = {MAIN: self.main.size_bytes, **{name: self.tails[name].size_bytes for name in plan.sidecars if name in self.tails}}
        for name, size_bytes in expected.items():
            if self._folder.size_bytes(name) != size_bytes:
                raise SessionFailed(f"another process wrote to {self._folder.file(name)}")

    def _make_room(self, plan: Plan, batch: Batch) -> int:
        free_bytes = self._reserve.free_bytes()
        if free_bytes >= PLENTY_BYTES:
            return free_bytes
        match decide(self._space, free_bytes=free_bytes, batch_bytes=plan.size_bytes, priority=batch.priority, holds_reserve=self._reserve.is_held):
            case "go":
                return free_bytes
            case "release":
                self._reserve.release()
                return free_bytes
            case "refuse":
                raise StorageRejected(f"The disk of {self._folder.path} has only {free_bytes} bytes left.", reason="no_space")

    def _remove_over(self) -> None:
        for name in sorted(self._over):
            self._folder.files.remove(self._folder.file(name))
            self._over.discard(name)
            self._long.discard(name)
            self.tails.pop(name, None)

    def _cut_front(self, name: str) -> None:
        """Keep a sidecar from its newest whole line on, byte for byte: what a marker names stays valid."""
        tail = self.tails[name]
        kept = self._folder.files.read(self._folder.file(name))[tail.whole_at : tail.size_bytes]
        sums = [(line.sum, line.end) for line in chain(kept, prev=None)]
        if not sums or sums[-1] != (tail.sum, len(kept)):
            self._failed = f"{self._folder.file(name)} changed under its owner"
            return
        self._replace(name, kept)
        self.tails[name] = Tail(tail.sum, len(kept), 0)
        self._long.discard(name)

    def _replace(self, name: str, data: bytes) -> None:
        self._folder.write_beside(name, data)
        try:
            self._folder.put_in_place(name)
        except OSError as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        self._failed = self._failed or f"{type(error).__name__}: {error}"
