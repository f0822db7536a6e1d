"""Brings a session folder of an older version up to date, after a copy was made (rules ST-13, PR-16); blocking.

Files are replaced one by one, so a note in the folder says, while that goes on, where the copy is. As long as it is there the copy is
what counts: whoever opens the store begins again from it, and whoever reads it reads the copy. So a crash at any instant, or a full disk, leaves
what was or what is to be.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Raw, structs

from pi_durable_tui.errors import EnvironmentFailure, StoreCorrupt
from pi_durable_tui.storage.files import FileOps
from pi_durable_tui.storage.jsonl.frame import GENESIS, chain
from pi_durable_tui.storage.jsonl.lines import MAIN, SUFFIX, AnyLine, CommitLine, Growth, RevisionLine, RowLine, StoreLine, decoded, file_name
from pi_durable_tui.storage.jsonl.recovery import recovered
from pi_durable_tui.storage.port import SCHEMA_VERSION
from pi_durable_tui.storage.versions.steps import Kind, Steps, can_upgrade, told, upgraded

NOTE = "upgrading"
_NOTE_END = b"\n"
_FIRST_LINE_BYTES = 1024


def upgrade(folder: Path, files: FileOps, steps: Steps) -> str | None:
    """The folder is of this version; what was done, for people, or None when nothing had to be.

    Raises:
        StoreCorrupt: A record is damaged. EnvironmentFailure: The system said no. What was counts.
    """
    kept = kept_copy(folder, files)
    source = kept or folder
    version = version_of(files.start(source / file_name(MAIN), _FIRST_LINE_BYTES))
    if version is None or not can_upgrade(version, steps):
        return None
    newer = in_this_version(read_files(source, files), version=version, steps=steps, store=str(folder))
    recovered(str(folder), newer[MAIN], {name: data for name, data in newer.items() if name != MAIN})  # says so when it is damaged, before anything is touched
    if kept is None:
        kept = _free(folder, files, version)
        try:
            _keep(folder, kept, files)
        except OSError as error:
            with contextlib.suppress(OSError):
                files.remove(folder / NOTE)  # first: it must never name a copy that is not there
                files.remove_folder(kept)
            text = f"The session {folder} is of schema version {version}, and no copy of it could be made before it is brought up to date"
            raise EnvironmentFailure(f"{text}: {error.strerror or error}. It is as it was.", hint="Make room on its disk.") from error
    for name, data in newer.items():
        beside = folder / (file_name(name) + ".new")
        files.remove(beside)
        files.create(beside)
        files.append(beside, data)
        files.sync(beside)
        files.rename(beside, folder / file_name(name))
    files.sync_folder(folder)
    files.remove(folder / NOTE)
    files.sync_folder(folder)
    return told(str(folder), version, str(kept))


def kept_copy(folder: Path, files: FileOps) -> Path | None:
    """The copy that counts, because replacing the files did not come to its end; None when it did, or never began."""
    if files.size_bytes(folder / NOTE) is None:
        return None
    name = files.read(folder / NOTE)
    return folder.with_name(name.removesuffix(_NOTE_END).decode()) if name.endswith(_NOTE_END) else None


def version_of(main: bytes) -> int | None:
    """The version that the first line of `main.jsonl` names; None: it names none. PURE."""
    for line in chain(main):
        with contextlib.suppress(msgspec.MsgspecError):
            said = decoded(line.body)
            return said.schema if isinstance(said, StoreLine) else None
        return None
    return None


def in_this_version(files: Mapping[str, bytes], *, version: int, steps: Steps, store: str) -> dict[str, bytes]:
    """The same files in this version: every line that holds, with its record as it is now, and sums that fit. PURE.

    What stands behind the last line that holds stays behind it, for recovery to judge.

    Args:
        files: By name, `main` and the sidecars.
        store: Names the store in errors.
    """
    made: dict[str, bytes] = {}
    sums: dict[str, str] = {}  # of the lines of the sidecars, old to new
    for name in sorted(files, key=lambda each: each == MAIN):
        growth, end = Growth(), 0
        for line in chain(files[name], prev=GENESIS if name == MAIN else None):
            try:
                said = decoded(line.body)
            except msgspec.MsgspecError as error:
                raise StoreCorrupt(store, where=file_name(name), what=f"it holds a line of no known form ({error})") from error
            growth.add(_now(said, version, steps, store, sums), line.seq)
            sums[line.sum], end = growth.tail.sum, line.end
        made[name] = bytes(growth.data) + files[name][end:]
    return made


def _now(said: AnyLine, version: int, steps: Steps, store: str, sums: Mapping[str, str]) -> AnyLine:
    def record(kind: Kind, raw: Raw) -> Raw:
        return Raw(upgraded(kind, bytes(raw), version=version, steps=steps, store=store).encode())

    match said:
        case StoreLine():
            return StoreLine(schema=SCHEMA_VERSION)
        case RowLine():
            return structs.replace(said, record=record(said.table, said.record))
        case RevisionLine():
            return structs.replace(said, record=record("revision", said.record))
        case CommitLine():
            return structs.replace(said, sidecars={name: sums.get(digest, digest) for name, digest in said.sidecars.items()})
        case _:
            return said


def _free(folder: Path, files: FileOps, version: int) -> Path:
    """A name for a copy that nothing has."""
    number, kept = 1, folder.with_name(f"{folder.name}.version-{version}")
    while files.size_bytes(kept) is not None:
        number += 1
        kept = folder.with_name(f"{folder.name}.version-{version}-{number}")
    return kept


def _keep(folder: Path, kept: Path, files: FileOps) -> None:
    """A copy of all files as they are is on the disk, and the note that it counts."""
    files.create_folder(kept)
    for name, data in read_files(folder, files).items():
        _write(kept / file_name(name), data, files)
    files.sync_folder(kept)
    files.remove(folder / NOTE)
    _write(folder / NOTE, kept.name.encode() + _NOTE_END, files)
    files.sync_folder(folder)


def _write(path: Path, data: bytes, files: FileOps) -> None:
    files.create(path)
    if data:
        files.append(path, data)
    files.sync(path)


def read_files(folder: Path, files: FileOps) -> dict[str, bytes]:
    """The bytes of all files of a store, by name."""
    return {name.removesuffix(SUFFIX): files.read(folder / name) for name in files.names(folder) if name.endswith(SUFFIX)}
