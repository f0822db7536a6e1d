"""The gateway's contract, kept by every kind of model: three wire forms, each lenient and strict, the scripted model and the recorded one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import pytest

from pi_durable_tui.harness.ports import Finished, ModelEvent, ModelRequest, TextDelta, ToolSpec, UsageReport
from pi_durable_tui.models.forms import ENCRYPTED
from pi_durable_tui.records.messages import AssistantMessage, Message, SystemMessage, Text, Thinking, ToolCall, ToolResultMessage, Usage, UserMessage
from tests.support.model_contract import KINDS, RETRYABLE, Kind, answer_of, ending_of, kinds, reached, reason_of
from tests.support.model_server import CUT, STALL, call, fail, finish, reason, redacted, refuse, text, usage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("library"),
    # Said by the library about itself; the program silences them when it loads it, pytest turns them on again for each test.
    pytest.mark.filterwarnings("ignore::UserWarning:pydantic"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

SYSTEM = SystemMessage(content=(Text(text="be kind"),))
HI = UserMessage(content=(Text(text="hi"),))
TOOLS = (ToolSpec(name="read", description="Reads.", parameters={"type": "object", "properties": {"path": {"type": "string"}}}),)
REFUSALS = ("overloaded", "rate_limit", "server", "auth", "quota", "overflow", "invalid", "thinking")
WORDS = {
    "quota": "You exceeded your current quota, please check your plan and billing details.",
    "overflow": "prompt is too long: 209303 tokens > 200000 maximum",
    "invalid": "max_tokens must be <= 8192",
    "thinking": "messages.1: `thinking` blocks in the latest assistant message cannot be modified",
}
"""What providers say; other refusals need no words."""


def each(*skills: Any) -> Any:
    return pytest.mark.parametrize("kind", kinds(*skills), ids=str)


def request(kind: Kind, *messages: Message, **more: Any) -> ModelRequest:
    return ModelRequest(model=kind.model, messages=(SYSTEM, HI, *messages), tools=TOOLS, session_id="s", **more)


async def told(kind: Kind, *steps: dict[str, Any], thinking: Any = "off") -> list[ModelEvent]:
    async with reached(kind, list(steps)) as model:
        return await model.ask(request(kind, thinking=thinking))


def results(answer: AssistantMessage) -> list[ToolResultMessage]:
    return [ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(Text(text=f"of {call.id}"),)) for call in answer.tool_calls]


@each()
@pytest.mark.rule("AG-5")
async def test_an_answer_is_its_text_and_ends_once(kind: Kind) -> None:
    events = await told(kind, text("Hello "), text("world"), finish("stop"), usage(100, 5))

    assert ending_of(events) == Finished("stop")
    answer = answer_of(events, kind.model)
    assert answer.content == (Text(text="Hello world"),)
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (100, 5)


@each("cached")
@pytest.mark.rule("CASE-F5", "AG-5")
async def test_cached_tokens_are_counted_once(kind: Kind) -> None:
    events = await told(kind, text("x"), finish("stop"), usage(100_000, 500, 90_000))

    reports = [event.usage for event in events if isinstance(event, UsageReport)]
    assert reports[-1] == Usage(input_tokens=100_000, output_tokens=500, cache_read_tokens=90_000, cost_usd=reports[-1].cost_usd)
    assert [report.input_tokens for report in reports] == [100_000] * len(reports)


@each()
@pytest.mark.rule("CASE-B7")
async def test_parallel_calls_stay_apart_and_in_order(kind: Kind) -> None:
    pieces = [call(0, "c1", "read", '{"path":"a"}'), call(1, "c2", "read", '{"path":"b"}'), call(2, "c3", "read", "{}")]
    events = await told(kind, text("I look."), *pieces, finish("tool_calls"), usage(10, 5))

    assert ending_of(events) == Finished("toolUse")
    assert answer_of(events, kind.model).content == (
        Text(text="I look."),
        ToolCall(id="c1", name="read", arguments={"path": "a"}),
        ToolCall(id="c2", name="read", arguments={"path": "b"}),
        ToolCall(id="c3", name="read", arguments={}),
    )


@each("interleaved")
@pytest.mark.rule("CASE-B7")
async def test_calls_whose_pieces_come_by_turns_are_not_glued_together(kind: Kind) -> None:
    begun = [call(0, "c1", "read", None), call(1, "c2", "read", None)]
    by_turns = [call(0, None, None, '{"path":'), call(1, None, None, '{"path"'), call(0, None, None, '"a"}'), call(1, None, None, ':"b"}')]
    events = await told(kind, *begun, *by_turns, finish("tool_calls"), usage(10, 5))

    assert [(made.id, made.arguments) for made in answer_of(events, kind.model).tool_calls] == [("c1", {"path": "a"}), ("c2", {"path": "b"})]


@each("half calls")
@pytest.mark.rule("CASE-B1")
async def test_a_call_cut_at_the_output_limit_is_no_call_that_could_run(kind: Kind) -> None:
    events = await told(kind, call(0, "c1", "read", '{"path":"big.py","content":"def'), finish("length"), usage(10, 5))

    assert ending_of(events) == Finished("length")
    assert answer_of(events, kind.model).tool_calls == (ToolCall(id="c1", name="read", arguments={}, malformed='{"path":"big.py","content":"def'),)


@each("signed")
@pytest.mark.rule("CASE-B9")
async def test_signed_thoughts_go_back_as_they_came_and_in_order(kind: Kind) -> None:
    """The strict servers compare byte for byte; the lenient ones show what was sent."""
    script = [reason("first  "), reason("more\n", "s1=="), redacted("ZZZ="), text("looking"), reason("second", "s2+/"), call(0, "c1", "read", "{}")]
    async with reached(kind, [*script, finish("tool_calls"), usage(10, 5)], [text("ok"), finish("stop"), usage(10, 5)]) as model:
        first = answer_of(await model.ask(request(kind, thinking="low")), kind.model)
        second = await model.ask(request(kind, first, *results(first), thinking="low"))

    assert ending_of(second) == Finished("stop")
    signatures = [part.signature for part in first.content if isinstance(part, Thinking) and part.signature]
    assert [signature.removeprefix(ENCRYPTED) for signature in signatures] == ["s1==", "ZZZ=", "s2+/"]
    if kind.form == "messages":
        assert [type(part) for part in first.content] == [Thinking, Thinking, Text, Thinking, ToolCall]
    if model.server is not None:
        back = str(model.server.bodies[1])
        assert [back.count(mark) for mark in ("'s1=='", "'ZZZ='", "'s2+/'")] == [1, 1, 1]


@each()
@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.rule("GE-6", "CASE-B3", "CASE-B5", "CASE-B9")
async def test_a_refusal_is_told_by_its_kind_after_one_request(kind: Kind, refusal: str) -> None:
    words = WORDS.get(refusal, f"it is {refusal}")
    async with reached(kind, *[[refuse(refusal, words)]] * 3) as model:
        ending = ending_of(await model.ask(request(kind)))

    assert (ending.reason, ending.retryable) == (reason_of(refusal), refusal in RETRYABLE)  # type: ignore[union-attr]
    assert words in ending.message  # type: ignore[union-attr]
    assert model.server is None or len(model.server.requests) == 1


@each("wire")
@pytest.mark.rule("GE-6", "CASE-B3")
async def test_a_rate_limit_says_when_to_come_back(kind: Kind) -> None:
    events = await told(kind, refuse("rate_limit", "slow down", {"retry-after": "7"}))

    assert ending_of(events).retry_after_ms == 7_000  # type: ignore[union-attr]


BEFORE: Sequence[dict[str, Any]] = (text("half a sen"),)


@each()
@pytest.mark.parametrize("refusal", ["overloaded", "rate_limit", "server", "overflow"])
@pytest.mark.rule("GE-6", "CASE-B4", "CASE-B5")
async def test_an_error_in_the_middle_keeps_what_came_and_says_what_it_is(kind: Kind, refusal: str) -> None:
    words = WORDS.get(refusal, f"it is {refusal}")
    events = await told(kind, *BEFORE, fail(refusal, words))

    ending = ending_of(events)
    assert answer_of(events, kind.model).text == "half a sen"
    # The library keeps only the words of such an error in some forms; either reason is tried again.
    expected = {reason_of(refusal), *({"connection"} if refusal in {"server", "rate_limit"} else ())}
    assert ending.reason in expected  # type: ignore[union-attr]
    assert ending.retryable == (refusal in RETRYABLE)  # type: ignore[union-attr]
    assert words in ending.message  # type: ignore[union-attr]


@each()
@pytest.mark.rule("GE-6", "CASE-B4")
async def test_a_stream_that_is_cut_is_no_answer(kind: Kind) -> None:
    events = await told(kind, *BEFORE, CUT)

    ending = ending_of(events)
    assert answer_of(events, kind.model).text == "half a sen"
    assert (ending.reason, ending.retryable) == ("connection", True)  # type: ignore[union-attr]


@pytest.mark.parametrize("how", ["cut", "closed", "cancelled"])
@pytest.mark.rule("GE-6")
async def test_what_the_provider_counted_before_the_end_is_told_however_it_ends(how: str) -> None:
    """Anthropic counts the prompt before the first word; who pays for it is not asked whether the answer came to its end."""
    kind = next(kind for kind in KINDS if kind.name == "messages strict")
    events: list[ModelEvent] = []
    async with reached(kind, [text("half"), usage(100, 5, 90), CUT if how == "cut" else STALL]) as model:
        stream = model.gateway.stream(request(kind))

        async def listen() -> None:
            async for event in stream:
                events.append(event)
                if isinstance(event, TextDelta):
                    heard.set()

        heard = asyncio.Event()
        listening = asyncio.ensure_future(listen())
        await heard.wait()
        if how == "cut":
            await listening
        else:
            listening.cancel()
            await asyncio.wait({listening})
            await stream.aclose()

    counted = [(event.usage.input_tokens, event.usage.cache_read_tokens) for event in events if isinstance(event, UsageReport)]
    assert counted == [(100, 90)]


@each()
@pytest.mark.rule("CASE-B4")
async def test_a_listener_that_leaves_ends_the_request(kind: Kind) -> None:
    async with reached(kind, [*BEFORE, STALL]) as model:
        stream = model.gateway.stream(request(kind))
        while not isinstance(await anext(stream), TextDelta):
            pass
        await stream.aclose()
        if model.server is not None:
            await model.server.requests[0].ended.wait()
            assert model.server.requests[0].how == "client_left"
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


@each()
@pytest.mark.rule("CASE-B4")
async def test_cancelling_a_listener_passes_through(kind: Kind) -> None:
    async with reached(kind, [*BEFORE, STALL]) as model:
        listening = asyncio.ensure_future(model.ask(request(kind)))
        if model.server is not None:
            await model.server.arrived.wait()
        for _ in range(20):  # until it waits for more
            await asyncio.sleep(0)
        listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listening

    assert listening.cancelled()


@each()
@pytest.mark.rule("AG-5")
async def test_what_is_known_of_a_model_never_fails_and_closing_may_be_repeated(kind: Kind) -> None:
    async with reached(kind, [text("a"), finish("stop"), usage(1, 1)]) as model:
        await model.gateway.warm_up()
        await model.gateway.warm_up()
        for name in (kind.model, "nosuch/thing", ""):
            assert "off" in (await model.gateway.info(name)).thinking_levels
        await model.gateway.close()
        await model.gateway.close()


@each("wire")
@pytest.mark.rule("AG-5", "CASE-B2", "CASE-B6", "CASE-B7")
async def test_a_history_of_other_providers_with_a_poisoned_past_is_taken_by_each(kind: Kind) -> None:
    history = (
        AssistantMessage(
            content=(
                Thinking(text="theirs", signature="foreign"),
                Text(text=" "),
                ToolCall(id="functions.read:0", name="ba sh!", arguments={}, malformed='{"path": "x'),
                ToolCall(id="c" * 80, name="", arguments={"x": 1}),
            ),
            model="moonshot/kimi",
            stop_reason="toolUse",
        ),
        ToolResultMessage(tool_call_id="functions.read:0", tool_name="ba sh!", content=(), is_error=True),
        ToolResultMessage(tool_call_id="c" * 80, tool_name="", content=(Text(text=""),)),
        SystemMessage(content=(Text(text="The rules changed."),)),
        UserMessage(content=(Text(text="  "), Text(text="go on"))),
    )
    async with reached(kind, [text("ok"), finish("stop"), usage(1, 1)]) as model:
        events = await model.ask(request(kind, *history, thinking="low"))

    assert model.server is not None
    assert [received.refusal for received in model.server.requests] == [None]
    assert ending_of(events) == Finished("stop")


@each("wire")
@pytest.mark.rule("AG-5")
async def test_marks_for_the_cache_reach_the_provider_that_wants_them_and_no_other(kind: Kind) -> None:
    async with reached(kind, [text("ok"), finish("stop"), usage(1, 1)]) as model:
        await model.ask(request(kind))

    assert model.server is not None
    body = model.server.bodies[0]
    if kind.form == "messages":
        assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
        assert body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert str(body).count("cache_control") == (2 if kind.form == "messages" else 0)
