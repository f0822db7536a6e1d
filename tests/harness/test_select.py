"""What a compaction summarizes, what it keeps, and the text it is made of; how large a context is (harness/compaction/select.py, estimate.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pi_durable_tui.harness.compaction.estimate import IMAGE_TOKENS, context_tokens, fitted, message_tokens, pressure
from pi_durable_tui.harness.compaction.select import Cut, files_touched, frees_enough, kept_tokens, middle_out, select_cut, shortened_results, transcript
from pi_durable_tui.harness.settings import Compaction
from pi_durable_tui.records.entry import ASSISTANT, COMPACTION, SYSTEM, TOOL_RESULT, USER, Edit, Entry
from pi_durable_tui.records.messages import (
    AssistantMessage,
    Image,
    Message,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)

LIMITS = Compaction(reserve_tokens=1_000, keep_tokens=2_000, background_tokens=500)


def entry(entry_id: int, kind: str, message: Message | None, **more: object) -> Entry:
    return Entry(id=entry_id, conversation_id=1, kind=kind, at_ms=0, message=message, **more)  # type: ignore[arg-type]


def user(entry_id: int, text: str, **more: object) -> Entry:
    return entry(entry_id, USER, UserMessage(content=(Text(text=text),)), **more)


def answer(entry_id: int, text: str = "", *calls: ToolCall, usage: Usage | None = None) -> Entry:
    return entry(entry_id, ASSISTANT, AssistantMessage(content=(Text(text=text), *calls), model="m", stop_reason="stop", usage=usage))


def result(entry_id: int, text: str, call_id: str = "c") -> Entry:
    return entry(entry_id, TOOL_RESULT, ToolResultMessage(tool_call_id=call_id, tool_name="read", content=(Text(text=text),)))


def instructions(entry_id: int) -> Entry:
    return entry(entry_id, SYSTEM, SystemMessage(content=(Text(text="be brief"),)))


def summary(entry_id: int, text: str, head: int, **more: object) -> Entry:
    return entry(entry_id, COMPACTION, UserMessage(content=(Text(text=text),)), head=head, **more)


def call(path: object = "a.py") -> ToolCall:
    return ToolCall(id="c", name="read", arguments={"path": path})  # type: ignore[dict-item]


def ids(cut: Cut | None) -> tuple[list[int], list[int]] | None:
    return None if cut is None else ([each.id for each in cut.summarized], [each.id for each in cut.kept])


TURN = "x" * 400  # a hundred tokens

# --------------------------------------------------------------------------------------------------------------------- the cut


@pytest.mark.rule("CO-1", "CO-3")
@pytest.mark.parametrize(
    ("entries", "keep_tokens", "cut"),
    [
        ([], 100, None),
        ([user(1, TURN)], 1, None),
        ([user(1, TURN), answer(2, TURN)], 1_000, ([1], [2])),
        ([user(1, TURN), answer(2, TURN), user(3, TURN), answer(4, TURN)], 250, ([1, 2], [3, 4])),
        ([user(1, TURN), answer(2, TURN), user(3, TURN), answer(4, TURN)], 1, ([1, 2, 3], [4])),
        # never between a call and its result, however large that is
        ([user(1, TURN), answer(2, "", call()), result(3, TURN * 9), answer(4, TURN)], 150, ([1, 2, 3], [4])),
        ([user(1, TURN), answer(2, TURN), answer(3, "", call()), result(4, TURN * 9)], 1, ([1, 2], [3, 4])),
        ([user(1, ""), answer(2, "", call()), result(3, TURN)], 1, ([1], [2, 3])),
        # instructions are not summarized; with nothing else in front there is nothing to do
        ([instructions(1), user(2, TURN), answer(3, TURN), user(4, TURN)], 150, ([2, 3], [4])),
        ([instructions(1), user(2, TURN)], 1, None),
        # an older summary is summarized with what followed it, and is no reason of its own
        ([summary(9, TURN, 2), user(2, TURN), answer(3, TURN), user(10, TURN)], 150, ([9, 2, 3], [10])),
        ([summary(9, TURN, 2), user(2, TURN)], 1, None),
    ],
)
def test_the_cut_stands_before_an_input_or_an_answer_and_leaves_one(entries: Sequence[Entry], keep_tokens: int, cut: tuple[list[int], list[int]] | None):
    assert ids(select_cut(entries, keep_tokens=keep_tokens)) == cut


@pytest.mark.rule("CO-3", "CASE-F1")
def test_an_input_that_came_while_calls_ran_stays_behind_their_results():
    """As when an extension says something in the middle of a round."""
    asked = answer(2, "", call("a.py"), ToolCall(id="d", name="read", arguments={}))
    running = [user(1, TURN), asked, result(3, TURN), user(4, TURN)]
    assert ids(select_cut(running, keep_tokens=1)) == ([1], [2, 3, 4]), "the second result is still to come"
    ended = [*running, result(5, TURN, "d"), user(6, TURN)]
    assert ids(select_cut(ended, keep_tokens=150)) == ([1, 2, 3, 4, 5], [6])
    assert ids(select_cut([*ended[:-1], answer(6, TURN)], keep_tokens=350)) == ([1, 2, 3, 4, 5], [6])
    lost = [user(1, TURN), asked, user(4, TURN), answer(5, TURN), user(6, TURN)]
    assert ids(select_cut(lost, keep_tokens=150)) == ([1, 2, 4, 5], [6]), "what never had a result holds nothing up"


@pytest.mark.rule("CO-1", "CX-1")
@pytest.mark.parametrize("stop", ["aborted", "error", "deferred"])
def test_a_cut_off_answer_is_no_place_to_cut_and_fills_no_context(stop: Any):
    """What is asked before it still wants its answer."""
    counted = Usage(input_tokens=900, output_tokens=100)
    cut_off = [entry(4, ASSISTANT, AssistantMessage(content=(Text(text=TURN * 5),), model="m", stop_reason=stop, usage=usage)) for usage in (None, counted)]
    for each in cut_off:
        assert ids(select_cut([user(1, TURN), answer(2, TURN), user(3, TURN), each], keep_tokens=1)) == ([1, 2], [3, 4])
    assert [context_tokens([user(1, TURN), each, user(5, TURN)]) for each in cut_off] == [200, 1_000]


@pytest.mark.rule("CO-2", "CASE-F2")
def test_where_the_provider_counts_more_than_the_estimate_less_is_kept():
    """As for Chinese, of which a token is about a letter: what was kept of it did not fit into the window, and who asked for a summary got none."""
    counted = Usage(input_tokens=1_600, output_tokens=0)
    turns = [user(1, TURN), answer(2, TURN), user(3, TURN), answer(4, TURN, usage=counted)]
    assert kept_tokens(turns, 100_000, LIMITS, "threshold") == 500  # 2,000 as the provider counts
    assert kept_tokens(turns, 100_000, LIMITS, "manual") == 100
    assert ids(select_cut(turns, keep_tokens=kept_tokens(turns, 100_000, LIMITS, "manual"))) == ([1, 2, 3], [4])
    fewer = [user(1, TURN), answer(2, TURN, usage=Usage(input_tokens=100, output_tokens=0))]
    assert kept_tokens(fewer, 100_000, LIMITS, "threshold") == 2_000
    assert kept_tokens([], 100_000, LIMITS, "manual") == 0


@pytest.mark.rule("CO-2")
def test_a_summary_beside_the_run_is_made_once_it_frees_half_of_what_is_left_for_making_it():
    limits = Compaction(reserve_tokens=0, keep_tokens=100, background_tokens=600)
    turns = [user(number, TURN) for number in range(1, 6)]
    assert [frees_enough(turns[:count], 100_000, limits) for count in range(6)] == [False, False, False, False, True, True]
    denser = [*turns[:2], answer(3, TURN, usage=Usage(input_tokens=500, output_tokens=100))]
    assert frees_enough(denser, 100_000, limits), "as the provider counts, each of them is two hundred"
    older = [summary(9, TURN * 9, 1), *turns[:3]]
    assert not frees_enough(older, 100_000, limits), "the older summary is no gain"
    assert frees_enough(turns[:4], 400, limits), "in a small window a quarter of it is left for making one"


@pytest.mark.rule("CO-1")
def test_what_was_left_out_by_an_edit_is_not_summarized():
    entries = [user(1, TURN), answer(2, TURN), user(3, TURN, edits=(Edit(entry_id=2, action="omit"),)), answer(4, TURN)]
    assert ids(select_cut(entries, keep_tokens=150)) == ([1, 3], [4])


@pytest.mark.rule("CO-2")
def test_whoever_asks_for_a_summary_keeps_a_quarter_at_most():
    entries = [user(1, "x" * 8_000)]
    assert kept_tokens(entries, 100_000, LIMITS, "threshold") == 2_000
    assert kept_tokens(entries, 100_000, LIMITS, "manual") == 500
    assert kept_tokens(entries, 4_000, LIMITS, "overflow") == 1_000


# ------------------------------------------------------------------------------------------------------------------- the texts


def test_a_text_that_is_too_long_keeps_its_head_and_its_tail_and_is_never_made_longer():
    assert middle_out("abcdefgh", 8) == middle_out("abcdefgh", 5) == "abcdefgh"
    assert middle_out("ab" + "." * 40 + "yz", 5) == "ab\n[40 characters left out]\nyz"


@pytest.mark.rule("CO-3")
def test_only_results_that_would_fill_half_of_what_is_kept_are_shortened():
    kept = [user(1, TURN * 9), result(2, "short"), result(3, "y" * 450)]
    (edit,) = shortened_results(kept, keep_tokens=200)
    half = "y" * 200
    text = f"{half}\n[50 characters left out]\n{half}"
    assert edit == Edit(entry_id=3, action="replace", message=ToolResultMessage(tool_call_id="c", tool_name="read", content=(Text(text=text),), is_error=False))


@pytest.mark.rule("CO-3")
def test_a_short_result_stays_whole_in_the_smallest_context_and_none_becomes_longer_by_a_cut():
    assert shortened_results([result(1, "y" * 400)], keep_tokens=1) == ()
    assert shortened_results([result(1, "y" * 420)], keep_tokens=1) == ()
    assert len(shortened_results([result(1, "y" * 450)], keep_tokens=1)) == 1


def test_a_conversation_is_told_without_instructions_notes_thoughts_and_pictures():
    picture = entry(2, USER, UserMessage(content=(Text(text="look "), Image(mime_type="image/png", data="AAAA"))))
    thought = AssistantMessage(content=(Thinking(text="hm"), Text(text="I read"), call()), model="m", stop_reason="toolUse")
    told = transcript(
        [summary(9, "so far", 1), instructions(1), picture, entry(3, ASSISTANT, thought), result(4, "text"), entry(5, "pidurable.command", None)],
        limit_chars=10_000,
    )
    assert told == 'Summary so far: so far\n\nUser: look [image]\n\nAgent: I read [calls read {"path":"a.py"}]\n\nResult of read: text'


def test_long_results_are_cut_before_the_whole_is():
    told = transcript([user(1, "what is in it?"), result(2, "z" * 5_000)], limit_chars=3_200)
    assert told == f"User: what is in it?\n\nResult of read: {'z' * 200}\n[4600 characters left out]\n{'z' * 200}"
    assert len(transcript([user(number, TURN) for number in range(1, 20)], limit_chars=1_000)) < 1_100


def test_the_files_of_a_conversation_are_those_of_its_calls_and_of_older_summaries():
    older = summary(9, "so far", 1, data={"files": ["b.py", "a.py"]})
    entries = [older, answer(2, "", call("c.py"), call("b.py"), call(5)), result(3, ""), user(4, "", data={"files": ["not.py"]}), summary(10, "", 2, data={})]
    assert files_touched(entries) == ("b.py", "a.py", "c.py")


# -------------------------------------------------------------------------------------------------------------------- the size


def test_a_message_is_estimated_by_its_letters_and_pictures():
    content = (Text(text="1234"), Thinking(text="12"), ToolCall(id="c", name="ab", arguments={"a": 1}))
    assert message_tokens(AssistantMessage(content=content, model="m", stop_reason="stop")) == 4  # 15 letters, rounded up
    assert message_tokens(UserMessage(content=(Image(mime_type="image/png", data="AAAA"),))) == IMAGE_TOKENS
    assert message_tokens(UserMessage(content=())) == 0


@pytest.mark.rule("CO-2")
def test_the_newest_count_of_a_provider_is_taken_and_what_followed_it_estimated():
    counted = Usage(input_tokens=900, output_tokens=100)
    assert context_tokens([user(1, TURN), answer(2, TURN, usage=counted), user(3, TURN)]) == 1_100
    assert context_tokens([user(1, TURN), answer(2, TURN, usage=Usage()), user(3, TURN)]) == 300
    assert context_tokens([]) == 0
    # what an answer counted before a summary was made says nothing any more
    assert context_tokens([summary(9, TURN, 2), answer(2, TURN, usage=counted), user(10, TURN)]) == 300
    assert context_tokens([summary(9, TURN, 2), answer(10, TURN, usage=counted), user(11, TURN)]) == 1_100
    assert context_tokens([user(1, TURN), answer(2, TURN, usage=counted), entry(3, "pidurable.command", None)]) == 1_000


@pytest.mark.rule("CO-2")
def test_in_a_small_window_no_amount_takes_more_than_a_quarter():
    assert fitted(LIMITS, 4_000) == Compaction(reserve_tokens=1_000, keep_tokens=1_000, background_tokens=500)
    assert fitted(LIMITS, 100_000) == LIMITS


@pytest.mark.rule("CO-2")
@pytest.mark.parametrize(
    ("tokens", "window_tokens", "enabled", "expected"),
    [
        (8_500, 10_000, True, "none"),
        (8_501, 10_000, True, "background"),
        (9_000, 10_000, True, "background"),
        (9_001, 10_000, True, "blocking"),
        (9_001, None, True, "none"),
        (99_999, 10_000, False, "none"),
    ],
)
def test_a_context_is_compacted_beside_the_run_before_it_must_be(tokens: int, window_tokens: int | None, enabled: bool, expected: str):
    settings = Compaction(enabled=enabled, reserve_tokens=1_000, keep_tokens=2_000, background_tokens=500)
    assert pressure(tokens, window_tokens, settings) == expected
