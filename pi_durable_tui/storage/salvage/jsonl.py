"""A damaged folder of JSON lines: which of its lines are sound, and which ones are gone (rules PR-12, PR-15, ST-15). PURE.

A line is sound by itself, wherever it lies. Those up to the newest commit that anything sound speaks of count, whether their marker is there
or not. What stands between them and is no line was one, and often still says of what. The sums tell whether what a line builds on is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from pi_durable_tui.records.document import StoredDocument
from pi_durable_tui.storage.admission import RecordKind
from pi_durable_tui.storage.changes import put_of
from pi_durable_tui.storage.dump import KINDS, StoredRevision, StoredText
from pi_durable_tui.storage.jsonl.frame import GENESIS, Line, valid_lines
from pi_durable_tui.storage.jsonl.lines import MAIN, AnyLine, ClosedLine, CommitLine, RevisionLine, RowLine, decoded, file_name, sidecar_over, text_of
from pi_durable_tui.storage.port import SCHEMA_VERSION, Metadata
from pi_durable_tui.storage.salvage.findings import Found, Lost, connected

_ROW = re.compile(rb'"type":"row","table":"(?P<kind>[a-z]+)","id":(?P<id>[0-9]{1,18}),"record":\{"id":(?P<again>[0-9]{1,18})')
_WHERE = re.compile(rb'"conversationId":(?P<id>[0-9]{1,18})')
_HEAD = re.compile(rb'\{"sum":".{32}","bytes":(?P<bytes>[0-9]{1,9}),"seq":[0-9]+,"prev":".{32}","data":', re.DOTALL)
_NO_RECORD = re.compile(rb'"type":"(?:commit|closed|store)"')


def read_jsonl(files: Mapping[str, bytes], *, least_seq: int = 0) -> Found:
    """What these files still say.

    Args:
        files: The bytes of `main` and of each sidecar that is there, by name.
        least_seq: The newest commit of when the store was last closed.
    """
    return _Reading(files, least_seq).found()


@dataclass(frozen=True, slots=True)
class _Said:
    line: Line
    what: AnyLine


class _Reading:
    def __init__(self, files: Mapping[str, bytes], least_seq: int) -> None:
        self._files = files
        self._said = {name: list(_sound(data)) for name, data in files.items()}
        self._places: list[str] = []
        self._is_unsure = False
        self._counters = _counters(self._said, least_seq)
        self._texts: dict[tuple[RecordKind, int], StoredText] = {}
        self._lost: dict[tuple[str, int], Lost] = {}

    def found(self) -> Found:
        newest = self._take_main()
        revisions: list[StoredRevision] = []
        for name in sorted({*newest, *self._files} - {MAIN}):
            kind, _, number = name.partition("-")
            if kind == "task":
                self._take_task(int(number), name, newest.get(name))
            else:
                revisions += self._take_document(int(number), name, newest.get(name))
        self._doubt_ids()
        records = tuple(sorted(self._texts.values(), key=lambda one: (KINDS.index(one.kind), one.id)))
        return Found(
            counters=self._counters,
            records=records,
            revisions=tuple(sorted(revisions, key=lambda one: (one.document_id, one.seq))),
            lost=tuple(sorted((*self._lost.values(), *self._unnamed(records)), key=lambda one: (one.kind, one.id))),
            places=tuple(self._places),
            is_unsure=self._is_unsure,
        )

    # -------------------------------------------------------------------------------------------------------------- main

    def _take_main(self) -> dict[str, tuple[str, int]]:
        """Take the rows of `main.jsonl`; the newest line of each sidecar that is needed, by its sum, and its commit."""
        markers = [said.line.seq for said in self._said.get(MAIN, []) if isinstance(said.what, CommitLine)]
        if max(markers, default=0) < self._counters.next_seq - 1:
            self._places.append(f"the end of {file_name(MAIN)}" if MAIN in self._files else file_name(MAIN))
            self._is_unsure = True
        newest: dict[str, tuple[str, int]] = {}
        for said in self._committed(MAIN):
            match said.what:
                case RowLine(table=kind, id=record_id, record=record):
                    over = self._put(kind, record_id, text_of(record), said.line.seq)
                    newest.pop(over or "", None)
                case CommitLine(sidecars=sidecars):
                    newest |= {name: (digest, said.line.seq) for name, digest in sidecars.items()}
                case _:
                    pass
        for piece in self._damaged(MAIN):
            self._judge(piece)
        return newest

    def _put(self, kind: RecordKind, record_id: int, text: str, seq: int) -> str | None:
        """Take over a record; the name of the sidecar that nobody needs because of it."""
        try:
            put = put_of(kind, record_id, text)
        except msgspec.MsgspecError:
            self._lose(Lost(kind, record_id))
            return None
        before = self._texts.get((kind, record_id))
        inserted = before.seq if before is not None else seq
        self._texts[kind, record_id] = StoredText(kind, record_id, inserted if kind == "entry" else 0, text)
        self._lost.pop((kind, record_id), None)
        return sidecar_over(put.record)

    def _judge(self, piece: bytes) -> None:
        """Find out what a damaged piece of the file was, as far as it still says so."""
        row, where = _ROW.search(piece), _WHERE.search(piece)
        kind = row["kind"].decode() if row is not None else ""
        is_named = row is not None and row["id"] == row["again"] and int(row["id"]) < self._counters.next_id
        if row is not None and kind in KINDS:
            self._lose(Lost(kind, int(row["id"]), int(where["id"]) if where is not None else None))
        head = _HEAD.match(piece)
        is_one_line = head is not None and len(piece) == head.end() + int(head["bytes"]) + 1
        self._is_unsure |= not is_one_line or not ((kind in KINDS and is_named) or _NO_RECORD.search(piece))

    def _doubt_ids(self) -> None:
        """A damaged line that names a record which is there, and which is written once, has a damaged name."""
        used = {record_id: kind for kind, record_id in self._texts}
        for (kind, record_id), item in list(self._lost.items()):
            if record_id in used and kind != "revision" and (used[record_id] != kind or kind in {"conversation", "entry"}):
                del self._lost[item.kind, record_id]
                self._is_unsure = True

    def _lose(self, item: Lost) -> None:
        """The record is gone, or what is there of it is older; unless it was never acknowledged."""
        if item.id < self._counters.next_id:
            self._lost[item.kind, item.id] = item

    # ---------------------------------------------------------------------------------------------------------- sidecars

    def _take_task(self, task_id: int, name: str, newest: tuple[str, int] | None) -> None:
        if newest is None and ("task", task_id) in self._texts:
            return  # it has ended, and its sidecar was not removed yet
        lines = [said for said in self._committed(name) if isinstance(said.what, RowLine)]
        for said in lines:
            if isinstance(said.what, RowLine) and said.what.table == "task":
                self._put("task", task_id, text_of(said.what.record), said.line.seq)
        if self._is_behind(lines, newest):
            self._note(name)
            where = _WHERE.search(self._texts["task", task_id].text.encode()) if ("task", task_id) in self._texts else None
            self._lose(Lost("task", task_id, int(where["id"]) if where is not None else None))

    def _take_document(self, document_id: int, name: str, newest: tuple[str, int] | None) -> list[StoredRevision]:
        stored = self._texts.get(("document", document_id))
        document = msgspec.json.decode(stored.text, type=StoredDocument) if stored is not None else None
        if newest is None and document is not None and sidecar_over(document) is not None:
            return []
        lines = [said for said in self._committed(name) if isinstance(said.what, RevisionLine)]
        if document is None:
            if lines:
                self._lose(Lost("document", document_id))
            return []
        history: list[tuple[int, str | None]] = []
        before = GENESIS
        for said in lines:
            if isinstance(said.what, RevisionLine):
                if said.what.whole:
                    history.clear()
                elif said.line.prev != before:
                    history.append((said.line.seq, None))
                history.append((said.line.seq, text_of(said.what.record)))
                before = said.line.sum
        kept, loose = connected(document_id, history)
        if loose or any(text is None for _seq, text in history) or self._is_behind(lines, newest):
            self._note(name)
            self._lost["revision", document_id] = Lost("revision", document_id)
        return kept

    def _is_behind(self, lines: list[_Said], newest: tuple[str, int] | None) -> bool:
        """True when the newest line of a sidecar is gone."""
        if newest is None:
            return False
        digest, seq = newest
        return not any(said.line.sum == digest or said.line.seq > seq for said in lines)

    def _unnamed(self, records: Iterable[StoredText]) -> Iterator[Lost]:
        """Ids are given one after the other: those that nothing speaks of are of records that left no trace."""
        if self._is_unsure:
            known = {record.id for record in records} | {item.id for item in self._lost.values()}
            yield from (Lost("record", each) for each in range(1, self._counters.next_id) if each not in known)

    # ------------------------------------------------------------------------------------------------------------- lines

    def _committed(self, name: str) -> list[_Said]:
        return [said for said in self._said.get(name, []) if said.line.seq < self._counters.next_seq]

    def _damaged(self, name: str) -> Iterator[bytes]:
        """What stands between the sound lines of a file, line by line."""
        data, end = self._files.get(name, b""), 0
        for start, following in [*((said.line.start, said.line.end) for said in self._said.get(name, [])), (len(data), len(data))]:
            if start > end:
                self._note(name, data.count(b"\n", 0, end) + 1)
                yield from (piece for piece in data[end:start].split(b"\n") if piece)
            end = following

    def _note(self, name: str, line: int | None = None) -> None:
        place = file_name(name) if line is None else f"{file_name(name)} line {line}"
        if place not in self._places:
            self._places.append(place)


def _sound(data: bytes) -> Iterator[_Said]:
    for line in valid_lines(data, 0):
        try:
            yield _Said(line, decoded(line.body))
        except msgspec.MsgspecError:
            continue


def _counters(said: Mapping[str, list[_Said]], least_seq: int) -> Metadata:
    """The counters as of the newest commit that anything speaks of: its marker, the closing line behind it, or a line of the one after."""
    lines = [each for some in said.values() for each in some]
    ended = [each.line.seq for each in lines if isinstance(each.what, CommitLine | ClosedLine)]
    begun = [each.line.seq - 1 for each in lines]
    markers = [each.what for each in said.get(MAIN, []) if isinstance(each.what, CommitLine)]
    next_seq = max((*ended, *begun, least_seq)) + 1
    used = [each.what.id for each in lines if isinstance(each.what, RowLine | RevisionLine) and each.line.seq < next_seq]
    return Metadata(
        next_id=max((*(marker.next_id for marker in markers), *(each + 1 for each in used)), default=1),
        next_seq=next_seq,
        schema_version=SCHEMA_VERSION,
        last_at_ms=markers[-1].at_ms if markers else None,
    )
