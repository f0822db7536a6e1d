"""Looks at the data folder and its sessions: who may read them, whether they are sound, who holds them, what was left running.

Only reads, also beside running programs.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.check.findings import Finding
from pi_durable_tui.cli.compose import open_session
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.errors import NotFound, PidurableError, StoreCorrupt
from pi_durable_tui.harness.tasks.table import LIVE_STATUSES
from pi_durable_tui.records.task import Task
from pi_durable_tui.storage.jsonl import JsonlStorage
from pi_durable_tui.storage.lock import holder
from pi_durable_tui.storage.sqlite import SqliteStorage
from pi_durable_tui.tools.process import ProcessFacts, is_running

MOST_FILES = 20_000
_OTHERS = 0o077


def privacy(data: Path) -> Finding:
    """Whether nobody else can read what is stored (rule SA-16)."""
    if not data.exists():
        return Finding(name="data folder", state="good", text=f"{data}, not made yet")
    open_ones = list(readable_by_others(data))
    if not open_ones:
        return Finding(name="data folder", state="good", text=f"{data}, private")
    text = f"{len(open_ones)} files or folders in {data} are not private, first {open_ones[0]}"
    return Finding(name="data folder", state="bad", text=text, next_step=f"chmod -R go-rwx '{data}'")


def readable_by_others(data: Path) -> Iterator[Path]:
    """What is another user's, or open to others, of the first MOST_FILES; symlinks are not followed."""
    for path in itertools.islice(_within(data), MOST_FILES):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        if not stat.S_ISLNK(found.st_mode) and (found.st_mode & _OTHERS or found.st_uid != os.geteuid()):
            yield path


def _within(data: Path) -> Iterator[Path]:
    yield data
    for folder, folders, names in os.walk(data):
        yield from (Path(folder) / name for name in (*folders, *names))


async def sessions(setup: Setup) -> list[Finding]:
    """Each session of the directory: who holds it, whether all of it is sound, what is unfinished."""
    numbers = paths.session_numbers(setup.place)
    if not numbers:
        return [Finding(name="sessions", state="good", text=f"none of {setup.place.directory} yet")]
    return [finding for number in numbers for finding in await _session(setup, number)]


async def _session(setup: Setup, number: int) -> list[Finding]:
    name = f"session {number}"
    try:
        storage = await open_session(setup, number, read_only=True)
    except NotFound:
        return [Finding(name=name, state="good", text="never written")]
    except StoreCorrupt as error:
        return [_damaged(name, number, error)]
    except PidurableError as error:
        return [Finding(name=name, state="bad", text=error.message, next_step=error.hint)]
    try:
        if isinstance(storage, SqliteStorage | JsonlStorage):
            await storage.verify()
        counters = await storage.metadata()
        live = (await storage.tasks(statuses=LIVE_STATUSES, limit=1_000)).items
    except StoreCorrupt as error:
        return [_damaged(name, number, error)]
    except PidurableError as error:
        return [Finding(name=name, state="bad", text=error.message, next_step=error.hint)]
    finally:
        await storage.close()
    owner = holder(paths.session_path(setup.place, number, paths.session_kinds(setup.place, number)[0]))
    state = f"sound, {counters.next_seq - 1} commits" + (f", open in {owner}" if owner else "") + (f", {len(live)} unfinished tasks" if live else "")
    step = "pidurable --continue goes on with it." if live and owner is None else ""
    facts = [found for task in live if (found := facts_of(task)) is not None]
    alive = [found for found in facts if is_running(found)] if owner is None else []
    left = [
        Finding(
            name=name,
            state="bad",
            text=f"the process {found.pid} of a command is alive, and the program that started it is not",
            next_step=f"Look at it with ps {found.pid}; end it with kill {found.pid}.",
        )
        for found in alive
    ]
    return [Finding(name=name, state="good", text=state, next_step=step), *left]


def _damaged(name: str, number: int, error: StoreCorrupt) -> Finding:
    step = f"pidurable sessions salvage {number}: writes what can still be read into a new session, and says what is lost."
    return Finding(name=name, state="bad", text=error.message, next_step=step)


def facts_of(task: Task) -> ProcessFacts | None:
    """The process that a running command noted. PURE."""
    match (task.memos or {}).get("started"):
        case {"pid": int(pid), "startTime": int(start_time), "bootId": str(boot)}:
            return ProcessFacts(pid=pid, start_time=start_time, boot_id=boot)
        case _:
            return None
