"""`pidurable sessions`: the chats of this directory, over all its session files (rule CL-3). Only reads, also beside running programs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

import msgspec

from pi_durable_tui.cli.chats import Found, find_chats
from pi_durable_tui.cli.compose import Setup, set_up
from pi_durable_tui.cli.paths import session_path
from pi_durable_tui.cli.report import note
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
        "path": str(session_path(setup.place, item.session)),
        "conversationId": chat.conversation_id,
    }
