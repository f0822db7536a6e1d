"""The JSON schema of the user's settings file (rule CL-4), made of the tables that read it. PURE.

`settings.schema.json` in this folder is what it says, for editors; `python -m tests.support.schema` writes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pi_durable_tui.cli.configuration.table import MEANINGS, allowed
from pi_durable_tui.cli.settings import ALLOWED, NESTED

FILE = Path(__file__).with_name("settings.schema.json")


def settings_schema() -> dict[str, Any]:
    """The schema, as JSON Schema 2020-12."""
    defined: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for key in ALLOWED:
        if key in NESTED:
            inner = {name: _one(f"{key}.{name}", defined) for name in NESTED[key]}
            properties[key] = {"type": "object", "properties": inner, "additionalProperties": False}
        else:
            properties[key] = _one(key, defined)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of pidurable",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "$defs": dict(sorted(defined.items())),
    }


def _one(key: str, defined: dict[str, Any]) -> dict[str, Any]:
    kind, words = allowed(key)
    (schema,), components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    defined.update(components)
    meaning = next((each for each in MEANINGS if each.key == key), None)
    told = f"{meaning.help} Default: {meaning.default}." if meaning is not None else f"{words[:1].upper()}{words[1:]}."
    return {"description": told, **schema}
