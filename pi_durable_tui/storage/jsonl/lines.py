"""What stands in the files, and which lines a commit adds to which file. PURE.

`main.jsonl` begins with the schema version, holds every table write, and one marker per commit. A live task's record stands in its
sidecar `task-<id>.jsonl`, one line per version; once it is terminal it stands in `main.jsonl`. A document's revisions stand in
`doc-<id>.jsonl`. A marker names the newest line of every sidecar that its commit wrote, by its sum, which stands for all before it.
A `closed` line says that the owner went away in order, so nothing before it can be a torn end.

Every line of a task's sidecar, and a base that nobody may look behind, is *whole*: the file may be cut off in front of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
from msgspec import Raw

from pi_durable_tui.records.document import StoredDocument
from pi_durable_tui.records.messages import Record
from pi_durable_tui.records.task import Task
from pi_durable_tui.storage.admission import RecordKind
from pi_durable_tui.storage.changes import Change, Put, Revised
from pi_durable_tui.storage.jsonl.frame import GENESIS, framed

MAIN = "main"
SUFFIX = ".jsonl"


class StoreLine(Record, frozen=True, tag="store"):
    """The first line of `main.jsonl`."""

    schema: int


class RowLine(Record, frozen=True, tag="row"):
    """The record of that table and id is now this one."""

    table: RecordKind
    id: int
    record: Raw


class RevisionLine(Record, frozen=True, tag="revision"):
    """A document changed."""

    id: int
    record: Raw
    whole: bool = False


class CommitLine(Record, frozen=True, tag="commit"):
    """The lines since the marker before, and the sidecars up to the lines named here, are stored."""

    next_id: int
    at_ms: int | None = None
    sidecars: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it


class ClosedLine(Record, frozen=True, tag="closed"):
    """Nothing was under way when the store was closed."""


AnyLine: TypeAlias = StoreLine | RowLine | RevisionLine | CommitLine | ClosedLine

_decoder = msgspec.json.Decoder(AnyLine)


def decoded(body: bytes) -> AnyLine:
    """What a line says.

    Raises:
        msgspec.MsgspecError: It says nothing that this version knows.
    """
    return _decoder.decode(body)


def text_of(raw: Raw) -> str:
    """The record in a line, byte for byte as it was stored."""
    return bytes(raw).decode()


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a file as far as it is confirmed.

    Attributes:
        sum: Of its last line.
        whole_at: Offset of its newest whole line; what is in front of it may go.
    """

    sum: str = GENESIS
    size_bytes: int = 0
    whole_at: int = 0


@dataclass(slots=True)
class Growth:
    """Lines that are added to the end of a file."""

    tail: Tail = field(default_factory=Tail)
    data: bytearray = field(default_factory=bytearray)

    def add(self, line: AnyLine, seq: int, *, whole: bool = False) -> None:
        """One more line."""
        text, digest = framed(msgspec.json.encode(line), seq=seq, prev=self.tail.sum)
        start = self.tail.size_bytes
        self.tail = Tail(digest, start + len(text), start if whole else self.tail.whole_at)
        self.data += text


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a commit does to the files. `over`: sidecars that nobody needs once it is stored."""

    main: Growth
    sidecars: dict[str, Growth]
    over: frozenset[str]

    @property
    def size_bytes(self) -> int:
        return len(self.main.data) + sum(len(growth.data) for growth in self.sidecars.values())


def planned(changes: Iterable[Change], seq: int, *, next_id: int, at_ms: int, main: Tail, tails: Mapping[str, Tail]) -> Plan:
    """The lines of commit `seq`.

    Args:
        main, tails: Where the files end now; a sidecar that is not there begins.
    """
    changes = tuple(changes)
    over = {name for change in changes if isinstance(change, Put) and (name := sidecar_over(change.record)) is not None}
    growth, sidecars = Growth(main), dict[str, Growth]()

    def sidecar(name: str) -> Growth:
        return sidecars.setdefault(name, Growth(tails.get(name, Tail())))

    for change in changes:
        if isinstance(change, Put):
            row = RowLine(table=change.kind, id=change.record_id, record=Raw(change.text.encode()))
            if isinstance(change.record, Task) and change.record.is_live:
                sidecar(task_name(change.record_id)).add(row, seq, whole=True)
            else:
                growth.add(row, seq)
        elif document_name(change.document_id) not in over:
            sidecar(document_name(change.document_id)).add(revision_line(change), seq, whole=change.whole)
    growth.add(CommitLine(next_id=next_id, at_ms=at_ms, sidecars={name: item.tail.sum for name, item in sidecars.items()}), seq)
    return Plan(main=growth, sidecars=sidecars, over=frozenset(over & tails.keys()))


def revision_line(change: Revised) -> RevisionLine:
    """A document's revision as a line."""
    return RevisionLine(id=change.document_id, record=Raw(change.text.encode()), whole=change.whole)


def sidecar_over(record: object) -> str | None:
    """The sidecar that nobody needs any more because of this record in `main.jsonl`; None: there is none."""
    match record:
        case Task(is_live=False):
            return task_name(record.id)
        case StoredDocument(history="latest") if record.retired_seq is not None:
            return document_name(record.id)
        case _:
            return None


def task_name(task_id: int) -> str:
    """The sidecar of a live task."""
    return f"task-{task_id}"


def document_name(document_id: int) -> str:
    """The sidecar of a document."""
    return f"doc-{document_id}"


def file_name(name: str) -> str:
    """The file of `main` or of a sidecar."""
    return name + SUFFIX
