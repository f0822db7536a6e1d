"""Renames, deletes and copies chats. What cannot be undone is asked first, and refused while a program has the session open."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.chats import Found, choose, find_chats
from pi_durable_tui.cli.compose import open_session
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.sessions.listing import store_path, table
from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.errors import BadRequest, EnvironmentFailure, PidurableError, Refused
from pi_durable_tui.harness.chats import rename
from pi_durable_tui.session.session import Session
from pi_durable_tui.storage.conversion import copy_store
from pi_durable_tui.storage.sqlite.keeping import copy_to, remove_chat
from pi_durable_tui.tui.safe_text import safe_line

_AGE = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNIT_MS = {"h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def rename_chat(chat_id: str, name: str, *, cwd: str | None) -> int:
    """Give the chat a name of its own; an empty one gives it back the words it began with.

    Raises:
        NotFound: There is no such chat. StoreLocked: A program has its session open. Nothing was changed.
    """
    asyncio.run(_rename(set_up(cwd, os.environ), chat_id, safe_line(name, max_cells=200)))
    return 0


async def _rename(setup: Setup, chat_id: str, name: str) -> None:
    found = await choose(setup, chat_id, note=note)
    # A session without a harness: a killed run must stay as it is for the --continue that will tell of it.
    session = await Session.open(await open_session(setup, found.session), clock=setup.clock)
    try:
        await rename(session, found.chat.conversation_id, name)
    finally:
        await session.close()
    note(f"chat {found.id} is now called {name!r}." if name else f"chat {found.id} has no name of its own any more.")


def delete_chat(chat_id: str, *, cwd: str | None, yes: bool) -> int:
    """Delete the chat and its subagents' work, for good, after a question; 1 when the answer was no.

    Raises:
        NotFound: There is no such chat.
        BadRequest: Nobody is there to be asked.
        Refused: It is unfinished, has forks, its session is open in a program, or is no single file. Nothing was changed.
    """
    setup = set_up(cwd, os.environ)
    found = asyncio.run(choose(setup, chat_id, note=note))
    check_removable(setup, found)
    if not (yes or agreed(f"Delete chat {found.id} ({safe_line(found.chat.title, max_cells=60)}) for good?")):
        return 1
    _delete(setup, found)
    note(f"chat {found.id} is gone.")
    return 0


def prune(older_than: str, *, cwd: str | None, yes: bool, dry_run: bool) -> int:
    """Delete finished chats whose last work is older, after a question; 1 when the answer was no.

    Args:
        older_than: Such as "30d", "12h" or "4w".

    Raises:
        BadRequest: That is no age, or nobody is there to be asked. Nothing was changed.
    """
    setup = set_up(cwd, os.environ)
    chosen = old_ones(asyncio.run(find_chats(setup, note=note)), before_ms=setup.clock.now_ms() - age_ms(older_than))
    if not chosen:
        note(f"no finished chat is older than {older_than}.")
        return 0
    print(table(chosen, None))
    if dry_run:
        return 0
    if not (yes or agreed(f"Delete {'this chat' if len(chosen) == 1 else f'these {len(chosen)} chats'} for good?")):
        return 1
    for found in chosen:
        try:
            check_removable(setup, found)
            _delete(setup, found)
        except PidurableError as error:
            note(f"chat {found.id} stays: {error.message} {error.hint}")
    return 0


def backup(folder: str, *, cwd: str | None) -> int:
    """Copy every session of the directory, as of one commit each, also while programs write them; print the copies.

    The copy is a data folder of its own: `PIDURABLE_DATA_DIR=FOLDER pidurable sessions` shows what is in it.

    Raises:
        BadRequest: There is nothing to copy, or something stands where a copy would. Nothing was written over.
        StoreCorrupt, EnvironmentFailure: That copy was not made.
    """
    setup = set_up(cwd, os.environ)
    target = paths.place(str(setup.place.directory), Path(os.path.realpath(folder)))
    numbers = paths.session_numbers(setup.place)
    if not numbers:
        raise BadRequest(f"There are no sessions of {str(setup.place.directory)!r} to copy. Nothing was written.")
    paths.prepare(target)
    for number in numbers:
        source = store_path(setup, number)
        copy = target.folder / source.name
        if copy.exists():
            raise BadRequest(f"{str(copy)!r} is there already. It was not written over.", hint="Name a new folder.")
        try:
            if source.is_dir():
                asyncio.run(copy_store(source, copy, "jsonl", clock=setup.clock))
            else:
                copy_to(source, copy)
        except OSError as error:
            raise EnvironmentFailure(f"{str(copy)!r} cannot be written: {error.strerror or error}.", hint="Make room there, or name another folder.") from error
        print(copy)
    return 0


def check_removable(setup: Setup, found: Found) -> None:
    """Return if the chat can be deleted, as far as can be told before.

    Raises:
        Refused: It is unfinished, or its session is a folder of lines, from which nothing can be taken.
    """
    if found.chat.unfinished:
        raise Refused(f"Chat {found.id} is unfinished. Nothing was changed.", hint="Finish it with pidurable --continue, or stop it there.")
    if store_path(setup, found.session).is_dir():
        hint = f"pidurable sessions convert {found.session} --to sqlite"
        raise Refused(f"Chat {found.id} is in a jsonl store, from which nothing can be taken. Nothing was changed.", hint=hint)


def _delete(setup: Setup, found: Found) -> None:
    path = store_path(setup, found.session)
    for conversation_id in remove_chat(path, found.chat.conversation_id, clock=setup.clock):
        shutil.rmtree(paths.session_files(setup.place, found.session) / str(conversation_id), ignore_errors=True)


def old_ones(found: Sequence[Found], *, before_ms: int) -> tuple[Found, ...]:
    """The finished chats without newer work, forks before what they were forked from. PURE."""
    old = [item for item in found if not item.chat.unfinished and item.chat.last_at_ms < before_ms]
    return tuple(sorted(old, key=lambda item: (item.session, -item.chat.conversation_id)))


def age_ms(text: str) -> int:
    """Milliseconds of "30d", "12h" or "4w". PURE.

    Raises:
        BadRequest: It is nothing of the kind.
    """
    match = _AGE.fullmatch(text)
    if match is None:
        raise BadRequest(f"{text!r} is not an age. Nothing was changed.", hint="Such as 12h, 30d or 4w.")
    return int(match[1]) * _UNIT_MS[match[2]]


def agreed(question: str) -> bool:
    """Whether the person at the terminal says yes.

    Raises:
        BadRequest: There is no terminal.
    """
    if not (sys.stdin and sys.stdin.isatty()):
        raise BadRequest("Nobody is there to be asked. Nothing was changed.", hint="Add --yes if you are sure.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
