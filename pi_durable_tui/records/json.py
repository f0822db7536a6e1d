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


def clean_text(text: str) -> str:
    """The same text with each surrogate pair joined and each lone surrogate replaced by U+FFFD (rule SE-5).

    Text without surrogates is returned as the same object.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def strict(value: object, path: str = "$") -> Json:
    """A deep copy of `value` that is strict JSON.

    Args:
        value: Anything; tuples become lists.
        path: Where it stands, for the error text.

    Returns:
        New containers; text is cleaned by `clean_text`.

    Raises:
        BadRequest: Not JSON (an object, NaN or infinity, a key that is no string); names the path. Nothing changed.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadRequest(f"The value at {path} is {value}, which is not JSON.")
        return value
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        return [strict(item, f"{path}[{index}]") for index, item in enumerate(items)]
    if isinstance(value, dict):
        result: dict[str, Json] = {}
        for key, item in cast("dict[object, object]", value).items():
            if not isinstance(key, str):
                raise BadRequest(f"The key {key!r} at {path} is not a string, which is not JSON.")
            result[clean_text(key)] = strict(item, f"{path}.{key}")
        return result
    raise BadRequest(f"The value at {path} is a {type(value).__name__}, which is not JSON.")


def copy(value: Json) -> Json:
    """A structural copy: containers are new, text and numbers are shared. Cost grows with the containers, not with the text."""
    if isinstance(value, dict):
        return {key: copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy(item) for item in value]
    return value
