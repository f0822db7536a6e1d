"""Reads the bytes of a damaged store, and nothing else: no lock, no SQLite, no repair; not a byte of it changes (rule ST-15).

REMINDER: the store must not be open in this process: closing the file here would drop SQLite's locks on it.
"""

from __future__ import annotations

from pathlib import Path

from pi_durable_tui.errors import EnvironmentFailure, NotFound
from pi_durable_tui.storage.files import FileOps
from pi_durable_tui.storage.jsonl.folder import Folder
from pi_durable_tui.storage.jsonl.lines import MAIN, SUFFIX
from pi_durable_tui.storage.jsonl.recovery import is_sidecar
from pi_durable_tui.storage.kind import StoreKind
from pi_durable_tui.storage.salvage.findings import Found
from pi_durable_tui.storage.salvage.jsonl import read_jsonl
from pi_durable_tui.storage.salvage.sqlite import read_sqlite
from pi_durable_tui.storage.sqlite.connection import WAL_MAGICS


def read_damaged(path: Path, kind: StoreKind, files: FileOps) -> Found:
    """What the store still says.

    Raises:
        NotFound: There is nothing.
        EnvironmentFailure: The system does not let it be read.
    """
    try:
        match kind:
            case "sqlite":
                data = files.read(path)
                if data[:4] in WAL_MAGICS:  # a copy of a log, put aside when a part of it was damaged
                    return read_sqlite(b"", data, b"")
                return read_sqlite(data, *(_beside(path, suffix, files) for suffix in ("-wal", "-journal")))
            case "jsonl":
                names = [name.removesuffix(SUFFIX) for name in files.names(path) if name.endswith(SUFFIX)]
                found = {name: files.read(path / (name + SUFFIX)) for name in names if name == MAIN or is_sidecar(name)}
                return read_jsonl(found, least_seq=Folder(path, files).closed_seq())
    except FileNotFoundError as error:
        raise NotFound("session", where=str(path)) from error
    except OSError as error:
        raise EnvironmentFailure(f"The session {path} cannot be read: {error.strerror or error}. Nothing was changed.") from error


def _beside(path: Path, suffix: str, files: FileOps) -> bytes:
    beside = path.with_name(path.name + suffix)
    return files.read(beside) if files.size_bytes(beside) else b""
