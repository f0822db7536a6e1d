"""Runs a search in a process of its own, ripgrep where the user has it and our own program elsewhere, and reads what it found.

Never longer than TIME_LIMIT_MS, never more output than OUTPUT_BYTES (CASE-C7, SA-10).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pi_durable_tui
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.search.child import LINE_CHARS, Ending, Options

TIME_LIMIT_MS = 1_500  # of searching; starting and ending the process comes on top
GRACE_MS = 300  # our own program ends itself; only when it does not, it is ended
OUTPUT_BYTES = 4 * 1024 * 1024
FILE_BYTES = "1G"  # ripgrep passes over larger files
_LINE = re.compile(rb"([^\0\n][^\0]*)\0(\d+)([:-])([^\n]*)\n")
_SOURCES = str(Path(pi_durable_tui.__file__).parent.parent)
_PROGRAM = f"import sys; sys.path.append({_SOURCES!r}); from pi_durable_tui.tools.search.child import main; main(sys.argv[1:])"
_END = b"\n\0\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line that was found, or one beside it."""

    path: str
    number: int
    text: str
    is_match: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found, and how far it came."""

    lines: tuple[Line, ...] = ()
    names: tuple[str, ...] = ()
    ending: Ending


async def search(options: Options, environment: LocalEnvironment) -> Found:
    """Carry out a search.

    Raises:
        EnvironmentFailure: Its process cannot be started.
    """
    # With a path in it, ripgrep reads a glob from its own directory; a name it can take as a type, which keeps ignore files in force.
    ripgrep = environment.program("rg") if options.pattern is not None and "/" not in options.glob else None
    if ripgrep is not None:
        return await _ripgrep(ripgrep, options, environment)
    arguments = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(asdict(options))]
    output, _, _ = await _run(arguments, environment, timeout_ms=options.time_limit_ms + GRACE_MS)
    body, mark, end = output.rpartition(_END)
    if not mark:
        return read_found(output, options, Ending(is_late=True))
    return read_found(body, options, Ending(**json.loads(end)))


def read_found(output: bytes, options: Options, ending: Ending) -> Found:
    """What the output of either program says, in order of paths and lines. PURE."""
    if options.pattern is None:
        return Found(names=tuple(sorted(os.fsdecode(name) for name in output.split(b"\0")[:-1])), ending=ending)
    lines: list[Line] = []
    matches = 0
    for path, number, mark, text in _LINE.findall(output + b"\n"):
        shown = text.decode(errors="replace").removesuffix("\r")
        shown = shown if len(shown) <= LINE_CHARS + 2 else shown[:LINE_CHARS] + "…"
        matches += mark == b":"
        lines.append(Line(path=os.fsdecode(path), number=int(number), text=shown, is_match=mark == b":"))
        if matches >= options.limit:
            ending.is_full = True
            break
    return Found(lines=tuple(sorted(lines, key=lambda line: (line.path, line.number))), ending=ending)


def ripgrep_arguments(program: str, options: Options) -> list[str]:
    """How ripgrep is called: no settings of the user or the repository, hidden files too, links not followed. PURE."""
    flags = ["--no-config", "--no-messages", "--null", "--line-number", "--no-heading", "--with-filename", "--color=never", "--hidden"]
    flags += ["--glob=!.git", f"--max-filesize={FILE_BYTES}", "--max-columns=4000", "--max-columns-preview", "--max-count", str(options.limit)]
    flags += ["--ignore-case"] if options.ignore_case else []
    flags += ["--no-ignore"] if options.with_ignored else []
    flags += [f"--context={options.context}", "--context-separator="] if options.context else []
    flags += [f"--type-add=wanted:{options.glob}", "--type=wanted"] if options.glob else []
    return [program, *flags, f"--regexp={options.pattern}", "--", options.root]


async def _ripgrep(program: str, options: Options, environment: LocalEnvironment) -> Found:
    output, code, is_whole = await _run(ripgrep_arguments(program, options), environment, timeout_ms=options.time_limit_ms)
    found = read_found(output, options, Ending(is_late=code is None and is_whole, is_full=not is_whole))
    if code == 2:  # it did not do all that it was told: it says what it did not understand, and nothing of files that it could not read
        found.ending.problem = "" if found.lines else output.decode(errors="replace").strip()[:1_000]
        found.ending.unreadable = 0 if found.ending.problem else 1
    return found


async def _run(arguments: Sequence[str], environment: LocalEnvironment, *, timeout_ms: float) -> tuple[bytes, int | None, bool]:
    """Output, exit code (None: it was ended), and whether all of the output is there."""
    parts: list[bytes] = []
    full = asyncio.Event()
    size = 0

    def take(data: bytes) -> None:
        nonlocal size
        size += len(data)
        if size > OUTPUT_BYTES:
            full.set()
        else:
            parts.append(data)

    running = asyncio.ensure_future(environment.run_program(arguments, timeout_ms=timeout_ms, on_output=take))
    enough = asyncio.ensure_future(full.wait())
    try:
        await asyncio.wait({running, enough}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        enough.cancel()
        if full.is_set() or not running.done():
            running.cancel()
            await asyncio.wait({running})
    if running.cancelled():
        return b"".join(parts), None, False
    end = running.result()
    return b"".join(parts), None if end.timed_out else end.exit_code, not full.is_set()
