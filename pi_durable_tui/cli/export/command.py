"""Reads a chat, writes it in the form that is asked for; only reads the session, also beside a running program.

What is written is private (0600) and holds no key that is known or has the shape of one (rules SA-16, SA-17).
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Literal, TypeAlias

from pi_durable_tui.cli.chats import Found, choose, open_for_reading
from pi_durable_tui.cli.export.blocks import blocks_of
from pi_durable_tui.cli.export.markdown import markdown
from pi_durable_tui.cli.export.page import Heading, page
from pi_durable_tui.cli.export.talk import Talk, read_talk
from pi_durable_tui.cli.paths import write_out
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.setup import Setup, set_up
from pi_durable_tui.errors import BadRequest, EnvironmentFailure
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.models.catalog import loaded_keys
from pi_durable_tui.models.redaction import redact
from pi_durable_tui.records.codec import encode, to_json
from pi_durable_tui.records.messages import Usage
from pi_durable_tui.tui.safe_text import safe_line, safe_text, without_colors

Form: TypeAlias = Literal["html", "markdown", "jsonl"]
ENDINGS: dict[Form, str] = {"html": ".html", "markdown": ".md", "jsonl": ".jsonl"}
_NAME_CHARS = 48


def export_chat(chat_id: str | None, *, form: Form, output: str | None, cwd: str | None) -> int:
    """Write the chat of that id, or the one that --continue takes.

    Args:
        output: A path; "-": stdout; None: a new file in the working directory that is named after the chat.

    Raises:
        NotFound: There is no such chat. Nothing was written.
        BadRequest: The file without a given name is there already. Nothing was written.
        EnvironmentFailure: The file cannot be written. Nothing was left of it.
    """
    setup = set_up(cwd, os.environ)
    found, text = asyncio.run(_read(setup, chat_id, form))
    if output in ("-", "/dev/stdout"):
        sys.stdout.write(text)
        return 0
    path = Path.cwd() / output if output is not None else setup.place.directory / file_name(found, form)
    if output is None and path.exists():
        raise BadRequest(f"The file {str(path)!r} is there already. Nothing was written.", hint="Name another one with -o, or -o - for stdout.")
    try:
        write_out(path, text.encode())
    except OSError as error:
        raise EnvironmentFailure(f"The file {str(path)!r} cannot be written: {error.strerror or error}.", hint="Name another one with -o.") from error
    note(f"wrote {path}")
    return 0


async def _read(setup: Setup, chat_id: str | None, form: Form) -> tuple[Found, str]:
    found = await choose(setup, chat_id, note=note)
    harness = await open_for_reading(setup, found.session)
    try:
        view = await (await harness.conversation(found.chat.conversation_id)).view()
        talk = await read_talk(harness, found.chat.conversation_id)
    finally:
        await harness.close()
    secrets = loaded_keys(setup.environ)
    return found, written(found, view, talk, form, directory=str(setup.place.directory), secrets=secrets)


def written(found: Found, view: ConversationView, talk: Talk, form: Form, *, directory: str, secrets: tuple[str, ...]) -> str:
    """The chat in that form. PURE but for the machine's time zone."""

    def clean(text: str) -> str:
        return redact(safe_text(without_colors(text)), secrets)

    match form:
        case "html":
            return page(heading(found, view, clean(directory), secrets), blocks_of(talk, clean), zone=None)
        case "markdown":
            return markdown(heading(found, view, clean(directory), secrets), blocks_of(talk, clean))
        case "jsonl":
            return "".join(redact(encode(to_json(entry)), secrets) + "\n" for entry in talk.all_entries())


def heading(found: Found, view: ConversationView, directory: str, secrets: tuple[str, ...]) -> Heading:
    """What stands over the chat. PURE."""
    used = sum(view.usage.models.values(), Usage())
    facts = [
        ("chat", found.id),
        ("model", redact(safe_line(view.agent.model or "none", max_cells=80), secrets)),
        ("state", "unfinished" if found.chat.unfinished else "done"),
        ("tokens", f"{used.input_tokens:,} in, {used.output_tokens:,} out"),
        *([("cost", f"${used.cost_usd:.4f}")] if used.cost_usd is not None else []),
    ]
    return Heading(title=redact(safe_line(found.chat.title or "A chat", max_cells=120), secrets), directory=directory, facts=tuple(facts))


def file_name(found: Found, form: Form) -> str:
    """A plain name for the file, whatever the title is. PURE."""
    words = re.sub(r"[^a-z0-9]+", "-", found.chat.title.lower()).strip("-")[:_NAME_CHARS].strip("-")
    return f"chat-{found.id}{'-' if words else ''}{words}{ENDINGS[form]}"
