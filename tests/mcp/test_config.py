"""How servers are written down, and what of it may come from a project: AG-4, SA-6, SA-17."""

from __future__ import annotations

import msgspec
import pytest

from pi_durable_tui.mcp.config import NAME, Configured, McpServer, filled, of_project


@pytest.mark.rule("SA-17")
@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, 'it needs either "command" or "url"'),
        ({"command": "a", "url": "https://a.example/"}, 'it needs either "command" or "url"'),
        ({"url": "https://a.example/", "args": ["x"]}, '"args", "env" and "cwd" belong to a "command"'),
        ({"command": "a", "headers": {"X": "$X"}}, '"headers" belong to a "url"'),
        ({"url": "https://a.example/", "headers": {"Authorization": "Bearer written-down"}}, 'the header "Authorization" must name a variable'),
        ({"url": "https://me:secret@a.example/"}, "matching regex"),
        ({"url": "ftp://a.example/"}, "matching regex"),
        ({"command": "a", "shell": True}, "unknown field `shell`"),
        ({"command": "a", "env": {"NOT A NAME": "x"}}, "matching regex"),
    ],
)
def test_what_is_half_of_two_kinds_or_holds_a_key_is_refused(values: dict[str, object], reason: str):
    with pytest.raises(msgspec.ValidationError, match=reason):
        msgspec.convert(values, McpServer)


@pytest.mark.rule("SA-17")
def test_values_that_name_variables_are_filled_in_and_nothing_else():
    written = {"A": "$TOKEN", "B": "Bearer $TOKEN", "C": "plain", "D": "costs $5", "E": "$TOKEN!"}
    assert filled(written, {"TOKEN": "t"}) == {"A": "t", "B": "Bearer t", "C": "plain", "D": "costs $5", "E": "$TOKEN!"}
    with pytest.raises(KeyError, match="TOKEN"):
        filled(written, {})


def test_the_variables_that_are_named_are_known_before_anything_is_started():
    assert McpServer(command="a", env={"X": "$ONE", "Y": "two"}).references == {"ONE"}
    assert McpServer(url="https://a.example/", headers={"X": "Bearer $TWO"}).references == {"TWO"}


@pytest.mark.rule("SA-6")
@pytest.mark.parametrize(
    "values",
    [
        {"command": "a", "env": {"X": "$OPENAI_API_KEY"}},
        {"url": "https://a.example/", "headers": {"X": "$OPENAI_API_KEY"}},
        {"command": "a", "trust_read_only": True},
    ],
)
def test_a_project_names_no_variables_and_no_headers_and_grants_itself_nothing(values: dict[str, object]):
    with pytest.raises(msgspec.ValidationError, match="write the server into your own settings"):
        of_project(values)


def test_a_project_may_bring_a_program_or_an_address():
    assert of_project({"command": "a", "args": ["b"], "env": {"LEVEL": "debug"}}).shown == "a b"
    assert of_project({"url": "http://127.0.0.1:9/mcp"}).shown == "http://127.0.0.1:9/mcp"


@pytest.mark.parametrize(
    ("name", "fits"), [("docs", True), ("my-docs_2", True), ("a__b", False), ("a_", False), ("2a", False), ("a b", False), ("a" * 40, False)]
)
def test_the_name_of_a_server_can_begin_the_name_of_a_tool(name: str, fits: bool):
    assert (NAME.fullmatch(name) is not None) is fits


def test_what_is_remembered_belongs_to_one_configuration_in_one_directory():
    def digest(directory: str = "/w", **values: object) -> str:
        return Configured(name="a", server=msgspec.convert({"command": "a", **values}, McpServer), directory=directory).digest

    assert digest() == digest(trust_read_only=True, call_timeout_ms=7)
    assert len({digest(), digest("/other"), digest(args=["x"]), digest(env={"A": "b"}), digest(cwd="x")}) == 5
