"""Goes through a tree of files in order of names, without what ignore files name, and never without end (rule SA-10).

Links are not followed, and nothing but ignore files is opened. Whoever needs a limit of time counts it while taking the entries.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.tools import files

FOLDER_NAMES = 50_000  # of a folder with more names, that many are looked at
TREE_NAMES = 500_000  # most that are looked at in all
IGNORE_BYTES = 256 * 1024
PATTERN_CHARS, PATTERN_STARS = 500, 3
IGNORE_FILES = (".gitignore", ".ignore")
NEVER = ".git"


@dataclass(frozen=True, slots=True)
class Rules:
    """What one folder's ignore files say of the paths below it."""

    folder: str
    spec: GitIgnoreSpec


@dataclass(slots=True)
class Tree:
    """A walk from `root`, with what it left out.

    Attributes:
        with_ignored: Also give what ignore files name.
        left_out: Names of folders that are not gone into.
        looked_at: How many names were seen.
        is_cut: Some names were left out, because there were too many.
        unreadable: How many folders could not be read.
    """

    root: str
    with_ignored: bool = False
    left_out: frozenset[str] = frozenset()
    looked_at: int = 0
    is_cut: bool = False
    unreadable: int = 0
    _rules: dict[str, tuple[Rules, ...]] = field(default_factory=dict[str, tuple[Rules, ...]])

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """What is below the root: the names of a folder in order, then what is in its folders."""
        waiting: list[tuple[str, tuple[Rules, ...]]] = [(self.root, () if self.with_ignored else rules_above(self.root))]
        while waiting and self.looked_at < TREE_NAMES:
            folder, rules = waiting.pop()
            names = self._names(folder)
            own = None if self.with_ignored else rules_of(folder)
            rules = rules if own is None else (*rules, own)
            below: list[tuple[str, tuple[Rules, ...]]] = []
            for entry in names:
                is_folder = _is_folder(entry)
                if entry.name == NEVER or (is_folder and entry.name in self.left_out) or is_ignored(entry.path, rules, is_folder=is_folder):
                    continue
                yield entry
                if is_folder:
                    below.append((entry.path, rules))
            waiting += reversed(below)
        self.is_cut = self.is_cut or bool(waiting)

    def _names(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                names = list(itertools.islice(found, FOLDER_NAMES + 1))
        except OSError:
            self.unreadable += 1
            return []
        self.is_cut = self.is_cut or len(names) > FOLDER_NAMES
        self.looked_at += len(names)
        return sorted(names[:FOLDER_NAMES], key=lambda entry: entry.name)


def rules_of(folder: str) -> Rules | None:
    """What the ignore files of a folder say; None when it has none that say anything."""
    lines: list[str] = []
    for name in IGNORE_FILES:
        path = f"{folder}/{name}"
        if not os.path.lexists(path):
            continue
        try:
            with files.opened(path) as descriptor:
                lines += os.read(descriptor, IGNORE_BYTES).decode(errors="replace").splitlines()
        except EnvironmentFailure:
            continue
    spec = GitIgnoreSpec.from_lines([line for line in lines if line.strip() and not line.startswith("#") and _is_valid(line)])
    return Rules(folder, spec) if lines else None


def rules_above(root: str) -> tuple[Rules, ...]:
    """What the folders between the repository's root and `root` say of it; nothing outside a repository."""
    chain: list[Rules] = []
    for folder in (Path(root), *Path(root).parents):
        if str(folder) != root and (own := rules_of(str(folder))) is not None:
            chain.append(own)
        if os.path.lexists(folder / NEVER):
            return tuple(reversed(chain))
    return ()


def is_ignored(path: str, rules: tuple[Rules, ...], *, is_folder: bool) -> bool:
    """Whether ignore files leave a path out; the nearest one that speaks of it decides."""
    for each in reversed(rules):
        below = path[len(each.folder.rstrip("/")) + 1 :]
        said = each.spec.check_file(f"{below}/" if is_folder else below).include
        if said is not None:
            return said
    return False


def _is_valid(line: str) -> bool:
    """A pattern with many stars in one name is left out: matching it could take for ever, and no sane ignore file has one."""
    if len(line) > PATTERN_CHARS or any(part.count("*") > PATTERN_STARS for part in line.split("/") if part != "**"):
        return False
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:  # one odd line must not switch off the others
        return False
    return True


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
