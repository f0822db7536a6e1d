"""A disk whose power can be cut after any operation: what was not flushed may be there, or not, or half, or in another order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pi_durable_tui.storage.files import RealFiles


class RecordingFiles(RealFiles):
    """Real files; every operation inside a folder is written down with its bytes, for building images of it."""

    def __init__(self) -> None:
        self.operations: list[tuple[Any, ...]] = []

    def acknowledged(self, seq: int) -> None:
        """The caller was told that this commit is stored."""
        self.operations.append(("acknowledged", seq))

    def create(self, path: Path) -> None:
        super().create(path)
        self.operations.append(("create", path.name))

    def append(self, path: Path, data: bytes) -> None:
        super().append(path, data)
        self.operations.append(("append", path.name, data))

    def sync(self, path: Path) -> None:
        super().sync(path)
        self.operations.append(("sync", path.name))

    def sync_folder(self, path: Path) -> None:
        super().sync_folder(path)
        self.operations.append(("sync_folder",))

    def cut(self, path: Path, size_bytes: int) -> None:
        super().cut(path, size_bytes)
        self.operations.append(("cut", path.name, size_bytes))

    def rename(self, old: Path, new: Path) -> None:
        super().rename(old, new)
        self.operations.append(("rename", old.name, new.name))

    def remove(self, path: Path) -> None:
        if path.exists() and path.suffix != ".reserve":
            super().remove(path)
            self.operations.append(("remove", path.name))
        else:
            super().remove(path)


@dataclass(slots=True)
class Node:
    """A file: what is surely on the disk, and what was written since."""

    durable: bytes = b""
    pending: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class Disk:
    """The state of a folder after some operations.

    Attributes:
        names: As programs see them. `durable_names`: as they surely are after a cut. `changes`: what was done to names in between.
        acknowledged: The newest commit that a caller was told of.
    """

    names: dict[str, Node] = field(default_factory=dict)
    durable_names: dict[str, Node] = field(default_factory=dict)
    changes: list[tuple[str, Node | None]] = field(default_factory=list)
    acknowledged: int = 0

    def do(self, operation: tuple[Any, ...]) -> None:
        match operation:
            case ("create", name):
                self._name(name, Node())
            case ("append", name, data):
                self.names[name].pending.append(data)
            case ("sync", name):
                node = self.names[name]
                node.durable += b"".join(node.pending)
                node.pending.clear()
            case ("sync_folder",):
                self.durable_names = dict(self.names)
                self.changes.clear()
            case ("rename", old, new):
                # One step for the disk, as for programs: both names change or none.
                node = self.names.pop(old)
                self.names[new] = node
                self.changes.append((new, node))
                self.changes.append((old, None))
            case ("remove", name):
                self._name(name, None)
            case ("acknowledged", seq):
                self.acknowledged = seq
            case _:
                raise AssertionError(operation)

    def _name(self, name: str, node: Node | None) -> None:
        if node is None:
            del self.names[name]
        else:
            self.names[name] = node
        self.changes.append((name, node))

    def images(self, draw: random.Random, count: int) -> Iterator[dict[str, bytes]]:
        """What may be found after the power came back: nothing of what was not flushed, all of it, and `count` things in between."""
        yield self._image(lambda: False, lambda node: node.durable)
        yield self._image(lambda: True, lambda node: node.durable + b"".join(node.pending))
        for _ in range(count):
            yield self._image(lambda: draw.random() < 0.5, lambda node: _torn(node, draw))

    def _image(self, is_kept: Any, content: Any) -> dict[str, bytes]:
        names = dict(self.durable_names)
        for name, node in self.changes:
            if is_kept():
                if node is None:
                    names.pop(name, None)
                else:
                    names[name] = node
        return {name: content(node) for name, node in names.items()}


def _torn(node: Node, draw: random.Random) -> bytes:
    """What was flushed, then blocks of the rest: there, zeros, or garbage; and an end anywhere."""
    rest = b"".join(node.pending)
    size = draw.choice([64, 512, 4096])
    blocks = [draw.choice([rest[at : at + size], rest[at : at + size], bytes(len(rest[at : at + size]))]) for at in range(0, len(rest), size)]
    found = b"".join(blocks)
    if draw.random() < 0.5:
        found = found[: draw.randint(0, len(found))]
    if draw.random() < 0.1:
        found = draw.randbytes(len(found))
    return node.durable + found
