"""PURE. The log of changed files of a conversation, and what taking changes back comes to (rule TU-18).

The log only grows at its end and loses its oldest part when it gets long, so what happened since an entry is what the log has more
than it had as of that entry.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from pi_durable_tui.records.codec import from_json, to_json
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import Record

LOG_CHANGES = 5_000  # most that are remembered of one conversation
NOT_KEPT = "?"
_HEX = "hex:"  # no absolute path starts like this

Content: TypeAlias = str | None
"""The name of a content; None: there is no file; NOT_KEPT: there is one, whose content is not kept (too large, unreadable, not seen in time)."""


class FileChange(Record, frozen=True):
    """One file, changed by one call (or taken back by a person).

    Attributes:
        path: Absolute, as `stored_path` spells it.
        mode: The permission bits before.
        group: Which call it was ("task 12"), or which restore ("restore 40").
    """

    path: str
    before: Content
    after: Content
    at_ms: int
    group: str
    mode: int = 0o644


def stored_path(path: str) -> str:
    """A path as a record can hold it: one that is no UTF-8 as "hex:" and its bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return _HEX + os.fsencode(path).hex()
    return path


def real_path(stored: str) -> str:
    """The path that `stored_path` spelled."""
    return os.fsdecode(bytes.fromhex(stored.removeprefix(_HEX))) if stored.startswith(_HEX) else stored


class FileLog(Record, frozen=True):
    """`pidurable.files`. `dropped`: how many changes were forgotten at the beginning."""

    dropped: int = 0
    changes: tuple[FileChange, ...] = ()


FILES = Definition(kind="pidurable.files", scope="conversation", history="rewindable", fork="asOf")


def log_of(value: JsonObject | None) -> FileLog:
    """The stored log."""
    return from_json(value or {}, FileLog)


def appended(changes: Sequence[FileChange]) -> Callable[[JsonObject], JsonObject]:
    """The step from a stored log to the one with these changes at its end."""

    def update(value: JsonObject) -> JsonObject:
        log = log_of(value)
        every = (*log.changes, *changes)
        extra = max(0, len(every) - LOG_CHANGES)
        made = to_json(FileLog(dropped=log.dropped + extra, changes=every[extra:]))
        assert isinstance(made, dict)  # a record is an object
        return made

    return update


def since(now: FileLog, then: FileLog) -> tuple[FileChange, ...]:
    """What was changed after the log was `then`; what was forgotten meanwhile is missing."""
    return now.changes[max(0, then.dropped + len(then.changes) - now.dropped) :]


def targets(changes: Iterable[FileChange]) -> dict[str, FileChange]:
    """Per file the first of the changes, which come in order: taking all back means its content before that one."""
    first: dict[str, FileChange] = {}
    for change in changes:
        first.setdefault(change.path, change)
    return first


def newest_restore(log: FileLog) -> tuple[FileChange, ...]:
    """The changes of the last restore of a conversation, if nothing was changed in these files since; else ()."""
    groups = [change.group for change in log.changes if change.group.startswith("restore ")]
    if not groups:
        return ()
    made = tuple(change for change in log.changes if change.group == groups[-1])
    last = {change.path: change.group for change in log.changes}
    return made if all(last[change.path] == groups[-1] for change in made) else ()
