"""Whether arguments fit the schema that a server gave for a tool; decided before anything is asked or sent. PURE.

Patterns are left to the server: a text from elsewhere must not be able to keep this program busy with one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from pi_durable_tui.records.json import Json, JsonObject

_LEFT_OUT = frozenset({"pattern", "patternProperties", "format"})
_BY_NAME = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""What stands in these are names, whatever they are."""
_VALUES = frozenset({"enum", "const", "default", "examples"})
_SHOWN_CHARS = 300


def checker(schema: JsonObject) -> Callable[[JsonObject], str | None]:
    """(arguments) -> what does not fit, in one sentence; None: they do. A schema that cannot be used checks nothing: the server will.

    The library for it is loaded at the first call.
    """
    made: list[Callable[[JsonObject], str | None]] = []

    def check(arguments: JsonObject) -> str | None:
        if not made:
            made.append(_made(schema))
        return made[0](arguments)

    return check


def _made(schema: JsonObject) -> Callable[[JsonObject], str | None]:
    from jsonschema import SchemaError  # noqa: PLC0415 - takes a while, and is not needed before a call
    from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415 - the same
    from referencing import Registry  # noqa: PLC0415 - the same
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - the same

    try:
        plain = cast("JsonObject", _without_patterns(schema))
        kind = validator_for(plain, default=Draft202012Validator)
        kind.check_schema(plain)
    except (SchemaError, RecursionError):
        return lambda _arguments: None
    validator = kind(plain, registry=Registry())  # an empty registry: references lead nowhere outside of the schema

    def check(arguments: JsonObject) -> str | None:
        try:
            error = next(iter(validator.iter_errors(arguments)), None)
        except (Unresolvable, RecursionError):
            return None
        if error is None:
            return None
        message = " ".join(error.message.split())
        return f"{message if len(message) <= _SHOWN_CHARS else message[:_SHOWN_CHARS] + '…'} - at `{error.json_path}`"

    return check


def _without_patterns(node: Json) -> Json:
    if isinstance(node, list):
        return [_without_patterns(item) for item in node]
    if not isinstance(node, dict):
        return node
    made: JsonObject = {}
    for key, value in node.items():
        if key in _BY_NAME and isinstance(value, dict):
            made[key] = {name: _without_patterns(item) for name, item in value.items()}
        elif key not in _LEFT_OUT:
            made[key] = value if key in _VALUES else _without_patterns(value)
    return made
