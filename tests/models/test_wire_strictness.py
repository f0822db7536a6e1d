"""The strict servers refuse what their providers refuse, and nothing else: a fake that lets everything pass would prove nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.wire_forms import FormName, Issued
from tests.support.wire_strictness import wire_violation

ISSUED = [Issued(call_ids=("toolu_1",), thoughts=(("hm", "s1"), ("", "Z")))]
THOUGHTS = [{"type": "thinking", "thinking": "hm", "signature": "s1"}, {"type": "redacted_thinking", "data": "Z"}]
BODIES: dict[FormName, dict[str, Any]] = {
    "messages": {
        "max_tokens": 5_000,
        "thinking": {"type": "enabled", "budget_tokens": 1_024},
        "system": [{"type": "text", "text": "be kind"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [*THOUGHTS, {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}, {"type": "text", "text": "go on"}]},
        ],
    },
    "responses": {
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "Z"},
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        ]
    },
    "chat": {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ]
    },
}


def changed(form: FormName, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    body = copy.deepcopy(BODIES[form])
    change(body)
    return body


@pytest.mark.parametrize("form", list(BODIES))
def test_a_valid_request_is_taken(form: FormName) -> None:
    assert wire_violation(form, BODIES[form], ISSUED) is None


def answer(body: dict[str, Any]) -> list[dict[str, Any]]:
    return body["messages"][1]["content"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda body: answer(body)[0].update(thinking="edited"), "Invalid `signature`"),
        (lambda body: answer(body).pop(1), "cannot be modified"),
        (lambda body: answer(body).__setitem__(slice(0, 2), THOUGHTS[::-1]), "cannot be modified"),
        (lambda body: answer(body).__delitem__(slice(0, 2)), "Expected `thinking`"),
        (lambda body: answer(body)[2].update(id="call.1"), "should match pattern"),
        (lambda body: answer(body)[2].update(input="{}"), "valid dictionary"),
        (lambda body: body["messages"][2]["content"].pop(0), "must be answered right after"),
        (lambda body: body["messages"][2]["content"].reverse(), "must come first"),
        (lambda body: body["messages"][2]["content"][1].update(text=" "), "non-whitespace"),
        (lambda body: body["messages"].pop(0), "first and the last message"),
        (lambda body: body["messages"].insert(0, body["messages"][0]), "alternate"),
        (lambda body: body.update(max_tokens=1_000), "greater than"),
        (lambda body: body["system"].extend({"type": "text", "text": "x", "cache_control": {}} for _ in range(5)), "maximum of 4"),
    ],
)
@pytest.mark.rule("CASE-B7", "CASE-B9", "CX-1")
def test_messages_refuse_what_is_not_valid_there(change: Any, words: str) -> None:
    assert words in str(wire_violation("messages", changed("messages", change), ISSUED))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda body: body["input"].pop(3), "No tool output found"),
        (lambda body: body["input"].__delitem__(slice(1, 3)), "No tool call found"),
        (lambda body: body["input"][1].update(encrypted_content="other"), "could not be verified"),
        (lambda body: body["input"][2].update(arguments="[]"), "JSON object"),
        (lambda body: body["input"][0]["content"][0].update(type="output_text"), "Invalid value"),
        (lambda body: body["input"][0]["content"][0].update(text=""), "must not be blank"),
        (lambda body: body["input"].append(body["input"][1]), "required following item"),
    ],
)
@pytest.mark.rule("CASE-B9", "CX-1")
def test_responses_refuse_what_is_not_valid_there(change: Any, words: str) -> None:
    assert words in str(wire_violation("responses", changed("responses", change), ISSUED))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda body: body["messages"][1].update(thinking_blocks=[]), "additional properties"),
        (lambda body: body["messages"][0].update(content=[{"type": "thinking", "thinking": "x"}]), "invalid content part"),
        (lambda body: body["messages"][0].update(cache_control={}), "additional properties"),
        (lambda body: [body["messages"][1]["tool_calls"][0].update(id="c" * 41), body["messages"][2].update(tool_call_id="c" * 41)], "string too long"),
        (lambda body: body["messages"].pop(), "did not have response messages"),
    ],
)
@pytest.mark.rule("CASE-B7", "CASE-B9", "CX-1")
def test_chat_refuses_what_is_not_valid_there(change: Any, words: str) -> None:
    assert words in str(wire_violation("chat", changed("chat", change), ISSUED))
