"""The door for kept contents: private files named by the BLAKE2b of what they hold, bounded, the longest unused swept (rules TU-18, SA-16).

Nothing here is needed for a session to work: a content that is gone cannot be restored, and that is said. So nothing is synced, and
what is read is compared with its name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pi_durable_tui.records.keys import to_hide

KEPT_BYTES = 400_000_000  # of all contents of a session; the longest unused go first
SWEPT_TO = 0.8


class Contents:
    """A folder of contents, made at the first use with mode 0700; its files have mode 0600. Calls block.

    Args:
        keys: A content that holds one of them is not kept (rule SA-17): the copy would outlive the key's place.
    """

    def __init__(self, folder: Path, *, limit_bytes: int = KEPT_BYTES, keys: Iterable[str] = ()) -> None:
        self._folder = folder
        self._keys = tuple(key.encode() for key in to_hide(keys))
        self._limit_bytes = limit_bytes
        self._size_bytes: int | None = None

    def keep(self, data: bytes) -> str | None:
        """Keep a content; its name, or None when there is no room or no right to, or it holds a key."""
        if any(key in data for key in self._keys):
            return None
        name = content_name(data)
        path = self._path(name)
        temporary = path.with_suffix(".tmp")
        try:
            if path.exists():
                os.utime(path)
                return name
            for folder in (*reversed(path.parent.parents), path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            self._make_room(len(data))
            temporary.unlink(missing_ok=True)
            self._write(temporary, data)
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)  # half of it would take room, too
            return None
        self._size_bytes = (self._size_bytes or 0) + len(data)
        return name

    def get(self, name: str) -> bytes | None:
        """A kept content; None when it is not kept any more, or damaged."""
        with contextlib.suppress(OSError):
            data = self._path(name).read_bytes()
            return data if content_name(data) == name else None
        return None

    def save_notes(self, data: bytes) -> None:
        """Keep a note beside the contents, over the one before; without it, the next process looks at every file again."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = self._folder / "notes.tmp"
            temporary.unlink(missing_ok=True)
            self._write(temporary, data)
            temporary.replace(self._folder / "notes")

    def notes(self) -> bytes | None:
        """The note; None when there is none."""
        with contextlib.suppress(OSError):
            return (self._folder / "notes").read_bytes()
        return None

    def _write(self, path: Path, data: bytes) -> None:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)

    def _make_room(self, more_bytes: int) -> None:
        if self._size_bytes is None:
            self._size_bytes = sum(status.st_size for _, status in self._files())
        if self._size_bytes + more_bytes <= self._limit_bytes:
            return
        for path, status in sorted(self._files(), key=lambda found: found[1].st_mtime_ns):
            if self._size_bytes + more_bytes <= self._limit_bytes * SWEPT_TO:
                break
            path.unlink(missing_ok=True)
            self._size_bytes -= status.st_size

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self._folder.glob("??/*"):
            with contextlib.suppress(OSError):
                yield path, path.stat()

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name


def content_name(data: bytes) -> str:
    """The name of a content. PURE."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()
