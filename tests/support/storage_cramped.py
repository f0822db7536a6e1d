"""Files on a disk whose free space a test decides."""

from __future__ import annotations

import errno
from pathlib import Path

from pi_durable_tui.storage.files import RealFiles


class CrampedFiles(RealFiles):
    """Real files; only the free space is made up.

    Attributes:
        free: Bytes that are said to be free; None: the system cannot tell.
    """

    def __init__(self, free: int | None) -> None:
        self.free = free

    def free_bytes(self, folder: Path) -> int:
        if self.free is None:
            raise OSError(errno.ENOSYS, "this disk does not say")
        return self.free

    def reserve(self, path: Path, size_bytes: int) -> None:
        if self.free is not None and size_bytes > self.free:
            raise OSError(errno.ENOSPC, "no space")
        super().reserve(path, size_bytes)
