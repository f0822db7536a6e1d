"""Looks which files of a tree have changed since the last look, and keeps their contents; bounded in files, bytes and time (rule TU-18).

Covered is what ignore files do not name, without folders that programs fill (GENERATED), up to TREE_FILES files of up to FILE_BYTES,
plus single files it was told of. A file whose size, times and inode are as they were counts as unchanged. Blocks; belongs on a thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.tools import files
from pi_durable_tui.tools.history.contents import Contents
from pi_durable_tui.tools.history.log import NOT_KEPT, Content
from pi_durable_tui.tools.search.tree import Tree

TREE_FILES = 20_000
FILE_BYTES = 2_000_000
NEW_BYTES = 200_000_000  # most that one look reads
TIME_MS = 1_500
GENERATED = frozenset({"__pycache__", "node_modules", ".venv", "venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
FRESH_MS = 50  # longer than the tick of a file system's clock


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was at the last look."""

    size_bytes: int
    changed_ns: int  # the later of the times of content and status
    inode: int
    mode: int
    content: str  # its name, or NOT_KEPT
    is_fresh: bool  # it had only just been changed: another change might not show in its times

    def looks_same(self, status: os.stat_result) -> bool:
        """Whether size, times and inode are as they were."""
        return (self.size_bytes, self.changed_ns, self.inode) == (status.st_size, _changed_ns(status), status.st_ino)

    def is_still(self, status: os.stat_result) -> bool:
        """Whether nobody can have touched the file since."""
        return not self.is_fresh and self.looks_same(status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file that is not as it was. `mode`: the permission bits before."""

    path: str
    before: Content
    after: Content
    mode: int


class Scan:
    """The last look at a tree, and the next ones.

    Attributes:
        seen: Every file of the last look, by absolute path.
        is_whole: The last look reached every file of the tree.
    """

    def __init__(self, root: str, contents: Contents, clock: Clock) -> None:
        self._root = root
        self._contents = contents
        self._clock = clock
        self._read_bytes = 0
        self._absent: set[str] = set()  # single files that were not there when they were looked for
        self.seen: dict[str, Seen] = {}
        self.is_whole = False

    def look(self, singles: Iterable[str] = (), *, at_tree: bool = True) -> list[Difference]:
        """What has changed since the last look, in order of paths; the contents now are kept."""
        was_whole = self.is_whole
        self._read_bytes = 0
        late = self._clock.monotonic_ms() + TIME_MS
        found: set[str] = set()
        differences: list[Difference] = []
        paths = sorted({*singles})
        if at_tree:
            paths, self.is_whole = self._tree(paths, late)
        for path in paths:
            found.add(path)
            in_time = self._clock.monotonic_ms() < late
            difference = self._compare(path, in_time=in_time, was_known=was_whole)
            if difference is not None:
                differences.append(difference)
        if at_tree:
            gone = [path for path in self.seen.keys() - found if not os.path.lexists(path)]
            differences += [self._gone(path) for path in gone]
        return sorted(differences, key=lambda each: each.path)

    def _tree(self, paths: list[str], late: float) -> tuple[list[str], bool]:
        tree = Tree(self._root, left_out=GENERATED)
        known = set(paths)
        for entry in tree.entries():
            if len(known) >= TREE_FILES or self._clock.monotonic_ms() > late:
                return sorted(known), False
            if entry.is_file(follow_symlinks=False):
                known.add(entry.path)
        return sorted(known), not tree.is_cut

    def _compare(self, path: str, *, in_time: bool, was_known: bool) -> Difference | None:
        """One file against the last look. A file that is new counts as made since then only if the last look had reached every file."""
        try:
            status = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - a path of odd bytes is a text here
        except OSError:
            self._absent.add(path)
            return self._gone(path) if path in self.seen else None
        was_known = was_known or path in self._absent
        self._absent.discard(path)
        before = self.seen.get(path)
        if not stat.S_ISREG(status.st_mode) or (before is not None and before.is_still(status) and before.content != NOT_KEPT):
            return None
        if before is not None and not in_time and before.looks_same(status):
            return None
        content = self._keep(path, status) if in_time else NOT_KEPT
        self.seen[path] = Seen(status.st_size, _changed_ns(status), status.st_ino, stat.S_IMODE(status.st_mode), content, self._is_fresh(status))
        if before is None:
            return Difference(path=path, before=None, after=content, mode=0o644) if was_known else None
        if before.content == content != NOT_KEPT or (before.content == NOT_KEPT and before.looks_same(status)):
            return None  # the same as before; or only now it could be kept
        return Difference(path=path, before=before.content, after=content, mode=before.mode)

    def _is_fresh(self, status: os.stat_result) -> bool:
        return self._clock.now_ms() - _changed_ns(status) // 1_000_000 < FRESH_MS

    def _gone(self, path: str) -> Difference:
        before = self.seen.pop(path)
        return Difference(path=path, before=before.content, after=None, mode=before.mode)

    def _keep(self, path: str, status: os.stat_result) -> str:
        if status.st_size > FILE_BYTES or self._read_bytes + status.st_size > NEW_BYTES:
            return NOT_KEPT
        self._read_bytes += status.st_size
        try:
            data = files.read_whole(path)
        except EnvironmentFailure:
            return NOT_KEPT
        return self._contents.keep(data) or NOT_KEPT


def _changed_ns(status: os.stat_result) -> int:
    return max(status.st_mtime_ns, status.st_ctime_ns)
