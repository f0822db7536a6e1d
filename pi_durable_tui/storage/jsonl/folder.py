"""The files of a store: read, made, cut, replaced and removed by name; blocking. It decides nothing.

What is cut is copied first (rule ST-18), and a file that is replaced is, at every instant, the old one or the new one, whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from pi_durable_tui.errors import NotFound, StoreCorrupt
from pi_durable_tui.storage.contents import Contents
from pi_durable_tui.storage.files import FileOps, keep_aside
from pi_durable_tui.storage.jsonl.aside import conversation_of
from pi_durable_tui.storage.jsonl.frame import GENESIS, framed, line_at
from pi_durable_tui.storage.jsonl.lines import MAIN, SUFFIX, ClosedLine, file_name
from pi_durable_tui.storage.jsonl.recovery import Recovered, is_sidecar, recovered
from pi_durable_tui.storage.jsonl.upgrade import in_this_version, kept_copy, read_files, version_of
from pi_durable_tui.storage.port import PutAside
from pi_durable_tui.storage.versions.steps import STEPS, Steps, can_upgrade

CLOSED = "closed"
_CLOSED_BYTES = 256
_NEW = ".new"
_KEPT = re.compile(rf"(?P<name>.+){re.escape(SUFFIX)}\.cut-[1-9][0-9]*")


class Folder:
    """The folder of a store.

    Args:
        path: Its real path.
        steps: How older versions become this one.
    """

    def __init__(self, path: Path, files: FileOps, steps: Steps = STEPS) -> None:
        self.path = path
        self.files = files
        self.steps = steps

    def file(self, name: str) -> Path:
        """The path of `main` or of a sidecar."""
        return self.path / file_name(name)

    def size_bytes(self, name: str) -> int | None:
        return self.files.size_bytes(self.file(name))

    def sidecars(self) -> list[str]:
        """Names of the sidecars that are there."""
        return [name for item in self.files.names(self.path) if item.endswith(SUFFIX) and is_sidecar(name := item.removesuffix(SUFFIX))]

    def recover(self) -> Recovered:
        """What the store holds; nothing is changed.

        Raises:
            NotFound: There is no store.
            SchemaTooNew, StoreCorrupt: As `recovered`.
        """
        if (kept := kept_copy(self.path, self.files)) is not None:
            return Folder(kept, self.files, self.steps).recover()
        # A writer may be at work: the note of its end is read first, and all sidecars right behind `main.jsonl`, before any of it is judged.
        least_seq = self.closed_seq()
        main = self._read(MAIN)
        if main is None:
            if self.files.size_bytes(self.path) is not None and self.sidecars():
                raise StoreCorrupt(str(self.path), where=file_name(MAIN), what="the file is missing")
            raise NotFound("session", where=str(self.path))
        version = version_of(main)
        if version is not None and can_upgrade(version, self.steps):  # only to be read: a writer has brought it up to date before
            newer = in_this_version(read_files(self.path, self.files), version=version, steps=self.steps, store=str(self.path))
            return recovered(str(self.path), newer.pop(MAIN), newer, least_seq=least_seq)
        sidecars = {name: data for name in self.sidecars() if (data := self._read(name)) is not None}
        is_growing = self.size_bytes(MAIN) != len(main)
        return recovered(str(self.path), main, sidecars, least_seq=least_seq, is_growing=is_growing)

    def closed_seq(self) -> int:
        """The newest commit of when the store was last closed, as noted; 0 when there is no such note."""
        line = line_at(self.files.start(self.path / CLOSED, _CLOSED_BYTES), 0)
        return line.seq if line is not None else 0

    def note_closed(self, seq: int) -> None:
        """It is noted that the store had that commit: whatever becomes of the end of `main.jsonl`, it will be missed.

        Raises:
            OSError: The older note stands, or the new one.
        """
        beside = self.path / (CLOSED + _NEW)
        self.files.remove(beside)
        self.files.create(beside)
        self.files.append(beside, framed(msgspec.json.encode(ClosedLine()), seq=seq, prev=GENESIS)[0])
        self.files.sync(beside)
        self.files.rename(beside, self.path / CLOSED)

    def repair(self, found: Recovered) -> tuple[str, ...]:
        """What belongs to no commit is gone from the files, and stands in copies beside them; what was done, for people."""
        notices: list[str] = []
        for cut in found.cuts:
            copy = keep_aside(self.files, self.file(cut.name), self.files.read(self.file(cut.name))[cut.start :])
            where = f"after commit {found.contents.next_seq - 1}" if found.contents.next_seq > 1 else "before the first commit"
            notices.append(f"{cut.size_bytes} bytes of an unfinished commit {where} were cut from {file_name(cut.name)} and kept in {copy.name}.")
        if found.cuts:
            self.files.sync_folder(self.path)
        for cut in found.cuts:
            if cut.start:
                self.files.cut(self.file(cut.name), cut.start)
                self.files.sync(self.file(cut.name))
            else:
                self.files.remove(self.file(cut.name))
        for name in found.leftovers:
            self.files.remove(self.file(name))
        for item in self.files.names(self.path):
            if item.endswith(SUFFIX + _NEW):
                self.files.remove(self.path / item)
        return tuple(notices)

    def put_aside(self, contents: Contents) -> tuple[PutAside, ...]:
        """The copies of what was cut, by name, and whose it was.

        Args:
            contents: What the store holds.
        """
        found: list[PutAside] = []
        for item in self.files.names(self.path):
            if (kept := _KEPT.fullmatch(item)) is None or not (kept["name"] == MAIN or is_sidecar(kept["name"])):
                continue
            data = self.files.read(self.path / item)
            found.append(
                PutAside(
                    name=item,
                    digest=hashlib.blake2b(data, digest_size=8).hexdigest(),
                    size_bytes=len(data),
                    cut_from=file_name(kept["name"]),
                    conversation_id=conversation_of(kept["name"], data, contents),
                )
            )
        return tuple(found)

    def sync(self, names: Iterable[str]) -> None:
        """What was written to these files is on the disk."""
        for name in names:
            self.files.sync(self.file(name))

    def write_beside(self, name: str, data: bytes) -> None:
        """A complete copy of what is to replace a file lies beside it, on the disk.

        Raises:
            OSError: There is none; the file is as it was.
        """
        beside = self._beside(name)
        try:
            self.files.remove(beside)
            self.files.create(beside)
            self.files.append(beside, data)
            self.files.sync(beside)
        except OSError:
            with contextlib.suppress(OSError):
                self.files.remove(beside)
            raise

    def put_in_place(self, name: str) -> None:
        """What was written beside the file is the file.

        Raises:
            OSError: It is the file or it is not.
        """
        self.files.rename(self._beside(name), self.file(name))
        self.files.sync_folder(self.path)

    def _beside(self, name: str) -> Path:
        return self.path / (file_name(name) + _NEW)

    def _read(self, name: str) -> bytes | None:
        try:
            return self.files.read(self.file(name))
        except FileNotFoundError:
            return None
