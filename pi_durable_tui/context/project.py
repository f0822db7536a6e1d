"""Decides what belongs to a project and finds its files: instructions, skills, prompt templates, agents, extensions, settings (rules AG-1, AG-3, CASE-F6).

The boundary: the nearest folder at or above the working directory that holds a `.git`, belongs to the same user, and is neither the home
directory nor "/"; without one the working directory itself. Nothing outside of it is looked at, links included. Reads only; runs nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pi_durable_tui.context import files
from pi_durable_tui.context.text import decoded, shown_name
from pi_durable_tui.errors import EnvironmentFailure

Kind: TypeAlias = Literal["instructions", "settings", "skill", "prompt", "agent", "extension"]

INSTRUCTION_NAMES = ("AGENTS.md", "CLAUDE.md")
FOLDER = ".pidurable"
LIMIT_BYTES = 48 * 1024
"""Of one file; what is beyond is not loaded."""
TOTAL_CHARS = 120_000
"""Of all instruction files together."""
MOST_ITEMS = 100
"""Skills, templates, agents and extensions of one folder."""
MOST_LEVELS = 50
_GROUPS: tuple[tuple[Kind, str, str], ...] = (
    ("skill", "skills", "SKILL.md"),
    ("prompt", "prompts", ""),
    ("agent", "agents", ""),
    ("extension", "extensions", "extension.py"),
)
"""Kind, the folder of its own, and the file inside a folder for each; "": the files lie there themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A file that may be loaded.

    Attributes:
        name: Of a skill, template, agent or extension: that of its folder or file. Else as `shown`.
        path: With links resolved.
        shown: How people and the model know it: relative to the root, or with the config folder's name before it.
        text: What it holds, as far as it would be loaded, safe for a model.
        digest: SHA-256 of the bytes that `text` was made of.
        is_projects: It comes from the project, not from the user's config folder.
    """

    kind: Kind
    name: str
    path: Path
    shown: str
    text: str
    digest: str
    is_projects: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What there is, in the order in which it counts, one line for each oddity, and every path that was looked at."""

    items: tuple[Item, ...]
    warnings: tuple[str, ...]
    looked_at: tuple[Path, ...]


def root_of(directory: Path, home: Path | None) -> Path:
    """The project's root for a working directory; both with links resolved."""
    owner = files.owner(directory)
    for folder in (directory, *directory.parents)[:MOST_LEVELS]:
        if folder in {home, folder.parent} or files.owner(folder) != owner:
            break
        if files.is_there(folder / ".git"):
            return folder
    return directory


def find(*, config: Path, directory: Path, root: Path) -> Found:
    """Everything that the user and the project bring.

    Args:
        config: The user's config folder; may not exist.
        directory: The working directory, links resolved; `root` or below it.
    """
    search = _Search()
    search.instructions(config, shown="config/", inside=None, is_projects=False)
    for folder in _from_root(root, directory):
        search.instructions(folder, shown=_shown(folder, root), inside=root, is_projects=True)
    search.folder(config, shown="config/", inside=None, is_projects=False)
    search.folder(root / FOLDER, shown=f"{FOLDER}/", inside=root, is_projects=True)
    return Found(items=tuple(search.items), warnings=tuple(search.warnings), looked_at=tuple(search.looked_at))


def _from_root(root: Path, directory: Path) -> tuple[Path, ...]:
    steps = directory.relative_to(root).parts
    return tuple(root.joinpath(*steps[:count]) for count in range(len(steps) + 1))[:MOST_LEVELS]


def _shown(folder: Path, root: Path) -> str:
    relative = shown_name(str(folder.relative_to(root)))
    return "" if relative == "." else f"{relative}/"


class _Search:
    """What has been found so far; each file once by its real path, each instruction text once."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.warnings: list[str] = []
        self.looked_at: list[Path] = []
        self._paths: set[Path] = set()
        self._texts: set[str] = set()
        self._chars = 0

    def instructions(self, folder: Path, *, shown: str, inside: Path | None, is_projects: bool) -> None:
        """The first of the known names that can be used."""
        for name in INSTRUCTION_NAMES:
            item = self._item("instructions", folder / name, f"{shown}{name}", f"{shown}{name}", inside=inside, is_projects=is_projects)
            if item is None:
                continue
            if item.path in self._paths or item.digest in self._texts:
                return
            self._paths.add(item.path)
            self._texts.add(item.digest)
            if self._chars + len(item.text) > TOTAL_CHARS:
                self.warnings.append(f"{item.shown} is not used: the instruction files before it fill {TOTAL_CHARS:,} characters.")
                return
            self._chars += len(item.text)
            self.items.append(item)
            return

    def folder(self, folder: Path, *, shown: str, inside: Path | None, is_projects: bool) -> None:
        """Skills, templates, agents, extensions and, of a project, settings."""
        if is_projects:
            self._add("settings", folder / "settings.json", "settings", f"{shown}settings.json", inside=inside, is_projects=True)
        for kind, group, own in _GROUPS:
            for name in self._names(folder / group, f"{shown}{group}", inside):
                if own or name.endswith(".md"):
                    place = Path(group, name, own)
                    self._add(kind, folder / place, name.removesuffix(".md"), f"{shown}{shown_name(str(place))}", inside=inside, is_projects=is_projects)

    def _names(self, folder: Path, shown: str, inside: Path | None) -> Iterator[str]:
        self.looked_at.append(folder)
        if not files.is_within(folder, inside):
            self.warnings.append(f"{shown} is a link that leads out of the project and is not used.")
            return iter(())
        found, has_more = files.names(folder, limit=MOST_ITEMS)
        if has_more:
            self.warnings.append(f"{shown} holds more than {MOST_ITEMS} names; the others are not looked at.")
        return (name for name in found if not name.startswith("."))

    def _add(self, kind: Kind, path: Path, name: str, shown: str, *, inside: Path | None, is_projects: bool) -> None:
        item = self._item(kind, path, name, shown, inside=inside, is_projects=is_projects)
        if item is not None and item.path not in self._paths:
            self._paths.add(item.path)
            self.items.append(item)

    def _item(self, kind: Kind, path: Path, name: str, shown: str, *, inside: Path | None, is_projects: bool) -> Item | None:
        self.looked_at.append(path)
        try:
            found = files.read(path, limit_bytes=LIMIT_BYTES, inside=inside)
        except EnvironmentFailure as error:
            self.warnings.append(f"{shown} {error.message} and is not used.")
            return None
        if found is None or not found.data.strip():
            return None
        if b"\0" in found.data:
            self.warnings.append(f"{shown} is not a text and is not used.")
            return None
        if found.is_cut and kind in ("extension", "settings"):
            self.warnings.append(f"{shown} is longer than {LIMIT_BYTES // 1024} KiB and is not used.")
            return None
        made = decoded(found.data, is_cut=found.is_cut)
        oddities = [made.oddity] if made.oddity else []
        text = made.text
        if found.is_cut:
            oddities.append(f"is {found.size_bytes:,} bytes long, of which {LIMIT_BYTES // 1024} KiB are used")
            text = f"{text.rstrip()}\n[Cut here: {found.size_bytes - len(found.data):,} more bytes are in the file.]"
        if oddities:
            self.warnings.append(f"{shown} {' and '.join(oddities)}.")
        return Item(kind=kind, name=name, path=found.real, shown=shown, text=text, digest=hashlib.sha256(found.data).hexdigest(), is_projects=is_projects)
