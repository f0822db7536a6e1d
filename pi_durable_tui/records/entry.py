"""One immutable transcript record (durable.md, section 13)."""

from __future__ import annotations

from typing import Literal

from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import Message, Record

USER = "pi.user"
ASSISTANT = "pi.assistant"
SYSTEM = "pi.system"
TOOL_RESULT = "pi.tool-result"
RESET = "pi.reset"
COMPACTION = "pi.compaction"
THOUGHTS_REFUSED = "pidurable.thoughts-refused"  # thoughts of the answers before it are not sent any more (CASE-B9)
COMMAND = "pidurable.command"  # a command that a person ran beside the agent
LOST = "pidurable.lost"  # stands where an entry could not be read any more, or says what of a conversation is lost (rule PR-15)
REPAIRED = "pidurable.repaired"  # what opening the store cut off its files, because it was of no stored commit (rule ST-18)
NOTICE = "pidurable.notice"  # what the program itself tells the model: something ended, or files changed under it


class Edit(Record, frozen=True):
    """A change of how an older entry reads in the model's context; the entry itself stays as it was."""

    entry_id: int
    action: Literal["omit", "replace"]
    message: Message | None = None  # for "replace"


class Entry(Record, frozen=True):
    """A transcript record. `message` is what the model sees (None: nothing); `data` is for people and tools."""

    id: int
    conversation_id: int
    kind: str
    at_ms: int
    message: Message | None = None
    data: JsonObject | None = None
    head: int | None = None  # a head marker: the model's context starts at this entry id
    edits: tuple[Edit, ...] = ()


class StoredEntry(Record, frozen=True):
    """An entry with the number of the commit that inserted it."""

    seq: int
    entry: Entry
