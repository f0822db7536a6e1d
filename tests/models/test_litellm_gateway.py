"""The gateway over the real library, against a real HTTP server on loopback: what one request becomes, and what each way of failing is."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.harness.ports import (
    Finished,
    ModelEvent,
    ModelFailed,
    ModelGateway,
    ModelInfo,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ThinkingLevel,
    ToolCallDelta,
    ToolSpec,
    UsageReport,
)
from pi_durable_tui.models.litellm_gateway import AFTER_FINISH_MS, QUEUED_CHUNKS, LiteLlmGateway, _gently
from pi_durable_tui.models.reading import Library
from pi_durable_tui.records.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResultMessage, Usage, UserMessage
from tests.support.model_server import CUT, EOF, STALL, ModelServer, call, event, finish, hold, http, reason, text, usage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("library"),
    # Said by the library about itself; the program silences them when it loads it, pytest turns them on again for each test.
    pytest.mark.filterwarnings("ignore::UserWarning:pydantic"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

KEY = "sk-test-0123456789abcdef"
HI = (UserMessage(content=(Text(text="hi"),)),)
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@contextlib.asynccontextmanager
async def gateway_to(*, base_url: str = "", clock: ManualClock | None = None, environ: dict[str, str] | None = None) -> AsyncIterator[ModelGateway]:
    known = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": base_url} if environ is None else environ
    gateway = LiteLlmGateway(clock=clock or ManualClock(), entropy=SeededEntropy(1), environ=known)
    try:
        yield gateway
    finally:
        await gateway.close()


async def events_of(gateway: ModelGateway, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in gateway.stream(request)]


async def play(*script: Sequence[dict[str, Any]], request: ModelRequest | None = None, strict: bool = False) -> tuple[list[ModelEvent], ModelServer]:
    """The events of one request against a script, and the server that saw it."""
    async with ModelServer(script, strict=strict) as server, gateway_to(base_url=server.base_url) as gateway:
        return await events_of(gateway, request or ModelRequest(model="openai/scripted", messages=HI)), server


async def turns(count: int) -> None:
    """Let everything run that can run without anything arriving."""
    for _ in range(count):
        await asyncio.sleep(0)


def only_failure(events: list[ModelEvent]) -> ModelFailed:
    assert isinstance(events[-1], ModelFailed)
    assert not any(isinstance(event, Finished | ModelFailed) for event in events[:-1])
    return events[-1]


@pytest.mark.rule("GE-6", "AG-5")
async def test_text_thinking_calls_and_usage_arrive_in_order() -> None:
    script = [reason("hm"), text("a"), text("b"), call(0, "c1", "bash", '{"a":'), call(0, None, None, "1}"), finish("tool_calls"), usage(100, 5, 90)]
    events, server = await play(script)

    assert events == [
        ThinkingDelta("hm"),
        TextDelta("a"),
        TextDelta("b"),
        ToolCallDelta(0, id="c1", name="bash"),
        ToolCallDelta(0, arguments='{"a":'),
        ToolCallDelta(0, arguments="1}"),
        UsageReport(Usage(input_tokens=100, output_tokens=5, cache_read_tokens=90)),
        Finished("toolUse"),
    ]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("script", "reason_of_it", "retryable", "words"),
    [
        ([http(529, OVERLOADED)], "overloaded", True, "Overloaded"),
        ([http(503, {"error": {"message": "try later"}})], "overloaded", True, "try later"),
        ([http(429, {"error": {"message": "slow down"}})], "rate_limit", True, "slow down"),
        ([http(500, {"error": {"message": "boom"}})], "server", True, "boom"),
        ([http(502, "<html>bad gateway</html>")], "server", True, "bad gateway (HTTP 502)"),
        ([http(502, "<html><head><title>502 &amp; down</title></head><script>x()</script></html>")], "server", True, "502 & down (HTTP 502)"),
        ([http(500, {"error": "model requires more memory than there is"})], "server", True, "model requires more memory than there is (HTTP 500)"),
        ([http(405, {"detail": "Method Not Allowed"})], "invalid_request", False, "Method Not Allowed (HTTP 405)"),
        ([http(422, {"detail": [{"msg": "field required"}]})], "invalid_request", False, '{"detail": [{"msg": "field required"}]} (HTTP 422)'),
        ([http(400, [{"error": {"message": "no such role"}}])], "invalid_request", False, "no such role (HTTP 400)"),
        ([http(404, "404 page not found")], "no_model", False, "404 page not found (HTTP 404)"),
        ([http(504, "")], "timeout", True, "504"),
        ([http(401, {"error": {"message": "Incorrect API key provided"}})], "auth", False, "Incorrect API key provided"),
        ([http(403, {"error": {"message": "not for you"}})], "auth", False, "not for you"),
        ([http(402, {"error": {"message": "pay first"}})], "quota", False, "pay first"),
        ([http(404, {"error": {"message": "no such model", "code": "model_not_found"}})], "no_model", False, "no such model"),
        ([http(422, {"error": {"message": "bad field"}})], "invalid_request", False, "bad field"),
        ([http(400, {"error": {"message": "max_tokens must be <= 8192"}})], "invalid_request", False, "max_tokens must be <= 8192"),
    ],
)
@pytest.mark.rule("GE-6", "CASE-B3")
async def test_an_http_error_is_one_request_and_one_failure(script: list[Any], reason_of_it: str, retryable: bool, words: str) -> None:
    events, server = await play(*[script] * 4)

    failed = only_failure(events)
    assert (failed.reason, failed.retryable) == (reason_of_it, retryable)
    assert words in failed.message
    assert len(server.requests) == 1


@pytest.mark.rule("GE-6", "CASE-B3")
async def test_a_rate_limit_says_how_long_to_wait_and_a_used_up_quota_is_not_retried() -> None:
    quota = {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}}
    limited, _ = await play([http(429, {"error": {"message": "slow down"}}, {"retry-after": "2"})])
    exhausted, server = await play(*[[http(429, quota, {"retry-after": "86400"})]] * 3)

    assert limited == [ModelFailed(reason="rate_limit", message="slow down", retryable=True, retry_after_ms=2_000)]
    assert exhausted == [ModelFailed(reason="quota", message="You exceeded your current quota", retryable=False, retry_after_ms=86_400_000)]
    assert len(server.requests) == 1


OVERFLOWS = [
    [http(400, {"error": {"message": "prompt is too long: 209303 tokens > 200000 maximum"}})],
    [http(400, {"error": {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}})],
    [http(400, {"error": {"message": "The total length of all messages is too long."}})],
    [http(400, {"error": {"message": "no", "code": "context_length_exceeded"}})],
    [http(413, "too large")],
    [http(400, {"error": "prompt is too long: 209303 tokens > 200000 maximum"})],
    [http(400, {"detail": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"})],
    [http(500, "the request exceeds the available context size")],
    [text("a"), event({"error": {"message": "prompt is too long: 209303 tokens > 200000 maximum"}})],
]


@pytest.mark.parametrize("script", OVERFLOWS)
@pytest.mark.rule("GE-6", "CASE-B5")
async def test_a_context_overflow_is_recognised_however_it_is_worded(script: list[Any]) -> None:
    failed = only_failure((await play(script))[0])

    assert (failed.reason, failed.retryable) == ("context_overflow", False)


@pytest.mark.parametrize(
    ("script", "before", "reason_of_it"),
    [
        ([text("half a sen"), CUT], [TextDelta("half a sen")], "connection"),
        ([text("half"), EOF], [TextDelta("half")], "connection"),
        ([text("half")], [TextDelta("half")], "connection"),
        ([text("hel"), event(OVERLOADED)], [TextDelta("hel")], "overloaded"),
        ([text("hel"), event({"error": {"message": "internal stream error", "code": 500}})], [TextDelta("hel")], "connection"),
        ([CUT], [], "connection"),
        ([{"raw": "data: {not json\n\n"}], [], "connection"),
        ([{"raw": "<html>hello</html>"}], [], "connection"),
        (
            [call(0, "c1", "bash", '{"command":"rm -rf bui'), CUT],
            [ToolCallDelta(0, id="c1", name="bash"), ToolCallDelta(0, arguments='{"command":"rm -rf bui')],
            "connection",
        ),
    ],
)
@pytest.mark.rule("GE-6", "CASE-B4")
async def test_a_stream_that_breaks_is_never_taken_for_an_answer(script: list[Any], before: list[ModelEvent], reason_of_it: str) -> None:
    events, server = await play(*[script] * 3)

    failed = only_failure(events)
    assert events[:-1] == before
    assert (failed.reason, failed.retryable) == (reason_of_it, True)
    assert len(server.requests) == 1


@pytest.mark.rule("GE-6", "CASE-B4")
async def test_a_refusal_in_the_middle_of_a_stream_is_not_sent_again() -> None:
    events, _ = await play([text("hel"), event({"error": {"message": "no such tool", "code": 400}})])

    assert only_failure(events) == ModelFailed(reason="invalid_request", message="no such tool", retryable=False)


@pytest.mark.parametrize("body", ["<html>log in first</html>", {"error": "Unexpected endpoint"}, ""])
@pytest.mark.rule("CASE-B4")
async def test_a_server_that_says_nothing_of_an_answer_is_named_with_its_address(body: Any) -> None:
    events, server = await play([http(200, body)])

    message = f"The server at {server.base_url} answered without a word that is an answer. Is that its address, which often ends in /v1?"
    assert events == [ModelFailed(reason="connection", message=message, retryable=True)]


@pytest.mark.rule("CASE-B4")
async def test_an_answer_whose_connection_is_cut_after_its_finish_reason_is_complete() -> None:
    events, _ = await play([text("whole"), finish("stop"), CUT])

    assert events == [TextDelta("whole"), Finished("stop")]


@pytest.mark.parametrize(
    ("script", "stop_reason"),
    [
        ([text("a"), finish("stop")], "stop"),
        ([call(0, "c1", "read", "{}"), finish("stop")], "toolUse"),
        ([call(0, "c1", "write", '{"path":"big.py","content":"def a():\\n  '), finish("length")], "length"),
        ([call(0, "c1", "write", "{}"), finish("length")], "length"),
        ([finish("stop")], "stop"),
    ],
)
@pytest.mark.rule("CASE-B1", "CASE-B6", "CASE-B7")
async def test_the_finish_reason_says_whether_calls_may_run(script: list[Any], stop_reason: str) -> None:
    assert (await play(script))[0][-1] == Finished(stop_reason)  # type: ignore[arg-type]


@pytest.mark.rule("CASE-B7")
async def test_two_calls_at_one_index_stay_two_calls() -> None:
    events, _ = await play([call(0, "a", "read", '{"path":"a"}'), call(0, "b", "read", '{"path":"b"}'), finish("tool_calls")])

    assert events == [
        ToolCallDelta(0, id="a", name="read"),
        ToolCallDelta(0, arguments='{"path":"a"}'),
        ToolCallDelta(1, id="b", name="read"),
        ToolCallDelta(1, arguments='{"path":"b"}'),
        Finished("toolUse"),
    ]


@pytest.mark.rule("CASE-B10")
async def test_halves_of_a_pair_are_joined_and_lone_ones_replaced() -> None:
    events, _ = await play([text("x\ud83d"), text("\ude00y"), text("z\ud83d"), finish("stop")])

    assert events == [TextDelta("x"), TextDelta("😀y"), TextDelta("z"), TextDelta("\ufffd"), Finished("stop")]


@pytest.mark.rule("CASE-B4")
async def test_a_silent_stream_ends_at_the_idle_limit_and_its_connection_is_closed() -> None:
    clock = ManualClock()
    async with ModelServer([[text("x"), hold("silence")]]) as server, gateway_to(base_url=server.base_url, clock=clock) as gateway:
        stream = gateway.stream(ModelRequest(model="openai/scripted", messages=HI))
        first = await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await server.reached("silence")
        await turns(20)  # until it waits on the clock
        clock.advance(119_999)
        await turns(20)
        assert not waiting.done()
        clock.advance(1)
        second = await waiting
        await server.requests[0].ended.wait()

    assert [first, second] == [TextDelta("x"), ModelFailed(reason="timeout", message="The provider said nothing for 120 s.", retryable=True)]
    assert server.requests[0].how == "client_left"


@pytest.mark.parametrize(
    ("options", "wait_ms", "message"),
    [
        ({"idle_timeout_ms": 5_000}, 5_000, "The provider said nothing for 5 s."),
        ({"timeout_ms": 3_000}, 3_000, "The request took longer than 3 s."),
    ],
)
@pytest.mark.rule("CASE-B4")
async def test_limits_are_options_of_the_request(options: dict[str, Any], wait_ms: int, message: str) -> None:
    clock = ManualClock()
    async with ModelServer([[hold("before the first byte")]]) as server, gateway_to(base_url=server.base_url, clock=clock) as gateway:
        waiting = asyncio.ensure_future(events_of(gateway, ModelRequest(model="openai/scripted", messages=HI, options=options)))
        await server.reached("before the first byte")
        clock.advance(wait_ms)
        events = await waiting

    assert events == [ModelFailed(reason="timeout", message=message, retryable=True)]


@pytest.mark.rule("CASE-B4")
async def test_a_server_that_keeps_its_connection_after_the_finish_reason_does_not_hold_up_the_answer() -> None:
    clock = ManualClock()
    async with ModelServer([[text("whole"), finish("stop"), hold("for ever")]]) as server, gateway_to(base_url=server.base_url, clock=clock) as gateway:
        stream = gateway.stream(ModelRequest(model="openai/scripted", messages=HI))
        first = await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await server.reached("for ever")
        while clock.next_wake_ms() != AFTER_FINISH_MS:  # however long the network takes to bring the finish reason
            await turns(1)
        clock.advance(AFTER_FINISH_MS)
        events = [first, await waiting, *[event async for event in stream]]

    assert events == [TextDelta("whole"), Finished("stop")]


async def test_an_answer_may_say_one_piece_many_times() -> None:
    events, _ = await play([*[text("0, ")] * 150, finish("stop")])

    assert events == [*[TextDelta("0, ")] * 150, Finished("stop")]


async def test_a_reader_that_waits_for_its_consumer_is_ended_with_it() -> None:
    many = QUEUED_CHUNKS + 50
    async with ModelServer([[*(text(f"{number} ") for number in range(many)), hold("gate")]]) as server, gateway_to(base_url=server.base_url) as gateway:
        stream = gateway.stream(ModelRequest(model="openai/scripted", messages=HI))
        await anext(stream)
        await server.reached("gate")
        await turns(many)
        await stream.aclose()
        await server.requests[0].ended.wait()

    assert server.requests[0].how == "client_left"


@pytest.mark.parametrize("script", [[text("x"), STALL], [text("x"), hold("gate")]])
async def test_closing_the_stream_closes_the_connection_at_once(script: list[Any]) -> None:
    async with ModelServer([script]) as server, gateway_to(base_url=server.base_url) as gateway:
        stream = gateway.stream(ModelRequest(model="openai/scripted", messages=HI))
        await anext(stream)
        await stream.aclose()
        await server.requests[0].ended.wait()

    assert server.requests[0].how == "client_left"


@pytest.mark.parametrize("script", [[hold("gate")], [text("x"), hold("gate")]])
@pytest.mark.rule("CASE-B4")
async def test_cancelling_the_consumer_closes_the_connection_at_once_and_passes(script: list[Any]) -> None:
    async with ModelServer([script]) as server, gateway_to(base_url=server.base_url) as gateway:
        consumer = asyncio.ensure_future(events_of(gateway, ModelRequest(model="openai/scripted", messages=HI)))
        await server.reached("gate")
        consumer.cancel()
        await asyncio.wait({consumer})
        await server.requests[0].ended.wait()

    assert consumer.cancelled()
    assert server.requests[0].how == "client_left"


@pytest.mark.rule("GE-6")
async def test_a_refused_connection_is_told_apart_from_a_server_error() -> None:
    async with ModelServer() as server:
        base_url = server.base_url
    async with gateway_to(base_url=base_url) as gateway:
        failed = only_failure(await events_of(gateway, ModelRequest(model="openai/scripted", messages=HI)))

    assert (failed.reason, failed.retryable) == ("connection", True)
    assert f"127.0.0.1:{server.port}" in failed.message


@pytest.mark.parametrize(
    ("model", "reason_of_it", "words"),
    [("nosuch/thing", "no_model", "'nosuch'"), ("gpt-4o", "no_model", "Write provider/name"), ("", "no_model", "No model is set")],
)
@pytest.mark.rule("CASE-B11")
async def test_a_model_that_cannot_be_asked_is_told_in_words(model: str, reason_of_it: str, words: str) -> None:
    async with gateway_to() as gateway:
        failed = only_failure(await events_of(gateway, ModelRequest(model=model, messages=HI)))

    assert (failed.reason, failed.retryable) == (reason_of_it, False)
    assert words in failed.message


@pytest.mark.rule("GE-7")
async def test_a_deferred_answer_of_another_gateway_is_not_sent_as_a_new_request() -> None:
    events, server = await play([text("again")], request=ModelRequest(model="openai/scripted", messages=HI, deferred={"id": "x"}))

    assert only_failure(events).reason == "invalid_request"
    assert server.requests == []


@pytest.mark.rule("SA-17")
async def test_the_key_is_taken_out_of_what_the_provider_says() -> None:
    failed = only_failure((await play([http(401, {"error": {"message": f"Incorrect API key provided: {KEY}."}})]))[0])

    assert failed.message == "Incorrect API key provided: [redacted]."


@pytest.mark.rule("CASE-B2", "CASE-B6")
async def test_a_history_with_a_poisoned_past_passes_a_strict_provider() -> None:
    broken = ToolCall(id="c1", name="ba sh!", arguments={}, malformed='{"command": "cd')
    history = (
        UserMessage(content=(Text(text="  \n"), Text(text="do it"))),
        AssistantMessage(content=(Text(text=" "), broken, ToolCall(id="c2", name="", arguments={"x": 1})), model="openai/scripted", stop_reason="toolUse"),
        ToolResultMessage(tool_call_id="c1", tool_name="ba sh!", content=(), is_error=True),
        ToolResultMessage(tool_call_id="c2", tool_name="", content=(Text(text=""),)),
        AssistantMessage(content=(Text(text=""),), model="openai/scripted", stop_reason="stop"),
        UserMessage(content=(Text(text="go on"),)),
    )
    tools = (ToolSpec(name="bash", description="run", parameters={"type": "object", "properties": {"command": {"type": "string"}}}),)
    events, server = await play([text("ok"), finish("stop")], request=ModelRequest(model="openai/scripted", messages=history, tools=tools), strict=True)

    assert events == [TextDelta("ok"), Finished("stop")]
    assert server.refused == []
    assert server.bodies[0]["tools"] == [
        {
            "type": "function",
            "function": {"name": "bash", "description": "run", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}},
        }
    ]
    assert server.bodies[0]["stream_options"] == {"include_usage": True}


async def test_options_reach_the_provider() -> None:
    options: dict[str, Any] = {"max_output_tokens": 77, "temperature": 0.5, "headers": {"x-team": "blue"}}
    _, server = await play([text("ok"), finish("stop")], request=ModelRequest(model="openai/scripted", messages=HI, options=options))

    assert {name: server.bodies[0].get(name) for name in ("max_tokens", "temperature")} == {"max_tokens": 77, "temperature": 0.5}
    assert server.requests[0].headers["x-team"] == "blue"


CACHED = {"input_tokens": 10_000, "cache_read_input_tokens": 90_000, "cache_creation_input_tokens": 0, "output_tokens": 1}


def named_events(*events: dict[str, Any]) -> str:
    """A piece of a stream in the form of Anthropic and of OpenAI's responses: each event with its name."""
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> str:
    return named_events(
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    )


ANTHROPIC_STREAM = "".join(
    [
        named_events({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "usage": CACHED}}),
        block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "let me"},
            {"type": "signature_delta", "signature": "s1=="},
        ),
        block(1, {"type": "redacted_thinking", "data": "ZZZ="}),
        block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "ok"}),
    ]
)
ANTHROPIC_END = named_events(
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 500}}, {"type": "message_stop"}
)


async def ask_claude(*pieces: str, messages: tuple[Message, ...] = HI, thinking: ThinkingLevel = "off") -> tuple[list[ModelEvent], ModelServer]:
    async with ModelServer([[{"raw": "".join(pieces)}]]) as server:
        environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.port}"}
        async with gateway_to(environ=environ) as gateway:
            request = ModelRequest(model="anthropic/claude-sonnet-4-5", messages=messages, thinking=thinking)
            return await events_of(gateway, request), server


@pytest.mark.rule("CASE-F5", "CASE-B9", "AG-5")
async def test_another_form_of_provider_gives_the_same_events_with_each_token_counted_once() -> None:
    events, _ = await ask_claude(ANTHROPIC_STREAM, ANTHROPIC_END)

    before, *said, report, finished = events
    assert isinstance(before, UsageReport)
    assert (before.usage.input_tokens, before.usage.output_tokens) == (100_000, 1)
    assert said == [ThinkingDelta("let me"), ThinkingDelta("", signature="s1=="), ThinkingDelta("", signature="ZZZ=", redacted=True), TextDelta("ok")]
    assert isinstance(report, UsageReport)
    cost_usd = 10_000 * 3e-6 + 90_000 * 3e-7 + 500 * 15e-6
    assert report.usage.cost_usd == pytest.approx(cost_usd)
    assert report.usage == Usage(input_tokens=100_000, output_tokens=500, cache_read_tokens=90_000, cost_usd=report.usage.cost_usd)
    assert finished == Finished("stop")


@pytest.mark.rule("CASE-B9")
async def test_signed_thoughts_go_back_byte_for_byte_in_their_order_to_where_they_came_from() -> None:
    model = "anthropic/claude-sonnet-4-5"
    answer = AssistantMessage(
        content=(
            Thinking(text="first  ", signature="s1=="),
            Text(text="looking"),
            Thinking(text="", signature="ZZZ=", redacted=True),
            Thinking(text="second", signature="s2=="),
            ToolCall(id="a", name="read", arguments={"path": "a"}),
            ToolCall(id="b", name="read", arguments={"path": "b"}),
        ),
        model=model,
        stop_reason="toolUse",
    )
    results = [ToolResultMessage(tool_call_id=call_id, tool_name="read", content=(Text(text="ok"),)) for call_id in ("a", "b")]
    _, server = await ask_claude(ANTHROPIC_STREAM, ANTHROPIC_END, messages=(*HI, answer, *results))

    assert [message["content"] for message in server.bodies[0]["messages"] if message["role"] == "assistant"] == [
        [
            {"type": "thinking", "thinking": "first  ", "signature": "s1=="},
            {"type": "text", "text": "looking"},
            {"type": "redacted_thinking", "data": "ZZZ="},
            {"type": "thinking", "thinking": "second", "signature": "s2=="},
            {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "b", "name": "read", "input": {"path": "b"}},
        ]
    ]


@pytest.mark.rule("AG-5")
async def test_a_thinking_level_is_asked_for_where_the_model_thinks() -> None:
    _, thinking = await ask_claude(ANTHROPIC_STREAM, ANTHROPIC_END, thinking="low")
    _, off = await ask_claude(ANTHROPIC_STREAM, ANTHROPIC_END)
    _, unable = await play([text("ok"), finish("stop")], request=ModelRequest(model="openai/scripted", messages=HI, thinking="high"))

    assert thinking.bodies[0]["thinking"]["type"] == "enabled"
    assert "thinking" not in off.bodies[0]
    assert "reasoning_effort" not in unable.bodies[0]


@pytest.mark.rule("CASE-B4", "GE-6")
async def test_a_stream_of_another_form_that_breaks_off_is_not_finished_either_and_what_it_used_is_told() -> None:
    events, _ = await ask_claude(ANTHROPIC_STREAM)

    assert only_failure(events).reason == "connection"
    reports = [event.usage for event in events if isinstance(event, UsageReport)]
    assert [(used.input_tokens, used.output_tokens, used.cache_read_tokens) for used in reports] == [(100_000, 1, 90_000)]


def responses_call(number: int, arguments: str) -> list[dict[str, Any]]:
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_x{number}", "name": "bash", "arguments": "", "status": "in_progress"}
    return [
        {"type": "response.output_item.added", "output_index": number, "item": item},
        {"type": "response.function_call_arguments.delta", "item_id": f"fc_{number}", "output_index": number, "delta": arguments},
        {"type": "response.output_item.done", "output_index": number, "item": {**item, "arguments": arguments, "status": "completed"}},
    ]


RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "x", "output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
RESPONSE_USAGE = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 90}, "output_tokens": 5, "total_tokens": 105}
RESPONSE_START: list[dict[str, Any]] = [
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}},
    {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "hello"},
    *responses_call(1, "{}"),
    *responses_call(2, '{"a":1}'),
]
RESPONSE_SAID = [
    TextDelta("hello"),
    ToolCallDelta(0, id="call_x1", name="bash"),
    ToolCallDelta(0, arguments="{}"),
    ToolCallDelta(1, id="call_x2", name="bash"),
    ToolCallDelta(1, arguments='{"a":1}'),
]


@pytest.mark.parametrize(
    ("end", "last"),
    [
        ([{"type": "response.completed", "response": {**RESPONSE, "status": "completed", "usage": RESPONSE_USAGE}}], Finished("toolUse")),
        (
            [
                {
                    "type": "response.incomplete",
                    "response": {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": RESPONSE_USAGE},
                }
            ],
            Finished("length"),
        ),
        ([], "connection"),
    ],
)
@pytest.mark.rule("AG-5", "CASE-B1", "CASE-B4")
async def test_models_behind_the_responses_form_give_the_same_events(end: list[dict[str, Any]], last: Finished | str) -> None:
    request = ModelRequest(model="openai/gpt-5-codex", messages=HI, thinking="low")
    events, server = await play([{"raw": named_events(*RESPONSE_START, *end)}], request=request)

    assert [received.path for received in server.requests] == ["/v1/responses"]
    assert [event for event in events[:-1] if not isinstance(event, UsageReport)] == RESPONSE_SAID
    if isinstance(last, str):
        assert only_failure(events).reason == last
    else:
        report = events[-2]
        assert isinstance(report, UsageReport)
        assert report.usage == Usage(input_tokens=100, output_tokens=5, cache_read_tokens=90, cost_usd=report.usage.cost_usd)
        assert events[-1] == last


@pytest.mark.rule("AG-5")
async def test_windows_prices_and_thinking_levels_come_from_the_local_table() -> None:
    async with gateway_to() as gateway:
        known, unknown = await gateway.info("anthropic/claude-sonnet-4-5"), await gateway.info("openai/scripted")

    levels = ("off", "low", "medium", "high")
    assert known == ModelInfo(context_window_tokens=200_000, max_output_tokens=64_000, thinking_levels=levels, takes_images=True)
    assert unknown == ModelInfo()


@pytest.mark.rule("CASE-B11", "SA-7")
async def test_the_library_writes_nothing_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    root_handlers = list(logging.getLogger().handlers)
    for handler in root_handlers:
        logging.getLogger().removeHandler(handler)  # pytest's own would hide what the last resort of logging prints
    try:
        for script in ([text("a"), finish("stop")], [http(500, "")], [text("a"), CUT], [http(401, "")], *OVERFLOWS):
            await play(script)
        async with gateway_to() as gateway:
            await events_of(gateway, ModelRequest(model="nosuch/thing", messages=HI))
            await gateway.info("ollama/nosuch")
        logging.getLogger("LiteLLM").error("something went wrong")
    finally:
        for handler in root_handlers:
            logging.getLogger().addHandler(handler)

    assert capfd.readouterr() == ("", "")


def test_a_gateway_may_outlive_a_loop_and_serves_the_next_one() -> None:
    gateway = LiteLlmGateway(clock=ManualClock(), entropy=SeededEntropy(1), environ={"OPENAI_API_KEY": KEY})

    async def once() -> list[ModelEvent]:
        async with ModelServer([[text("a"), finish("stop")]]) as server:
            gateway._base_urls["openai"] = server.base_url
            events = await events_of(gateway, ModelRequest(model="openai/scripted", messages=HI))
            await gateway.close()
            return events

    assert [asyncio.run(once()), asyncio.run(once())] == [[TextDelta("a"), Finished("stop")]] * 2


@pytest.mark.usefixtures("library")
def test_the_collector_of_garbage_works_again_after_the_loading_but_not_on_the_library() -> None:
    """A full collection over all of it stops every thread for half a second."""
    for thread in threading.enumerate():
        if thread.name == "load-litellm":  # of an earlier test, which did not wait for it
            thread.join()
    assert gc.isenabled()
    assert sys.getswitchinterval() == pytest.approx(0.005)
    assert gc.get_freeze_count() > 100_000


@pytest.mark.parametrize("first_to_end", [0, 1])
def test_after_loading_the_interpreter_has_the_pace_again_that_the_program_chose(first_to_end: int) -> None:
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(0.001)
    try:
        loads = (_gently(), _gently())  # two that overlap
        for load in loads:
            load.__enter__()
        during_s = sys.getswitchinterval()
        loads[first_to_end].__exit__(None, None, None)
        loads[1 - first_to_end].__exit__(None, None, None)
        assert (during_s, sys.getswitchinterval()) == pytest.approx((0.0005, 0.001))
    finally:
        sys.setswitchinterval(before_s)


@pytest.mark.rule("SA-7")
async def test_a_loaded_library_is_not_loaded_again(library: Library) -> None:
    gateway = LiteLlmGateway(clock=ManualClock(), entropy=SeededEntropy(1), environ={})
    await gateway.warm_up()
    await gateway.warm_up()

    assert gateway._library is library
    assert sys.modules["litellm"] is library
