"""Looks at the program's own parts, the disk and the terminal. What was measured is judged by pure functions beside the measuring."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pi_durable_tui import __version__
from pi_durable_tui.cli.check.findings import Finding
from pi_durable_tui.cli.configuration.keyring import Loaded
from pi_durable_tui.clock import Clock
from pi_durable_tui.entropy import Entropy
from pi_durable_tui.models.catalog import PROVIDERS, configured, first_set
from pi_durable_tui.storage.files import FileOps, is_remote
from pi_durable_tui.storage.sqlite.version import SAFE_FROM, is_safe, library_version
from pi_durable_tui.tools.process import find_program

LIBRARIES = ("textual", "litellm", "apsw", "msgspec", "typer")
MEMORY_KINDS = frozenset({"tmpfs", "ramfs"})
SYNCS = 15
SYNC_BYTES = 4_096
TOO_FAST_MS = 0.05
"""No disk that people buy stores a page durably in less."""
LEAST_FREE_BYTES = 64 * 1024 * 1024
NARROW = (40, 10)


def versions() -> list[Finding]:
    """The program, its Python, its libraries and its SQLite."""
    libraries = " ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    return [
        Finding(name="pidurable", state="good", text=f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.release()}"),
        Finding(name="libraries", state="good", text=libraries),
        sqlite(library_version()),
    ]


def sqlite(version: str) -> Finding:
    """The SQLite that is used, judged. PURE."""
    if is_safe(version):
        return Finding(name="SQLite", state="good", text=f"{version}, its own library")
    wanted = ".".join(map(str, SAFE_FROM))
    text = f"{version} can damage a store when its log is reset while somebody reads it"
    return Finding(name="SQLite", state="bad", text=text, next_step=f"Install apsw {wanted} or later: pip install --upgrade apsw")


def disk(folder: Path, files: FileOps) -> list[Finding]:
    """What kind of disk the sessions are on, and how full it is. `folder` need not exist."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return [file_system_finding(files.file_system(there)), free_space(files.free_bytes(there))]


def file_system_finding(kind: str | None) -> Finding:
    """PURE. `kind` None: the system does not tell."""
    if kind is None:
        return Finding(name="file system", state="note", text="this system does not tell its kind")
    if is_remote(kind):
        text = f"{kind}, a network file system: sessions are kept with a journal instead of a log, and one writer is up to the locks of its server"
        return Finding(name="file system", state="note", text=text, next_step="Set PIDURABLE_DATA_DIR to a folder on a local disk.")
    if kind in MEMORY_KINDS:
        text = f"{kind}, in memory: sessions survive kill -9, and are gone after a restart of the machine"
        return Finding(name="file system", state="note", text=text, next_step="Set PIDURABLE_DATA_DIR to a folder on a disk.")
    return Finding(name="file system", state="good", text=kind)


def free_space(free_bytes: int) -> Finding:
    """PURE."""
    text = f"{free_bytes / 1024**3:.1f} GiB free"
    if free_bytes >= LEAST_FREE_BYTES:
        return Finding(name="disk space", state="good", text=text)
    return Finding(name="disk space", state="bad", text=text, next_step="Make room: without it nothing can be stored, and then nothing is done.")


def sync_times_ms(folder: Path, files: FileOps, clock: Clock, entropy: Entropy) -> list[float]:
    """How long it took to have a page on the disk, several times; in a file of its own in `folder`, which is gone afterwards.

    Raises:
        OSError: It could not be written.
    """
    path = folder / f".probe-{entropy.uuid7()}"
    files.create(path)
    try:
        times: list[float] = []
        for _ in range(SYNCS):
            files.append(path, b"\0" * SYNC_BYTES)
            started_ms = clock.monotonic_ms()
            files.sync(path)
            times.append(clock.monotonic_ms() - started_ms)
        return times
    finally:
        files.remove(path)


def sync(times_ms: Sequence[float]) -> Finding:
    """Whether the disk seems to honour fsync. PURE."""
    median_ms = statistics.median(times_ms)
    text = f"fsync of a page takes {median_ms:.2f} ms (median of {len(times_ms)}, at most {max(times_ms):.1f})"
    if median_ms >= TOO_FAST_MS:
        return Finding(name="fsync", state="good", text=text)
    return Finding(
        name="fsync",
        state="note",
        text=f"{text}: faster than any disk, so a cache answers that may lose its content with the power",
        next_step="Nothing to do against kill -9. Against power cuts: a disk, or a virtual machine, that passes fsync on.",
    )


def terminal(environ: Mapping[str, str], *, is_terminal: bool, columns: int, rows: int, encoding: str) -> Finding:
    """PURE."""
    if not is_terminal:
        return Finding(name="terminal", state="note", text="none: the app needs one, print mode does not", next_step='pidurable -p "PROMPT"')
    around = [name for name, variable in (("tmux", "TMUX"), ("screen", "STY"), ("SSH", "SSH_TTY")) if environ.get(variable)]
    colours = "no colours (NO_COLOR)" if environ.get("NO_COLOR") else f"colours {environ.get('COLORTERM') or 'as TERM says'}"
    text = ", ".join([f"{environ.get('TERM') or 'no TERM'} {columns}×{rows}", encoding, colours, *around])
    if environ.get("TERM", "dumb") in ("", "dumb"):
        return Finding(name="terminal", state="bad", text=text, next_step="Set TERM, for example to xterm-256color.")
    if encoding.lower().replace("-", "") != "utf8":
        return Finding(name="terminal", state="note", text=text, next_step="Set LANG to one that ends in UTF-8, for example C.UTF-8.")
    if columns < NARROW[0] or rows < NARROW[1]:
        return Finding(name="terminal", state="note", text=text, next_step=f"The app is made for {NARROW[0]}×{NARROW[1]} and more.")
    step = "To copy out of the app: set -g set-clipboard on, in tmux.conf." if "tmux" in around else ""
    return Finding(name="terminal", state="good", text=text, next_step=step)


def this_terminal(environ: Mapping[str, str]) -> Finding:
    """The terminal of this process."""
    size = shutil.get_terminal_size()
    is_terminal = bool(sys.stdin) and sys.stdin.isatty() and sys.stdout.isatty()
    return terminal(environ, is_terminal=is_terminal, columns=size.columns, rows=size.lines, encoding=sys.stdout.encoding or "unknown")


def keys(environ: Mapping[str, str], keyring: Loaded) -> Finding:
    """Which providers have a key and where from; by name only, never by value (rule SA-17). PURE."""
    found = configured(environ)
    if found:
        sources = [(name, _variable(name, environ)) for name in found]
        named = ", ".join(f"{name} ({variable}{', from the keyring' if variable in keyring.keys else ''})" for name, variable in sources)
        return Finding(name="keys", state="note" if keyring.problem else "good", text=f"{named}; values are not looked at", next_step=keyring.problem)
    step = "Set one, for example ANTHROPIC_API_KEY or OPENAI_API_KEY, or use a local server. Without any: pidurable demo"
    return Finding(name="keys", state="note", text="none in the environment", next_step=keyring.problem or step)


def _variable(provider: str, environ: Mapping[str, str]) -> str:
    known = PROVIDERS[provider]
    return next(name for name in (*known.keys, *known.tokens) if first_set((name,), environ))


def has_program(name: str, environ: Mapping[str, str], directory: Path) -> bool:
    """Whether the search path has a program, not counting what lies in the working directory (CASE-G4)."""
    return find_program(name, environ.get("PATH", ""), outside=str(directory)) is not None


def shells() -> Finding:
    """The shell that commands get."""
    found = next((path for path in ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash") if os.access(path, os.X_OK)), None)
    if found is not None:
        return Finding(name="shell", state="good", text=found)
    return Finding(name="shell", state="note", text="no bash: commands run in /bin/sh", next_step="Models write for bash; install it.")
