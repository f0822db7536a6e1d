"""An answer put together from the pieces of its stream (harness/requests/assembly.py)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.harness.ports import TextDelta, ThinkingDelta, ToolCallDelta
from pi_durable_tui.harness.requests.assembly import Assembly, free_id, parsed_arguments
from pi_durable_tui.records.codec import encode
from pi_durable_tui.records.messages import AssistantMessage, Problem, Thinking, Usage
from tests.support.harness_builders import MODEL, answered, call, thought

USED = Usage(input_tokens=3, output_tokens=4)


def assembled(*pieces: TextDelta | ThinkingDelta | ToolCallDelta) -> Assembly:
    assembly = Assembly(MODEL)
    for piece in pieces:
        assembly.add(piece)
    return assembly


def whole(*pieces: TextDelta | ThinkingDelta | ToolCallDelta) -> AssistantMessage:
    return assembled(*pieces).message("stop")


# --------------------------------------------------------------------------------------------------------- text, thinking


def test_pieces_of_text_are_one_text_and_thoughts_and_calls_keep_their_places():
    assert whole(
        ThinkingDelta("let "),
        ThinkingDelta("me"),
        TextDelta("I "),
        TextDelta("look. "),
        ToolCallDelta(0, id="c1", name="read", arguments='{"path":"a"}'),
        TextDelta("And then"),
    ) == answered(thought("let me"), "I look. ", call("c1", path="a"), "And then")


def test_model_stop_reason_usage_and_problem_are_those_of_the_answer():
    assembly = assembled(TextDelta("a"))
    assembly.usage = USED
    problem = Problem(reason="server", message="broke off")
    assert assembly.message("error", problem=problem) == AssistantMessage(
        content=answered("a").content, model=MODEL, stop_reason="error", usage=USED, problem=problem
    )


def test_a_signature_closes_its_thought_and_the_next_piece_begins_another():
    assert whole(ThinkingDelta("a"), ThinkingDelta("b", "sig1"), ThinkingDelta("c"), ThinkingDelta("", "sig2")) == answered(
        thought("ab", "sig1"), thought("c", "sig2")
    )


def test_a_redacted_thought_stays_apart_from_a_readable_one():
    assert whole(ThinkingDelta("a"), ThinkingDelta("", "data", redacted=True), ThinkingDelta("b")) == answered(
        thought("a"), Thinking(text="", signature="data", redacted=True), thought("b")
    )


@pytest.mark.rule("CASE-B6")
def test_an_empty_piece_of_text_does_not_cut_a_thought_in_two():
    assert whole(ThinkingDelta("a"), TextDelta(""), ThinkingDelta("b", "sig")) == answered(thought("ab", "sig"))


@pytest.mark.rule("CASE-B6")
@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((TextDelta(""), ToolCallDelta(0, id="c1", name="read")), answered(call("c1"))),
        ((TextDelta("  \n"), ToolCallDelta(0, id="c1", name="read")), answered(call("c1"))),
        ((TextDelta(" "), TextDelta("\n")), answered()),
        ((ThinkingDelta(" "), TextDelta("a")), answered("a")),
        ((ThinkingDelta("", "sig"), TextDelta("a")), answered(thought("", "sig"), "a")),
        ((TextDelta("\n"), TextDelta("a")), answered("\na")),
        ((), answered()),
    ],
)
def test_blank_text_is_no_part_of_an_answer(pieces, expected):
    assert whole(*pieces) == expected
    assert assembled(*pieces).message("stop", is_partial=True).text == expected.text


@pytest.mark.parametrize(
    ("pieces", "is_empty"),
    [
        ((), True),
        ((TextDelta(" "),), True),
        ((ThinkingDelta(""),), True),
        ((TextDelta("a"),), False),
        ((ThinkingDelta("a"),), False),
        ((ToolCallDelta(0, name="read"),), False),
    ],
)
def test_an_answer_is_empty_until_something_of_use_has_come(pieces, is_empty):
    assert assembled(*pieces).is_empty is is_empty


@pytest.mark.rule("FB-42")
def test_a_message_that_was_handed_out_does_not_change_when_more_comes():
    assembly = assembled(ThinkingDelta("a"), TextDelta("b"), ToolCallDelta(0, id="c1", name="read", arguments='{"pa'))
    first = assembly.message("aborted", is_partial=True)
    text = encode(first)
    assembly.add(ToolCallDelta(0, name="_file", arguments='th":"a"}'))
    assembly.add(TextDelta("more"))
    assembly.usage = USED
    assert encode(first) == text
    later = assembly.message("stop")
    later.tool_calls[0].arguments["path"] = "changed by whoever got it"
    assert assembly.message("stop").tool_calls[0].arguments == {"path": "a"}


# ------------------------------------------------------------------------------------------------------------------ calls


@pytest.mark.rule("CASE-B7")
def test_interleaved_pieces_of_parallel_calls_stay_apart_in_the_order_they_began():
    assert whole(
        ToolCallDelta(1, id="b", name="read", arguments='{"path":'),
        ToolCallDelta(0, id="a", name="read", arguments='{"path"'),
        ToolCallDelta(1, arguments='"b"}'),
        ToolCallDelta(0, arguments=':"a"}'),
    ) == answered(call("b", path="b"), call("a", path="a"))


@pytest.mark.rule("CASE-B7")
@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["", "", ""], ["call_0", "call_1", "call_2"]),
        (["a", "a", "a"], ["a", "a_0", "a_1"]),
        (["call_0", "", ""], ["call_0", "call_1", "call_2"]),
        (["a_0", "a", "a"], ["a_0", "a", "a_1"]),
    ],
)
def test_every_call_of_an_answer_has_an_id_of_its_own(ids, expected):
    pieces = [ToolCallDelta(key, id=call_id, name="read") for key, call_id in enumerate(ids)]
    assert [each.id for each in whole(*pieces).tool_calls] == expected
    assert [each.id for each in assembled(*pieces).message("aborted", is_partial=True).tool_calls] == expected


@given(st.lists(st.sampled_from(["", "call", "call_0", "call_1", "a", "a_0"]), max_size=12))
def test_ids_are_free_whatever_was_asked_for(wanted):
    taken: set[str] = set()
    given_out = [free_id(each, taken) for each in wanted]
    assert len(set(given_out)) == len(given_out)
    assert taken == set(given_out)
    assert all(given_out)


@pytest.mark.rule("CASE-B7")
def test_the_first_id_counts_and_later_pieces_of_a_name_are_added():
    assert whole(ToolCallDelta(0, name="re"), ToolCallDelta(0, id="a", name="ad"), ToolCallDelta(0, id="b")) == answered(call("a"))


@pytest.mark.rule("CASE-B2")
@pytest.mark.parametrize(
    "raw",
    [
        '{"command": "cd /x && git commit -m \\"f',
        "[]",
        '"ls"',
        "null",
        "5",
        '{"command":"ls"}{"command":"id"}',
        '{"n": NaN}',
        '{"n": -Infinity}',
        '{"n": 1e999}',
        '{"n": ' + "9" * 10_000 + "}",
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "{'command': 'ls'}",
    ],
    ids=range(12),
)
def test_arguments_that_are_no_json_object_are_kept_raw_beside_an_empty_object(raw):
    assert parsed_arguments(raw) is None
    assert whole(ToolCallDelta(0, id="c", name="bash", arguments=raw)) == answered(call("c", "bash", malformed=raw))


@pytest.mark.rule("CASE-B2")
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        (' {"command": "ls", "n": [1, 2.5, null, true]} ', {"command": "ls", "n": [1, 2.5, None, True]}),
        ('{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
    ],
)
def test_arguments_are_an_object_and_no_text_is_an_empty_one(raw, expected):
    assert parsed_arguments(raw) == expected
    assert whole(ToolCallDelta(0, id="c", name="bash", arguments=raw)) == answered(call("c", "bash", **expected))


def test_while_an_answer_comes_in_the_text_of_arguments_is_shown_as_it_stands():
    assembly = assembled(TextDelta("ok"), ToolCallDelta(0, id="c", name="bash", arguments='{"comma'))
    assert assembly.message("aborted", is_partial=True) == answered("ok", call("c", "bash", malformed='{"comma'), stop="aborted")


# -------------------------------------------------------------------------------------------------------------- surrogates


@pytest.mark.rule("CASE-B10")
def test_halves_of_surrogate_pairs_are_joined_over_pieces_and_lone_ones_replaced_everywhere():
    message = whole(
        ThinkingDelta("t\ud83d"),
        ThinkingDelta("\ude00"),
        TextDelta("x\ud83d"),
        TextDelta("y\ud83d"),
        TextDelta("\ude00"),
        ToolCallDelta(0, id="c\ud83d", name="re\udfff", arguments='{"path":"\ud83d'),
        ToolCallDelta(0, arguments='\ude00.txt","b\ud83d":1}'),
    )
    assert message == answered(thought("t😀"), "x\ufffdy😀", call("c\ufffd", "re\ufffd", **{"path": "😀.txt", "b\ufffd": 1}))
    assert encode(message)


@pytest.mark.rule("CASE-B10")
def test_escaped_halves_in_arguments_are_mended_like_any_other():
    assert parsed_arguments('{"path":"\\ud83d.txt","\\ude00":"\\ud83d\\ude00"}') == {"path": "\ufffd.txt", "\ufffd": "😀"}


@pytest.mark.rule("CASE-B10")
@given(st.text(st.characters(codec=None), max_size=20), st.text(st.characters(codec=None), max_size=20))
def test_whatever_text_comes_the_message_can_be_stored(left, right):
    message = whole(ThinkingDelta(left), TextDelta(left), TextDelta(right), ToolCallDelta(0, id=left, name=right, arguments=left + right))
    assert encode(message)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=4), st.integers(0, 2**32))
def test_how_a_stream_is_cut_into_pieces_makes_no_difference(texts, seed):
    chance = random.Random(seed)
    pieces: list[TextDelta | ThinkingDelta | ToolCallDelta] = []
    expected: list[TextDelta | ThinkingDelta | ToolCallDelta] = []
    for number, text in enumerate(texts):
        make = [TextDelta, ThinkingDelta, lambda part, key=number: ToolCallDelta(key, arguments=part)][number % 3]
        cuts = sorted(chance.choices(range(len(text) + 1), k=2))
        expected.append(make(text))
        pieces += [make(text[: cuts[0]]), make(text[cuts[0] : cuts[1]]), make(text[cuts[1] :])]
    assert whole(*pieces) == whole(*expected)
