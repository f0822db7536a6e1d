"""A real small disk: a tmpfs of its own, where this user may mount one. It can be filled to the last byte, freed, and made read-only."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

SIZE_KIB = 512


class SmallDisk:
    """See the module.

    Attributes:
        path: Where it is mounted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self, *, leave_bytes: int = 0) -> None:
        """Nothing more can be written but so much."""
        with contextlib.suppress(OSError), self._filler.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        if leave_bytes:
            os.truncate(self._filler, max(0, self._filler.stat().st_size - leave_bytes))

    def free(self) -> None:
        """There is room again."""
        self._filler.unlink(missing_ok=True)

    @property
    def free_bytes(self) -> int:
        disk = os.statvfs(self.path)
        return disk.f_bavail * disk.f_frsize

    def remount(self, how: str) -> None:
        """`ro` or `rw`."""
        subprocess.run(["mount", "-o", f"remount,{how}", str(self.path)], check=True, capture_output=True)


@contextlib.contextmanager
def small_disk(path: Path) -> Iterator[SmallDisk | None]:
    """The disk, unmounted at the end; None where it cannot be mounted."""
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_KIB}k,mode=700", "tmpfs", str(path)], check=False, capture_output=True)
    if mounted.returncode != 0:
        yield None
        return
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True, capture_output=True)
