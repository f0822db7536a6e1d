"""Names and schemas as every provider takes them, and the check of arguments: AG-4."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.mcp.check import checker
from pi_durable_tui.mcp.offer import SCHEMA_BYTES, Offer, OfferedTool, remembered, stored, told_schema, tool_name

TAKEN_BY_ALL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


@pytest.mark.rule("AG-4")
def test_a_tool_is_called_by_its_servers_name_and_its_own():
    assert tool_name("docs", "search") == "docs__search"


@pytest.mark.rule("AG-4")
@given(st.lists(st.text(min_size=1, max_size=90), unique=True, min_size=2, max_size=5))
def test_every_name_is_one_that_all_providers_take_and_two_tools_never_share_one(names: list[str]):
    made = [tool_name("docs", name) for name in names]
    assert all(TAKEN_BY_ALL.fullmatch(name) for name in made)
    assert len(set(made)) == len(names)


def test_references_are_replaced_and_choices_at_the_top_are_left_to_the_check():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Arguments",
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/point", "description": "Where."}},
        "anyOf": [{"required": ["at"]}],
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer"}}}},
    }
    assert told_schema(schema) == {
        "type": "object",
        "properties": {"at": {"type": "object", "properties": {"x": {"type": "integer"}}, "description": "Where."}},
    }


def test_a_schema_that_contains_itself_or_grows_without_end_is_told_as_any_object():
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert told_schema(tree) == {"type": "object", "properties": {"next": {"type": "object", "properties": {"next": {}}}}}
    laughs = {
        f"d{level}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{level + 1}"}, "b": {"$ref": f"#/$defs/d{level + 1}"}}} for level in range(40)
    }
    told = told_schema({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": laughs})
    assert len(msgspec.json.encode(told)) <= SCHEMA_BYTES
    assert told_schema({}) == {"type": "object", "properties": {}}
    assert told_schema({"type": "array", "properties": 3}) == {"type": "object", "properties": {}}


def test_arguments_are_checked_by_the_whole_schema():
    check = checker({"type": "object", "properties": {"at": {"$ref": "#/$defs/p"}}, "required": ["at"], "$defs": {"p": {"type": "integer", "minimum": 3}}})
    assert check({"at": 3}) is None
    assert check({"at": 2}) == "2 is less than the minimum of 3 - at `$.at`"
    assert check({}) == "'at' is a required property - at `$`"


@pytest.mark.timeout(20)
def test_a_pattern_of_a_server_cannot_keep_the_program_busy():
    check = checker({"type": "object", "properties": {"pattern": {"type": "string", "pattern": "^(a+)+$"}}})
    assert check({"pattern": "a" * 40 + "!"}) is None
    assert check({"pattern": 3}) == "3 is not of type 'string' - at `$.pattern`"


@pytest.mark.parametrize("schema", [{"type": "nothing"}, {"$ref": "https://elsewhere.example/schema"}, {"properties": 4}])
def test_a_schema_that_cannot_be_used_leaves_the_check_to_the_server(schema: dict[str, object]):
    assert checker(schema)({"anything": 1}) is None


def test_what_was_remembered_comes_back_and_what_is_not_ours_is_forgotten():
    offer = Offer(tools=(OfferedTool(name="a", schema={"type": "object"}, reads_only=True),), instructions="Look.")
    assert remembered(stored(offer)) == offer
    assert (remembered(None), remembered(b"{"), remembered(b'{"tools": 3}')) == (None, None, None)
