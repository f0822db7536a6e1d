"""Lets the person choose a chat by its id or by words of it, before the app takes the screen (`--resume` without an id)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from pi_durable_tui.cli.chats import Found, find_chats
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.sessions.listing import table
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.errors import BadRequest, NotFound
from pi_durable_tui.tui.safe_text import safe_line

MOST_SHOWN = 20


def picked(setup: Setup) -> str:
    """The id of the chat that was chosen; words are searched for until one chat is left.

    Raises:
        NotFound: There is none to choose from.
        BadRequest: None was chosen. Nothing was started.
    """
    found = asyncio.run(find_chats(setup, note=note))
    if not found:
        raise NotFound("chat", where=repr(str(setup.place.directory)), hint="Start one with pidurable.")
    shown = found
    while True:
        print(table(shown[:MOST_SHOWN], None))
        if len(shown) > MOST_SHOWN:
            print(f"… and {len(shown) - MOST_SHOWN} more: search for words of them")
        sys.stdout.write(f"\nWhich one? Its ID, or words to search for; Enter takes {shown[0].id}: ")
        sys.stdout.flush()
        typed = sys.stdin.readline()
        if not typed:
            raise BadRequest("No chat was chosen. Nothing was started.")
        meant = fitting(typed, shown, found)
        if len(meant) == 1:
            return meant[0].id
        print("" if meant else f"No chat has {safe_line(typed.strip())!r}. All of them again:\n")
        shown = meant or found


def fitting(typed: str, shown: Sequence[Found], every: Sequence[Found]) -> tuple[Found, ...]:
    """The chats that an answer means. PURE.

    Args:
        typed: An id of any chat; words that the title or the first message of a shown one all holds; nothing for the first shown one.
    """
    words = typed.lower().split()
    if not words:
        return tuple(shown[:1])
    named = tuple(item for item in every if item.id == typed.strip())
    return named or tuple(item for item in shown if all(word in f"{item.chat.title} {item.chat.first_text}".lower() for word in words))
