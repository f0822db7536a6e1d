"""A disk under SQLite whose power can be cut after any operation: of what was not flushed anything may be there, in any order, torn anywhere.

SQLite's files are recorded through a VFS, those of the store's own door through `RecordingFiles`, in one list of operations. `WrittenDisk`
replays it and draws what may be found afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from tests.support.storage_power import RecordingFiles

SECTOR_BYTES = 512

Change = tuple[int, bytes] | int
"""A write (offset, bytes), or the new length after a cut."""


class RecordedFile(apsw.VFSFile):
    """A file of SQLite; each change and each flush is written down after it was done."""

    def __init__(self, name: Any, flags: list[int], disk: RecordingDisk) -> None:
        super().__init__("", name, flags)
        self._name = Path(name.filename() if isinstance(name, apsw.URIFilename) else str(name)).name
        self._operations = disk.files.operations
        # SQLite flushes the folder with the first flush of a log or journal that it has made.
        self._is_fresh = False

    def created(self) -> None:
        """The file was not there before."""
        self._operations.append(("create", self._name))
        self._is_fresh = self._name.endswith(("-wal", "-journal"))

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - the library's name
        super().xWrite(data, offset)
        self._operations.append(("write", self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._operations.append(("truncate", self._name, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._operations.append(("sync", self._name))
        if self._is_fresh:
            self._operations.append(("sync_folder",))
            self._is_fresh = False


class RecordingDisk(apsw.VFS):
    """A registered VFS over the system's own; `unregister` it at the end.

    Attributes:
        files: The door for the store's other files; holds the list of all operations.
    """

    def __init__(self, name: str) -> None:
        self.vfs_name = name
        self.files = RecordingFiles()
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> RecordedFile:  # noqa: N802
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else str(name))
        was_there = path.exists()
        file = RecordedFile(name, flags, self)
        if not was_there:
            file.created()
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self.files.operations.append(("remove", Path(filename).name))
        if syncdir:
            self.files.operations.append(("sync_folder",))


@dataclass(slots=True)
class WrittenNode:
    """A file: what is surely on the disk, and what was done to it since, in order."""

    durable: bytes = b""
    pending: list[Change] = field(default_factory=list)

    def settled(self) -> bytes:
        """Its content when everything reached the disk."""
        return applied(self.durable, self.pending)


def applied(content: bytes, changes: list[Change]) -> bytes:
    """The content after the changes. PURE."""
    found = bytearray(content)
    for change in changes:
        if isinstance(change, int):
            del found[change:]
            found.extend(bytes(change - len(found)))
        else:
            offset, data = change
            found.extend(bytes(max(0, offset - len(found))))
            found[offset : offset + len(data)] = data
    return bytes(found)


@dataclass(slots=True)
class WrittenDisk:
    """The state of a folder after some operations.

    Attributes:
        names: As programs see them; `durable_names`: as they surely are after a cut; `changes`: what was done to names in between.
        told: The newest commit whose caller was told that it is stored; `acknowledged`: the newest of those that no power cut may take.
    """

    names: dict[str, WrittenNode] = field(default_factory=dict)
    durable_names: dict[str, WrittenNode] = field(default_factory=dict)
    changes: list[tuple[str, WrittenNode | None]] = field(default_factory=list)
    told: int = 0
    acknowledged: int = 0

    def do(self, operation: tuple[Any, ...]) -> None:
        match operation:
            case ("create", name):
                self._name(name, WrittenNode())
            case ("write", name, offset, data):
                self.names[name].pending.append((offset, data))
            case ("truncate", name, size):
                self.names[name].pending.append(size)
            case ("sync", name):
                node = self.names[name]
                node.durable = node.settled()
                node.pending.clear()
            case ("sync_folder",):
                self.durable_names = dict(self.names)
                self.changes.clear()
            case ("remove", name):
                if name in self.names:
                    self._name(name, None)
            case ("acknowledged", seq, is_safe):
                self.told = seq
                self.acknowledged = seq if is_safe else self.acknowledged
            case _:
                raise AssertionError(operation)

    def images(self, draw: random.Random, count: int) -> Iterator[dict[str, bytes]]:
        """What may be found when the power is back: nothing that was not flushed, all of it, and `count` draws in between."""
        yield self._image(lambda: False, lambda node: node.durable)
        yield self._image(lambda: True, WrittenNode.settled)
        for _ in range(count):
            share = draw.choice([0.2, 0.5, 0.9])
            yield self._image(lambda share=share: draw.random() < share, lambda node, share=share: _torn(node, draw, share))

    def _name(self, name: str, node: WrittenNode | None) -> None:
        if node is None:
            del self.names[name]
        else:
            self.names[name] = node
        self.changes.append((name, node))

    def _image(self, is_kept: Any, content: Any) -> dict[str, bytes]:
        names = dict(self.durable_names)
        for name, node in self.changes:
            if is_kept():
                if node is None:
                    names.pop(name, None)
                else:
                    names[name] = node
        return {name: content(node) for name, node in names.items()}


def _torn(node: WrittenNode, draw: random.Random, share: float) -> bytes:
    """Some of the changes, in another order at times, each write whole or only some of its sectors, at times with garbage in one."""
    kept: list[Change] = []
    for change in node.pending:
        if draw.random() >= share:
            continue
        if isinstance(change, int) or draw.random() < 0.5:
            kept.append(change)
            continue
        offset, data = change
        for at in range(0, len(data), SECTOR_BYTES):
            if draw.random() < share:
                sector = data[at : at + SECTOR_BYTES]
                kept.append((offset + at, draw.randbytes(len(sector)) if draw.random() < 0.03 else sector))
    if draw.random() < 0.5:
        draw.shuffle(kept)
    return applied(node.durable, kept)
