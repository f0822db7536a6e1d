"""What `.pidurable/settings.json` of a trusted project may say (rule SA-6). PURE.

Which model to ask, how much it reasons, and which MCP servers to start or to ask, nothing else. Addresses of models, keys, headers,
modes of approval, store paths and trust have no key here. Whatever else the file says is told and left out: a project does not stop the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from pi_durable_tui.context.project import Item
from pi_durable_tui.records.modes import ThinkingLevel

MOST_SERVERS = 20

_ALLOWED: dict[str, object] = {
    "model": Annotated[str, msgspec.Meta(min_length=1, max_length=200)],
    "thinking": ThinkingLevel,
    "mcp_servers": Annotated[dict[str, dict[str, object]], msgspec.Meta(max_length=MOST_SERVERS)],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """None: it does not say. `mcp_servers` is as it stands there: what of it may be used is decided where servers are known."""

    model: str | None = None
    thinking: ThinkingLevel | None = None
    mcp_servers: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, dict[str, object]])


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
