"""Takes loaded keys out of what is about to be written (rule SA-17). PURE.

Only exact values are looked for, in text that arrives in pieces also their beginnings and ends; so a file that is worked on is never
changed by it. What stands for a key says so, and a call that would act with that mark in place of the key is not carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from pi_durable_tui.records.json import Json

Hide: TypeAlias = Callable[[str], str]
"""Text -> the text as it may be stored; the same object when there is nothing to hide."""

MARK = "[hidden" + " API key]"  # in two parts: whoever works on this file shall not be taken for somebody who has lost a key
SHORTEST_CHARS = 12
"""Shorter values are no keys but words ("ollama", "not-needed") that would vanish from ordinary text."""

_PIECE_CHARS = 8
"""So much of a key, at the edge of a text, may be the rest of one that was cut in two."""


def to_hide(values: Iterable[str]) -> tuple[str, ...]:
    """The values that are looked for, the longest first, so that no part of one stays behind."""
    return tuple(sorted({value for value in values if len(value) >= SHORTEST_CHARS}, key=lambda value: (-len(value), value)))


def hiding(values: Iterable[str]) -> Hide | None:
    """What hides these keys; None when there is none to hide."""
    keys = to_hide(values)
    return (lambda text: hidden(text, keys)) if keys else None


def hidden(text: str, keys: tuple[str, ...]) -> str:
    """The text with a mark for each key, and for a long enough part of one at its beginning or its end."""
    for key in keys:
        if key in text:
            text = text.replace(key, MARK)
        if key[:_PIECE_CHARS] in text[-len(key) :] and (end := _begun(text, key)) >= _PIECE_CHARS:
            text = text[:-end] + MARK
        if key[-_PIECE_CHARS:] in text[: len(key)] and (start := _ended(text, key)) >= _PIECE_CHARS:
            text = MARK + text[start:]
    return text


def mapped(value: Json, hide: Hide) -> Json:
    """A JSON value with every text in it hidden; parts without change are the same objects."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list | tuple):  # a draft may hold what becomes a list
        items = [mapped(item, hide) for item in value]
        return items if any(after is not before for after, before in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        made = {name: mapped(item, hide) for name, item in value.items()}
        return made if any(made[name] is not before for name, before in value.items()) else value
    return value


def has_mark(value: Json) -> bool:
    """True when some text in the value holds the mark."""
    if isinstance(value, str):
        return MARK in value
    if isinstance(value, list):
        return any(has_mark(item) for item in value)
    return isinstance(value, dict) and any(has_mark(item) for item in value.values())


class HidingStream:
    """The same for bytes that arrive in pieces: what may be the beginning of a key is held back until it is known."""

    def __init__(self, values: Iterable[str]) -> None:
        self._keys = tuple(key.encode() for key in to_hide(values))
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What may be passed on."""
        data, self._held = self._held + data, b""
        for key in self._keys:
            data = data.replace(key, MARK.encode())
        held = max((_begun(data, key) for key in self._keys), default=0)
        if held:
            data, self._held = data[:-held], data[-held:]
        return data

    def finish(self) -> bytes:
        """What was held back: no key, or the beginning of one, which is hidden."""
        held, self._held = self._held, b""
        return MARK.encode() if len(held) >= _PIECE_CHARS else held


def _begun(text: str | bytes, key: str | bytes) -> int:
    """How much of the end of the text is a beginning of the key, at most all but one of it."""
    longest = min(len(key) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text[-size:] == key[:size]), 0)


def _ended(text: str, key: str) -> int:
    """How much of the beginning of the text is an end of the key, at most all but one of it."""
    longest = min(len(key) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text[:size] == key[-size:]), 0)
