"""The system prompt: named sections, of which only the changed ones are sent again (rule GE-1). PURE."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from pi_durable_tui.records.entry import SYSTEM, Entry
from pi_durable_tui.records.json import JsonObject, clean_text
from pi_durable_tui.records.messages import SystemMessage, Text


def digest(text: str) -> str:
    """A short fingerprint of a section, as it will be stored (CASE-B10)."""
    return hashlib.blake2b(clean_text(text).encode(), digest_size=8).hexdigest()


def sections_sent(entries: Sequence[Entry]) -> dict[str, str]:
    """Name and fingerprint of the sections that stand in a context."""
    sent: dict[str, str] = {}
    for entry in entries:
        stored = entry.data.get("sections") if entry.kind == SYSTEM and entry.data else None
        if isinstance(stored, dict):
            for name, mark in stored.items():
                if isinstance(mark, str):
                    sent[name] = mark
                else:
                    sent.pop(name, None)
    return sent


def changed_sections(sent: Mapping[str, str], wanted: Mapping[str, str]) -> tuple[SystemMessage, JsonObject] | None:
    """The message and the entry data that bring a context from `sent` to `wanted`; None when nothing differs.

    Args:
        sent: From `sections_sent`.
        wanted: Section texts by name, in the order they shall stand.
    """
    new = {name: text for name, text in wanted.items() if sent.get(name) != digest(text)}
    gone = [name for name in sent if name not in wanted]
    if not new and not gone:
        return None
    parts = [text if name not in sent else f'The section "{name}" now reads:\n{text}' for name, text in new.items()]
    parts += [f'The section "{name}" no longer applies.' for name in gone]
    sections: JsonObject = {name: digest(text) for name, text in new.items()}
    sections |= dict.fromkeys(gone)
    return SystemMessage(content=(Text(text="\n\n".join(parts)),)), {"sections": sections}
