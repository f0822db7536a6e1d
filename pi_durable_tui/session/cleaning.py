"""Records as they may be stored: strict JSON inside, clean text, nothing shared with the caller (rules SE-5, ST-5). PURE."""

from __future__ import annotations

from typing import TypeVar, cast

import msgspec

from pi_durable_tui.records.json import STORED_DEPTH, strict
from pi_durable_tui.records.keys import Hide, mapped
from pi_durable_tui.records.messages import Record

R = TypeVar("R", bound=Record)


def cleaned(record: R, path: str, hide: Hide | None = None) -> R:
    """The record with every text cleaned and every JSON value inside it copied.

    Args:
        path: What to call it in an error text, such as "task 12".
        hide: Takes out of every text what must not be stored (rule SA-17).

    Raises:
        BadRequest: Something inside is not JSON, or too deep or long to be read again; names where, with the keys as stored. Nothing changed.
    """
    return cast("R", _cleaned(record, path, hide))


def _cleaned(value: object, path: str, hide: Hide | None) -> object:
    if isinstance(value, msgspec.Struct):
        changes: dict[str, object] = {}
        for name, key in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            before = cast("object", getattr(value, name))
            after = _cleaned(before, f"{path}.{key}", hide)
            if after is not before:
                changes[name] = after
        return msgspec.structs.replace(value, **changes) if changes else value
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return tuple(_cleaned(item, f"{path}[{index}]", hide) for index, item in enumerate(items))
    clean = strict(value, path, depth=STORED_DEPTH)
    return clean if hide is None else mapped(clean, hide)
