"""What becomes of a typed text before it is handed in: a skill or template is filled in, and the files it names come along (rule AG-3)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from pi_durable_tui.cli.chat import Opened
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.context.attachments import gather
from pi_durable_tui.context.commands import Catalogue
from pi_durable_tui.records.json import clean_text
from pi_durable_tui.records.messages import Content, Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is handed in, the text first, and one line for each thing that a person should know."""

    content: tuple[Content, ...]
    remarks: tuple[str, ...]


def expanded(text: str, catalogue: Catalogue) -> str:
    """The text, or what "/name arguments" stands for when there is a skill or template of that name. PURE."""
    line = text.strip()
    if not line.startswith("/"):
        return text
    name, _, arguments = line[1:].partition(" ")
    command = catalogue.named(name)
    return text if command is None else command.expanded(arguments.strip())


async def prepared(typed: str, *, setup: Setup, opened: Opened, model: str | None, before: str = "") -> Prepared:
    """What to hand in for a text. Only what was typed is looked through for files, not what templates or pipes say.

    Args:
        model: The one that will read it.
        before: Text that goes ahead of it, such as what was piped in.
    """
    opened.workspace.refresh()
    text = expanded(typed, opened.workspace.commands)
    info = await opened.models.info(model) if model and "@" in typed else None
    home = setup.environ.get("HOME")
    attached = await asyncio.to_thread(
        gather,
        typed,
        directory=setup.place.directory,
        home=Path(home) if home else None,
        takes_images=info is None or info.takes_images is not False,
    )
    said = "\n\n".join(part for part in (before.strip("\n"), text) if part.strip())
    return Prepared(content=(Text(text=clean_text(said)), *attached.parts), remarks=attached.remarks)
