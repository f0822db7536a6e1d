"""`pidurable sessions`: the chats of this directory, over all its sessions (rule CL-3), and the conversion of a session's store.

Listing only reads, also beside running programs. Converting needs a session that no other program has open.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

import msgspec

from pi_durable_tui.cli.chats import Found, find_chats
from pi_durable_tui.cli.compose import Setup, set_up
from pi_durable_tui.cli.paths import check, session_kinds, session_path
from pi_durable_tui.cli.report import note
from pi_durable_tui.errors import BadRequest, NotFound
from pi_durable_tui.storage.conversion import convert
from pi_durable_tui.storage.kind import StoreKind
from pi_durable_tui.tui.safe_text import safe_line

_TITLE_CELLS = 48


def list_sessions(*, cwd: str | None, as_json: bool) -> int:
    """Print the chats, the one that --continue takes first."""
    setup = set_up(cwd, os.environ)
    found = asyncio.run(find_chats(setup, note=note))
    if as_json:
        print(msgspec.json.encode([_json(setup, item) for item in found]).decode())
    elif found:
        print(table(found, None))
    else:
        note(f"no chats in {str(setup.place.directory)!r} yet.")
    return 0


def convert_session(number: int, kind: StoreKind, *, cwd: str | None) -> int:
    """Turn the store of a session into one of that kind, and say where the old one is kept.

    Raises:
        NotFound: There is no such session.
        BadRequest: It is of that kind already. Nothing was changed.
        StoreLocked, Refused, SchemaTooNew, StoreCorrupt, EnvironmentFailure: As `convert`.
    """
    setup = set_up(cwd, os.environ)
    check(setup.place)
    kinds = session_kinds(setup.place, number)
    if not kinds:
        raise NotFound(f"session {number}", where=repr(str(setup.place.directory)), hint="pidurable sessions lists the chats by session.")
    if kinds == (kind,):
        raise BadRequest(f"Session {number} is a {kind} store already. Nothing was changed.")
    (source,) = set(kinds) - {kind}
    paths = session_path(setup.place, number, source), session_path(setup.place, number, kind)
    kept = asyncio.run(convert(paths[0], source, paths[1], kind, clock=setup.clock))
    print(safe_line(f"Session {number} is now {paths[1].name}; the old one is kept as {kept}."))
    return 0


def table(found: Sequence[Found], zone: tzinfo | None) -> str:
    """The chats as lines of text under a heading; times in `zone`, None: that of the machine."""
    rows = [("ID", "LAST WORK", "STATE", "MODEL", "TITLE")]
    for item in found:
        at = datetime.fromtimestamp(item.chat.last_at_ms / 1000, tz=UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M")
        state = "unfinished" if item.chat.unfinished else "done"
        rows.append((item.id, at, state, safe_line(item.chat.model or "-", max_cells=32), safe_line(item.chat.title, max_cells=_TITLE_CELLS)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]).rstrip() for row in rows)


def _json(setup: Setup, item: Found) -> dict[str, object]:
    chat = item.chat
    return {
        "id": item.id,
        "title": chat.title,
        "lastAtMs": chat.last_at_ms,
        "unfinished": chat.unfinished,
        "model": chat.model,
        "path": str(session_path(setup.place, item.session, session_kinds(setup.place, item.session)[0])),
        "conversationId": chat.conversation_id,
    }
