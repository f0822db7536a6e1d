"""A disk that fails at the N-th write, sync or cut of a SQLite file: before, after, or in the middle of the operation."""

from __future__ import annotations

from typing import Any, Literal

import apsw

Moment = Literal["before", "short", "after"]
Kind = Literal["io", "full"]


class Fault:
    """When and how the disk fails; counts operations from the moment it is armed.

    Attributes:
        happened: True once an operation was failed.
    """

    def __init__(self) -> None:
        self.happened = False
        self._left: int | None = None
        self._moment: Moment = "before"
        self._kind: Kind = "io"
        self._for_good = False

    def arm(self, operation: int, moment: Moment, kind: Kind, *, for_good: bool = False) -> None:
        """Fail the `operation`-th operation from now, counted from 1; with `for_good` all later ones too."""
        self._left, self._moment, self._kind, self._for_good, self.happened = operation, moment, kind, for_good, False

    def disarm(self) -> None:
        """The disk is well again."""
        self._left = None

    def due(self) -> Moment | None:
        """Count one operation; how it has to fail, or None."""
        if self._left is None:
            return None
        self._left -= 1
        if self._left == 0 or (self._left < 0 and self._for_good):
            self.happened = True
            return self._moment if self._left == 0 else "before"
        return None

    def error(self) -> apsw.Error:
        """What SQLite is told."""
        return apsw.FullError("the disk is full") if self._kind == "full" else apsw.IOError("the disk failed")


class FaultyFile(apsw.VFSFile):
    """A file on the faulty disk."""

    def __init__(self, name: Any, flags: list[int], fault: Fault) -> None:
        super().__init__("", name, flags)
        self._fault = fault

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - the library's name
        match self._fault.due():
            case "before":
                raise self._fault.error()
            case "short":
                super().xWrite(bytes(data)[: len(data) // 2], offset)
                raise self._fault.error()
            case "after":
                super().xWrite(data, offset)
                raise self._fault.error()
            case None:
                super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._around(lambda: super(FaultyFile, self).xSync(flags))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._around(lambda: super(FaultyFile, self).xTruncate(newsize))

    def _around(self, operation: Any) -> None:
        moment = self._fault.due()
        if moment in {"before", "short"}:
            raise self._fault.error()
        operation()
        if moment == "after":
            raise self._fault.error()


class FaultyDisk(apsw.VFS):
    """A registered VFS over the system's own; give its `vfs_name` to `open_sqlite`, and `unregister` it at the end."""

    def __init__(self, name: str) -> None:
        self.vfs_name = name
        self.fault = Fault()
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> FaultyFile:  # noqa: N802
        return FaultyFile(name, flags, self.fault)
