"""The one serializer: records to JSON text and back (camelCase keys, unknown keys kept, rule ST-19)."""

from __future__ import annotations

from typing import TypeVar, cast

import msgspec

from pi_durable_tui.records.json import Json
from pi_durable_tui.records.messages import Record

R = TypeVar("R", bound=Record)

_encoder = msgspec.json.Encoder()


def encode(value: Record | Json) -> str:
    """Compact JSON text of a record or a JSON value.

    Raises:
        UnicodeEncodeError: A lone surrogate; `records.json.strict` removes them before.
    """
    return _encoder.encode(value).decode()


def decode(text: str | bytes, kind: type[R]) -> R:
    """The record in `text`.

    Raises:
        msgspec.ValidationError: The text is JSON but not such a record; the message names the path.
        msgspec.DecodeError: The text is not JSON.
    """
    return msgspec.json.decode(text, type=kind)


def decode_json(text: str | bytes) -> Json:
    """The JSON value in `text`.

    Raises:
        msgspec.DecodeError: The text is not JSON.
    """
    return msgspec.json.decode(text)


def to_json(value: Record) -> Json:
    """A record as a plain JSON value, for documents and checkpoints. Text is shared, containers are new."""
    return _listed(msgspec.to_builtins(value))


def from_json(value: Json, kind: type[R]) -> R:
    """A record out of a plain JSON value.

    Raises:
        msgspec.ValidationError: It is not such a record; the message names the path.
    """
    return msgspec.convert(value, type=kind)


def merged(previous: str | None, record: Record) -> str:
    """The text to store for `record` over `previous`: keys that this version does not know are kept (rule ST-19)."""
    if previous is None:
        return encode(record)
    known = record.__struct_encode_fields__
    old = decode_json(previous)
    unknown = {key: item for key, item in old.items() if key not in known} if isinstance(old, dict) else {}
    if not unknown:
        return encode(record)
    new = to_json(record)
    if not isinstance(new, dict):
        return encode(record)
    return encode({**new, **unknown})


def _listed(value: object) -> Json:
    """JSON knows no tuples."""
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_listed(item) for item in cast("list[object]", value)]
    return cast("Json", value)
