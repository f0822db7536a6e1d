"""The JSON schema a model is told of a tool's arguments (harness/tool/schema.py)."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec

from pi_durable_tui.harness.ports import Tool, ToolResult
from pi_durable_tui.harness.tool.schema import parameters


class Place(msgspec.Struct, frozen=True):
    """Where to look."""

    line: int = 1


class Change(msgspec.Struct, frozen=True):
    old: str
    place: Place


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    """What to do."""

    title: Annotated[str, msgspec.Meta(description="One line.")]
    changes: list[Change]
    start: Annotated[Place, msgspec.Meta(description="Where to begin.")]
    end: Place | None = None
    mode: Literal["fast", "slow"] = "fast"
    near: Place = Place(line=3)


async def nothing(_arguments: Any, _context: Any) -> ToolResult:
    return ToolResult()


def tool(arguments: type[Any]) -> Tool:
    return Tool(name="t", description="d", arguments=arguments, execute=nothing, title=lambda _arguments: "t")


PLACE = {"title": "Place", "description": "Where to look.", "type": "object", "properties": {"line": {"type": "integer", "default": 1}}, "required": []}


def test_a_schema_has_no_references_and_keeps_what_a_field_says_of_itself():
    assert parameters(tool(Arguments)) == {
        "description": "What to do.",
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "One line."},
            "changes": {
                "type": "array",
                "items": {"title": "Change", "type": "object", "properties": {"old": {"type": "string"}, "place": PLACE}, "required": ["old", "place"]},
            },
            "start": {**PLACE, "description": "Where to begin."},
            "end": {"anyOf": [PLACE, {"type": "null"}], "default": None},
            "mode": {"enum": ["fast", "slow"], "default": "fast"},
            "near": {**PLACE, "default": {"line": 3}},
        },
        "required": ["title", "changes", "start"],
        "additionalProperties": False,
    }


def test_a_tool_without_arguments_has_an_object_without_properties():
    class Nothing(msgspec.Struct):
        """Nothing to say."""

    assert parameters(tool(Nothing)) == {"description": "Nothing to say.", "type": "object", "properties": {}, "required": []}


def test_each_schema_is_a_value_of_its_own():
    first = parameters(tool(Arguments))
    json.dumps(first)
    first.clear()
    assert parameters(tool(Arguments)) != {}
