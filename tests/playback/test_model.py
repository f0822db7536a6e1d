"""The playback model: what was recorded is what is said, and a wrong request says what is wrong."""

from __future__ import annotations

import asyncio

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import ConfigError
from pi_durable_tui.harness.ports import Finished, ModelEvent, ModelFailed, ModelRequest, TextDelta, ThinkingDelta, ToolCallDelta, UsageReport
from pi_durable_tui.models.playback import PlaybackModel, Request, TextLine, fitting, parse
from pi_durable_tui.playback.pace import PacedClock
from pi_durable_tui.records.messages import AssistantMessage, SystemMessage, Text, ToolCall, ToolResultMessage, Usage, UserMessage
from tests.support.scripted_model import Noted

RECORDED = """
{"type": "request", "number": 1, "last": "user", "contains": ["hello"]}
{"type": "thinking", "text": "hm so", "after_ms": 100, "each_ms": 10}
{"type": "text", "text": "Two words\\n", "each_ms": 5}
{"type": "call", "key": 0, "id": "c1", "name": "bash", "arguments": {"command": "ls -la /some/where"}}
{"type": "usage", "input_tokens": 3, "output_tokens": 4}
{"type": "finish", "reason": "toolUse"}

{"type": "request", "number": 2, "last": "toolResult", "contains": ["one", "two"]}
{"type": "fail", "reason": "overloaded", "message": "busy", "retryable": true}
{"type": "request", "number": 3}
{"type": "text", "text": "never ends"}
{"type": "stall"}
"""
ASK = UserMessage(content=(Text(text="say hello"),))
CALLS = AssistantMessage(content=(ToolCall(id="a", name="bash", arguments={}), ToolCall(id="b", name="bash", arguments={})), model="m", stop_reason="toolUse")
RESULTS = tuple(ToolResultMessage(tool_call_id=call, tool_name="bash", content=(Text(text=text),)) for call, text in (("a", "one"), ("b", "two")))


def _model(*, started: int = 0, clock: ManualClock | None = None) -> PlaybackModel:
    return PlaybackModel(name="story", requests=parse(RECORDED, "model.jsonl"), progress=Noted(started), clock=clock or ManualClock())


def _request(*messages: UserMessage | AssistantMessage | ToolResultMessage | SystemMessage) -> ModelRequest:
    return ModelRequest(model="playback/story", messages=messages, session_id="s")


async def _all(model: PlaybackModel, request: ModelRequest, clock: ManualClock) -> list[tuple[float, ModelEvent]]:
    """The events with the clock's time of each; the clock jumps to each wait's end."""
    got: list[tuple[float, ModelEvent]] = []

    async def read() -> None:
        got.extend([(clock.monotonic_ms(), event) async for event in model.stream(request)])

    reading = asyncio.ensure_future(read())
    while not reading.done():
        await asyncio.sleep(0)
        if (gap_ms := clock.next_wake_ms()) is not None:
            clock.advance(gap_ms)
    await reading
    return got


async def test_text_comes_word_by_word_and_arguments_in_pieces_at_the_recorded_pace() -> None:
    clock = ManualClock()
    assert await _all(_model(clock=clock), _request(ASK), clock) == [
        (110, ThinkingDelta("hm ")),
        (120, ThinkingDelta("so")),
        (125, TextDelta("Two ")),
        (130, TextDelta("words\n")),
        (130, ToolCallDelta(0, id="c1", name="bash")),
        (130, ToolCallDelta(0, arguments='{"command":"ls -la /some')),
        (130, ToolCallDelta(0, arguments='/where"}')),
        (130, UsageReport(Usage(input_tokens=3, output_tokens=4, cost_usd=0.0))),
        (130, Finished("toolUse")),
    ]


async def test_the_next_request_of_a_conversation_gets_the_next_answer_also_in_another_process() -> None:
    clock = ManualClock()
    assert await _all(_model(started=1, clock=clock), _request(ASK, CALLS, *RESULTS), clock) == [
        (0, ModelFailed(reason="overloaded", message="busy", retryable=True))
    ]


async def test_a_stall_says_nothing_more_until_it_is_closed() -> None:
    stream = _model(started=2).stream(_request(ASK))
    assert [await anext(stream), await anext(stream)] == [TextDelta("never "), TextDelta("ends")]
    waiting = asyncio.ensure_future(anext(stream))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize(
    ("started", "messages", "words"),
    [
        (
            0,
            (UserMessage(content=(Text(text="bye"),)),),
            "Request 1 is not the one that was recorded in story: 'hello' is missing in what was said last: 'bye'.",
        ),
        (0, (ASK, CALLS, *RESULTS), "the last message should be of user"),
        (1, (ASK, CALLS, RESULTS[0]), "'two' is missing in what was said last: 'one'"),
        (1, (ASK,), "the last message should be of toolResult"),
        (3, (ASK,), "The recorded session story ends here: it has no request 4."),
    ],
)
async def test_a_request_that_was_not_recorded_fails_and_says_how_it_differs(
    started: int, messages: tuple[UserMessage | AssistantMessage | ToolResultMessage, ...], words: str
) -> None:
    [(_, failed)] = await _all(_model(started=started), _request(*messages), ManualClock())
    assert isinstance(failed, ModelFailed)
    assert (failed.reason, failed.retryable) == ("invalid_request", False)
    assert words in failed.message


async def test_instructions_do_not_count_as_said() -> None:
    clock = ManualClock()
    got = await _all(_model(clock=clock), _request(ASK, SystemMessage(content=(Text(text="new rules"),))), clock)
    assert got[-1][1] == Finished("toolUse")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"type": "text", "text": "x"}', "Line 1 of m is not an event of a recorded model: an event outside of an answer"),
        ('{"type": "request", "number": 2}', "request 2 where 1 should come"),
        ('{"type": "request", "number": 1}', "The answer to request 1 in m has no end"),
        ('{"type": "request", "number": 1}\n{"type": "stall"}\n{"type": "text", "text": "x"}', "Line 3 of m"),
        ('{"type": "shout"}', "Line 1 of m"),
        ('{"type": "request", "number": 1, "speed": 3}', "unknown field `speed`"),
    ],
)
def test_a_recording_that_does_not_follow_the_format_names_the_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(text, "m")


async def test_a_paced_clock_runs_faster_from_its_anchor_on() -> None:
    machine = ManualClock(1_000_000)
    paced = PacedClock(machine, speed=10, anchor_ms=1_000_000)
    sleeping = asyncio.ensure_future(paced.sleep_ms(2_000))
    await asyncio.sleep(0)
    machine.advance(200)
    await sleeping
    assert (paced.now_ms(), paced.monotonic_ms()) == (1_002_000, 2_000)


NAMED = """\
{"type": "request", "number": 1, "conversation": "summary", "contains": ["<conversation>"]}
{"type": "text", "text": "a summary"}
{"type": "finish", "reason": "stop"}
{"type": "request", "number": 1, "contains": ["hello"]}
{"type": "text", "text": "the chat"}
{"type": "finish", "reason": "stop"}
{"type": "request", "number": 2, "contains": ["more"]}
{"type": "text", "text": "more of the chat"}
{"type": "finish", "reason": "stop"}
"""


def _said(requests: tuple[Request, ...], noted: Noted, session_id: str, text: str) -> str:
    """What is answered to that person, who says this; and it is noted."""
    request = ModelRequest(model="m", messages=(UserMessage(content=(Text(text=text),)),), session_id=session_id)
    found = fitting(requests, request, noted.started(), "story")
    noted.note(session_id, None if isinstance(found, str) else found.expect.conversation)
    return found if isinstance(found, str) else next(step.text for step in found.steps if isinstance(step, TextLine))


def test_conversations_of_a_story_are_counted_for_themselves_and_told_apart_by_what_is_asked() -> None:
    requests, noted = parse(NAMED, "model.jsonl"), Noted()
    asked = [("", "<conversation> hello"), ("a", "hello"), ("a", "more")]
    assert [_said(requests, noted, *each) for each in asked] == ["a summary", "the chat", "more of the chat"]
    assert _said(requests, noted, "b", "bye").startswith("Request 1 is not the one that was recorded in story: '<conversation>' is missing")
    assert _said(requests, noted, "a", "more") == "The recorded session story ends here: it has no request 3. To go on, choose another model."


TWINS = "".join(
    f'{{"type": "request", "number": {number}, "conversation": "{name}"}}\n'
    f'{{"type": "text", "text": "{name} {number}"}}\n{{"type": "finish", "reason": "stop"}}\n'
    for name in ("left", "right")
    for number in (1, 2)
)


def test_who_has_been_answered_by_one_conversation_of_a_story_stays_in_it_and_the_next_one_gets_another() -> None:
    requests, noted = parse(TWINS, "model.jsonl"), Noted()
    asked = [("a", "read"), ("b", "read"), ("b", "on"), ("a", "on"), ("c", "read")]
    assert [_said(requests, noted, *each) for each in asked] == ["left 1", "right 1", "right 2", "left 2", "left 1"]


def test_a_number_that_a_conversation_skips_is_named() -> None:
    with pytest.raises(ConfigError, match="request 2 where 1 should come"):
        parse('{"type": "request", "number": 2, "conversation": "x"}', "model.jsonl")


async def test_the_window_is_what_the_story_says() -> None:
    model = PlaybackModel(name="story", requests=(), progress=Noted(), clock=ManualClock(), window_tokens=4_000)
    assert (await model.info("playback/story")).context_window_tokens == 4_000
