"""Our messages in the form that providers take, and nothing in them that providers refuse."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.harness.ports import ModelRequest, ToolSpec
from pi_durable_tui.models.arguments import Limits, call_arguments
from pi_durable_tui.models.catalog import Access
from pi_durable_tui.models.conversion import ends_without_thinking, openai_messages, openai_tools
from pi_durable_tui.records.messages import AssistantMessage, Content, Image, Message, SystemMessage, Text, Thinking, ToolCall, ToolResultMessage, UserMessage
from tests.support.model_strictness import violation

MODEL = "anthropic/claude-sonnet-4-5"
PICTURE = Image(mime_type="image/png", data="AAAA")
PICTURE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def system(*texts: str) -> SystemMessage:
    return SystemMessage(content=tuple(Text(text=text) for text in texts))


def user(*parts: str | Image) -> UserMessage:
    return UserMessage(content=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def answer(*parts: Text | Thinking | ToolCall, model: str = MODEL) -> AssistantMessage:
    return AssistantMessage(content=parts, model=model, stop_reason="stop")


def result(call_id: str, *parts: Content, is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name="t", content=parts, is_error=is_error)


def call(call_id: str, name: str = "read", **arguments: str) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=dict(arguments))


def sent_call(call_id: str, name: str, arguments: str) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def plain(messages: list[Message], *, model: str) -> list[dict[str, object]]:
    """What is sent, without the marks for the provider's cache."""
    return [without_mark(message) for message in openai_messages(messages, model=model)]


def without_mark(value: Any) -> Any:
    if isinstance(value, list):
        return [without_mark(part) for part in value]
    return {key: without_mark(part) for key, part in value.items() if key != "cache_control"} if isinstance(value, dict) else value


def test_a_conversation_keeps_its_order_and_words() -> None:
    messages = [
        system("be kind", "be brief"),
        system("work in /x"),
        user("hi"),
        answer(Text(text="ok"), call("a", path="ä")),
        result("a", Text(text="1"), Text(text="2")),
    ]

    assert plain(messages, model=MODEL) == [
        {"role": "system", "content": "be kind\n\nbe brief\n\nwork in /x"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ok", "tool_calls": [sent_call("a", "read", '{"path":"ä"}')]},
        {"role": "tool", "tool_call_id": "a", "content": "1\n2"},
    ]


@pytest.mark.rule("CASE-B6")
def test_blank_text_is_dropped_and_a_message_left_with_nothing_goes_too() -> None:
    messages = [
        system(" "),
        user("", "hi", " \n"),
        answer(Text(text=""), call("a")),
        result("a"),
        answer(Text(text="  \n")),
        answer(Thinking(text="hm")),
        user("again"),
    ]

    assert plain(messages, model=MODEL) == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [sent_call("a", "read", "{}")]},
        {"role": "tool", "tool_call_id": "a", "content": "(no output)"},
        {"role": "user", "content": "again"},
    ]


@pytest.mark.parametrize(("name", "sent"), [("bash ", "bash_"), ("", "unknown_tool"), ("a.b/ü", "a_b__"), ("x" * 99, "x" * 64), ("read", "read")])
@pytest.mark.rule("CASE-B2")
def test_a_name_that_is_no_name_is_sent_as_one(name: str, sent: str) -> None:
    malformed = ToolCall(id="a", name=name, arguments={}, malformed='{"cut')
    message = plain([user("x"), answer(malformed), result("a", is_error=True)], model=MODEL)[1]

    assert message == {"role": "assistant", "content": None, "tool_calls": [sent_call("a", sent, "{}")]}


def test_pictures_are_data_urls_and_those_of_results_follow_the_round() -> None:
    messages = [user("see", PICTURE), answer(call("a"), call("b")), result("a", Text(text="shot"), PICTURE), result("b", PICTURE, PICTURE)]

    assert plain(messages, model=MODEL) == [
        {"role": "user", "content": [{"type": "text", "text": "see"}, PICTURE_PART]},
        {"role": "assistant", "content": None, "tool_calls": [sent_call("a", "read", "{}"), sent_call("b", "read", "{}")]},
        {"role": "tool", "tool_call_id": "a", "content": "shot\n(1 image of this result: see the next user message)"},
        {"role": "tool", "tool_call_id": "b", "content": "(2 images of this result: see the next user message)"},
        {"role": "user", "content": [PICTURE_PART, PICTURE_PART, PICTURE_PART]},
    ]


@pytest.mark.rule("AG-5")
def test_a_model_that_takes_no_pictures_reads_where_one_stands() -> None:
    messages = [user("see", PICTURE), answer(call("a")), result("a", Text(text="shot"), PICTURE)]
    words = "(A picture stands here, image/png. This model takes none.)"
    request = ModelRequest(model=MODEL, messages=tuple(messages))
    blind = call_arguments(request, {"supports_vision": False}, Access(), Limits())["messages"]
    assert [message["content"] for message in blind] == [f"see\n\n{words}", None, f"shot\n{words}"]
    for entry in (None, {"supports_vision": True}):
        assert call_arguments(request, entry, Access(), Limits())["messages"][0]["content"][1]["image_url"] == PICTURE_PART["image_url"]


@pytest.mark.rule("CX-1")
def test_neighbouring_user_messages_are_one() -> None:
    assert plain([user("a"), user("b"), user(PICTURE)], model=MODEL) == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, PICTURE_PART]}
    ]
    assert plain([user("a"), user("b")], model=MODEL) == [{"role": "user", "content": "a\n\nb"}]


def test_a_later_system_message_stays_one_only_where_that_is_allowed() -> None:
    messages = [system("first"), user("a"), answer(Text(text="b")), system("tools changed"), user("c")]

    assert plain(messages, model="openai/gpt-5")[-2:] == [{"role": "system", "content": "tools changed"}, {"role": "user", "content": "c"}]
    assert plain(messages, model=MODEL)[-1:] == [{"role": "user", "content": "<system>\ntools changed\n</system>\n\nc"}]


SIGNED = answer(Thinking(text=" t1 ", signature="s1"), Text(text="x"), Thinking(text="", signature="Z", redacted=True), Thinking(text="unsigned"), call("a"))


@pytest.mark.rule("CASE-B9")
def test_signed_thoughts_go_back_whole_and_in_order_to_where_they_came_from() -> None:
    first = {"type": "thinking", "thinking": " t1 ", "signature": "s1"}
    hidden = {"type": "redacted_thinking", "data": "Z"}

    assert plain([user("q"), SIGNED, result("a")], model="anthropic/claude-opus-4-5")[1] == {
        "role": "assistant",
        "content": [first, {"type": "text", "text": "x"}, hidden],
        "thinking_blocks": [first, hidden],
        "tool_calls": [sent_call("a", "read", "{}")],
    }


@pytest.mark.parametrize("model", ["openai/gpt-5", "openai/gpt-5-codex", "openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"])
@pytest.mark.rule("CASE-B9")
def test_to_another_provider_thoughts_are_left_out(model: str) -> None:
    assert plain([user("q"), SIGNED, result("a")], model=model)[1] == {
        "role": "assistant",
        "content": "x",
        "tool_calls": [sent_call("a", "read", "{}")],
    }


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user("q"), answer(call("a")), result("a")], True),
        ([user("q"), SIGNED, result("a")], False),
        ([user("q"), answer(Thinking(text="t", signature="s"), call("a"), model="x/y"), result("a")], True),
        ([user("q"), answer(call("a")), result("a"), user("stop")], True),
        ([user("q"), answer(call("a")), result("a"), answer(Text(text="done")), user("next")], False),
        ([user("q"), answer(Text(text="done"))], False),
        ([user("q")], False),
        ([], False),
    ],
)
@pytest.mark.rule("CASE-B9")
def test_an_open_round_without_signed_thoughts_is_noticed(messages: list[Message], expected: bool) -> None:
    assert ends_without_thinking(messages, model=MODEL) == expected


def test_tools_are_functions_with_their_schema() -> None:
    schema = {"type": "object", "properties": {}}

    assert openai_tools([ToolSpec(name="read", description="Reads.", parameters=dict(schema))]) == [
        {"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": schema}}
    ]
    assert openai_tools([]) == []


texts = st.sampled_from(["", " ", "\n\t", "word", "ä\ufffd"])
names = st.sampled_from(["read", "", "bash ", "x y", "ü"])


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Valid by rule CX-1 (each call has its result), with whatever texts and names a model and its tools may produce."""
    messages: list[Message] = [system(draw(texts)), user("task")]
    for turn in range(draw(st.integers(0, 4))):
        calls = [ToolCall(id=f"{turn}-{number}", name=draw(names), arguments={}) for number in range(draw(st.integers(0, 3)))]
        thoughts = [Thinking(text=draw(texts), signature=draw(st.sampled_from([None, "s"])))] if draw(st.booleans()) else []
        messages.append(answer(*thoughts, Text(text=draw(texts)), *calls, model=draw(st.sampled_from([MODEL, "openai/x"]))))
        messages.extend(result(one.id, *([PICTURE] if draw(st.booleans()) else []), Text(text=draw(texts))) for one in calls)
        if draw(st.booleans()):
            messages.append(system(draw(texts)))
    return [*messages, user("go on")]


@given(histories())
@pytest.mark.rule("CX-1", "CASE-B2", "CASE-B6")
def test_whatever_happened_before_a_strict_provider_accepts_the_request(messages: list[Message]) -> None:
    sent = openai_messages(messages, model="anthropic/x")

    assert violation({"messages": sent}) is None
    assert json.loads(json.dumps(sent)) == sent
    roles = [message["role"] for message in sent if message["role"] != "tool"]
    assert not any(a == b == "user" for a, b in itertools.pairwise(roles))
