"""Reads recorded sessions and keeps the stage they are played on; the door to files of `playback`.

A story is a folder of `sessions/`; the checkout's is looked in first, then the one that the installed package carries. A stage is a
temporary copy: the story's `workspace/`, and data and settings folders of its own, so that a demo touches nothing of the user's.
What a stage remembers over a kill are append-only files of one line each. Nothing here plays anything.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import msgspec

from pi_durable_tui.errors import ConfigError, EnvironmentFailure, NotFound
from pi_durable_tui.models.playback import WINDOW_TOKENS, Request, parse
from pi_durable_tui.records.modes import ApprovalMode

T = TypeVar("T")

_PACKAGE = Path(__file__).resolve().parent.parent
SHELVES = (_PACKAGE.parent / "sessions", _PACKAGE / "_sessions")
"""Where stories are looked for, in this order."""


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A moment, told by what is stored: once all that is named holds.

    Attributes:
        answer_contains: The running answer holds this text.
        tool: A call of this tool is running.
        output_contains: Its output so far holds this text.
        after_ms: So long after that, as a person needs to see it; only where nothing can happen meanwhile.
        asks: A question about a call of this tool is open.
        in_subagent: All of that holds in the conversation of the subagent that is at work.
    """

    answer_contains: str | None = None
    tool: str | None = None
    output_contains: str = ""
    after_ms: int = 0
    asks: str | None = None
    in_subagent: bool = False


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """The person sends a prompt."""

    text: str


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """The process dies by SIGKILL at that moment."""

    when: When


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """The person presses Escape at that moment: it stops the subagent at work, or else the run."""

    when: When


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The person answers the question that is open at that moment."""

    decision: Literal["allow", "deny"]
    when: When


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """The person goes on in a fork from the newest answer that holds that text."""

    at: str


Step: TypeAlias = Submit | Kill | Stop | Answer | Fork


class _InputLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    submit: str | None = None
    press: str | None = None
    kill: bool = False
    answer: Literal["allow", "deny"] | None = None
    fork: str | None = None
    when: When | None = None


class _Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`session.toml`."""

    title: str
    shows: str
    approve: ApprovalMode = "all"
    window_tokens: int = WINDOW_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A recorded session as it is on the shelf. `shows` is one sentence for people, `window_tokens` how much its model can read."""

    name: str
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
    """The story of that name; the number or a part of the name is enough if only one fits.

    Raises:
        NotFound: No story, or more than one, fits; the hint lists them.
        ConfigError: A file of it does not follow the format; names file and line.
    """
    stories = {path.name: path for path in _stories(shelves)}
    known = tuple(stories)
    fitting = [item for item in known if item == name] or [item for item in known if item.startswith(name) or name in item.partition("-")[2]]
    if len(fitting) != 1 or not name:
        hint = f"There are: {', '.join(known)}." if known else "This installation has none."
        raise NotFound(f"recorded session {name!r}", where="the recorded sessions", hint=hint)
    folder = stories[fitting[0]]
    card = _decoded(_Card, tomllib.loads(_text(folder / "session.toml")), f"{fitting[0]}/session.toml")
    return Story(
        name=fitting[0],
        folder=folder,
        title=card.title,
        shows=card.shows,
        approve=card.approve,
        window_tokens=card.window_tokens,
        steps=parse_steps(_text(folder / "input.jsonl"), f"{fitting[0]}/input.jsonl"),
        requests=parse(_text(folder / "model.jsonl"), f"{fitting[0]}/model.jsonl"),
    )


def _stories(shelves: tuple[Path, ...]) -> list[Path]:
    """The folders of the first shelf that holds any: beside an installed package a folder of that name may be somebody else's."""
    for shelf in shelves:
        if found := sorted(item.parent for item in shelf.glob("[0-9]*/session.toml")):
            return found
    return []


def parse_steps(text: str, where: str) -> tuple[Step, ...]:
    """What the person does, from the text of an `input.jsonl`. PURE.

    Raises:
        ConfigError: Names the line.
    """
    steps: list[Step] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            decoded: object = json.loads(line)
        except json.JSONDecodeError as error:
            raise ConfigError(f"Line {number} of {where} is not JSON: {error}.", hint="sessions/README.md describes the format.") from error
        steps.append(_step(_decoded(_InputLine, decoded, f"line {number} of {where}"), f"Line {number} of {where}"))
    return tuple(steps)


def _step(line: _InputLine, where: str) -> Step:
    said = {name: value for name in ("submit", "press", "kill", "answer", "fork") if (value := getattr(line, name))}
    match said, line.when:
        case {"submit": str(text), **rest}, None if not rest:
            return Submit(text=text)
        case {"kill": True, **rest}, When() as when if not rest:
            return Kill(when=when)
        case {"press": "escape", **rest}, When() as when if not rest:
            return Stop(when=when)
        case {"answer": ("allow" | "deny") as decision, **rest}, When() as when if not rest:
            return Answer(decision=decision, when=when)
        case {"fork": str(at), **rest}, None if not rest:
            return Fork(at=at)
        case _:
            words = "submit, fork, or with when: kill, press escape, answer"
            raise ConfigError(f"{where} must be one of {words}.", hint="sessions/README.md describes the format.")


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


def set_up(story: Story) -> Stage:
    """A new stage with a copy of the story's workspace.

    Raises:
        EnvironmentFailure: There is no room or right for temporary files.
    """
    try:
        stage = Stage(root=Path(os.path.realpath(tempfile.mkdtemp(prefix="pidurable-demo-"))))
        stage.data.mkdir(mode=0o700)
        stage.config.mkdir(mode=0o700)
        source = story.folder / "workspace"
        if source.is_dir():
            shutil.copytree(source, stage.workspace, ignore=shutil.ignore_patterns("__pycache__", ".gitkeep"))
        else:
            stage.workspace.mkdir()
    except OSError as error:
        raise EnvironmentFailure(f"The recorded session {story.name} cannot be set up: {error}.", hint="Make room for temporary files.") from error
    return stage


def clear_away(stage: Stage) -> None:
    """The stage is gone; what cannot be removed stays."""
    shutil.rmtree(stage.root, ignore_errors=True)


def append_line(path: Path, line: str) -> None:
    """Add one line at the end, private, in one write: a kill leaves the whole line or nothing of it."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{line}\n".encode())
    finally:
        os.close(handle)


def lines(path: Path) -> list[str]:
    """The lines so far; empty when there is no file."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def count_started(path: Path, session_id: str) -> int:
    """Note that a request of `session_id` started, and return the how-many-th it is (models/playback.py, `Started`)."""
    append_line(path, session_id)
    return lines(path).count(session_id)


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
        raise ConfigError(f"{path.parent.name}/{path.name} cannot be read: {error}.", hint="sessions/README.md describes the format.") from error


def _decoded(kind: type[T], value: object, where: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where[0].upper()}{where[1:]} does not fit: {error}.", hint="sessions/README.md describes the format.") from error
