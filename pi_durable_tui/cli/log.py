"""`pidurable log`: a chat as plain text, whole, for a pager or a file. Only reads, also beside a running program."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

from pi_durable_tui.cli.chats import choose, open_for_reading
from pi_durable_tui.cli.report import note
from pi_durable_tui.cli.setup import set_up
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.live import Live
from pi_durable_tui.records.entry import LOST, REPAIRED, Entry, StoredEntry
from pi_durable_tui.records.messages import AssistantMessage, Content, Image, SystemMessage, Text, Thinking, ToolCall, ToolResultMessage, UserMessage
from pi_durable_tui.tui.safe_text import safe_text

_PAGE = 500


def log_chat(chat_id: str | None, *, cwd: str | None) -> int:
    """Print the transcript of the chat of that id, or of the one that --continue takes."""
    asyncio.run(_log(chat_id, cwd=cwd))
    return 0


async def _log(chat_id: str | None, *, cwd: str | None) -> None:
    setup = set_up(cwd, os.environ)
    found = await choose(setup, chat_id, note=note)
    harness = await open_for_reading(setup, found.session)
    try:
        conversation = await harness.conversation(found.chat.conversation_id)
        async for stored in all_entries(conversation):
            if text := entry_text(stored.entry):
                print(safe_text(text))
        if text := running_text((await conversation.view()).live):
            print(safe_text(text))
    finally:
        await harness.close()


async def all_entries(conversation: Conversation) -> AsyncIterator[StoredEntry]:
    """All entries, oldest first. The ids of the pages are found from the newest backwards, since that is how a chat is read."""
    starts: list[int | None] = [None]
    while page := await conversation.entries(before=starts[-1], limit=_PAGE):
        starts.append(page[0].entry.id)
    for before in reversed(starts[:-1]):
        for stored in await conversation.entries(before=before, limit=_PAGE):
            yield stored


def entry_text(entry: Entry) -> str:
    """An entry as text; "" for what is not part of the talk. PURE."""
    match entry.message:
        case _ if entry.kind == LOST:
            return f"[{(entry.data or {}).get('message', '')}]\n"
        case _ if entry.kind == REPAIRED:
            return f"[Repaired at opening: {(entry.data or {}).get('message', '')}]\n"
        case UserMessage(content=content):
            return f"> {_texts(content)}\n"
        case AssistantMessage() as message:
            return _answer(message)
        case ToolResultMessage(tool_name=name, content=content, is_error=is_error):
            title = (entry.data or {}).get("title") or name
            return "\n".join([f"[{title}{' (failed)' if is_error else ''}]", *(f"  {line}" for line in _texts(content).rstrip("\n").split("\n")), ""])
        case SystemMessage() | None:
            return ""


def running_text(live: Live) -> str:
    """What was under way when this was read. PURE."""
    parts = [live.generation.message.text] if live.generation and live.generation.message else []
    parts += [f"[{slot.title}: {slot.status}]\n{slot.output}" for slot in live.tools]
    return "\n".join([*parts, "[unfinished]"]) if live.run else ""


def _answer(message: AssistantMessage) -> str:
    parts = [_part(part) for part in message.content]
    if message.stop_reason in ("aborted", "error", "length"):
        parts.append(f"[{message.problem.reason if message.problem else message.stop_reason}: cut off here]")
    text = "\n".join(part for part in parts if part)
    return f"{text}\n" if text else ""


def _part(part: Text | Thinking | ToolCall) -> str:
    match part:
        case Text(text=text):
            return text
        case Thinking(redacted=True):
            return ""
        case Thinking(text=text):
            return "\n".join(f"| {line}" for line in text.split("\n"))
        case ToolCall():
            return ""  # its result, which names it, follows


def _texts(content: tuple[Content, ...]) -> str:
    return "\n".join(f"[image {part.mime_type}]" if isinstance(part, Image) else part.text for part in content)
