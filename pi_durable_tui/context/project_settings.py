"""What `.pidurable/settings.json` of a trusted project may say: which model to ask and how much it reasons, nothing else (rule SA-6). PURE.

Addresses, keys, headers, modes of approval, store paths and trust have no key here. Whatever else the file says is told and left out: a
project does not stop the start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import msgspec

from pi_durable_tui.context.project import Item
from pi_durable_tui.records.modes import ThinkingLevel

_ALLOWED: dict[str, object] = {"model": Annotated[str, msgspec.Meta(min_length=1, max_length=200)], "thinking": ThinkingLevel}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """None: it does not say."""

    model: str | None = None
    thinking: ThinkingLevel | None = None


def read_settings(items: Iterable[Item]) -> tuple[ProjectSettings, tuple[str, ...]]:
    """The settings among files that count, and one line for each thing that is left out."""
    item = next((item for item in items if item.kind == "settings"), None)
    if item is None:
        return ProjectSettings(), ()
    try:
        values = msgspec.json.decode(item.text, type=dict[str, object])
    except msgspec.DecodeError as error:
        return ProjectSettings(), (f"{item.shown} is not a JSON object and is not used: {error}.",)
    kept: dict[str, object] = {}
    warnings: list[str] = []
    for key, value in values.items():
        if key not in _ALLOWED:
            warnings.append(f"{item.shown} says {key[:40]!r}, which a project cannot set; it is left out.")
            continue
        try:
            kept[key] = msgspec.convert(value, _ALLOWED[key])
        except msgspec.ValidationError as error:
            warnings.append(f"{item.shown} has a value for {key!r} that is not allowed: {error}.")
    return msgspec.convert(kept, ProjectSettings), tuple(warnings)
