"""The files that a chat began with, as far as they can still be told.

A file that a call changed is taken as it was before the first change, from what is kept of it beside the session; every other one as it
is now. What cannot be told is listed. Reads through the doors it is given, and writes nothing.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pi_durable_tui.harness.kinds import TOOL
from pi_durable_tui.permissions.paths import is_inside, secret
from pi_durable_tui.playback.recording.source import Source
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.tools.history.log import NOT_KEPT, FileChange, real_path

Extent: TypeAlias = Literal["needed", "all", "none"]
"""Which files: those that calls named or changed; every one of the directory that ignore files do not name; none."""

MOST_FILES = 2_000
MOST_BYTES = 20_000_000
_SECRET_NAMES = re.compile(
    r"(?i)^\.env(?:\..+)?$|\.(?:pem|key|p12|pfx|kdbx|keystore)$|^id_[a-z0-9]+$|(?:credentials|secrets?)\.(?:json|ya?ml|toml|ini|txt|env)$"
)


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A file as it is now."""

    content: bytes
    changed_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """How files are reached.

    Attributes:
        kept: Name of a content -> the content, None when it is not kept any more.
        on_disk: Absolute path -> the file; None when it is not there, not regular, or too large.
        tree: The absolute paths of all files of the directory.
    """

    kept: Callable[[str], bytes | None]
    on_disk: Callable[[str], OnDisk | None]
    tree: Callable[[], Iterable[str]]


@dataclass(slots=True)
class Workspace:
    """The files by their names relative to the directory, and what a person should know of them, one line each."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    remarks: list[str] = field(default_factory=list[str])


def workspace_of(source: Source, root: str, extent: Extent, doors: Doors, clean: Callable[[str], str]) -> Workspace:
    """The files as they were when the chat began.

    Args:
        root: The directory of the chat, links resolved.
        clean: Takes out of a text what must not be given away.
    """
    made = Workspace()
    changes = first_changes(source)
    named = {*named_paths(source, root), *changes}
    wanted = {"none": set[str](), "needed": named, "all": {*named, *doors.tree()}}[extent]
    size_bytes = 0
    for path in sorted(wanted):
        relative = os.path.relpath(path, root)
        if not is_inside(path, root):
            made.remarks.append(f"{path} lies outside of the directory and is left out.")
        elif len(made.files) >= MOST_FILES or size_bytes > MOST_BYTES:
            made.remarks.append(f"{relative} and what follows it is left out: there are too many files, or too large ones.")
            break
        elif secret(path) or _SECRET_NAMES.search(path.rpartition("/")[2]):
            made.remarks.append(f"{relative} is left out: files of that name hold secrets.")
        else:
            content, remark = _content(changes.get(path), path, doors, source.began_at_ms)
            made.remarks += [f"{relative} {remark}"] if remark else []
            if content is not None:
                made.files[relative] = _cleaned(relative, content, clean, made.remarks)
                size_bytes += len(content)
    made.remarks += _left_open(source, extent)
    return made


def first_changes(source: Source) -> dict[str, FileChange]:
    """The first change of every file that calls of the chat changed. PURE."""
    found: dict[str, FileChange] = {}
    changes = [change for strand in source.strands for change in strand.changes if change.at_ms >= source.began_at_ms]
    for change in sorted(changes, key=lambda each: each.at_ms):
        found.setdefault(real_path(change.path), change)
    return found


def named_paths(source: Source, root: str) -> Iterator[str]:
    """The absolute paths that calls name: as their file, or as a word of their command. PURE."""
    for strand in source.strands:
        for task in strand.tasks:
            arguments = task.input.get("arguments")
            if task.kind == TOOL and isinstance(arguments, dict):
                yield from (os.path.normpath(name if name.startswith("/") else f"{root}/{name}") for name in _names(arguments))


def _names(arguments: JsonObject) -> Iterator[str]:
    path, command = arguments.get("path"), arguments.get("command")
    if isinstance(path, str) and path and "\x00" not in path:
        yield path
    if isinstance(command, str):
        try:
            words = shlex.split(command, comments=True)
        except ValueError:
            words = command.split()
        yield from (word.rstrip(";") for word in words if word and not word.startswith(("-", "/", "~")) and "\x00" not in word)


def _content(change: FileChange | None, path: str, doors: Doors, began_at_ms: int) -> tuple[bytes | None, str]:
    """What a file held at the beginning (None: it was not there, or that is not known), and what is to be said of it."""
    if change is None:
        now = doors.on_disk(path)
        is_newer = now is not None and now.changed_at_ms > began_at_ms
        return (now.content if now is not None else None), "was changed since, by no call of the chat: it is taken as it is now." if is_newer else ""
    if change.before is None:
        return None, ""
    content = None if change.before == NOT_KEPT else doors.kept(change.before)
    return content, "is missing: what it held when the chat began is not kept." if content is None else ""


def _cleaned(relative: str, content: bytes, clean: Callable[[str], str], remarks: list[str]) -> bytes:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    cleaned = clean(text)
    if cleaned == text:
        return content
    remarks.append(f"{relative} held something that looks like a key; it is taken out.")
    return cleaned.encode()


def _left_open(source: Source, extent: Extent) -> Iterator[str]:
    """What is not known of the files. PURE."""
    tasks = [task for strand in source.strands for task in strand.tasks if task.kind == TOOL]
    looking = [task for task in tasks if task.input.get("name") in ("bash", "grep", "find", "ls")]
    if extent == "none":
        yield "No files are in it."
    elif extent == "needed" and looking:
        yield f"{len(looking)} command(s) or searches may have looked at files that are not in it; --files all takes the whole directory."
    if any(strand.forgotten for strand in source.strands):
        yield "So many files were changed that the first changes are forgotten: some files are as they were later."
