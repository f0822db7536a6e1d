"""`pidurable sessions`: the chats of this directory, over all its sessions (rule CL-3), and the conversion of a session's store.

Listing only reads, also beside running programs. Converting needs a session that no other program has open.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import msgspec

from pi_durable_tui.cli.chats import Found, choose, find_chats, open_for_reading
from pi_durable_tui.cli.paths import check, session_kinds, session_path
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.errors import BadRequest, NotFound
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.codec import to_json
from pi_durable_tui.records.messages import Usage
from pi_durable_tui.storage.conversion import convert
from pi_durable_tui.storage.kind import StoreKind
from pi_durable_tui.storage.lock import Holder, holder
from pi_durable_tui.tui.safe_text import safe_json, safe_line, safe_text

_TITLE_CELLS = 48


def list_sessions(*, cwd: str | None, as_json: bool) -> int:
    """Print the chats, the one that --continue takes first."""
    setup = set_up(cwd, os.environ)
    unreadable: list[str] = []
    found = asyncio.run(find_chats(setup, note=unreadable.append))
    for text in unreadable:
        note(text)
    if as_json:
        print(safe_json(msgspec.json.encode([_json(setup, item) for item in found])))
    elif found:
        print(table(found, None))
    elif not unreadable:
        note(f"no chats in {str(setup.place.directory)!r} yet.")
    return 0


def show_session(chat_id: str | None, *, cwd: str | None, as_json: bool) -> int:
    """Print what is known of one chat.

    Raises:
        NotFound: There is no such chat.
    """
    asyncio.run(_show(set_up(cwd, os.environ), chat_id, as_json=as_json))
    return 0


async def _show(setup: Setup, chat_id: str | None, *, as_json: bool) -> None:
    found = await choose(setup, chat_id, note=note)
    harness = await open_for_reading(setup, found.session)
    try:
        view = await (await harness.conversation(found.chat.conversation_id)).view()
        count = 0
        before: int | None = None
        conversation = await harness.conversation(found.chat.conversation_id)
        while page := await conversation.entries(before=before, limit=1_000):
            count, before = count + len(page), page[0].entry.id
    finally:
        await harness.close()
    owner = holder(store_path(setup, found.session))
    if as_json:
        more = {"entries": count, "agent": to_json(view.agent), "usage": to_json(view.usage), "holder": str(owner) if owner else None}
        print(safe_json(msgspec.json.encode({**_json(setup, found), **more})))
    else:
        print(safe_text(shown(found, view, entries=count, path=str(store_path(setup, found.session)), owner=owner, zone=None)))


def shown(found: Found, view: ConversationView, *, entries: int, path: str, owner: Holder | None, zone: tzinfo | None) -> str:
    """One chat, for people; times in `zone`, None: that of the machine."""
    used = sum(view.usage.models.values(), Usage())
    cost = f", ${used.cost_usd:.4f}" if used.cost_usd is not None else ""
    started = datetime.fromtimestamp(view.conversation.created_at_ms / 1000, tz=UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M")
    last = datetime.fromtimestamp(found.chat.last_at_ms / 1000, tz=UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M")
    state = ("unfinished" if found.chat.unfinished else "done") + (f", open in {owner}" if owner else "")
    rows = [
        ("chat", found.id),
        ("title", found.chat.title or "-"),
        ("started", started),
        ("last work", last),
        ("state", state),
        ("model", view.agent.model or "-"),
        ("approval", view.agent.approval),
        ("entries", str(entries)),
        ("tokens", f"{used.input_tokens} in, {used.output_tokens} out{cost}"),
        ("file", path),
    ]
    lines = [f"{name:<10} {safe_line(value)}" for name, value in rows]
    return "\n".join([*lines, "", *(f"> {line}" for line in found.chat.first_text.strip().split("\n")[:10])])


def path_of(chat_id: str | None, *, cwd: str | None) -> int:
    """Print the store that the chat is in, and nothing else, for scripts.

    Raises:
        NotFound: There is no such chat.
    """
    setup = set_up(cwd, os.environ)
    found = asyncio.run(choose(setup, chat_id, note=note))
    print(store_path(setup, found.session))
    return 0


def store_path(setup: Setup, number: int) -> Path:
    """The store of a session that is there."""
    return session_path(setup.place, number, session_kinds(setup.place, number)[0])


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
        "path": str(store_path(setup, item.session)),
        "conversationId": chat.conversation_id,
    }
