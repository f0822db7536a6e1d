"""Which keys are bound, after what a person says in `keybindings.json` (terminal.md, "Keys"). PURE: a text in, bindings and remarks out.

The file is a JSON object: the name of an action of `keymap.KEYS` -> a key, a list of keys, or [] for none. What it says of an action
replaces that action's keys. Whatever is wrong in it is told with the file and the entry, and costs only that entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pi_durable_tui.tui.keymap import KEYS, Key
from pi_durable_tui.tui.keys.names import key_name, shown_key
from pi_durable_tui.tui.safe_text import safe_line


class Keymap(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that are bound.

    Attributes:
        keys: Action name -> the library's names of its keys, the one to show first; () for none.
        where: The file that changes them.
        remarks: What is wrong with it, one line each.
    """

    keys: Mapping[str, tuple[str, ...]]
    where: str
    remarks: tuple[str, ...] = ()

    def shown(self, name: str) -> str:
        """The action's first key, for a hint; "": it has none."""
        return next((shown_key(key) for key in self.keys[name]), "")

    def all_shown(self, name: str) -> str:
        """All of its keys, for a table."""
        return ", ".join(map(shown_key, self.keys[name])) or "–"

    def actions(self, table: Sequence[Key]) -> dict[str, str]:
        """Key -> action, of the actions of a table."""
        return {key: each.action for each in table for name in self.keys[each.name] for key in _arriving(name)}


def keymap(text: str | None = None, where: str = "keybindings.json") -> Keymap:
    """The keys of the table with what a file says laid over them.

    Args:
        text: The file's; None: there is none.
        where: Names it in remarks.
    """
    said, remarks = _said(text, where)
    owners: dict[str, str] = {}
    keys: dict[str, tuple[str, ...]] = {}
    for name, wanted in said.items():
        for key in wanted:
            if key in owners and owners[key] != name:
                remarks.append(f'{where}, "{name}": {shown_key(key)} does "{owners[key]}" already, by an entry above; it stays so.')
            owners.setdefault(key, name)
        keys[name] = tuple(key for key in dict.fromkeys(wanted) if owners[key] == name)
    for each in KEYS:
        if each.name in said:
            continue
        own = tuple(each.keys.split(","))
        keys[each.name] = tuple(key for key in own if key not in owners)
        if not keys[each.name]:
            taken = f'{shown_key(own[0])} does "{owners[own[0]]}" now'
            remarks.append(f'{where}: {taken}, and "{each.name}" has no key left. Give it one, or [] if it needs none.')
    return Keymap(keys=keys, where=where, remarks=tuple(remarks))


def _said(text: str | None, where: str) -> tuple[dict[str, list[str]], list[str]]:
    """What the file says of actions that there are, in its order, and what is wrong with it."""
    if text is None:
        return {}, []
    try:
        decoded = msgspec.json.decode(text, type=dict[str, object])
    except msgspec.DecodeError as error:
        return {}, [f"{where} is not a JSON object, so the keys are the usual ones: {error}."]
    from difflib import get_close_matches  # noqa: PLC0415 - most people have no such file

    said: dict[str, list[str]] = {}
    remarks: list[str] = []
    known = {each.name for each in KEYS}
    for name, value in decoded.items():
        entry = f'{where}, "{safe_line(name, max_cells=40)}"'
        if name not in known:
            near = get_close_matches(name, sorted(known), n=1)
            remarks.append(f"{entry}: there is no such action." + (f' Is it "{near[0]}"?' if near else " /hotkeys shows them."))
            continue
        try:
            written = [value] if isinstance(value, str) else msgspec.convert(value, list[str])
        except msgspec.ValidationError:
            remarks.append(f"{entry}: a key, a list of keys, or [] for none is expected. The usual keys stay.")
            continue
        wrong = [one for one in written if key_name(one) is None]
        remarks += [f'{entry}: "{safe_line(one, max_cells=40)}" is no key that can be bound, such as "ctrl+k", "alt+enter" or "f5".' for one in wrong]
        if len(wrong) < len(written) or not written:  # with nothing that is right, the usual keys stay
            said[name] = [key for one in written if (key := key_name(one)) is not None]
    return said, remarks


def _arriving(key: str) -> tuple[str, ...]:
    """The names under which a key may come: old terminals have one of their own for Ctrl+Space."""
    return (key, "ctrl+@") if key == "ctrl+space" else (key,)
