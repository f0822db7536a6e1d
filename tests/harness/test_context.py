"""The request made of a transcript (harness/requests/context.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.harness.requests.context import BEGINNING, GO_ON, LOST_RESULT, derive, in_order, to_be_answered
from pi_durable_tui.models.conversion import openai_messages
from pi_durable_tui.records.entry import THOUGHTS_REFUSED, Edit, Entry
from pi_durable_tui.records.json import strict
from pi_durable_tui.records.messages import AssistantMessage, Image, Message, ToolResultMessage, UserMessage
from tests.support.harness_builders import MODEL, answered, call, entry, gave, said, summary, thought, told, transcript
from tests.support.model_strictness import violation
from tests.support.strict_provider import violations


def lost(call_id: str, name: str = "read") -> ToolResultMessage:
    return gave(call_id, LOST_RESULT, name=name, is_error=True)


def derived(*messages: Message | None) -> tuple[Message, ...]:
    return derive(transcript(*messages))


# ------------------------------------------------------------------------------------------------------------- one by one


def test_a_plain_exchange_stays_as_it_is():
    messages = (said("hi"), answered(thought("hm", "sig"), "hello"), said("and?"))
    assert derived(*messages) == messages


def test_nothing_makes_nothing():
    assert derived() == ()
    assert derived(None, None) == ()


@pytest.mark.rule("CX-1")
def test_results_stand_behind_their_answer_in_the_order_of_its_calls():
    asked = answered("ok", call("c1"), call("c2"), stop="toolUse")
    interrupted = (said("go"), asked, gave("c2", "two"), said("faster"), gave("c1", "one"), answered("done"))
    assert derived(*interrupted) == (said("go"), asked, gave("c1", "one"), gave("c2", "two"), said("faster"), answered("done"))


@pytest.mark.rule("CASE-B9")
def test_thoughts_before_a_refusal_are_left_out_and_those_after_it_stay():
    old, new = answered(thought("old", "s1"), "one"), answered(thought("new", "s2"), "two")
    only_thoughts = answered(thought("hm", "s0"))
    before = transcript(said("a"), old, said("b"), only_thoughts, said("c"))
    refusal = entry(100, kind=THOUGHTS_REFUSED, data={"message": "no"})
    after = [entry(101, new), entry(102, said("d"))]
    assert derive([*before, refusal, *after]) == (said("a"), answered("one"), said("b", "c"), new, said("d"))
    assert derive(before) == (said("a"), old, said("b", "c"))


@pytest.mark.rule("CX-1", "CASE-A1")
def test_a_call_without_a_result_gets_one_that_says_so():
    asked = answered(call("c1"), call("c2", "bash"), call("c3"), stop="toolUse")
    assert derived(said("go"), asked, gave("c1", "one"), said("go on")) == (
        said("go"),
        asked,
        gave("c1", "one"),
        lost("c2", "bash"),
        lost("c3"),
        said("go on"),
    )


@pytest.mark.rule("CX-1")
def test_a_result_without_a_call_and_a_second_result_are_dropped():
    asked = answered(call("c1"), stop="toolUse")
    assert derived(said("go"), gave("c1", "too early"), gave("x", "stray"), asked, gave("c1", "one"), gave("c1", "again")) == (
        said("go"),
        asked,
        gave("c1", "one"),
    )


@pytest.mark.rule("CX-1", "CASE-B7")
def test_ids_that_come_again_in_a_later_answer_keep_their_own_results_and_become_different():
    again = answered(call("call_0"), stop="toolUse")
    assert derived(said("a"), again, said("b"), again, gave("call_0", "second"), again, gave("call_0", "third")) == (
        said("a"),
        again,
        lost("call_0"),
        said("b"),
        answered(call("call_0_0"), stop="toolUse"),
        gave("call_0_0", "second"),
        answered(call("call_0_1"), stop="toolUse"),
        gave("call_0_1", "third"),
    )


@pytest.mark.rule("CX-1", "CASE-B7")
def test_equal_and_missing_ids_of_one_answer_become_different_and_take_the_results_in_order():
    asked = answered("x", call("c"), call("c", "bash"), call(""), stop="toolUse")
    assert derived(said("a"), asked, gave("c", "one"), gave("c", "two", name="bash"), gave("", "three")) == (
        said("a"),
        answered("x", call("c"), call("c_0", "bash"), call("call_0"), stop="toolUse"),
        gave("c", "one"),
        gave("c_0", "two", name="bash"),
        gave("call_0", "three"),
    )


@pytest.mark.rule("CX-1")
@pytest.mark.parametrize("stop", ["aborted", "error", "deferred"])
def test_answers_that_were_cut_off_are_left_out_with_their_calls(stop):
    cut = answered("half an", call("c1"), stop=stop)
    assert derived(said("go"), cut, gave("c1", "late"), said("again")) == (said("go", "again"),)


@pytest.mark.rule("CX-1")
def test_a_cut_off_answer_does_not_take_the_results_of_the_one_before():
    asked = answered(call("c1"), stop="toolUse")
    assert derived(said("go"), asked, answered(call("c1"), stop="aborted"), gave("c1", "one")) == (said("go"), asked, gave("c1", "one"))


@pytest.mark.rule("CASE-B6")
def test_blank_texts_are_left_out_of_every_message_and_messages_of_nothing_else_are_left_out_whole():
    picture = Image(mime_type="image/png", data="eA==")
    asked = answered("", call("c1"), stop="toolUse")
    assert derived(
        told("", "be kind", " \n"),
        told(" "),
        said("", picture, "look"),
        answered(" ", stop="stop"),
        answered(thought("hm", "sig")),
        answered(stop="stop"),
        said("  \n"),
        asked,
        gave("c1", ""),
    ) == (told("be kind"), said(picture, "look"), answered(call("c1"), stop="toolUse"), gave("c1", ""))


@pytest.mark.rule("CX-1")
def test_inputs_that_follow_each_other_are_one_message():
    assert derived(said("a"), None, said("b"), answered("c"), said("d")) == (said("a", "b"), answered("c"), said("d"))


@pytest.mark.rule("CX-1")
def test_answers_that_follow_each_other_are_one_message_without_the_thoughts_of_the_first():
    two = (said("a"), answered(thought("old", "s1"), "b", model="other/one"), said(" "), answered(thought("new", "s2"), "c", call("c1"), stop="toolUse"))
    assert derived(*two, gave("c1", "one")) == (said("a"), answered("b", thought("new", "s2"), "c", call("c1"), stop="toolUse"), gave("c1", "one"))


@pytest.mark.rule("CX-1")
def test_a_context_that_begins_with_an_answer_says_that_its_beginning_is_left_out():
    assert derived(answered("b"), said("c")) == (said(BEGINNING), answered("b"), said("c"))
    assert derived(told("be kind"), answered("b"), said("c")) == (told("be kind"), said(BEGINNING), answered("b"), said("c"))


def test_the_first_instructions_go_in_front_and_later_ones_keep_their_place():
    assert derived(said("a"), said("b"), told("be kind"), answered("c"), said("d"), told("be brief")) == (
        told("be kind"),
        said("a", "b"),
        answered("c"),
        said("d"),
        told("be brief"),
    )


# ------------------------------------------------------------------------------------------------------ edits and summaries


def omit(entry_id: int) -> Edit:
    return Edit(entry_id=entry_id, action="omit")


def replace(entry_id: int, message: Any) -> Edit:
    return Edit(entry_id=entry_id, action="replace", message=message)


def test_the_newest_edit_of_an_entry_counts():
    edits = [(replace(1, said("A")), replace(3, said("C"))), (replace(1, said("AA")),), (omit(3),)]
    entries = [*transcript(said("a"), answered("b"), said("c"), said("d")), *(entry(10 + n, edits=each) for n, each in enumerate(edits))]
    assert derive(entries) == (said("AA"), answered("b"), said("d"))


def test_an_edit_that_replaces_by_nothing_omits():
    assert derive([*transcript(said("a"), said("b")), entry(3, edits=(replace(1, None),))]) == (said("b"),)


@pytest.mark.rule("CX-1")
def test_an_answer_that_was_edited_takes_its_results_with_it():
    entries = [*transcript(said("a"), answered(call("c1"), stop="toolUse"), gave("c1", "one"), said("b")), entry(9, edits=(omit(2),))]
    assert derive(entries) == (said("a", "b"),)


def test_a_summary_is_read_before_what_was_kept_though_it_was_written_after_it():
    kept = [entry(5, said("kept")), entry(6, answered("yes")), entry(9, said("new"))]
    marker = summary(7, "so far", head=5)
    assert in_order([*kept[:2], marker, kept[2]], marker) == (marker, *kept)
    assert derive(in_order([*kept[:2], marker, kept[2]], marker)) == (said("so far", "kept"), answered("yes"), said("new"))


@pytest.mark.parametrize("marker", [None, entry(5), entry(5, head=5), entry(5, head=6)])
def test_without_a_summary_of_older_entries_the_order_is_that_of_the_transcript(marker):
    entries = transcript(said("a"), answered("b"))
    assert in_order(entries, marker) == tuple(entries)


def test_the_edits_of_a_summary_are_newer_than_those_of_the_entries_it_stands_before():
    older = entry(6, edits=(replace(5, said("older edit")),))
    marker = summary(7, "so far", head=5, edits=(replace(5, said("newer edit")),))
    entries = in_order([entry(5, said("kept")), older, marker], marker)
    assert derive(entries) == (said("so far", "newer edit"),)


@pytest.mark.rule("CO-3", "CX-1")
def test_an_older_summary_that_stands_in_what_was_kept_is_not_read_again_but_its_edits_count():
    """The newest summary was made of the older one and of what followed it, up to a cut that lies before the older one was written."""
    older = summary(8, "the first half", head=4, edits=(replace(7, said("shortened")),))
    newest = summary(10, "the first half and more", head=6)
    entries = [entry(6, said("kept")), entry(7, said("very long")), older, entry(9, answered("yes")), newest, entry(11, said("new"))]
    assert derive(in_order(entries, newest)) == (said("the first half and more", "kept", "shortened"), answered("yes"), said("new"))
    assert [each.id for each in in_order(entries, newest)] == [10, 6, 7, 8, 9, 11]


@pytest.mark.rule("CO-3", "CX-1")
def test_no_edit_brings_back_an_older_summary_and_its_other_edits_count():
    older, newest = summary(8, "the first half", head=4), summary(11, "the first half and more", head=6)
    edits = entry(9, edits=(replace(8, said("the first half, edited")), replace(7, said("shortened"))))
    entries = [entry(6, said("kept")), entry(7, said("very long")), older, edits, entry(10, answered("yes")), newest, entry(12, said("new"))]
    assert derive(in_order(entries, newest)) == (said("the first half and more", "kept", "shortened"), answered("yes"), said("new"))
    assert derive(in_order(entries[:4], older)) == (said("the first half, edited", "kept", "shortened"),), "the newest one may be edited"


@pytest.mark.rule("CX-1")
def test_a_request_always_ends_with_something_to_answer():
    asked = answered(call("c1"), stop="toolUse")
    for messages in ((), (told("x"),), (said("a"), answered("b")), (said("a"), answered("b"), told("x"))):
        assert to_be_answered(messages) == (*messages, said(GO_ON))
    for messages in ((said("a"),), (said("a"), asked, gave("c1", "x")), (said("a"), asked, gave("c1", "x"), told("x"))):
        assert to_be_answered(messages) == messages


# ------------------------------------------------------------------------------------------------------- random histories

IDS = st.sampled_from(["c1", "c2", "c3", "call_0", "call_0_0", ""])
TEXTS = st.sampled_from(["", " \n", "a", "some words"])
NAMES = st.sampled_from(["read", "bash", "nosuch", "B ash", ""])
ARGUMENTS = st.sampled_from([{}, {"path": "a"}, {"n": [1, {"x": None}]}])
CALLS = st.builds(lambda call_id, name, arguments: call(call_id, name, **arguments), IDS, NAMES, ARGUMENTS)
PARTS = st.one_of(TEXTS.map(lambda text: answered(text).content[0]), st.builds(thought, TEXTS, st.sampled_from([None, "sig"])), CALLS, CALLS)
STOPS = st.sampled_from(["stop", "toolUse", "length", "error", "aborted", "deferred"])
USERS = st.lists(TEXTS, max_size=3).map(lambda texts: said(*texts))
SYSTEMS = st.lists(TEXTS, max_size=2).map(lambda texts: told(*texts))
ANSWERS = st.builds(
    lambda parts, stop, model: answered(*parts, stop=stop, model=model), st.lists(PARTS, max_size=4), STOPS, st.sampled_from([MODEL, "other/two"])
)
RESULTS = st.builds(lambda call_id, text, name: gave(call_id, text, name=name), IDS, TEXTS, NAMES)
MESSAGES = st.one_of(USERS, SYSTEMS, ANSWERS, ANSWERS, RESULTS, RESULTS, st.none())


@st.composite
def histories(draw: st.DrawFn) -> tuple[Entry, ...]:
    """Anything at all, then an input as it begins every run, and perhaps a tool round with some of its results."""
    messages: list[Any] = draw(st.lists(MESSAGES, max_size=14))
    messages.append(said("go on"))
    if draw(st.booleans()):
        calls = draw(st.lists(CALLS, min_size=1, max_size=3))
        messages.append(answered(*calls, stop="toolUse"))
        messages += draw(st.lists(RESULTS, max_size=4))
    entries = transcript(*messages)
    editable = len(messages) - 6
    if editable > 0 and draw(st.booleans()):
        targets = draw(st.lists(st.integers(1, editable), max_size=3))
        edits = tuple(draw(st.sampled_from([omit(target), replace(target, said("edited")), replace(target, answered("edited"))])) for target in targets)
        entries.append(entry(len(entries) + 1, edits=edits))
    if editable > 0 and draw(st.booleans()):
        head = draw(st.integers(1, editable))
        marker = summary(len(entries) + 1, draw(st.sampled_from(["so far", ""])), head=head)
        return in_order([*entries[head - 1 :], marker], marker)
    return tuple(entries)


def in_pairs(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Each call's arguments and its result's text, as the model reads them."""
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolResultMessage)}
    answers = [message for message in messages if isinstance(message, AssistantMessage)]
    return [(f"{call.name} {call.arguments}", results[call.id].text) for message in answers for call in message.tool_calls]


@pytest.mark.rule("CX-1", "CASE-A1", "CASE-B2", "CASE-B6", "CASE-B7")
@given(histories())
def test_whatever_the_history_a_provider_takes_the_request(entries):
    request = derive(entries)
    assert violations(request) == []
    for model in ("openai/gpt", "anthropic/claude"):
        body = {"messages": strict(openai_messages(request, model=model))}
        assert violation(body) is None


@pytest.mark.rule("CX-1")
@given(histories(), st.lists(st.tuples(st.integers(1, 24), st.none() | USERS | SYSTEMS | ANSWERS | RESULTS), max_size=6))
def test_whatever_is_edited_afterwards_a_provider_takes_the_request(entries, edited):
    """Also when the newest input itself is left out, or becomes something else."""
    edits = tuple(replace(target, message) for target, message in edited)
    request = to_be_answered(derive((*entries, entry(100, edits=edits))))
    assert violations(request) == []
    assert violation({"messages": strict(openai_messages(request, model="anthropic/claude"))}) is None


@given(histories())
def test_deriving_is_a_matter_of_the_entries_alone_and_changes_none_of_them(entries):
    before = repr(entries)
    assert derive(entries) == derive(entries)
    assert repr(entries) == before


@given(histories())
def test_what_was_derived_derives_to_itself(entries):
    request = derive(entries)
    assert derive(transcript(*request)) == request


@given(st.lists(st.one_of(USERS, ANSWERS), max_size=6), st.lists(MESSAGES, max_size=6))
def test_a_longer_history_only_adds_behind_a_finished_round(beginning, more):
    """What was sent once is sent again in the same words, so that prompt caches hold."""
    first = derived(told("be kind"), said("start"), *beginning, said("x"))
    second = derived(told("be kind"), said("start"), *beginning, said("x"), answered("y"), *more)
    kept = [message for message in first[:-1] if not isinstance(message, ToolResultMessage)]
    assert [message for message in second if not isinstance(message, ToolResultMessage)][: len(kept)] == kept


def test_pairs_are_never_mixed_when_every_turn_uses_the_same_ids():
    turns: list[Message] = [said("go")]
    for turn in range(30):
        turns += [
            answered(call("call_0", turn=turn), call("call_1", turn=turn), stop="toolUse"),
            gave("call_1", f"{turn}.1"),
            gave("call_0", f"{turn}.0"),
        ]
    assert in_pairs(derived(*turns)) == [(f"read {{'turn': {turn}}}", f"{turn}.{number}") for turn in range(30) for number in range(2)]


def test_the_strict_provider_finds_what_providers_refuse():
    asked = answered(call("c1"), call("c2"), stop="toolUse")
    refused: dict[str, tuple[Message, ...]] = {
        "there is no message": (told("x"),),
        "the first message is not a user's": (answered("a"), said("b")),
        "the last message is an answer": (said("a"), answered("b")),
        "1: two messages of one role follow each other": (said("a"), said("b")),
        "3: two messages of one role follow each other": (said("a"), told("x"), answered("b"), answered("c"), said("d")),
        "1: a result that is not the next one due": (said("a"), gave("c1", "x")),
        "2: a result that is not the next one due": (said("a"), asked, gave("c2", "x"), gave("c1", "x")),
        "3: calls without a result: ['c2']": (said("a"), asked, gave("c1", "x"), said("b")),
        "calls without a result: ['c1', 'c2']": (said("a"), asked),
        "a call has no id": (said("a"), answered(call(""), stop="toolUse"), gave("", "x")),
        "two calls have the same id": (said("a"), answered(call("c"), call("c"), stop="toolUse"), gave("c", "x"), gave("c", "x")),
        "0: a blank text": (said(" ", "a"),),
        "1: nothing to read": (said("a"), answered(thought("b"))),
        "1: an answer that was aborted": (said("a"), answered("b", stop="aborted"), said("c")),
        "1: arguments that are no JSON object": (said("a"), answered(call("c", path="\ud83d"), stop="toolUse"), gave("c", "x")),
    }
    assert {problem: problem in violations(messages) for problem, messages in refused.items()} == dict.fromkeys(refused, True)
    assert violations((told("x"), said("a"), asked, gave("c1", ""), gave("c2", "x"), said("b"))) == []


def test_an_input_is_never_lost_on_its_way():
    history = [said("one"), answered("x", stop="aborted"), told("y"), said("two"), gave("z", "z"), said("three")]
    told_to_the_model = [part for message in derived(*history) if isinstance(message, UserMessage) for part in message.content]
    assert told_to_the_model == [*said("one", "two", "three").content]
