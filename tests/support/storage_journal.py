"""Files that write down what is done with them, and looks at a folder of files as a whole."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pi_durable_tui.storage.files import RealFiles

Moment = Literal["before", "short", "after"]
Kind = Literal["io", "full"]


class JournalFiles(RealFiles):
    """Real files; every operation that changes or flushes one is written down, and may be made to fail.

    Args:
        note: Told kind and file name of each operation before it is done.

    Attributes:
        journal: Kind and file name of each operation, in order.
        happened: True once an operation was failed.
    """

    def __init__(self, note: Callable[[str, str], object] = lambda _kind, _name: None) -> None:
        self.journal: list[tuple[str, str]] = []
        self.happened = False
        self._note = note
        self._left: int | None = None
        self._moment: Moment = "before"
        self._code = errno.EIO
        self._for_good = False

    def arm(self, operation: int, moment: Moment, kind: Kind, *, for_good: bool = False) -> None:
        """Fail the `operation`-th operation from now, counted from 1; with `for_good` all later ones too."""
        self._left, self._moment, self._for_good, self.happened = operation, moment, for_good, False
        self._code = errno.ENOSPC if kind == "full" else errno.EIO

    def disarm(self) -> None:
        """The disk is well again."""
        self._left = None

    def create(self, path: Path) -> None:
        self._do("create", path, lambda: RealFiles.create(self, path))

    def append(self, path: Path, data: bytes) -> None:
        # Short: half of it got there, and the disk was too broken to cut it back.
        self._do("append", path, lambda: RealFiles.append(self, path, data), short=lambda: RealFiles.append(self, path, data[: len(data) // 2]))

    def sync(self, path: Path) -> None:
        self._do("sync", path, lambda: RealFiles.sync(self, path))

    def sync_folder(self, path: Path) -> None:
        self._do("sync_folder", path, lambda: RealFiles.sync_folder(self, path))

    def cut(self, path: Path, size_bytes: int) -> None:
        self._do("cut", path, lambda: RealFiles.cut(self, path, size_bytes))

    def rename(self, old: Path, new: Path) -> None:
        self._do("rename", new, lambda: RealFiles.rename(self, old, new))

    def remove(self, path: Path) -> None:
        if path.exists():
            self._do("remove", path, lambda: RealFiles.remove(self, path))

    def reserve(self, path: Path, size_bytes: int) -> None:
        self._do("reserve", path, lambda: RealFiles.reserve(self, path, size_bytes))

    def _do(self, kind: str, path: Path, work: Callable[[], None], *, short: Callable[[], None] = lambda: None) -> None:
        self._note(kind, path.name)
        self.journal.append((kind, path.name))
        moment = self._due()
        if moment is None or moment == "after":
            work()
        elif moment == "short":
            short()
        if moment is not None:
            raise OSError(self._code, "the disk failed", str(path))

    def _due(self) -> Moment | None:
        if self._left is None:
            return None
        self._left -= 1
        if self._left == 0 or (self._left < 0 and self._for_good):
            self.happened = True
            return self._moment if self._left == 0 else "before"
        return None


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder, with the time of its last change and its bytes; locks left out."""
    found = (item for item in sorted(folder.rglob("*")) if item.is_file() and item.suffix != ".lock")
    return {str(item.relative_to(folder)): (item.stat().st_mtime_ns, item.read_bytes()) for item in found}


def kept_as_killed(store: Path) -> Path:
    """A copy of an open store's folder, as its process would leave it if it were killed now."""
    copy = store.parent.with_name(store.parent.name + "-killed") / store.name
    shutil.copytree(store, copy)
    return copy
