"""What a server offers, as it is remembered: its tools and what it says of itself; and the names that models know its tools by. PURE.

Everything here was said by the server. A list that is remembered makes its tools usable at the next start before the server runs, so that
a cut-off call of a reading tool can go on at once.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from pi_durable_tui.records.json import Json, JsonObject

NAME_CHARS = 64
"""Of a tool, the most that all providers take."""
MOST_TOOLS = 128
DESCRIPTION_CHARS = 4_000
INSTRUCTIONS_CHARS = 4_000
SCHEMA_BYTES = 32_000
SHELF_BYTES = 4_000_000
_ODD = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST_CHARS = 8


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the server describes it.

    Attributes:
        name: The server's own name for it.
        reads_only, is_idempotent: What it says of itself; a hint, nothing more.
    """

    name: str
    title: str = ""
    description: str = ""
    schema: JsonObject = {}
    reads_only: bool = False
    is_idempotent: bool = False


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """All that a server offers, and its advice on how to use it."""

    tools: tuple[OfferedTool, ...] = ()
    instructions: str = ""


def stored(offer: Offer) -> bytes:
    """As it is put on the shelf."""
    return msgspec.json.encode(offer)


def remembered(data: bytes | None) -> Offer | None:
    """What was on the shelf; None when nothing usable was."""
    try:
        return None if data is None else msgspec.json.decode(data, type=Offer)
    except msgspec.DecodeError:
        return None


def tool_name(server: str, name: str) -> str:
    """What models call a tool: the server's name, two underscores, the tool's name.

    Where that is not a name for every provider it is made one, and ends in a digest of the real one: two tools never share a name.
    """
    plain = f"{server}__{_ODD.sub('_', name)}"
    if plain == f"{server}__{name}" and len(plain) <= NAME_CHARS:
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]
    return f"{plain[: NAME_CHARS - _DIGEST_CHARS - 1]}_{digest}"


def told_schema(schema: JsonObject) -> JsonObject:
    """The schema of the arguments as every provider accepts it: an object, without references and without choices at its top.

    Arguments are checked by the whole schema all the same. One that is too large is told as "any object".
    """
    resolved = _Resolving(schema).plain(schema, ())
    told = {key: value for key, value in resolved.items() if key not in _NOT_AT_TOP} if isinstance(resolved, dict) else {}
    properties = told.get("properties")
    told = {**told, "type": "object", "properties": properties if isinstance(properties, dict) else {}}
    return told if len(msgspec.json.encode(told)) <= SCHEMA_BYTES else {"type": "object", "properties": {}}


_DEFINITIONS = frozenset({"$defs", "definitions"})
_NOT_AT_TOP = _DEFINITIONS | {"$schema", "$id", "$comment", "oneOf", "anyOf", "allOf", "not", "if", "then", "else", "enum", "const", "title"}
_MOST_LEVELS = 32
_MOST_NODES = 20_000


class _Resolving:
    """A schema whose references are replaced by what they name; bounded, because one may contain itself, or itself twice."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = _MOST_NODES

    def plain(self, node: Json, under: tuple[str, ...]) -> Json:
        """The node without references; where a schema contains itself, anything goes. `under`: what it lies in."""
        self._left -= 1
        if len(under) > _MOST_LEVELS or self._left < 0:
            return {}
        if isinstance(node, list):
            return [self.plain(item, (*under, "")) for item in node]
        if not isinstance(node, dict):
            return node
        rest = {key: self.plain(value, (*under, "")) for key, value in node.items() if key != "$ref" and key not in _DEFINITIONS}
        reference = node.get("$ref")
        if not isinstance(reference, str) or reference in under:
            return rest
        found = self.plain(self._named(reference), (*under, reference))
        return {**found, **rest} if isinstance(found, dict) else rest

    def _named(self, reference: str) -> Json:
        """What a reference into the same schema names; None for any other."""
        node: Json = self._root if reference.startswith("#") else None
        for part in reference[1:].split("/")[1:]:
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
        return node
