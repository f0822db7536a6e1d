"""What stands in the log behind a damaged part of it is put aside before SQLite writes over it (rules ST-18, PR-15); blocking.

SQLite takes the first frame of its log that does not fit for the end, and leaves out whatever was committed after it without a word. After a power
cut that is right: what was not flushed may be torn. But a changed bit looks the same. So where more than the one commit that may have been under
way is not taken over, the log is kept as it was, people are told, and `sessions salvage` reads what the copy holds.
"""

from __future__ import annotations

import hashlib
import re
import struct
from pathlib import Path

from pi_durable_tui.storage.files import FileOps, keep_aside
from pi_durable_tui.storage.port import PutAside
from pi_durable_tui.storage.sqlite.connection import WAL_HEADER_BYTES, WAL_MAGICS
from pi_durable_tui.storage.sqlite.sql import Sql

FRAME_BYTES = 24
WHAT = "stand behind a damaged part of it and could not be taken over, so the newest work may be missing (pidurable sessions salvage reads such a copy)"
_LOG = "-wal"
_LOST_FROM = 2  # one commit may have been torn by the end of the process, or of the power, while it was written


def commit_frames(log: bytes) -> list[int]:
    """The numbers, from 1, of the frames of a log that say that they end a commit, whether what they hold is sound or not. PURE."""
    if log[:4] not in WAL_MAGICS:
        return []
    step, salt = FRAME_BYTES + int.from_bytes(log[8:12], "big"), log[16:24]
    found: list[int] = []
    for number, start in enumerate(range(WAL_HEADER_BYTES, len(log) - step + 1, step), 1):
        _page, pages_after = struct.unpack_from(">II", log, start)
        if log[start + 8 : start + 16] != salt:
            break
        if pages_after:
            found.append(number)
    return found


def read_log(path: Path, files: FileOps) -> bytes:
    """The log beside a session file that nobody has open; nothing where there is none."""
    log = path.with_name(path.name + _LOG)
    return files.read(log) if (files.size_bytes(log) or 0) > WAL_HEADER_BYTES else b""


def keep_end(sql: Sql, path: Path, files: FileOps, log: bytes) -> str | None:
    """What SQLite did not take over of the log is in a copy; what was done, for people, or None when it took over all.

    Args:
        sql: The one writing connection, before its first write.
        log: As it was before SQLite looked at it.
    """
    ends = commit_frames(log)
    counts = sql.row("PRAGMA wal_checkpoint(NOOP)") if ends else None
    taken = counts[1] if counts is not None and isinstance(counts[1], int) else -1
    if taken < 0 or sum(end > taken for end in ends) < _LOST_FROM:
        return None
    copy = keep_aside(files, path.with_name(path.name + _LOG), log)
    files.sync_folder(copy.parent)
    step = FRAME_BYTES + int.from_bytes(log[8:12], "big")
    return f"{(ends[-1] - taken) * step} bytes at the end of {path.name}{_LOG} {WHAT}: the log is kept as {copy.name}."


def kept_ends(path: Path, files: FileOps) -> tuple[PutAside, ...]:
    """The copies that this and earlier openings made."""
    name = re.compile(rf"{re.escape(path.name + _LOG)}\.cut-[1-9][0-9]*")
    found: list[PutAside] = []
    for item in files.names(path.parent):
        if name.fullmatch(item):
            data = files.read(path.with_name(item))
            digest = hashlib.blake2b(data, digest_size=8).hexdigest()
            found.append(PutAside(name=item, digest=digest, size_bytes=len(data), cut_from=path.name + _LOG, what=WHAT))
    return tuple(found)
