from __future__ import annotations

import json
import math
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.records.codec import decode_json, encode
from pi_durable_tui.records.json import MOST_BITS, MOST_DEPTH, clean_text, copy, strict

any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
any_text = st.text(st.characters() | st.characters(categories=["Cs"]))


@pytest.mark.rule("SE-5")
@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain é \U0001f600", "plain é \U0001f600"),
        ("", ""),
        ("a\ud83d", "a\ufffd"),
        ("\ude00a", "\ufffda"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("x\ud83d\ude00y", "x\U0001f600y"),
        ("\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
    ],
)
def test_pairs_are_joined_and_lone_surrogates_are_replaced(text: str, clean: str) -> None:
    assert clean_text(text) == clean


@pytest.mark.rule("SE-5")
@given(any_text)
def test_cleaned_text_can_be_encoded_and_is_clean(text: str) -> None:
    clean = clean_text(text)
    clean.encode()
    assert clean_text(clean) is clean


def test_text_without_surrogates_stays_the_same_object() -> None:
    text = "a long answer " * 100
    assert clean_text(text) is text
    assert strict({"text": text}) == {"text": text}


@pytest.mark.rule("SE-5", "ST-5")
@given(any_json)
def test_strict_json_comes_out_equal_and_with_containers_of_its_own(value: Any) -> None:
    result = strict(value)
    assert json.dumps(result) == json.dumps(value)
    assert not (containers(result) & containers(value))
    copied = copy(result)
    assert json.dumps(copied) == json.dumps(value)
    assert not (containers(copied) & containers(result))


def containers(value: Any) -> set[int]:
    """The identities of all lists and objects inside."""
    if isinstance(value, dict):
        return {id(value)}.union(*map(containers, value.values()))
    if isinstance(value, list):
        return {id(value)}.union(*map(containers, value))
    return set()


@pytest.mark.rule("SE-5")
def test_tuples_become_lists_and_text_inside_is_cleaned() -> None:
    assert strict({"a": (1, ("\ud800", True)), "k\udc00": None}) == {"a": [1, ["\ufffd", True]], "k\ufffd": None}


@pytest.mark.rule("SE-5")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "The value at $ is nan, which is not JSON."),
        ({"a": [0, {"b": math.inf}]}, "The value at $.a[1].b is inf, which is not JSON."),
        ({"a": -math.inf}, "The value at $.a is -inf, which is not JSON."),
        ({"a": {1: 2}}, "The key 1 at $.a is not a string, which is not JSON."),
        ({None: 2}, "The key None at $ is not a string, which is not JSON."),
        ([b"bytes"], "The value at $[0] is a bytes, which is not JSON."),
        ({"a": {1, 2}}, "The value at $.a is a set, which is not JSON."),
        ({"a": object()}, "The value at $.a is a object, which is not JSON."),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(value: object, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        strict(value)
    assert caught.value.message == message


def nested(depth: int, inner: Any = 1) -> Any:
    """Lists and objects by turns, `depth` of them."""
    for level in range(depth):
        inner = {"a": inner} if level % 2 else [inner]
    return inner


@pytest.mark.rule("SE-5")
def test_nesting_without_end_is_refused_with_its_place_and_what_is_let_through_can_be_read_again() -> None:
    deepest = nested(MOST_DEPTH)
    assert decode_json(encode(strict(deepest))) == deepest
    endless: list[Any] = []
    endless.append({"more": endless})
    for value in (nested(MOST_DEPTH + 1), nested(100_000), {"x": deepest}, endless):
        with pytest.raises(BadRequest, match=r"^The value at \$[^ ]{40,79}… is nested too deeply to be stored\.$"):
            strict(value)


@pytest.mark.rule("SE-5")
def test_a_whole_number_that_could_not_be_read_again_is_refused_with_its_place() -> None:
    longest = 2**MOST_BITS - 1
    assert decode_json(encode(strict([longest, -longest]))) == [longest, -longest]
    for number in (longest + 1, -longest - 1, 10**4_299, 10**100_000):
        with pytest.raises(BadRequest, match=rf"^The number at \$\.n has \d+ bits, and at most {MOST_BITS} can be stored\.$"):
            strict({"n": number})


@pytest.mark.rule("SE-5")
def test_text_and_numbers_of_special_kinds_become_plain_ones() -> None:
    class Name(str):
        __slots__ = ()

    class Count(int):
        pass

    class Share(float):
        pass

    made: Any = strict({Name("k"): [Name("text"), Count(3), Share(0.5), Color.RED]})
    assert json.dumps(made) == '{"k": ["text", 3, 0.5, "red"]}'
    assert [type(item) for item in (*made, *made["k"])] == [str, str, int, float, str]


class Color(StrEnum):
    """Text of a special kind."""

    RED = "red"


@pytest.mark.rule("SE-5")
def test_the_place_is_told_under_the_name_that_the_caller_gives() -> None:
    with pytest.raises(BadRequest, match=r"^The value at task 12\.input\.when is nan"):
        strict({"when": math.nan}, "task 12.input")


def test_a_copy_shares_text_and_no_container() -> None:
    text = "a long answer " * 100
    value: Any = {"a": [text], "b": {"c": 1.5}}
    copied: Any = copy(value)
    assert copied == value
    assert copied["a"][0] is text
    assert copied["a"] is not value["a"]
    assert copied["b"] is not value["b"]
