"""The output of a command that runs on, on disk in pieces of bounded size, of which the newest are kept (rule TO-10).

A piece is named by the offset of its first byte, so an offset means the same for as long as the command runs and afterwards, also for a
reader in another process. The bytes are those that the command put out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.tools import files

SEGMENT_BYTES = 1_000_000
KEPT_SEGMENTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of an output. `start`: the offset of its first byte; `total`: how much there was when it was read."""

    data: bytes
    start: int
    total: int


class SegmentWriter:
    """Writes an output as it comes; what does not fit on the disk any more is counted and not kept.

    Args:
        folder: Of this output alone.
        create: (path) -> a descriptor of a new private file there, its folder made if need be; raises OSError.
    """

    def __init__(self, folder: Path, create: Callable[[Path], int]) -> None:
        self._folder = folder
        self._create = create
        self._descriptor: int | None = None
        self._room = 0
        self.total_bytes = 0
        self.problem: str | None = None

    def add(self, data: bytes) -> None:
        """More output."""
        start, self.total_bytes = self.total_bytes, self.total_bytes + len(data)
        try:
            while data and self.problem is None:
                if self._room == 0:
                    self._begin(start)
                written = os.write(self._open_one(), data[: self._room])
                start, data, self._room = start + written, data[written:], self._room - written
        except OSError as error:
            self.problem = error.strerror or str(error)
            self.close()

    def close(self) -> None:
        """Give the file back; can be called again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open_one(self) -> int:
        if self._descriptor is None:
            raise OSError(0, "the output was closed")
        return self._descriptor

    def _begin(self, offset: int) -> None:
        self.close()
        self._descriptor = self._create(self._folder / f"{offset:015d}.txt")
        self._room = SEGMENT_BYTES
        for _, old in segments(self._folder)[:-KEPT_SEGMENTS]:
            with contextlib.suppress(OSError):
                old.unlink()


def segments(folder: Path) -> list[tuple[int, Path]]:
    """The pieces that are kept, each with its offset, in order; none when nothing was put out."""
    try:
        names = [path for path in folder.iterdir() if path.stem.isdecimal()]
    except OSError:
        return []
    return sorted((int(path.stem), path) for path in names)


def read_output(folder: Path, *, offset: int | None, limit_bytes: int) -> Piece:
    """The output from `offset` on (None: its end), at most so much. Blocks: belongs on a thread.

    What is asked for and not kept any more is passed over: `start` tells where the part begins.
    """
    kept = segments(folder)
    if not kept:
        return Piece(data=b"", start=0, total=0)
    with contextlib.suppress(EnvironmentFailure):  # a piece may have made room for newer ones meanwhile
        total = kept[-1][0] + files.size_bytes(str(kept[-1][1]))
        start = max(kept[0][0], total - limit_bytes if offset is None else min(offset, total))
        data = b"".join(_part(path, start - first, limit_bytes) for first, path in kept if first + SEGMENT_BYTES > start and first < start + limit_bytes)
        return Piece(data=data[:limit_bytes], start=start, total=total)
    return Piece(data=b"", start=kept[-1][0], total=kept[-1][0])


def _part(path: Path, skip: int, limit_bytes: int) -> bytes:
    with files.opened(str(path)) as descriptor:
        return os.pread(descriptor, limit_bytes, max(0, skip))
