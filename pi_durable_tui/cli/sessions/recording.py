"""`pidurable sessions record`: makes a recorded session of a chat, a folder that `pidurable demo` plays.

Only reads the session, also beside a running program. What is written is private (0600), holds no key that is known or has the shape
of one, and says what it lacks (rules SA-16, SA-17).
"""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.chats import Found, choose, open_for_reading
from pi_durable_tui.cli.compose import all_models
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.errors import BadRequest, EnvironmentFailure
from pi_durable_tui.harness.kinds import COMPACTION
from pi_durable_tui.models.catalog import loaded_keys
from pi_durable_tui.models.redaction import redact
from pi_durable_tui.playback import folder
from pi_durable_tui.playback.recording.source import Source, read
from pi_durable_tui.playback.recording.story import cleaning, recorded
from pi_durable_tui.playback.recording.workspace import Doors, Extent, OnDisk, workspace_of
from pi_durable_tui.tools import files
from pi_durable_tui.tools.history.contents import Contents
from pi_durable_tui.tools.history.scan import FILE_BYTES, GENERATED
from pi_durable_tui.tools.search.tree import Tree
from pi_durable_tui.tui.safe_text import safe_text


def record_chat(chat_id: str | None, target: str, *, extent: Extent, cwd: str | None) -> int:
    """Write the chat of that id, or the one that --continue takes, as a recorded session into the new folder.

    Raises:
        NotFound: There is no such chat. BadRequest: The folder is there already. Nothing was written.
        Refused: The chat is unfinished, or cannot be told as a story. Nothing was written.
        StoreCorrupt, SchemaTooNew, EnvironmentFailure: The session cannot be read, or the folder not be written. Nothing is left of it.
    """
    setup = set_up(cwd, os.environ)
    place = Path(target).expanduser().resolve()
    if os.path.lexists(place):
        raise BadRequest(f"{str(place)!r} is there already. Nothing was written.", hint="Name a new folder.")
    found, source, window_tokens = asyncio.run(_read(setup, chat_id))
    directory = str(setup.place.directory)
    keys = loaded_keys(setup.environ)
    clean = cleaning(lambda text: redact(text, keys), directory=directory, home=os.path.realpath(setup.environ.get("HOME", "/")))
    workspace = workspace_of(source, directory, extent, _doors(setup, found), clean)
    made = recorded(source, clean, window_tokens=window_tokens, remarks=workspace.remarks)
    folder.save(place, made.texts, workspace.files)
    size_kb = (sum(len(content) for content in workspace.files.values()) + 1023) // 1024
    note(f"chat {found.id} is recorded in {place}, with {len(workspace.files)} file(s), {size_kb} KB, in its workspace/.")
    for line in made.missing:
        note(safe_text(clean(line)))
    note(f"It plays with: pidurable demo {shlex.quote(target)}. Look through it before you give it to anybody.")
    return 0


async def _read(setup: Setup, chat_id: str | None) -> tuple[Found, Source, int | None]:
    """The chat, and how much its model can read if that mattered."""
    found = await choose(setup, chat_id, note=note)
    harness = await open_for_reading(setup, found.session)
    try:
        source = await read(harness.session, found.chat.conversation_id)
    finally:
        await harness.close()
    window_tokens = None
    if source.model and any(task.kind == COMPACTION for strand in source.strands for task in strand.tasks):
        window_tokens = (await all_models(setup).info(source.model)).context_window_tokens
    return found, source, window_tokens


def _doors(setup: Setup, found: Found) -> Doors:
    directory = str(setup.place.directory)

    def on_disk(path: str) -> OnDisk | None:
        try:
            if os.path.realpath(path) != path or files.size_bytes(path) > FILE_BYTES:
                return None
            return OnDisk(files.read_whole(path), os.stat(path).st_mtime_ns // 1_000_000)  # noqa: PTH116 - a path of odd bytes is a text here
        except (EnvironmentFailure, OSError):
            return None

    def tree() -> list[str]:
        return [entry.path for entry in Tree(directory, left_out=GENERATED).entries() if entry.is_file(follow_symlinks=False)]

    kept = Contents(paths.session_files(setup.place, found.session) / "contents")
    return Doors(kept=kept.get, on_disk=on_disk, tree=tree)
