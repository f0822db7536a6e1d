"""Stores of a schema version that never was, 0, and the step that leads from it to version 1: what the machinery of upgrades is tried with.

In it an entry's time is `time`, and a full value of a document says its version as `v`.
"""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec
from msgspec import Raw, structs

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.storage.conversion import write_store
from pi_durable_tui.storage.dump import Dump
from pi_durable_tui.storage.jsonl.frame import chain
from pi_durable_tui.storage.jsonl.lines import MAIN, AnyLine, CommitLine, Growth, RevisionLine, RowLine, StoreLine, decoded
from pi_durable_tui.storage.kind import StoreKind
from pi_durable_tui.storage.sqlite.row import SHAPES, row_hash
from pi_durable_tui.storage.versions.steps import Kind, Steps


def step(kind: Kind, record: JsonObject) -> JsonObject:
    """From version 0 to version 1."""
    return _renamed(record, {"entry": ("time", "atMs"), "revision": ("v", "version")}.get(kind))


STEPS: Steps = {0: step}


async def write_old(dump: Dump, path: Path, kind: StoreKind) -> None:
    """A store of version 0 with these contents."""
    await write_store(dump, path, kind, clock=ManualClock())
    if kind == "sqlite":
        _age_sqlite(path)
    else:
        _age_jsonl(path)


def _older(kind: str, text: str | bytes) -> str:
    record = _renamed(msgspec.json.decode(text), {"entry": ("atMs", "time"), "revision": ("version", "v")}.get(kind))
    return msgspec.json.encode(record).decode()


def _renamed(record: JsonObject, names: tuple[str, str] | None) -> JsonObject:
    return record if names is None else {names[1] if key == names[0] else key: value for key, value in record.items()}


def _age_sqlite(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN")
    for kind, shape in SHAPES.items():
        for row in connection.execute(shape.select).fetchall():
            columns, text = row[:-2], _older(kind, row[-2])
            change = f"UPDATE {shape.table} SET record = ?, hash = ? WHERE id = ?"  # noqa: S608 - names of ours only
            connection.execute(change, (text, row_hash(shape.table, columns, text.encode()), row[0]))
    for row in connection.execute("SELECT document_id, seq, type, record FROM document_revisions").fetchall():
        text = _older("revision", row[3])
        digest = row_hash("document_revisions", row[:3], text.encode())
        connection.execute("UPDATE document_revisions SET record = ?, hash = ? WHERE document_id = ? AND seq = ?", (text, digest, *row[:2]))
    ((next_id, next_seq, last_at_ms),) = connection.execute("SELECT next_id, next_seq, last_at_ms FROM durable_metadata").fetchall()
    digest = row_hash("durable_metadata", (next_id, next_seq, 0, last_at_ms))
    connection.execute("UPDATE durable_metadata SET schema_version = 0, hash = ?", (digest,))
    connection.execute("COMMIT")
    connection.close()


def _age_jsonl(folder: Path) -> None:
    sums: dict[str, str] = {}
    for path in sorted(folder.glob("*.jsonl"), key=lambda each: each.stem == MAIN):
        growth = Growth()
        for line in chain(path.read_bytes()):
            growth.add(_older_line(decoded(line.body), sums), line.seq)
            sums[line.sum] = growth.tail.sum
        path.write_bytes(bytes(growth.data))


def _older_line(said: AnyLine, sums: dict[str, str]) -> AnyLine:
    match said:
        case StoreLine():
            return StoreLine(schema=0)
        case RowLine():
            return structs.replace(said, record=Raw(_older(said.table, bytes(said.record)).encode()))
        case RevisionLine():
            return structs.replace(said, record=Raw(_older("revision", bytes(said.record)).encode()))
        case CommitLine():
            return structs.replace(said, sidecars={name: sums[digest] for name, digest in said.sidecars.items()})
        case _:
            return said
