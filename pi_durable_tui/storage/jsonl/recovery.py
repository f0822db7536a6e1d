"""Decides what a store holds from the bytes of its files, and what at their ends belongs to no commit. PURE: it reads, and judges.

Theory. A commit exists when its marker does: whole, in the chain of `main.jsonl`, with every line it names in the sidecars (rules ST-1,
ST-16). What stands behind the last such marker was never acknowledged, or the disk lost it, and is to be cut. It is the end of the file
only as long as nothing valid behind it could have been written later than the commit that was torn: a line of a later commit, or the
line that a store ends with when it is closed. Then the damage is in the middle of what was acknowledged, and the store is refused
(rule ST-15). In a sidecar there is no doubt: what a marker names must be there, and what stands behind it is no part of the store.

Two things tell of an end of `main.jsonl` that is gone without a trace. A line of a sidecar is written when the marker of the commit before
it is stored, so it may be one commit ahead of the newest marker and no more. And a store that was closed has noted how many commits it had.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from pi_durable_tui.errors import SchemaTooNew, StoreCorrupt
from pi_durable_tui.storage.changes import Change, Put, Revised, adopt, put_of
from pi_durable_tui.storage.contents import Contents
from pi_durable_tui.storage.jsonl.frame import GENESIS, Line, chain, valid_lines
from pi_durable_tui.storage.jsonl.lines import (
    MAIN,
    AnyLine,
    ClosedLine,
    CommitLine,
    RevisionLine,
    RowLine,
    StoreLine,
    Tail,
    decoded,
    document_name,
    file_name,
    sidecar_over,
    task_name,
    text_of,
)
from pi_durable_tui.storage.port import SCHEMA_VERSION

_SIDECAR = re.compile(r"(?P<kind>task|doc)-(?P<id>[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Cut:
    """Bytes of a file, from an offset to its end, that are part of no commit."""

    name: str
    start: int
    size_bytes: int


@dataclass(slots=True)
class Recovered:
    """What the files hold.

    Attributes:
        main: The end of `main.jsonl` after its last marker or closing line.
        tails: The confirmed ends of the sidecars that are needed.
        snapshot_bytes: Length of what stood in `main.jsonl` when it was last written whole.
        is_sealed: True when nothing at the end of `main.jsonl` can be torn: it was closed, or written whole.
        cuts: What is to be cut off, or, from the beginning, removed.
        leftovers: Sidecars whose end is known, and whose removal was not finished.
    """

    contents: Contents = field(default_factory=Contents)
    main: Tail = field(default_factory=Tail)
    tails: dict[str, Tail] = field(default_factory=dict[str, Tail])
    snapshot_bytes: int = 0
    is_sealed: bool = False
    cuts: list[Cut] = field(default_factory=list[Cut])
    leftovers: list[str] = field(default_factory=list[str])


def recovered(path: str, main: bytes, sidecars: Mapping[str, bytes], *, least_seq: int = 0, is_growing: bool = False) -> Recovered:
    """The contents as of the newest commit, and what has to be repaired before another one is written.

    Args:
        path: Names the store in errors.
        sidecars: The bytes of the sidecars that are there, by name; read after `main`.
        least_seq: The newest commit of when it was last closed.
        is_growing: A writer has gone on since `main` was read: what the sidecars hold beyond it is of commits that are not looked at.

    Raises:
        SchemaTooNew, StoreCorrupt: The store is not to be touched.
    """
    reading = _Reading(path, is_growing=is_growing)
    reading.read_main(main)
    reading.check_end(main, least_seq)
    for name, digest in reading.named.items():
        reading.read_sidecar(name, digest, sidecars.get(name))
    reading.check_documents()
    for name in sorted(sidecars.keys() - reading.named.keys()):
        reading.judge_unnamed(name, sidecars[name])
    return reading.found


class _Reading:
    """One pass over the files. `named`: the newest line that a marker names in each sidecar that is still needed."""

    def __init__(self, path: str, *, is_growing: bool) -> None:
        self.found = Recovered()
        self.named: dict[str, str] = {}
        self._path = path
        self._is_growing = is_growing
        self._last_seq = 0

    def read_main(self, main: bytes) -> None:
        lines = chain(main)
        self._check_beginning(next(lines, None), main)
        pending: list[tuple[Line, RowLine]] = []
        sound_bytes = self.found.main.size_bytes
        for number, line in enumerate(lines, 2):
            sound_bytes = line.end
            match said := self._said(MAIN, number, line):
                case RowLine():
                    pending.append((line, said))
                    continue
                case CommitLine():
                    self._commit(number, line, said, pending)
                    pending = []
                case ClosedLine() if line.seq == self._last_seq and not pending and self.found.snapshot_bytes:
                    self.found.is_sealed = True
                case _:
                    raise self._corrupt(MAIN, number, "it does not belong there")
            self.found.main = Tail(line.sum, line.end)
        damaged = _number_of(main, sound_bytes)
        if not self.found.snapshot_bytes:
            raise self._corrupt(MAIN, damaged, "what the file began with is damaged")
        self._judge_end(main, damaged)

    def check_end(self, main: bytes, seq: int) -> None:
        """Nothing is missing at the end of `main.jsonl`, as far as something speaks of that commit."""
        if seq > self._last_seq:
            raise self._corrupt(MAIN, _number_of(main, len(main)), f"it ends with commit {self._last_seq}, and there was a commit {seq}")

    def read_sidecar(self, name: str, digest: str, data: bytes | None) -> None:
        """Take in a sidecar up to the line that a marker names."""
        if data is None:
            raise StoreCorrupt(self._path, where=file_name(name), what="a file of a stored commit is missing")
        kept: list[tuple[Line, Change]] = []
        tail = Tail()
        for number, line in enumerate(chain(data, prev=None), 1):
            said = self._said(name, number, line)
            change, whole = self._change(name, number, said)
            if number == 1 and line.prev != GENESIS and not whole:
                raise self._corrupt(name, 1, "what came before it is missing")
            if whole:
                kept = []
            kept.append((line, change))
            tail = Tail(line.sum, line.end, line.start if whole else tail.whole_at)
            if line.sum == digest:
                break
        if tail.sum != digest:
            raise self._corrupt(name, _number_of(data, tail.size_bytes), "a stored line is damaged or missing")
        if kept[-1][0].seq > self._last_seq:
            raise self._corrupt(name, _number_of(data, kept[-1][0].start), "it belongs to a later commit than the marker that names it")
        for line, change in kept:
            adopt(self.found.contents, [change], line.seq)
        self.found.tails[name] = tail
        if tail.size_bytes < len(data) and not self._is_growing:
            self._check_ahead(name, data, tail.size_bytes)
            self.found.cuts.append(Cut(name, tail.size_bytes, len(data) - tail.size_bytes))

    def check_documents(self) -> None:
        """Every document that needs a sidecar has one, and every sidecar a document."""
        contents = self.found.contents
        for document in contents.documents.seen.values():
            if not contents.revisions.get(document.id) and sidecar_over(document) is None:
                raise StoreCorrupt(self._path, where=file_name(document_name(document.id)), what="no stored commit names it, and its document is there")
        for document_id in contents.revisions.keys() - contents.documents.seen.keys():
            raise StoreCorrupt(self._path, where=file_name(document_name(document_id)), what="its document is not there")

    def judge_unnamed(self, name: str, data: bytes) -> None:
        """A sidecar that no marker needs: one whose removal was cut off, or one whose first commit was."""
        if self._is_growing:
            return
        lines = list(chain(data, prev=None))
        size_bytes = lines[-1].end if lines else 0
        if size_bytes == len(data) and all(line.seq <= self._last_seq for line in lines):
            self.found.leftovers.append(name)
        else:
            self._check_ahead(name, data, 0)
            self.found.cuts.append(Cut(name, 0, len(data)))

    def _check_beginning(self, line: Line | None, main: bytes) -> None:
        # The form of a newer store may be newer too, so its version is looked for before the line is judged.
        said = _version(line.body if line else main.partition(b"\n")[0].partition(b'"data":')[2].removesuffix(b"}"))
        if said is not None and said > SCHEMA_VERSION:
            raise SchemaTooNew(self._path, found=said, known=SCHEMA_VERSION)
        if line is None or said is None:
            raise self._corrupt(MAIN, 1, "it is not the beginning of a store")
        if said != SCHEMA_VERSION:
            raise self._corrupt(MAIN, 1, f"there never was a schema version {said}")
        self.found.main = Tail(line.sum, line.end)

    def _commit(self, number: int, line: Line, marker: CommitLine, rows: Iterable[tuple[Line, RowLine]]) -> None:
        is_first = not self.found.snapshot_bytes
        if not is_first and line.seq != self._last_seq + 1:
            raise self._corrupt(MAIN, number, f"commit {line.seq} follows commit {self._last_seq}")
        for row_line, row in rows:
            if row_line.seq > line.seq or (row_line.seq < line.seq and not is_first):
                raise self._corrupt(MAIN, number, f"commit {line.seq} holds a row of commit {row_line.seq}")
            put = self._put(row, MAIN, number)
            adopt(self.found.contents, [put], row_line.seq)
            self.named.pop(sidecar_over(put.record) or "", None)
        self.named |= marker.sidecars
        self.found.contents.count(line.seq, next_id=marker.next_id, at_ms=marker.at_ms)
        self._last_seq = line.seq
        self.found.is_sealed = is_first
        if is_first:
            self.found.snapshot_bytes = line.end

    def _judge_end(self, main: bytes, damaged: int) -> None:
        """Everything after the last marker is to be cut, unless something tells that it was not the end."""
        end = self.found.main.size_bytes
        for line in valid_lines(main, end):
            if line.seq > self._last_seq + 1 or (line.seq > self._last_seq and _is_closing(line)):
                raise self._corrupt(MAIN, damaged, f"it is damaged, and line {_number_of(main, line.start)} was written after it")
        if end < len(main) and not self._is_growing:
            self.found.cuts.append(Cut(MAIN, end, len(main) - end))

    def _check_ahead(self, name: str, data: bytes, start: int) -> None:
        """What a sidecar holds beyond the newest marker is of the commit that was being written, of no later one."""
        for line in valid_lines(data, start):
            if line.seq > self._last_seq + 1:
                where = f"line {_number_of(data, line.start)} of {file_name(name)}"
                what = f"it ends with commit {self._last_seq}, and {where} was written after commit {line.seq - 1}"
                raise StoreCorrupt(self._path, where=file_name(MAIN), what=what)

    def _change(self, name: str, number: int, said: AnyLine) -> tuple[Change, bool]:
        match said:
            case RowLine(table="task") if task_name(said.id) == name:
                return self._put(said, name, number), True
            case RevisionLine() if document_name(said.id) == name:
                return Revised(said.id, text_of(said.record), said.whole), said.whole
            case _:
                raise self._corrupt(name, number, "it does not belong there")

    def _put(self, row: RowLine, name: str, number: int) -> Put:
        try:
            return put_of(row.table, row.id, text_of(row.record))
        except msgspec.MsgspecError as error:
            raise self._corrupt(name, number, f"{row.table} {row.id} is no record ({error})") from error

    def _said(self, name: str, number: int, line: Line) -> AnyLine:
        try:
            return decoded(line.body)
        except msgspec.MsgspecError as error:
            raise self._corrupt(name, number, f"it is no line of a store ({error})") from error

    def _corrupt(self, name: str, number: int, what: str) -> StoreCorrupt:
        return StoreCorrupt(self._path, where=f"{file_name(name)} line {number}", what=what)


def is_sidecar(name: str) -> bool:
    """True for a name that a sidecar can have."""
    return _SIDECAR.fullmatch(name) is not None


def _version(body: bytes) -> int | None:
    """The schema version that the first line of a store names, as far as it can be read."""
    try:
        said = decoded(body)
    except msgspec.MsgspecError:
        return None
    return said.schema if isinstance(said, StoreLine) else None


def _is_closing(line: Line) -> bool:
    try:
        return isinstance(decoded(line.body), ClosedLine)
    except msgspec.MsgspecError:
        return False


def _number_of(data: bytes, offset: int) -> int:
    """The number of the line that begins at an offset, from 1."""
    return data.count(b"\n", 0, offset) + 1
