from __future__ import annotations

import copy as copies
import math
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.records.codec import encode
from pi_durable_tui.records.delta import apply, diff, same
from pi_durable_tui.records.json import Json, strict

TEXT = "".join(random.Random(7).choices("abcdefghij klmnop\n", k=100_000))

plain = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, 1.5]) | st.text("abc\ud83d\ude00é", max_size=4)
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4), max_leaves=20)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def exact(value: object) -> object:
    """A form in which Python's equality is JSON's: True, 1 and 1.0 differ, and so do 0.0 and -0.0; the order of keys does not count."""
    match value:
        case dict():
            return {key: exact(item) for key, item in value.items()}
        case list() | tuple():
            return [exact(item) for item in value]
        case float():
            return ("float", repr(value))
        case _:
            return (type(value).__name__, value)


def size(ops: Any) -> int:
    """Bytes as stored."""
    return len(encode(ops).encode())


def changed(before: Json, after: object) -> Json:
    """What the delta makes of `before`, which must stay as it is."""
    kept = copies.deepcopy(before)
    ops = diff(before, after)
    kept_ops = copies.deepcopy(ops)
    result = apply(ops, before)
    assert exact(before) == exact(kept)
    assert exact(ops) == exact(kept_ops)
    return result


@pytest.mark.rule("DO-2")
@given(values.map(strict), values)
@example(True, 1)
@example(1, 1.0)
@example({"a": 0.0}, {"a": -0.0})
@example([1, True], [True, 1])
@example([[1]], [[1.0]])
def test_applying_the_delta_of_two_similar_values_gives_the_second(before: Json, after: Json) -> None:
    assert exact(changed(before, after)) == exact(strict(after))


@pytest.mark.rule("DO-2")
@given(any_json, any_json)
def test_applying_the_delta_of_any_two_values_gives_the_second(before: Json, after: Json) -> None:
    assert exact(changed(strict(before), after)) == exact(strict(after))


@pytest.mark.rule("DO-2")
@given(st.lists(values, min_size=1, max_size=6))
def test_a_chain_of_deltas_gives_the_last_value(chain: list[Json]) -> None:
    value: Json = None
    for after in chain:
        value = changed(value, after)
    assert exact(value) == exact(strict(chain[-1]))


@pytest.mark.rule("DO-2")
@given(st.lists(st.integers(0, 30), max_size=20), st.data())
def test_a_list_of_records_that_was_cut_extended_and_edited_comes_out_the_same(numbers: list[int], data: st.DataObject) -> None:
    before: list[Any] = [{"id": number, "kind": "slot", "text": "x" * number} for number in numbers]
    after = copies.deepcopy([item for item in before if data.draw(st.booleans())])
    for item in after:
        item["text"] += data.draw(st.sampled_from(["", "y"]))
    after.insert(data.draw(st.integers(0, len(after))), {"id": 99})
    assert changed(before, after) == after


@pytest.mark.rule("DO-2")
@given(st.text("ab\n", max_size=200), st.integers(0, 200), st.text("ab\n", max_size=40))
def test_a_repetitive_text_that_was_trimmed_and_extended_comes_out_the_same(before: str, chars: int, more: str) -> None:
    assert changed({"tail": before}, {"tail": before[chars:] + more}) == {"tail": before[chars:] + more}


# ---------------------------------------------------------------------------------------------------------- small changes


@pytest.mark.rule("DO-1")
@pytest.mark.parametrize(
    ("before", "after", "ops"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, [["s", ["b"], 3]]),
        ({"a": {"b": "some text", "c": 1}}, {"a": {"b": "some text"}}, [["d", ["a", "c"]]]),
        ({"a": 1}, {"a": 1, "b": [1]}, [["s", ["b"], [1]]]),
        (None, {"a": 1}, [["r", {"a": 1}]]),
        ({"a": 1}, None, [["r", None]]),
        ("text", 5, [["r", 5]]),
        ("ab", "abc", [["a", [], "c"]]),
        ("", "abc", [["r", "abc"]]),
        ({"t": "", "u": 1}, {"t": "x", "u": 1}, [["s", ["t"], "x"]]),
        ([10, 20, 30, 40, 50, 60], [10, 20, 99, 30, 40, 50, 60], [["l", [], 2, 0, [99]]]),
        ([10, 20, 30, 40, 50, 60], [10, 50, 60], [["l", [], 1, 3, []]]),
        ([10, 20, 30, 40, 50, 60], [10, 20, 30, 40, 50, 60, 70], [["l", [], 6, 0, [70]]]),
        (dict.fromkeys("abcdef", 1), dict.fromkeys("abcdef", 2), [["r", dict.fromkeys("abcdef", 2)]]),
        ({"x": dict.fromkeys("abcdef", 1), "y": "a longer text"}, {"x": {"g": 1}, "y": "a longer text"}, [["s", ["x"], {"g": 1}]]),
        ({"a": [1, 2]}, {"a": (1, 2)}, []),
        ({"a": 1}, {"a": 1}, []),
    ],
)
def test_a_small_change_is_said_in_the_shortest_form(before: Json, after: object, ops: list[Any]) -> None:
    assert diff(before, after) == ops
    assert apply(ops, before) == strict(after)


@pytest.mark.rule("DO-1")
def test_appending_to_a_long_answer_takes_tens_of_bytes() -> None:
    before = {"generation": {"message": {"content": [{"type": "text", "text": TEXT}]}}, "tools": []}
    after = {"generation": {"message": {"content": ({"type": "text", "text": TEXT + "twenty more letters."},)}}, "tools": ()}
    ops = diff(before, after)
    assert ops == [["a", ["generation", "message", "content", 0, "text"], "twenty more letters."]]
    assert size(ops) < 80


@pytest.mark.rule("DO-1")
@pytest.mark.parametrize("tail", [TEXT[-50_000:], "the same line again\n" * 2_500, "a" * 50_000], ids=["mixed", "repeated lines", "one letter"])
def test_a_tail_buffer_that_dropped_its_front_takes_tens_of_bytes(tail: str) -> None:
    before = {"output": tail, "outputDroppedChars": 0}
    after = {"output": tail[300:] + "a fresh line of output\n", "outputDroppedChars": 300}
    ops = diff(before, after)
    assert size(ops) < 120
    assert apply(ops, before) == after


@pytest.mark.rule("DO-1")
def test_an_overlap_is_found_behind_places_that_only_look_like_it() -> None:
    assert diff({"output": "a" * 1000}, {"output": "a" * 700 + "b" + "a" * 70}) == [["t", ["output"], 300], ["a", ["output"], "b" + "a" * 70]]


@pytest.mark.rule("DO-1")
def test_an_overlap_is_not_looked_for_for_ever() -> None:
    piece = "".join(f"{number}," for number in range(300))[:1024]
    before = f"{piece}|" * 40 + "end"
    for after in (f"{piece}#", f"|{before[-64:]}" * 40):
        assert diff(before, after) == [["r", after]]


@pytest.mark.rule("DO-1")
def test_a_text_that_lost_its_front_only_is_trimmed() -> None:
    assert diff({"output": TEXT}, {"output": TEXT[10:]}) == [["t", ["output"], 10]]


@pytest.mark.rule("DO-1")
def test_a_new_text_part_beside_a_growing_one_does_not_repeat_the_long_one() -> None:
    before: Any = [{"type": "text", "text": TEXT}]
    after = [{"type": "text", "text": TEXT + "more"}, {"type": "toolCall", "id": "c1", "name": "read"}]
    ops = diff(before, after)
    assert ops == [["l", [], 1, 0, [{"type": "toolCall", "id": "c1", "name": "read"}]], ["a", [0, "text"], "more"]]
    assert apply(ops, before) == after


@pytest.mark.rule("DO-1")
def test_a_slot_removed_before_a_growing_one_does_not_repeat_the_long_one() -> None:
    first = {"taskId": 1, "name": "bash", "status": "running", "output": TEXT}
    second = {"taskId": 2, "name": "bash", "status": "running", "output": TEXT[::-1]}
    ops = diff([first, second], [{**second, "output": TEXT[::-1] + "more"}])
    assert ops == [["a", [1, "output"], "more"], ["l", [], 0, 1, []]]


@pytest.mark.rule("DO-1")
def test_a_line_that_grew_in_a_list_of_long_lines_is_appended_to() -> None:
    before = [TEXT[:1000], TEXT[2000:3000], [1, TEXT]]
    after = [TEXT[:1000] + "!", TEXT[2000:3000], [1, TEXT + "!"]]
    assert diff(before, after) == [["a", [2, 1], "!"], ["a", [0], "!"]]


@pytest.mark.rule("DO-1")
def test_a_text_that_shares_nothing_useful_is_set_whole() -> None:
    assert diff("a text without a common part", "something else altogether") == [["r", "something else altogether"]]
    decoys = "sixteen letters!" * 40 + "x"
    assert diff(decoys, "sixteen letters!" + "y" * 20) == [["r", "sixteen letters!" + "y" * 20]]


@pytest.mark.rule("DO-1")
def test_a_slot_added_before_a_growing_one_does_not_repeat_the_long_one() -> None:
    slot = {"taskId": 2, "name": "bash", "status": "running", "output": TEXT}
    fresh = {"taskId": 1, "name": "bash", "status": "running", "output": ""}
    assert diff([slot], [fresh, {**slot, "output": TEXT + "more"}]) == [["a", [0, "output"], "more"], ["l", [], 0, 0, [fresh]]]


@pytest.mark.rule("DO-1")
def test_a_long_list_replaced_altogether_is_one_step() -> None:
    before: Any = list(range(3_000))
    after = list(range(5_000, 8_000))
    assert diff(before, after) == [["l", [], 0, 3_000, after]]


# ------------------------------------------------------------------------------------------------------- equality of JSON


@pytest.mark.rule("DO-2")
def test_values_that_python_calls_equal_and_json_does_not_are_told_apart() -> None:
    different = [None, True, False, 1, 0, 1.0, 0.0, -0.0, "", "1", [], {}, [1], [True], {"a": 1}, {"a": 1.0}, {"b": 1}]
    for index, left in enumerate(different):
        for other, right in enumerate(different):
            assert same(left, right) == (index == other), (left, right)
            assert exact(changed(left, right)) == exact(right)
    assert same([1, {"a": [2]}], (1, {"a": (2,)}))
    assert same({"a": 1, "b": 2}, {"b": 2, "a": 1})


# ---------------------------------------------------------------------------------------------------------------- sharing


@pytest.mark.rule("DO-3")
def test_unchanged_subtrees_are_the_same_objects_as_before() -> None:
    before: dict[str, Any] = {"a": {"b": [1]}, "c": {"d": {"e": "x"}, "f": [2]}, "g": [{"h": 1}, {"i": 2}]}
    after: Any = apply([["a", ["c", "d", "e"], "y"], ["s", ["g", 1, "i"], 3]], before)
    assert after == {"a": {"b": [1]}, "c": {"d": {"e": "xy"}, "f": [2]}, "g": [{"h": 1}, {"i": 3}]}
    assert after["a"] is before["a"]
    assert after["c"]["f"] is before["c"]["f"]
    assert after["g"][0] is before["g"][0]
    assert before == {"a": {"b": [1]}, "c": {"d": {"e": "x"}, "f": [2]}, "g": [{"h": 1}, {"i": 2}]}


@pytest.mark.rule("DO-3")
def test_no_step_gives_the_same_object() -> None:
    value: Any = {"a": [1]}
    assert apply(diff(value, {"a": [1]}), value) is value


@pytest.mark.rule("DO-3", "ST-5")
def test_steps_share_no_container_with_the_new_value() -> None:
    item = {"deep": [1]}
    ops = diff({"list": []}, {"list": [item], "other": item})
    item["deep"].append(2)
    assert apply(ops, {"list": []}) == {"list": [{"deep": [1]}], "other": {"deep": [1]}}


@pytest.mark.rule("DO-3")
def test_a_later_step_into_what_an_earlier_one_brought_does_not_change_the_earlier_one() -> None:
    ops = [["s", ["a"], {"n": 1}], ["s", ["a", "n"], 2], ["s", ["a", "m"], 3]]
    assert apply(ops, {}) == {"a": {"n": 2, "m": 3}}
    assert ops == [["s", ["a"], {"n": 1}], ["s", ["a", "n"], 2], ["s", ["a", "m"], 3]]


# ------------------------------------------------------------------------------------------------------------- strictness


@pytest.mark.rule("SE-5")
@pytest.mark.parametrize(
    ("after", "message"),
    [
        ({"a": {"b": [1, math.nan]}}, "The value at $.a.b[1] is nan, which is not JSON."),
        ({"a": {"b": [1], 2: 3}}, "The key 2 at $.a is not a string, which is not JSON."),
        ({"a": {"b": [object()]}}, "The value at $.a.b[0] is a object, which is not JSON."),
        ({"a": {"b": [1, 2, {"c": b"x"}]}}, "The value at $.a.b[2].c is a bytes, which is not JSON."),
        ({"a": {"b": [1]}, "c": math.inf}, "The value at $.c is inf, which is not JSON."),
    ],
)
def test_a_change_that_is_not_json_is_refused_with_its_place(after: object, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        diff({"a": {"b": [1]}}, after)
    assert caught.value.message == message


@pytest.mark.rule("SE-5")
def test_the_place_is_named_under_the_given_root() -> None:
    with pytest.raises(BadRequest, match=r"^The value at pi\.live\(3\) is nan"):
        diff({}, math.nan, "pi.live(3)")


@pytest.mark.rule("SE-5")
def test_lone_surrogates_are_replaced_and_pairs_that_arrive_in_two_pieces_are_joined() -> None:
    first = changed({"text": "a"}, {"text": "ab\ud83d"})
    assert first == {"text": "ab\ufffd"}
    second = changed(first, {"text": "ab\ud83d\ude00"})
    assert second == {"text": "ab\U0001f600"}
    assert diff(second, {"text": "ab\ud83d\ude00"}) == []
    assert changed({}, {"k\ud83d": 1}) == {"k\ufffd": 1}
    assert diff({"k\ufffd": 1}, {"k\ud83d": 1}) == []


# -------------------------------------------------------------------------------------------------------- malformed steps


@pytest.mark.rule("DO-2")
@pytest.mark.parametrize(
    "op",
    [
        [],
        ["x", []],
        ["s", [], 1],
        ["s", ["a"]],
        ["s", ["missing", "b"], 1],
        ["s", ["list", 3], 1],
        ["s", ["list", -1], 1],
        ["s", ["list", True], 1],
        ["s", ["list", "0"], 1],
        ["s", ["text", 0], "x"],
        ["s", [0], 1],
        ["d", []],
        ["d", ["missing"]],
        ["d", ["list", 0]],
        ["d", ["list", "0"]],
        ["d", ["text", "x"]],
        ["d", ["missing", "x"]],
        ["r"],
        ["a", ["list"], "x"],
        ["a", ["text"], 1],
        ["a", "text", "x"],
        ["a", [], "x"],
        ["a", ["missing"], "x"],
        ["t", ["text"], 5],
        ["t", ["text"], -1],
        ["t", ["text"], True],
        ["t", ["list"], 1],
        ["l", ["list"], 3, 0, []],
        ["l", ["list"], -1, 0, []],
        ["l", ["list"], 0, 3, []],
        ["l", ["list"], 1, -1, []],
        ["l", ["list"], True, 0, []],
        ["l", ["list"], 0, 0, "ab"],
        ["l", ["text"], 0, 0, []],
        ["l", [], 0, 0, []],
        ["l", ["missing"], 0, 0, []],
    ],
    ids=str,
)
def test_a_step_that_does_not_fit_is_refused_and_changes_nothing(op: list[Json]) -> None:
    value: dict[str, Json] = {"text": "abcd", "list": [1, 2]}
    with pytest.raises(BadRequest, match=r"^Step 1 of a delta does not fit: .+\. Nothing was changed\.$"):
        apply([["s", ["ok"], 1], op], value)
    assert value == {"text": "abcd", "list": [1, 2]}


def test_steps_may_address_the_value_itself() -> None:
    assert apply([["a", [], "c"], ["t", [], 1]], "ab") == "bc"
    assert apply([["l", [], 1, 1, [7, 8]]], [1, 2]) == [1, 7, 8]
    assert apply([["d", ["a"]]], {"a": 1}) == {}
    assert apply([["s", ["list", 1], 5]], {"list": [1, 2]}) == {"list": [1, 5]}
