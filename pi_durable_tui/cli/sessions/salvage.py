"""`pidurable sessions salvage`: what can still be read of a damaged store goes into a new session; the damaged one is only read (rules ST-15, PR-15).

The new session is one like any other, with the next number of the directory: made beside, verified, and only then in its place. What is lost
is listed here, and told in the chats that it was of.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.chats import parse_id
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.errors import EnvironmentFailure, NotFound, PidurableError, Refused, SchemaTooNew, StoreCorrupt, StoreLocked
from pi_durable_tui.harness.salvage.mending import Mended, mended
from pi_durable_tui.storage.conversion import open_store, write_store
from pi_durable_tui.storage.files import RealFiles, check_own
from pi_durable_tui.storage.kind import StoreKind
from pi_durable_tui.storage.lock import holder
from pi_durable_tui.storage.salvage.findings import Found, Lost
from pi_durable_tui.storage.salvage.reading import read_damaged
from pi_durable_tui.tui.safe_text import safe_text

MOST_LISTED = 50


def salvage(which: str | None, *, cwd: str | None) -> int:
    """Write what can be read of a damaged store into a new session, and tell what is lost.

    Args:
        which: A session's number, a chat's id, or the path of a store; None: the first damaged session of the directory.

    Raises:
        NotFound: There is no such store, or none that is damaged. Nothing was written.
        StoreLocked: A program has it open. SchemaTooNew: It is not damaged, but newer. Refused: It is somebody else's. Nothing was written.
        StoreCorrupt: Nothing in it can be read. Nothing was written.
    """
    setup = set_up(cwd, os.environ)
    source, kind = _source(setup, which)
    check_own(source)
    owner = holder(source)
    if owner is not None:
        raise StoreLocked(str(source), holder=str(owner))
    damage = asyncio.run(damage_of(setup, source, kind))
    if damage is None:
        note(f"{source} is sound. Nothing was written.")
        return 0
    found = read_damaged(source, kind, RealFiles())
    if found.is_sound and not isinstance(damage, StoreCorrupt):
        raise damage  # it cannot be opened just now, and nothing is wrong with it
    if not any(record.kind == "entry" for record in found.records):
        raise StoreCorrupt(str(source), where="everywhere", what="no entry of any chat can be read any more")
    result = mended(found, now_ms=setup.clock.now_ms(), new_provider_id=setup.entropy.uuid7)
    number = _write(setup, result, source, kind)
    print(safe_text(report(found, result, source=str(source), number=number, target=str(paths.session_path(setup.place, number, kind)))))
    return 0


async def damage_of(setup: Setup, store: Path, kind: StoreKind) -> PidurableError | None:
    """Why the store cannot be used; None when all of it is sound.

    Raises:
        NotFound: There is none. SchemaTooNew: It was written by a newer program.
    """
    try:
        storage = await open_store(kind, store, clock=setup.clock, read_only=True)
        try:
            await storage.verify()
        finally:
            await storage.close()
    except (StoreCorrupt, EnvironmentFailure) as error:
        return error
    return None


def _source(setup: Setup, which: str | None) -> tuple[Path, StoreKind]:
    """The store that is meant."""
    if which is not None and (os.sep in which or Path(which).exists()):
        path = Path(os.path.realpath(which))
        if not path.exists():
            raise NotFound("session", where=repr(which))
        return path, "jsonl" if path.is_dir() else "sqlite"
    numbers = paths.session_numbers(setup.place) if which is None else (parse_id(which if "." in which else f"{which}.0")[0],)
    for number in numbers:
        for kind in paths.session_kinds(setup.place, number):
            path = paths.session_path(setup.place, number, kind)
            if which is not None or _is_damaged(setup, path, kind):
                return path, kind
    what = "damaged session" if which is None else f"session {which}"
    raise NotFound(what, where=repr(str(setup.place.directory)), hint="pidurable doctor looks at all of them; a path names a store that is elsewhere.")


def _is_damaged(setup: Setup, path: Path, kind: StoreKind) -> bool:
    try:
        return isinstance(asyncio.run(damage_of(setup, path, kind)), StoreCorrupt)
    except (NotFound, SchemaTooNew):
        return False


def _write(setup: Setup, result: Mended, source: Path, kind: StoreKind) -> int:
    """Make the new session; its number."""
    paths.prepare(setup.place)
    number = max(paths.session_numbers(setup.place), default=0) + 1
    if number > paths.MAX_SESSIONS:
        raise Refused(f"{str(setup.place.directory)!r} has {paths.MAX_SESSIONS} sessions already. Nothing was written.", hint="pidurable sessions prune")
    try:
        asyncio.run(write_store(result.dump, paths.session_path(setup.place, number, kind), kind, clock=setup.clock))
    except OSError as error:
        hint = "Make room there, or set PIDURABLE_DATA_DIR to another folder."
        raise EnvironmentFailure(f"The new session cannot be written: {error.strerror or error}. The damaged one is as it was.", hint=hint) from error
    # Outputs that were too long for a result, and what /undo needs, lie beside a session.
    beside = source.with_name(f"{source.name.removesuffix(source.suffix)}.files")
    own = next((each for each in paths.session_numbers(setup.place) if source == paths.session_path(setup.place, each, kind)), None)
    beside = paths.session_files(setup.place, own) if own is not None else beside
    if beside.is_dir():
        shutil.copytree(beside, paths.session_files(setup.place, number), symlinks=True, dirs_exist_ok=True)
    return number


def report(found: Found, result: Mended, *, source: str, number: int, target: str) -> str:
    """What was found, what is lost, and where the new session is. PURE."""
    gone = [item for item in result.lost if item.kind != "revision"]
    where = f": {', '.join(found.places[:5])}{', …' if len(found.places) > 5 else ''}" if found.places else ", though none of its records is"
    lines = [
        f"{source} is damaged{where}.",
        f"{len(found.records):,} of {len(found.records) + len(gone):,} records are sound. They are session {number} now: {target}",
    ]
    if result.lost:
        lines += ["Lost, or deleted before:" if found.is_unsure else "Lost:", *(f"  {text}" for text in listed(result.lost, number))]
    if found.is_unsure:
        lines.append("More may be lost that nothing speaks of any more.")
    if result.notes:
        chats = ", ".join(f"{number}.{each}" for each in list(result.notes)[:MOST_LISTED])
        lines.append(f"Each of these chats says so at its end: {chats}")
    if result.ended:
        lines.append(f"What was at work was ended in: {', '.join(f'{number}.{each}' for each in result.ended[:MOST_LISTED])}")
    lines += [
        f"{source} is as it was.",
        f"pidurable sessions lists the chats. Once nothing of the damaged one is wanted any more: mv {shlex.quote(source)} ELSEWHERE",
    ]
    return "\n".join(lines)


def listed(lost: Sequence[Lost], number: int) -> list[str]:
    """What is gone, one thing a line; changes of one document together. PURE."""
    changes = Counter((item.id, item.conversation_id) for item in lost if item.kind == "revision")
    lines = [f"{item.kind} {item.id}{_where(item.conversation_id, number)}" for item in lost if item.kind != "revision"]
    lines += [f"{count} change{'s' if count > 1 else ''} of document {each}{_where(where, number)}" for (each, where), count in changes.items()]
    more = len(lines) - MOST_LISTED
    return lines if more <= 0 else [*lines[:MOST_LISTED], f"… and {more} more"]


def _where(conversation_id: int | None, number: int) -> str:
    return f" of chat {number}.{conversation_id}" if conversation_id is not None else ", of a chat that cannot be told"
