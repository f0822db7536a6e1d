"""How keys are spelled: as people write them, and as the terminal library calls them. PURE.

People may write "Ctrl+K", "alt-enter", "Esc" or "Ctrl+_"; what is shown to them is one spelling of it.
"""

from __future__ import annotations

import unicodedata

from textual.keys import KEY_NAME_REPLACEMENTS, format_key

_MODIFIERS = {"alt": "alt", "option": "alt", "meta": "alt", "ctrl": "ctrl", "control": "ctrl", "shift": "shift", "super": "super", "cmd": "super"}
_SPELLINGS = {"esc": "escape", "return": "enter", "del": "delete", "ins": "insert", "pgup": "pageup", "pgdn": "pagedown", "pgdown": "pagedown"}
_NAMED = ("enter", "tab", "escape", "space", "backspace", "delete", "insert", "home", "end", "pageup", "pagedown", "up", "down", "left", "right")
_FUNCTIONS = tuple(f"f{number}" for number in range(1, 25))
_SHOWN = {"pageup": "PageUp", "pagedown": "PageDown", "escape": "Esc"}


def _mark_name(mark: str) -> str:
    name = unicodedata.name(mark).lower().replace(" ", "_").replace("-", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


_MARKS = {mark: _mark_name(mark) for mark in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"}
_BASES = frozenset((*_NAMED, *_FUNCTIONS, *_MARKS.values(), *"abcdefghijklmnopqrstuvwxyz0123456789"))


def key_name(written: str) -> str | None:
    """The library's name of a key that a person wrote; None: there is no such key, or it types a character and can do nothing else."""
    words = written.strip().lower()
    if words[-1:] in _MARKS and words[:-1].endswith(("+", "-")):
        parts = [*words[:-2].replace("-", "+").split("+"), words[-1]]
    else:
        parts = words.replace("-", "+").split("+")
    *before, base = (part.strip() for part in parts)
    base = _MARKS.get(base, _SPELLINGS.get(base, base))
    modifiers = sorted({_MODIFIERS.get(part, "") for part in before})
    if base not in _BASES or "" in modifiers:
        return None
    is_typed = base == "space" or (base not in _NAMED and base not in _FUNCTIONS)
    if is_typed and modifiers in ([], ["shift"]):
        return None
    return "+".join((*modifiers, base))


def shown_key(name: str) -> str:
    """A key as people write it: "Ctrl+K", "Shift+Tab", "Esc", "Ctrl+_"."""
    *modifiers, base = name.split("+")
    named = _SHOWN.get(base, base.capitalize()) if base in _NAMED or base in _FUNCTIONS else format_key(base).upper()
    return "+".join((*(modifier.capitalize() for modifier in modifiers), named))
