"""The JSON schema of a tool's arguments, as models are told of it. PURE."""

from __future__ import annotations

from typing import cast

import msgspec

from pi_durable_tui.harness.ports import Tool
from pi_durable_tui.records.json import Json, JsonObject, strict


def parameters(tool: Tool) -> JsonObject:
    """An object schema without references, as all providers accept it."""
    if tool.parameters is not None:
        return tool.parameters
    (schema,), components = msgspec.json.schema_components([tool.arguments], ref_template="#/$defs/{name}")
    resolved = cast("JsonObject", _resolved(strict(schema), cast("JsonObject", strict(components))))
    return {key: item for key, item in resolved.items() if key != "title"}


def _resolved(node: Json, components: JsonObject) -> Json:
    """The schema with each reference replaced by what it names; argument types do not contain themselves."""
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            # What stands beside a reference (the field's own description or default) goes over what it names.
            named = cast("JsonObject", components[reference.rsplit("/", 1)[-1]])
            return _resolved({**named, **{key: item for key, item in node.items() if key != "$ref"}}, components)
        return {key: _resolved(item, components) for key, item in node.items()}
    if isinstance(node, list):
        return [_resolved(item, components) for item in node]
    return node
