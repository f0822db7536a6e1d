"""Reads recorded sessions and keeps the stage they are played on; the door to files of `playback`.

A story is a folder of `sessions/`; the checkout's is looked in first, then the one that the installed package carries. A stage is a
temporary copy: the story's `workspace/`, and data and settings folders of its own, so that a demo touches nothing of the user's.
What a stage remembers over a kill are append-only files of one line each. Nothing here plays anything.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from pi_durable_tui.errors import BadRequest, ConfigError, EnvironmentFailure, NotFound
from pi_durable_tui.models.playback import WINDOW_TOKENS, Request, parse
from pi_durable_tui.playback.steps import FORMAT, Step, parse_steps
from pi_durable_tui.records.modes import ApprovalMode

T = TypeVar("T")

_PACKAGE = Path(__file__).resolve().parent.parent
CARD, INPUT, MODEL = "session.toml", "input.jsonl", "model.jsonl"
SHELVES = (_PACKAGE.parent / "sessions", _PACKAGE / "_sessions")
"""Where stories are looked for, in this order."""


class _Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`session.toml`."""

    title: str
    shows: str
    approve: ApprovalMode = "all"
    window_tokens: int = WINDOW_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A recorded session as it was read.

    Attributes:
        reference: By what `load` finds it again, from any working directory: its name, or the path of its folder.
        shows: One sentence for people.
        window_tokens: How much its model can read.
    """

    name: str
    reference: str
    folder: Path
    title: str
    shows: str
    approve: ApprovalMode
    window_tokens: int
    steps: tuple[Step, ...]
    requests: tuple[Request, ...]


def names(shelves: tuple[Path, ...] = SHELVES) -> tuple[str, ...]:
    """The names of all stories, in order; empty when there is no shelf."""
    return tuple(path.name for path in _stories(shelves))


def load(name: str, shelves: tuple[Path, ...] = SHELVES) -> Story:
    """The story of that name (the number or a part of it is enough if only one fits), or the one in the folder of that path.

    Raises:
        NotFound: No story, or more than one, fits; the hint lists them.
        ConfigError: A file of it does not follow the format; names file and line.
    """
    stories = {path.name: path for path in _stories(shelves)}
    known = tuple(stories)
    fitting = [item for item in known if item == name] or [item for item in known if item.startswith(name) or name in item.partition("-")[2]]
    if len(fitting) == 1 and name:
        return _read(stories[fitting[0]], fitting[0])
    folder = Path(os.path.realpath(Path(name).expanduser()))
    if name and (folder / CARD).is_file():
        return _read(folder, str(folder))
    there = f"There are: {', '.join(known)}." if known else "This installation has none."
    raise NotFound(f"recorded session {name!r}", where="this installation", hint=f"{there} Or name a folder that pidurable sessions record has made.")


def _read(folder: Path, reference: str) -> Story:
    name = folder.name
    try:
        values = tomllib.loads(_text(folder / CARD))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}/{CARD} is not TOML: {error}.", hint=FORMAT) from error
    card = _decoded(_Card, values, f"{name}/{CARD}")
    return Story(
        name=name,
        reference=reference,
        folder=folder,
        title=card.title,
        shows=card.shows,
        approve=card.approve,
        window_tokens=card.window_tokens,
        steps=parse_steps(_text(folder / INPUT), f"{name}/{INPUT}"),
        requests=parse(_text(folder / MODEL), f"{name}/{MODEL}"),
    )


def save(folder: Path, texts: Mapping[str, str], workspace: Mapping[str, bytes]) -> None:
    """The new folder holds these files, all private, or it is not there.

    Args:
        folder: Must not be there yet.
        texts: File name -> text.
        workspace: Relative name -> content; the folder `workspace` is made also without any.

    Raises:
        BadRequest: The folder is there already. Nothing was written.
        EnvironmentFailure: It cannot be written. Nothing is left of it.
    """
    if os.path.lexists(folder):
        raise BadRequest(f"{str(folder)!r} is there already. Nothing was written.", hint="Name a new folder.")
    contents = {folder / name: text.encode() for name, text in texts.items()}
    contents |= {folder / "workspace" / name: content for name, content in workspace.items()}
    try:
        (folder / "workspace").mkdir(mode=0o700, parents=True)
        folder.chmod(0o700)
        for path, content in contents.items():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(content)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        reason = error.strerror or error
        raise EnvironmentFailure(f"{str(folder)!r} cannot be written: {reason}. Nothing is left of it.", hint="Name another folder.") from error


def _stories(shelves: tuple[Path, ...]) -> list[Path]:
    """The folders of the first shelf that holds any: beside an installed package a folder of that name may be somebody else's."""
    for shelf in shelves:
        if found := sorted(item.parent for item in shelf.glob(f"[0-9]*/{CARD}")):
            return found
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A temporary folder in which a story is played. Survives a kill of the player, not the end of the demo."""

    root: Path

    @property
    def workspace(self) -> Path:
        """The copy of the story's files: the working directory of its tools."""
        return self.root / "workspace"

    @property
    def data(self) -> Path:
        """The data folder: sessions."""
        return self.root / "data"

    @property
    def config(self) -> Path:
        """The settings folder, empty."""
        return self.root / "config"

    @property
    def steps(self) -> Path:
        """One line per step of the story that was taken."""
        return self.root / "steps.txt"

    @property
    def commits(self) -> Path:
        """One readable line per commit (playback/golden.py)."""
        return self.root / "commits.txt"


def set_up(story: Story, root: Path | None = None) -> Stage:
    """A new stage with a copy of the story's workspace.

    Args:
        root: The folder that it becomes, for one that is to be kept; it must not be there yet. None: a temporary one.

    Raises:
        BadRequest: The folder is there already. Nothing was written.
        EnvironmentFailure: There is no room or right for it.
    """
    if root is not None and os.path.lexists(root):
        raise BadRequest(f"{str(root)!r} is there already. Nothing was started.", hint="Name a new folder.")
    try:
        if root is None:
            root = Path(tempfile.mkdtemp(prefix="pidurable-demo-"))
        else:
            root.mkdir(mode=0o700, parents=True)
        stage = Stage(root=Path(os.path.realpath(root)))
        stage.data.mkdir(mode=0o700)
        stage.config.mkdir(mode=0o700)
        source = story.folder / "workspace"
        if source.is_dir():
            shutil.copytree(source, stage.workspace, ignore=shutil.ignore_patterns("__pycache__", ".gitkeep"))
        else:
            stage.workspace.mkdir()
    except OSError as error:
        raise EnvironmentFailure(f"The recorded session {story.name} cannot be set up: {error}.", hint="Make room for it.") from error
    return stage


def clear_away(stage: Stage) -> None:
    """The stage is gone; what cannot be removed stays."""
    shutil.rmtree(stage.root, ignore_errors=True)


def append_line(path: Path, line: str) -> None:
    """Add one line at the end, private, in one write: a kill leaves the whole line or nothing of it.

    Raises:
        OSError: It could not be written whole; what was written of it was cut back (rule ST-18).
    """
    data = f"{line}\n".encode()
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        before_bytes = os.fstat(handle).st_size
        if os.write(handle, data) != len(data):
            os.ftruncate(handle, before_bytes)
            raise OSError(errno.ENOSPC, "the line could not be written whole", str(path))
    finally:
        os.close(handle)


def lines(path: Path) -> list[str]:
    """The lines so far; empty when there is no file."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@dataclass(frozen=True, slots=True)
class Progress:
    """Which requests of recorded models were started, in a file that outlives the process (models/playback.py, `Progress`)."""

    path: Path

    def started(self) -> tuple[tuple[str, str | None], ...]:
        """(session id, conversation of the story) of every request, in order."""
        # A line that is no list is a session id alone, as earlier versions noted it.
        return tuple(msgspec.json.decode(line, type=tuple[str, str | None]) if line.startswith("[") else (line, None) for line in lines(self.path))

    def note(self, session_id: str, conversation: str | None) -> None:
        """One more was started, noted for good before this returns."""
        append_line(self.path, json.dumps([session_id, conversation]))


def files_of(folder: Path, *, limit_bytes: int = 100_000) -> dict[str, str]:
    """The text files below `folder` by their relative names, in order; caches and larger or binary files left out."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        if "__pycache__" in path.parts or not path.is_file() or path.stat().st_size > limit_bytes:
            continue
        try:
            found[str(path.relative_to(folder))] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return found


def recorded_commits(story: Story) -> str:
    """The story's golden.txt; "" when it has none yet."""
    path = story.folder / "golden.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.parent.name}/{path.name} cannot be read: {error}.", hint=FORMAT) from error


def _decoded(kind: type[T], value: object, where: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where[0].upper()}{where[1:]} does not fit: {error}.", hint=FORMAT) from error
