"""The assembly of an answer, chunk by chunk, without a library or a network."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.harness.ports import Finished, ModelEvent, TextDelta, ThinkingDelta, ToolCallDelta
from pi_durable_tui.models.stream import FILTERED, INCOMPLETE, Assembly


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def call(index: int | None, call_id: str | None, name: str | None, arguments: object) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return chunk({"tool_calls": [{**({} if index is None else {"index": index}), **({} if call_id is None else {"id": call_id}), "function": function}]})


def assembly() -> Assembly:
    numbers = itertools.count(1)
    return Assembly(lambda: f"new{next(numbers)}")


def fed(*chunks: dict[str, Any]) -> list[ModelEvent]:
    one = assembly()
    return [*(event for value in chunks for event in one.feed(value)), *one.flush()]


def calls_of(events: list[ModelEvent]) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of each call in the order of the keys, as a consumer collects them."""
    collected: dict[int, list[str]] = defaultdict(lambda: ["", "", ""])
    for event in events:
        if isinstance(event, ToolCallDelta):
            one = collected[event.key]
            one[0] = event.id or one[0]
            one[1] = event.name or one[1]
            one[2] += event.arguments
    assert list(collected) == list(range(len(collected)))
    return [(one[0], one[1], one[2]) for one in collected.values()]


A, B = '{"path":"a"}', '{"path":"b"}'


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        pytest.param([call(0, "a", "read", A), call(0, "b", "read", B)], [("a", "read", A), ("b", "read", B)], id="one index, two ids"),
        pytest.param(
            [call(0, "a", "read", '{"path"'), call(1, "b", "read", '{"path"'), call(0, None, None, ':"a"}'), call(1, None, None, ':"b"}')],
            [("a", "read", A), ("b", "read", B)],
            id="interleaved by index",
        ),
        pytest.param(
            [call(0, "a", "read", '{"path"'), call(0, "b", "read", '{"path"'), call(0, "a", None, ':"a"}'), call(0, "b", None, ':"b"}')],
            [("a", "read", A), ("b", "read", B)],
            id="interleaved by id at one index",
        ),
        pytest.param([call(0, "", "read", A), call(1, "", "read", B)], [("new1", "read", A), ("new2", "read", B)], id="empty ids"),
        pytest.param([call(0, None, "read", A), call(0, None, "read", B)], [("new1", "read", A), ("new2", "read", B)], id="no ids, one index"),
        pytest.param([call(None, "a", "read", A), call(None, "b", "read", B)], [("a", "read", A), ("b", "read", B)], id="no index"),
        pytest.param([call(0, "a", "read", A), call(1, "a", "read", B)], [("a", "read", A), ("new1", "read", B)], id="one id, two indexes"),
        pytest.param([call(0, "a", "read", A), call(0, "a", "read", B)], [("a", "read", A), ("new1", "read", B)], id="one id, one index"),
        pytest.param(
            [call(0, "a", "read", ""), call(0, "a", "read", '{"path":'), call(0, "a", "read", '"a"}')],
            [("a", "read", A)],
            id="id and name said with every piece",
        ),
        pytest.param([call(0, "a", None, None), call(0, None, "read", None), call(0, None, None, A)], [("a", "read", A)], id="name after the id"),
        pytest.param([call(0, None, "read", '{"path":'), call(0, "late", None, '"a"}')], [("new1", "read", A)], id="id after the name"),
        pytest.param([call(0, "a", "read", {"path": "a"})], [("a", "read", '{"path": "a"}')], id="an object instead of text"),
        pytest.param([call(0, "a", "read", A), call(0, None, None, " \n")], [("a", "read", A + " \n")], id="white space behind a whole call"),
        pytest.param([call(0, "a", "", "")], [("a", "", "")], id="no name"),
        pytest.param(
            [
                chunk(
                    {
                        "tool_calls": [
                            *call(0, "a", "read", A)["choices"][0]["delta"]["tool_calls"],
                            *call(1, "b", "read", B)["choices"][0]["delta"]["tool_calls"],
                        ]
                    }
                )
            ],
            [("a", "read", A), ("b", "read", B)],
            id="two in one chunk",
        ),
    ],
)
@pytest.mark.rule("CASE-B7")
def test_each_call_keeps_its_own_id_and_arguments(chunks: list[dict[str, Any]], calls: list[tuple[str, str, str]]) -> None:
    assert calls_of(fed(*chunks)) == calls


@given(
    st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=8), max_size=3), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
    st.sampled_from(["own index", "one index with ids"]),
)
@pytest.mark.rule("CASE-B7")
def test_arguments_in_pieces_in_any_order_of_calls_come_together(arguments: list[dict[str, str]], random: Any, form: str) -> None:
    texts = [json.dumps(value, ensure_ascii=False) for value in arguments]
    pieces = {number: [text[at : at + 3] for at in range(0, len(text), 3)] for number, text in enumerate(texts)}
    chunks = [call(number if form == "own index" else 0, f"id{number}", "read", "") for number in pieces]
    while any(pieces.values()):
        number = random.choice([number for number, left in pieces.items() if left])
        index, call_id = (number, None) if form == "own index" else (0, f"id{number}")
        chunks.append(call(index, call_id, None, pieces[number].pop(0)))

    assert calls_of(fed(*chunks)) == [(f"id{number}", "read", text) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["x\ud83d", "\ude00y"], "x😀y"),
        (["x\ud83d", "y"], "x\ufffdy"),
        (["x\ud83d"], "x\ufffd"),
        (["\ude00y"], "\ufffdy"),
        (["\ud83d", "\ud83d", "\ude00"], "\ufffd😀"),
        (["plain", ""], "plain"),
    ],
)
@pytest.mark.parametrize("channel", ["content", "reasoning_content", "arguments"])
@pytest.mark.rule("CASE-B10")
def test_pairs_are_joined_over_pieces_and_lone_halves_replaced(channel: str, pieces: list[str], expected: str) -> None:
    chunks = [call(0, "a", None, piece) if channel == "arguments" else chunk({channel: piece}) for piece in pieces]
    said = "".join(event.arguments if isinstance(event, ToolCallDelta) else event.text for event in fed(*chunks) if not isinstance(event, Finished))  # type: ignore[union-attr]

    assert said == expected


@given(st.text(st.characters(), max_size=20), st.lists(st.integers(0, 40), max_size=5))
@pytest.mark.rule("CASE-B10")
def test_text_cut_anywhere_in_sixteen_bit_units_is_the_same_text_again(text: str, cuts: list[int]) -> None:
    units = text.encode("utf-16-le", "surrogatepass")
    halves = [units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2)]
    borders = sorted({0, len(halves), *(cut for cut in cuts if cut < len(halves))})
    pieces = ["".join(halves[start:end]) for start, end in itertools.pairwise(borders)]
    said = "".join(event.text for event in fed(*(chunk({"content": piece}) for piece in pieces)) if isinstance(event, TextDelta))

    assert said == "".join(halves).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@pytest.mark.rule("CASE-B9")
def test_a_signature_closes_its_thought_and_a_hidden_thought_carries_its_bytes() -> None:
    events = fed(
        chunk({"reasoning_content": "let", "thinking_blocks": [{"type": "thinking", "thinking": "let"}]}),
        chunk({"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "s1=="}]}),
        chunk({"thinking_blocks": [{"type": "redacted_thinking", "data": "ZZZ="}]}),
        chunk({"reasoning_content": "plain"}),
    )

    assert events == [ThinkingDelta("let"), ThinkingDelta("", signature="s1=="), ThinkingDelta("", signature="ZZZ=", redacted=True), ThinkingDelta("plain")]


@pytest.mark.parametrize("empty", [{}, {"choices": []}, {"choices": None}, {"choices": [{"delta": None}]}, chunk({"content": None}), chunk({"content": ""})])
def test_a_chunk_that_says_nothing_gives_nothing(empty: dict[str, Any]) -> None:
    assert fed(empty) == []


@pytest.mark.parametrize(
    ("chunks", "outcome"),
    [
        ([chunk({"content": "a"}, "stop")], Finished("stop")),
        ([chunk({"content": "a"}), chunk({}, "stop"), {"choices": []}], Finished("stop")),
        ([call(0, "a", "read", A), chunk({}, "tool_calls")], Finished("toolUse")),
        ([call(0, "a", "read", A), chunk({}, "stop")], Finished("toolUse")),
        ([chunk({}, "tool_calls")], Finished("stop")),
        ([call(0, "a", "read", A), chunk({}, "length")], Finished("length")),
        ([chunk({"content": "a"}, "content_filter")], FILTERED),
        ([chunk({"content": "a"})], INCOMPLETE),
        ([], INCOMPLETE),
    ],
)
@pytest.mark.rule("CASE-B1", "CASE-B4", "CASE-B7")
def test_the_outcome_follows_from_the_finish_reason_and_the_calls(chunks: list[dict[str, Any]], outcome: object) -> None:
    one = assembly()
    for value in chunks:
        one.feed(value)

    assert one.outcome() == outcome
