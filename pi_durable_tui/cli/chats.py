"""Finds the chats of a directory, over all its sessions, and decides which one `--continue` takes (rules CL-2, CL-3, CASE-H5).

The rule: unfinished work first, then the newest work. Within a session the order is that of its commits, whatever the clock said;
between sessions the times of the commits decide. Subagents' conversations are no chats, and an empty chat is never taken.
Everything here only reads, also while other processes write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.compose import all_models, open_harness, open_session
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.errors import BadRequest, NotFound, PidurableError, StoreCorrupt
from pi_durable_tui.harness.chats import Chat
from pi_durable_tui.harness.harness import Harness


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A chat and the number of the session it is in."""

    session: int
    chat: Chat

    @property
    def id(self) -> str:
        """How it is named on the command line: session and conversation, `1.3`."""
        return f"{self.session}.{self.chat.conversation_id}"


async def find_chats(setup: Setup, *, note: Callable[[str], None]) -> tuple[Found, ...]:
    """All chats that are not empty, the one that `--continue` takes first. What cannot be read is noted and left out."""
    found, unreadable = await _look(setup)
    for _, error in unreadable:
        note(f"{error.message} {error.hint}")
    return found


async def _look(setup: Setup, *, most: int | None = None) -> tuple[tuple[Found, ...], list[tuple[int, PidurableError]]]:
    """The chats, or so many of the first ones of each session, and the sessions that cannot be read, or not whole, with why."""
    found: list[list[Found]] = []
    unreadable: list[tuple[int, PidurableError]] = []
    for number in paths.session_numbers(setup.place):
        try:
            chats = await _chats_of(setup, number, most)
        except NotFound:
            continue
        except PidurableError as error:
            unreadable.append((number, error))
            continue
        unreadable += [(number, _damaged(number, chat)) for chat in chats if chat.damage]
        found.append([Found(session=number, chat=chat) for chat in chats if not chat.damage])
    return merged(found), unreadable


def _damaged(number: int, chat: Chat) -> StoreCorrupt:
    error = StoreCorrupt("", where="", what="")
    error.message = f"Chat {number}.{chat.conversation_id} cannot be read. {chat.damage}"
    error.hint = f"pidurable sessions salvage {number} rescues what can be read."
    return error


async def _chats_of(setup: Setup, number: int, most: int | None) -> list[Chat]:
    harness = await open_for_reading(setup, number)
    try:
        return [chat for chat in await harness.chats(most=most) if chat.unfinished or not chat.is_empty]
    finally:
        await harness.close()


def merged(sessions: list[list[Found]]) -> tuple[Found, ...]:
    """The chats of several sessions as one list: each session's order is kept among its unfinished and among its finished ones. PURE."""
    result: list[Found] = []
    for unfinished in (True, False):
        queues = [[item for item in chats if item.chat.unfinished is unfinished] for chats in sessions]
        while any(queues):
            newest = max((queue for queue in queues if queue), key=lambda queue: (queue[0].chat.last_at_ms, queue[0].session))
            result.append(newest.pop(0))
    return tuple(result)


async def choose(setup: Setup, chat_id: str | None, *, note: Callable[[str], None]) -> Found:
    """The chat of that id; without one the chat that `--continue` takes.

    Raises:
        BadRequest: The id has not the form of one.
        NotFound: There is no such chat, or none at all.
        StoreCorrupt, SchemaTooNew, Refused, EnvironmentFailure: What may hold it cannot be read. Nothing was changed.
    """
    wanted = None if chat_id is None else parse_id(chat_id)
    found, unreadable = await _look(setup, most=1 if wanted is None else None)
    chosen = next((item for item in found if wanted in (None, (item.session, item.chat.conversation_id))), None)
    reason = None if chosen is not None else next((error for number, error in unreadable if wanted is None or wanted[0] == number), None)
    for _, error in unreadable:
        if error is not reason:
            note(f"{error.message} {error.hint}")
    if chosen is not None:
        return chosen
    if reason is not None:
        raise reason
    what = "chat" if chat_id is None else f"chat {chat_id}"
    raise NotFound(what, where=repr(str(setup.place.directory)), hint=_where_else(setup) if chat_id is None else "pidurable sessions lists them.")


def parse_id(text: str) -> tuple[int, int]:
    """Session and conversation of `1.3`; a number alone is in the first session. PURE.

    Raises:
        BadRequest: It is neither.
    """
    session, dot, conversation = text.rpartition(".")
    parts = (session if dot else "1", conversation)
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise BadRequest(f"{text!r} is not the id of a chat. Nothing was started.", hint="pidurable sessions lists the ids.")
    return int(parts[0]), int(parts[1])


async def open_for_reading(setup: Setup, number: int) -> Harness:
    """A harness that writes nothing, over a session that another process may be writing.

    Raises:
        NotFound, SchemaTooNew, StoreCorrupt, EnvironmentFailure: It cannot be read.
    """
    storage = await open_session(setup, number, read_only=True)
    try:
        return await open_harness(setup, number, storage, all_models(setup))
    except BaseException:
        await storage.close()
        raise


def _where_else(setup: Setup) -> str:
    moved = paths.moved_from(setup.place)
    if moved:
        return f"{str(moved[0])!r} had chats and is gone: if it became this directory, rename its folder in {str(setup.place.folder.parent)!r}."
    return "Start one with pidurable."
