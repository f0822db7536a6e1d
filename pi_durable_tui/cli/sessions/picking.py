"""Lets the person choose a chat by its number, before the app takes the screen (`--resume` without an id)."""

from __future__ import annotations

import asyncio
import sys

from pi_durable_tui.cli.chats import Found, find_chats
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.sessions.listing import table
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.errors import BadRequest, NotFound

MOST_SHOWN = 20


def picked(setup: Setup) -> str:
    """The id of the chat that was chosen.

    Raises:
        NotFound: There is none to choose from.
        BadRequest: None was chosen. Nothing was started.
    """
    found = asyncio.run(find_chats(setup, note=note))
    if not found:
        raise NotFound("chat", where=repr(str(setup.place.directory)), hint="Start one with pidurable.")
    print(table(found[:MOST_SHOWN], None))
    if len(found) > MOST_SHOWN:
        print(f"… and {len(found) - MOST_SHOWN} more: pidurable sessions")
    sys.stdout.write(f"\nWhich one? [{found[0].id}] ")
    sys.stdout.flush()
    return chosen(sys.stdin.readline(), found)


def chosen(typed: str, found: tuple[Found, ...]) -> str:
    """The id of the chat that an answer means: an id, words of one title, or nothing for the first one. PURE.

    Args:
        typed: The line as it was read; "" when the input has ended.

    Raises:
        BadRequest: It means none of them, or more than one. Nothing was started.
    """
    words = typed.strip()
    if typed and not words:
        return found[0].id
    by_title = [item.id for item in found if words and words.lower() in item.chat.title.lower()]
    fitting = [item.id for item in found if item.id == words] or by_title
    if len(fitting) != 1:
        raise BadRequest(f"{words!r} is not one of them. Nothing was started." if words else "No chat was chosen. Nothing was started.")
    return fitting[0]
