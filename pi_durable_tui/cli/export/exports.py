"""Writes a chat of the open session into a file, for the app: implements `tui.house.ExportPort`. No file that is there is replaced."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pi_durable_tui.cli.chat import Opened
from pi_durable_tui.cli.chats import Found
from pi_durable_tui.cli.export.command import Form, file_name, written
from pi_durable_tui.cli.export.talk import read_talk
from pi_durable_tui.cli.paths import write_whole
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.errors import BadRequest, EnvironmentFailure
from pi_durable_tui.models.catalog import loaded_keys


class Exports:
    """See the module. Used on the harness's loop."""

    def __init__(self, setup: Setup, opened: Opened) -> None:
        self._setup, self._opened = setup, opened

    async def write(self, conversation_id: int, form: Form, path: str | None) -> str:
        """See `ExportPort`."""
        harness = self._opened.harness
        conversation = await harness.conversation(conversation_id)
        branches = {branch.chat.conversation_id: branch for branch in await harness.overview.branches()}
        found = Found(session=self._opened.session, chat=branches[conversation_id].chat)
        view, talk = await conversation.view(), await read_talk(harness, conversation_id)
        place = self._setup.place.directory
        home = self._setup.environ.get("HOME", "~")
        target = place / (path.replace("~", home, 1) if path.startswith("~/") else path) if path is not None else place / file_name(found, form)

        def put() -> str:
            text = written(found, view, talk, form, directory=str(place), secrets=loaded_keys(self._setup.environ))
            return _put(target, text)

        return await asyncio.to_thread(put)  # a long chat takes its time, which no key and no commit waits for


def _put(target: Path, text: str) -> str:
    if target.exists():
        raise BadRequest(f"{str(target)!r} is there already. Nothing was written.", hint="Name another file: /export [html|markdown|jsonl] PATH.")
    try:
        write_whole(target, text.encode())
    except OSError as error:
        raise EnvironmentFailure(f"{str(target)!r} cannot be written: {error.strerror or error}. Nothing is left of it.") from error
    return str(target)
