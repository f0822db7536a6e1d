"""JSON as this program stores it: strict, finite, string keys, no lone surrogates (rule SE-5)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pi_durable_tui.errors import BadRequest

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:
    # msgspec cannot resolve a recursive alias in a field; the checker sees the precise type.
    Json = Any

JsonObject: TypeAlias = dict[str, Json]

REPLACEMENT = "\ufffd"

MOST_DEPTH = 128
"""How many lists and objects may stand in each other in a value that is handed in: as many as common readers of JSON take."""

STORED_DEPTH = 192
"""The same for what is stored, which such a value is a part of. The stack has room for it with the callers of a running program on it."""

MOST_BITS = 4096
"""Of a whole number, some 1,200 digits: longer ones cannot be read from their text again."""

_PATH_CHARS = 80


def clean_text(text: str) -> str:
    """The same text with each surrogate pair joined and each lone surrogate replaced by U+FFFD (rule SE-5).

    Text without surrogates is returned as the same object.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return str.__str__(text)  # of a subclass: as text that can be encoded


def strict(value: object, path: str = "$", *, depth: int = MOST_DEPTH) -> Json:
    """A deep copy of `value` that is strict JSON, and that can be read again from its text.

    Args:
        value: Anything; tuples become lists, and subclasses of text and numbers what they are subclasses of.
        path: Where it stands, for the error text.
        depth: How many containers may stand in each other.

    Returns:
        New containers; text is cleaned by `clean_text`.

    Raises:
        BadRequest: Not JSON (an object, NaN or infinity, a key that is no string), or nested too deeply, or a whole number too long;
            names the path. Nothing changed.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int | float):
        return _number(value, path)
    if not isinstance(value, list | tuple | dict):
        raise BadRequest(f"The value at {path} is a {type(value).__name__}, which is not JSON.")
    if depth <= 0:
        raise BadRequest(f"The value at {_cut(path)} is nested too deeply to be stored.")
    if isinstance(value, dict):
        result: dict[str, Json] = {}
        for key, item in cast("dict[object, object]", value).items():
            if not isinstance(key, str):
                raise BadRequest(f"The key {key!r} at {path} is not a string, which is not JSON.")
            result[clean_text(key)] = strict(item, f"{path}.{key}", depth=depth - 1)
        return result
    items = cast("list[object]", value)
    return [strict(item, f"{path}[{index}]", depth=depth - 1) for index, item in enumerate(items)]


def _number(value: float, path: str) -> int | float:
    if isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            raise BadRequest(f"The number at {path} has {value.bit_length()} bits, and at most {MOST_BITS} can be stored.")
        return int(value)
    if not math.isfinite(value):
        raise BadRequest(f"The value at {path} is {value}, which is not JSON.")
    return float(value)


def _cut(path: str) -> str:
    return path if len(path) <= _PATH_CHARS else path[:_PATH_CHARS] + "…"


def copy(value: Json) -> Json:
    """A structural copy: containers are new, text and numbers are shared. Cost grows with the containers, not with the text."""
    if isinstance(value, dict):
        return {key: copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy(item) for item in value]
    return value
