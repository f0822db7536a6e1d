"""The search process: `main(OPTIONS)` in a Python of its own, where OPTIONS is JSON (see `Options`).

A process of its own, because a pattern or an ignore file may take for ever to match, and nothing can stop a match from outside.
It ends itself when its time is up, and says so. It writes, for people's programs to read: `path NUL line (":" or "-") text`, or
`path NUL` when names are looked for, and at the end two NUL and a JSON object (`Ending`). Paths are absolute.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from types import FrameType

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.tools import files
from pi_durable_tui.tools.search.tree import Tree

CHUNK_BYTES = 1024 * 1024
LARGE_BYTES = 4 * 1024 * 1024  # such files are searched after all others
LINE_CHARS = 400  # of a longer line, that many around the match are shown
NO_PREFILTER = re.compile(r"\\[AZ]|\(\?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to look for. `pattern` None: names only. `glob` "": every name. `limit`: most matches or names."""

    root: str
    pattern: str | None = None
    glob: str = ""
    ignore_case: bool = False
    with_ignored: bool = False
    folders: bool = False
    context: int = 0
    limit: int = 100
    time_limit_ms: int = 1_500


@dataclass(slots=True, kw_only=True)
class Ending:
    """How far the search came.

    Attributes:
        is_full: The limit was reached; there may be more.
        is_late: The time was up. `unsearched` are then the first of the files that were not, or not wholly, searched.
        is_cut: Some names were left out, because there were too many.
        binary: How many files were passed over because they are no text.
        unreadable: How many files and folders could not be read, as far as the program counts them; else 1.
        problem: What is wrong with the pattern.
    """

    is_full: bool = False
    is_late: bool = False
    is_cut: bool = False
    binary: int = 0
    unreadable: int = 0
    unsearched: list[str] = field(default_factory=list[str])
    problem: str = ""


class TimeUp(Exception):
    """Raised by the alarm, also out of a match that goes on for ever."""


class Full(Exception):
    """Enough was found."""


def main(arguments: list[str]) -> None:
    """Search as the first argument says, and write what was found."""
    options = Options(**json.loads(arguments[0]))
    ending = Ending()

    def late(_signal: int, _frame: FrameType | None) -> None:
        raise TimeUp

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, options.time_limit_ms / 1_000)
    waiting: list[str] = []
    try:
        _search(options, ending, waiting)
    except TimeUp:
        ending.is_late = True
        ending.unsearched = waiting[:10]
    except Full:
        ending.is_full = True
    except re.error as error:
        ending.problem = str(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    _write(b"\n\0\0" + json.dumps(asdict(ending)).encode() + b"\n")
    sys.stdout.flush()


def _search(options: Options, ending: Ending, waiting: list[str]) -> None:
    """Names in order; contents of small files first. `waiting` holds what is being searched and what comes after."""
    wanted = _name_test(options)
    limit = _Limit(options.limit)
    tree = Tree(options.root, with_ignored=options.with_ignored)
    if options.pattern is None:
        for entry in tree.entries():
            if wanted(entry) and (options.folders or not entry.is_dir(follow_symlinks=False)):
                _write(os.fsencode(entry.path) + b"\0")
                limit.count()
    else:
        pattern = Pattern(options.pattern, ignore_case=options.ignore_case)
        large: list[str] = []
        for path, size in _contents(tree, options.root, wanted):
            if size > LARGE_BYTES:
                large.append(path)
                continue
            waiting[:] = [path]
            _grep(path, pattern, options, ending, limit)
        waiting[:] = large
        while waiting:
            _grep(waiting[0], pattern, options, ending, limit)
            del waiting[0]
    ending.is_cut, ending.unreadable = tree.is_cut, ending.unreadable + tree.unreadable


def _contents(tree: Tree, root: str, wanted: Callable[[os.DirEntry[str]], bool]) -> Iterator[tuple[str, int]]:
    if not os.path.isdir(root):  # noqa: PTH112 - a path of odd bytes is a text here
        yield root, os.stat(root).st_size  # noqa: PTH116
        return
    for entry in tree.entries():
        if entry.is_file(follow_symlinks=False) and wanted(entry):
            yield entry.path, entry.stat(follow_symlinks=False).st_size


def _name_test(options: Options) -> Callable[[os.DirEntry[str]], bool]:
    """Whether a name fits the glob; one without a slash speaks of the last part of a path."""
    if not options.glob:
        return lambda _entry: True
    fits = re.compile(glob_expression(options.glob.lstrip("/")), re.DOTALL).fullmatch
    if "/" not in options.glob:
        return lambda entry: fits(entry.name) is not None
    start = len(options.root.rstrip("/")) + 1
    return lambda entry: fits(entry.path[start:]) is not None


def glob_expression(glob: str) -> str:
    """A glob as a regular expression: * and ? within a part, ** over parts, [abc], {one,other}. PURE."""
    parts: list[str] = []
    depth = 0
    for token in re.findall(r"\*\*/|\*\*|\[!?\]?[^\]/]*\]|\\.|.", glob, re.DOTALL):
        match token:
            case "**/":
                parts.append("(?:.*/)?")
            case "**":
                parts.append(".*")
            case "*":
                parts.append("[^/]*")
            case "?":
                parts.append("[^/]")
            case "{":
                depth += 1
                parts.append("(?:")
            case "}" if depth:
                depth -= 1
                parts.append(")")
            case "," if depth:
                parts.append("|")
            case _ if len(token) > 2 and token[0] == "[":
                body = token[1:-1].replace("\\", "\\\\").replace("[", "\\[")
                parts.append(f"[{'^' if body[0] == '!' else ''}{body.removeprefix('!')}]")
            case _:
                parts.append(re.escape(token[-1]))
    return "".join(parts) + ")" * depth


@dataclass(slots=True)
class _Limit:
    left: int

    def count(self) -> None:
        """One more was written.

        Raises:
            Full: That was the last one.
        """
        self.left -= 1
        if self.left <= 0:
            raise Full


class Pattern:
    """A regular expression for single lines, and a quick test of many at once."""

    def __init__(self, text: str, *, ignore_case: bool) -> None:
        flags = re.IGNORECASE if ignore_case else 0
        self.line = re.compile(text, flags)
        self._many = None if NO_PREFILTER.search(text) else re.compile(text, flags | re.MULTILINE)

    def may_be_in(self, lines: str) -> bool:
        """False only when no line of `lines` matches."""
        return self._many is None or self._many.search(lines) is not None


def _grep(path: str, pattern: Pattern, options: Options, ending: Ending, limit: _Limit) -> None:
    shown = os.fsencode(path)
    before: deque[tuple[int, str]] = deque(maxlen=options.context)
    after = 0
    try:
        for number, text in _pieces(path, ending):
            if not after and not pattern.may_be_in(text):
                _keep_last(before, number, text)
                continue
            for at, line in enumerate(text.removesuffix("\n").split("\n"), number):
                match = pattern.line.search(line)
                if match is not None:
                    for earlier, context in before:
                        _write_line(shown, earlier, b"-", context)
                    before.clear()
                    _write_line(shown, at, b":", _around(line, match.start()))
                    limit.count()
                    after = options.context
                elif after:
                    after -= 1
                    _write_line(shown, at, b"-", line)
                else:
                    before.append((at, line))
    except (EnvironmentFailure, OSError):
        ending.unreadable += 1


def _keep_last(before: deque[tuple[int, str]], number: int, text: str) -> None:
    if before.maxlen:
        lines = text.removesuffix("\n").split("\n")
        first = max(0, len(lines) - before.maxlen)
        before.extend((number + first + index, line) for index, line in enumerate(lines[first:]))


def _pieces(path: str, ending: Ending) -> Iterator[tuple[int, str]]:
    """Whole lines of a text file, about a chunk at a time, with the number of the first; an endless line in pieces that count as lines of it."""
    number, rest = 1, b""
    with files.opened(path) as descriptor:
        while data := os.read(descriptor, CHUNK_BYTES):
            if b"\0" in data:
                ending.binary += 1
                return
            end = data.rfind(b"\n") + 1
            if not end and len(rest) < CHUNK_BYTES:
                rest += data
                continue
            piece = rest + (data[:end] or data)
            yield number, piece.decode(errors="replace").replace("\r\n", "\n")
            number += piece.count(b"\n")
            rest = data[end:] if end else b""
        if rest:
            yield number, rest.decode(errors="replace").replace("\r\n", "\n")


def _around(line: str, position: int) -> str:
    if len(line) <= LINE_CHARS:
        return line
    start = max(0, min(position - LINE_CHARS // 4, len(line) - LINE_CHARS))
    return f"{'…' if start else ''}{line[start : start + LINE_CHARS]}{'…' if start + LINE_CHARS < len(line) else ''}"


def _write_line(path: bytes, number: int, mark: bytes, line: str) -> None:
    text = (line if len(line) <= LINE_CHARS + 2 else line[:LINE_CHARS] + "…").encode(errors="replace")
    _write(b"%s\0%d%s%s\n" % (path, number, mark, text))


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
