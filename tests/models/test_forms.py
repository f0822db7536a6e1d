"""What differs between providers in the form of a request."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pi_durable_tui.harness.ports import ModelInfo, ModelRequest
from pi_durable_tui.models.arguments import Limits, call_arguments
from pi_durable_tui.models.catalog import Access, model_info
from pi_durable_tui.models.conversion import openai_messages
from pi_durable_tui.models.forms import ENCRYPTED, Form, call_ids, form_of
from pi_durable_tui.models.overrides import ModelOverride, overridden
from pi_durable_tui.models.usage import Prices
from pi_durable_tui.records.messages import AssistantMessage, Image, Message, SystemMessage, Text, Thinking, ToolCall, ToolResultMessage, Usage, UserMessage
from pi_durable_tui.records.modes import ThinkingLevel

CLAUDE = "anthropic/claude-sonnet-4-5"
MARK = {"type": "ephemeral"}


def user(text: str) -> UserMessage:
    return UserMessage(content=(Text(text=text),))


def calls(*ids: str, model: str) -> list[Message]:
    answer = AssistantMessage(content=tuple(ToolCall(id=call_id, name="read", arguments={}) for call_id in ids), model=model, stop_reason="toolUse")
    return [answer, *(ToolResultMessage(tool_call_id=call_id, tool_name="read", content=(Text(text="ok"),)) for call_id in ids)]


@pytest.mark.parametrize(
    ("model", "entry", "form"),
    [
        (CLAUDE, None, "messages"),
        ("vertex_ai/claude-sonnet-4-5", None, "messages"),
        ("vertex_ai/gemini-2.5-pro", None, "chat"),
        ("openai/gpt-5-codex", {"mode": "responses"}, "responses"),
        ("openai/responses/gpt-5", None, "responses"),
        ("openai/gpt-5", {"mode": "chat"}, "chat"),
        ("openrouter/anthropic/claude-sonnet-4.5", None, "chat"),
        ("groq/x", {"mode": "responses"}, "chat"),
    ],
)
@pytest.mark.rule("AG-5")
def test_the_form_follows_from_the_provider_and_the_table(model: str, entry: dict[str, Any] | None, form: Form) -> None:
    assert form_of(model, entry) == form


ODD = ("call.1|x", "functions.read:0", "x" * 41, "ä", "c_1-B")


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (CLAUDE, r"[A-Za-z0-9_-]{1,40}"),
        ("openai/gpt-5", r"[A-Za-z0-9_-]{1,40}"),
        ("groq/x", r"[A-Za-z0-9_-]{1,40}"),
        ("mistral/devstral", r"[A-Za-z0-9]{9}"),
    ],
)
@pytest.mark.rule("CASE-B7")
def test_ids_of_calls_have_the_shape_that_the_provider_takes_and_stay_apart(model: str, shape: str) -> None:
    ids = call_ids(calls(*ODD, model="moonshot/kimi"), model=model)

    assert list(ids) == list(ODD)
    assert all(re.fullmatch(shape, sent) for sent in ids.values())
    assert len(set(ids.values())) == len(ODD)
    assert call_ids(calls(*ODD, model="moonshot/kimi"), model=model) == ids


@pytest.mark.rule("CASE-B7")
def test_an_id_goes_back_as_it_is_to_where_it_came_from_unless_the_provider_checks_it() -> None:
    held = "call_1__thought__" + "QUJD" * 40

    assert call_ids(calls(held, model="gemini/a"), model="gemini/b") == {held: held}
    assert call_ids(calls("a.b", model="moonshot/kimi"), model="moonshot/kimi") == {"a.b": "a.b"}
    assert call_ids(calls("a.b", model=CLAUDE), model=CLAUDE)["a.b"] != "a.b"
    assert call_ids(calls("c1", model="x/y"), model=CLAUDE) == {"c1": "c1"}


@pytest.mark.rule("CASE-B7")
def test_a_result_bears_the_id_of_its_call() -> None:
    sent: list[Any] = list(openai_messages([user("q"), *calls("a.b", "a|b", model="x/y")], model=CLAUDE))

    ids = [call["id"] for call in sent[1]["tool_calls"]]
    assert ids == [message["tool_call_id"] for message in sent[2:]]
    assert len(set(ids)) == 2


def marked(messages: list[dict[str, Any]]) -> list[int]:
    found = []
    for place, message in enumerate(messages):
        parts = [message, *(message["content"] if isinstance(message["content"], list) else [])]
        found += [place for part in parts if part.get("cache_control") == MARK]
    return found


SYSTEM = SystemMessage(content=(Text(text="be kind"),))
ROUND = [SYSTEM, user("q"), *calls("a", "b", model="x/y")]


@pytest.mark.parametrize(
    ("model", "messages", "places"),
    [
        (CLAUDE, [SYSTEM, user("q")], [0, 1]),
        (CLAUDE, ROUND, [0, 1, 4]),
        (CLAUDE, [*ROUND, *calls("c", model="x/y")], [0, 4, 6]),
        (CLAUDE, [user("q")], [0]),
        ("openrouter/anthropic/claude-sonnet-4.5", ROUND, [0, 1, 4]),
        ("openai/gpt-5", ROUND, []),
        ("openrouter/openai/gpt-5", ROUND, []),
        ("gemini/gemini-2.5-pro", ROUND, []),
    ],
)
@pytest.mark.rule("AG-5")
def test_marks_for_the_cache_stand_where_the_provider_finds_what_it_kept(model: str, messages: list[Message], places: list[int]) -> None:
    assert marked(openai_messages(messages, model=model)) == places


def test_a_message_of_several_parts_is_marked_at_its_end() -> None:
    picture = Image(mime_type="image/png", data="AAAA")
    sent: list[Any] = list(openai_messages([UserMessage(content=(Text(text="see"), picture))], model=CLAUDE))

    assert [part.get("cache_control") for part in sent[0]["content"]] == [None, MARK]


@pytest.mark.rule("CASE-B9")
def test_each_form_gets_its_own_thoughts_only() -> None:
    content = (Thinking(text="told", signature="s1"), Thinking(text="", signature=f"{ENCRYPTED}XX==", redacted=True), Text(text="x"))
    messages = [user("q"), AssistantMessage(content=content, model="p/m", stop_reason="stop"), user("r")]

    def blocks(form: Form) -> object:
        return openai_messages(messages, model="p/n", form=form)[1].get("thinking_blocks")

    assert blocks("messages") == [{"type": "thinking", "thinking": "told", "signature": "s1"}]
    assert blocks("responses") == [{"type": "redacted_thinking", "data": f"{ENCRYPTED}XX=="}]
    assert blocks("chat") is None


@pytest.mark.parametrize(("model", "told"), [("deepseek/deepseek-reasoner", "first, then"), ("openai/gpt-5", None)])
@pytest.mark.rule("CASE-B9")
def test_unsigned_thoughts_of_a_tool_round_go_back_where_a_round_without_them_is_refused(model: str, told: str | None) -> None:
    answer, result = calls("a", model=model)
    assert isinstance(answer, AssistantMessage)
    thinking = AssistantMessage(content=(Thinking(text="first, "), Thinking(text="then"), *answer.content), model=model, stop_reason="toolUse")

    assert openai_messages([user("q"), thinking, result], model=model)[1].get("reasoning_content") == told


# -------------------------------------------------------------------------------------------------- what a person says of a model

LEVELS: tuple[ThinkingLevel, ...] = ("off", "low")
SAID = ModelOverride(context_window_tokens=1_000, max_output_tokens=50, thinking_levels=LEVELS, takes_images=True)


@pytest.mark.rule("AG-5")
def test_what_a_person_says_of_a_model_wins_over_the_table_and_fills_its_gaps() -> None:
    info = ModelInfo(context_window_tokens=1_000, max_output_tokens=50, thinking_levels=LEVELS, takes_images=True)
    table = {"max_input_tokens": 9, "max_output_tokens": 9, "supports_reasoning": True, "supports_vision": False}

    assert model_info(overridden(None, SAID)) == info
    assert model_info(overridden(table, SAID)) == info
    assert overridden(table, ModelOverride()) == table
    assert overridden(None, ModelOverride(input_usd_per_million=1)) is None
    assert model_info(overridden(table, ModelOverride(thinking_levels=("off",)))).thinking_levels == ("off",)


@pytest.mark.rule("AG-5")
def test_an_output_limit_and_thinking_levels_of_a_person_are_asked_for() -> None:
    request = ModelRequest(model="openai/mine", messages=(user("q"),), thinking="low")
    sent = call_arguments(request, overridden(None, SAID), Access(), Limits(), SAID)

    assert {name: sent.get(name) for name in ("max_tokens", "reasoning_effort", "allowed_openai_params")} == {
        "max_tokens": 50,
        "reasoning_effort": "low",
        "allowed_openai_params": ["reasoning_effort"],
    }
    own = ModelRequest(model="openai/mine", messages=(user("q"),), options={"max_output_tokens": 7})
    assert call_arguments(own, None, Access(), Limits(), SAID)["max_tokens"] == 7


@pytest.mark.parametrize(
    ("prices", "usd"),
    [
        (Prices(input=2, output=10), 2.0 + 0.5),
        (Prices(input=2, output=10, cache_read=0.2, cache_write=2.5), 0.06 * 2 + 0.9 * 0.2 + 0.04 * 2.5 + 0.5),
    ],
)
@pytest.mark.rule("AG-5", "CASE-F5")
def test_each_token_is_paid_once(prices: Prices, usd: float) -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=50_000, cache_read_tokens=900_000, cache_write_tokens=40_000)

    assert prices.of(usage) == pytest.approx(usd)


def test_prices_need_both_of_the_ones_that_always_count() -> None:
    assert ModelOverride(input_usd_per_million=1).prices is None
    assert ModelOverride(input_usd_per_million=1, output_usd_per_million=2).prices == Prices(input=1, output=2)
