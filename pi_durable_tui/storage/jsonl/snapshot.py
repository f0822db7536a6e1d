"""The files that hold given contents and no history of commits: a new store, a compacted `main.jsonl`, a converted store. PURE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from pi_durable_tui.storage.admission import RecordKind
from pi_durable_tui.storage.changes import Revised
from pi_durable_tui.storage.contents import Contents, Table
from pi_durable_tui.storage.jsonl.lines import CommitLine, Growth, RowLine, StoreLine, Tail, document_name, revision_line, task_name
from pi_durable_tui.storage.port import SCHEMA_VERSION


def main_of(contents: Contents, tails: Mapping[str, Tail]) -> Growth:
    """The whole `main.jsonl`: every row as it is now, and one marker that names the newest line of every sidecar.

    A row's `seq` is the commit that inserted the record; 0 in a converted store, where only entries are known to that point.
    """
    growth = Growth()
    growth.add(StoreLine(schema=SCHEMA_VERSION), 0)
    rows: list[tuple[RecordKind, int, Table[Any]]] = [
        *(("conversation", item, contents.conversations) for item in contents.conversations.ids),
        *(("entry", item, contents.entries) for item in contents.entries.ids),
        *(("task", item, contents.tasks) for item in contents.tasks.ids if not contents.tasks.seen[item].is_live),
        *(("submission", item, contents.submissions) for item in contents.submissions.ids),
        *(("document", item, contents.documents) for item in contents.documents.ids),
    ]
    for kind, record_id, table in rows:
        growth.add(RowLine(table=kind, id=record_id, record=Raw(table.texts[record_id].encode())), table.seqs[record_id])
    marker = CommitLine(next_id=contents.next_id, at_ms=contents.last_at_ms, sidecars={name: tail.sum for name, tail in sorted(tails.items())})
    growth.add(marker, contents.next_seq - 1)
    return growth


def sidecars_of(contents: Contents) -> dict[str, Growth]:
    """All sidecars of a store that has none yet."""
    found: dict[str, Growth] = {}
    for task_id, task in contents.tasks.seen.items():
        if task.is_live:
            row = RowLine(table="task", id=task_id, record=Raw(contents.tasks.texts[task_id].encode()))
            found.setdefault(task_name(task_id), Growth()).add(row, contents.tasks.seqs[task_id], whole=True)
    for document_id, revisions in contents.revisions.items():
        for index, (seq, text) in enumerate(revisions):
            found.setdefault(document_name(document_id), Growth()).add(revision_line(Revised(document_id, text, index == 0)), seq, whole=index == 0)
    return found
