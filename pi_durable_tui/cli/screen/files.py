"""File names for the composer, found while they are looked for (rule TU-10): git-aware, bounded, never a wait for the whole tree.

A thread of its own goes through the tree, folders near the root first, so the first names are there at once; a search looks at what
is there. Nothing is opened but ignore files, links are not followed, and what is found is kept for a while and then looked up again.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import re
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from pi_durable_tui.clock import Clock
from pi_durable_tui.tools.search.tree import FOLDER_NAMES, NEVER, Rules, is_ignored, rules_above, rules_of

MAX_NAMES = 300_000
FRESH_MS = 10_000
FIRST_WITHIN_S = 0.06  # how long a search waits for the first names of a scan that has just begun
_FIRST_NAMES = 2_000
_FEW = 20  # names that hold the query as it is; with fewer, letters far apart count too
_RANKED = 20_000  # most names that are compared: those near the root, which were found first

Rank = tuple[int, int, int, str]


class FileNames:
    """The names below a directory.

    Args:
        root: An absolute path.
    """

    def __init__(self, root: str, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._names: list[str] = []
        self._began_ms = float("-inf")
        self._lock = threading.Lock()
        self._first = threading.Event()
        self._is_scanning = False

    def find(self, query: str, *, limit: int) -> Sequence[str]:
        """See `tui.ports.DeskPort`."""
        self._refresh()
        self._first.wait(FIRST_WITHIN_S)
        names = self._names
        ranks = (rank_of(name, query) for name in candidates(names, query))
        return [rank[-1] for rank in heapq.nsmallest(limit, (rank for rank in ranks if rank is not None))]

    def complete(self, typed: str, *, limit: int) -> Sequence[str]:
        """See `tui.ports.DeskPort`."""
        folder, slash, begin = typed.rpartition("/")
        home = str(Path.home()) if folder == "~" or folder.startswith("~/") else ""
        place = Path(self._root, home + folder.removeprefix("~") if home else f"{folder}{slash}")
        try:
            with os.scandir(place) as names:
                entries = itertools.islice(names, FOLDER_NAMES)  # a folder of a million names must not hold a completion up (rule SA-10)
                found = [f"{folder}{slash}{entry.name}{'/' if _is_folder(entry, follow=True) else ''}" for entry in entries if entry.name.startswith(begin)]
        except OSError:
            return []
        shown = [name for name in found if begin.startswith(".") or not name.rstrip("/").rpartition("/")[2].startswith(".")]
        return sorted(shown)[:limit]

    def _refresh(self) -> None:
        """Begin a scan unless one is going on or the names are fresh. The old names stay until there are as many new ones, or the scan is done."""
        with self._lock:
            if self._is_scanning or self._clock.monotonic_ms() - self._began_ms < FRESH_MS:
                return
            self._is_scanning, self._began_ms = True, self._clock.monotonic_ms()
        threading.Thread(target=self._scan, name="file names", daemon=True).start()

    def _scan(self) -> None:
        found: list[str] = []
        old = self._names
        try:
            for name in walk(self._root):
                found.append(name)
                if len(found) >= len(old) and self._names is not found:
                    self._names = found
                if len(found) == _FIRST_NAMES:
                    self._first.set()
                if len(found) >= MAX_NAMES:
                    break
        finally:
            self._names = found
            self._first.set()
            with self._lock:
                self._is_scanning = False


def walk(root: str) -> Iterator[str]:
    """The paths below `root` that no ignore file names, folders with a "/" at the end; what is near the root first."""
    waiting: deque[tuple[str, tuple[Rules, ...]]] = deque([("", rules_above(root))])
    while waiting:
        folder, rules = waiting.popleft()
        place = f"{root}/{folder}".rstrip("/")
        own = rules_of(place)
        rules = rules if own is None else (*rules, own)
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            for entry in sorted(itertools.islice(entries, FOLDER_NAMES), key=lambda each: each.name):
                is_folder = _is_folder(entry, follow=False)
                if entry.name == NEVER or is_ignored(entry.path, rules, is_folder=is_folder):
                    continue
                name = f"{folder}{entry.name}{'/' if is_folder else ''}"
                yield name
                if is_folder:
                    waiting.append((name, rules))


def candidates(names: Sequence[str], query: str) -> list[str]:
    """The names worth ranking: those that hold the query, or, when these are few, those that hold its letters in this order. PURE."""
    wanted = query.lower()
    holding = [name for name in itertools.islice(names, len(names)) if wanted in name.lower()]
    if len(holding) < _FEW and wanted:
        search = _letters(wanted).search
        holding += [name for name in itertools.islice(names, len(names)) if wanted not in name.lower() and search(name.lower()) is not None]
    return holding[:_RANKED]


def rank_of(name: str, query: str) -> Rank | None:
    """How well a name fits: the smaller the better; None: it does not. PURE.

    The beginning of the last part is better than its middle, that is better than the rest of the path, and letters in a row are better
    than letters far apart. Short names go first.
    """
    if not query:
        return name.count("/"), 0, len(name), name
    lowered, wanted = name.lower(), query.lower()
    last = lowered.rstrip("/").rpartition("/")[2]
    if wanted in last:
        return (0 if last.startswith(wanted) else 1), last.index(wanted), len(name), name
    if wanted in lowered:
        return 2, lowered.index(wanted), len(name), name
    pattern = _letters(wanted)
    found = pattern.search(last)
    if found is not None:
        return 3, found.end() - found.start(), len(name), name
    found = pattern.search(lowered)
    return (4, found.end() - found.start(), len(name), name) if found is not None else None


@lru_cache(maxsize=64)
def _letters(wanted: str) -> re.Pattern[str]:
    """The letters of `wanted` in this order, with anything between them; no backtracking beyond one pass."""
    return re.compile("".join(f"[^{re.escape(letter)}]*?{re.escape(letter)}" if index else re.escape(letter) for index, letter in enumerate(wanted[:64])))


def _is_folder(entry: os.DirEntry[str], *, follow: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:
        return False
