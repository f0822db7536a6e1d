"""What follows an answer, a failure or a cut-off (harness/generation/decide.py)."""

from __future__ import annotations

from typing import Any

import pytest

from pi_durable_tui.harness.generation.checkpoint import Request
from pi_durable_tui.harness.generation.decide import (
    CUT_OFF,
    NOTHING,
    CallTools,
    Compact,
    FinalAnswer,
    GiveUp,
    RoundEnd,
    TryAgain,
    after_answer,
    after_cut_off,
    after_failure,
    after_round,
)
from pi_durable_tui.harness.ports import FailureReason, ModelFailed
from pi_durable_tui.harness.requests.backoff import backoff_ms
from pi_durable_tui.harness.settings import Compaction, Retry, Settings
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.messages import AssistantMessage, Problem
from tests.support.harness_builders import START_MS, answered, call, entry, gave, said, thought, told, transcript

NOBODY: frozenset[str] = frozenset()
RETRY = Retry()
TEXT_CUT = answered("half an", stop="length")
CALL_CUT = answered(call("c1", "write", malformed='{"path":"a'), stop="length")
GAVE_UP = GiveUp(Problem(reason="model_error", message="The answer was cut at the output limit in the middle of a tool call 3 times in a row."))


def following(message: AssistantMessage, *history: Any, sequential: frozenset[str] = NOBODY, settings: Settings | None = None) -> object:
    entries: list[Entry] = transcript(*history)
    return after_answer(message, entries, sequential=sequential, settings=settings or Settings())


def failed(reason: FailureReason = "server", *, retryable: bool = True, retry_after_ms: int | None = None) -> ModelFailed:
    return ModelFailed(reason=reason, message="it broke", retryable=retryable, retry_after_ms=retry_after_ms)


def after(
    failure: ModelFailed,
    *,
    attempt: int = 1,
    retry: Retry | None = None,
    compacted: int = 0,
    may_compact: bool = True,
    jitter: float = 0,
    without_thinking: bool = False,
) -> object:
    settings = Settings(retry=retry or Retry(), compaction=Compaction(enabled=may_compact))
    at = Request(attempt=attempt, model="test/model", cutoff=1, compacted=compacted, without_thinking=without_thinking)
    return after_failure(failure, at, settings=settings, now_ms=START_MS, jitter=jitter)


# ---------------------------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize("message", [answered("hello"), TEXT_CUT, answered(thought("hm"), "hello", stop="toolUse")])
def test_text_without_calls_is_the_final_answer(message):
    assert following(message) == FinalAnswer()


@pytest.mark.rule("CASE-B6")
@pytest.mark.parametrize("message", [answered(), answered(" \n"), answered(thought("only thoughts")), answered("", stop="length")])
def test_an_answer_of_nothing_ends_the_run_and_says_so(message):
    assert following(message) == GiveUp(NOTHING)


CALLS = (call("c1", "read"), call("c2", "bash"), call("c3", "read"))


@pytest.mark.rule("GE-5")
@pytest.mark.parametrize(
    ("execution", "sequential", "at_once"),
    [
        ("parallel", NOBODY, 3),
        ("parallel", frozenset({"edit"}), 3),
        ("parallel", frozenset({"bash"}), 1),
        ("sequential", NOBODY, 1),
    ],
)
def test_calls_run_together_unless_one_of_them_or_the_setting_wants_them_one_by_one(execution, sequential, at_once):
    settings = Settings(tool_execution=execution)
    assert following(answered("ok", *CALLS, stop="toolUse"), sequential=sequential, settings=settings) == CallTools(CALLS, at_once)


@pytest.mark.rule("CASE-B7")
def test_calls_are_carried_out_whatever_the_stop_reason_says():
    assert following(answered(*CALLS, stop="stop")) == CallTools(CALLS, 3)


@pytest.mark.rule("CASE-B1")
@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], CallTools(CALL_CUT.tool_calls, 1)),
        ([CALL_CUT, gave("c1", "cut")], CallTools(CALL_CUT.tool_calls, 1)),
        ([CALL_CUT, gave("c1", "cut"), CALL_CUT, gave("c1", "cut")], GAVE_UP),
        ([CALL_CUT, CALL_CUT, said("steer"), told("new rules")], GAVE_UP),
        ([CALL_CUT, CALL_CUT, CALL_CUT], GAVE_UP),
        ([CALL_CUT, CALL_CUT, answered(call("c"), stop="toolUse"), gave("c", "fine")], CallTools(CALL_CUT.tool_calls, 1)),
        ([CALL_CUT, answered("ok"), CALL_CUT], CallTools(CALL_CUT.tool_calls, 1)),
        ([CALL_CUT, CALL_CUT, TEXT_CUT], CallTools(CALL_CUT.tool_calls, 1)),
        ([CALL_CUT, CALL_CUT, answered(call("c"), stop="error")], CallTools(CALL_CUT.tool_calls, 1)),
    ],
)
def test_the_third_answer_in_a_row_that_is_cut_in_the_middle_of_a_call_ends_the_run(history, expected):
    assert following(CALL_CUT, *history) == expected


@pytest.mark.rule("CASE-B1")
def test_a_whole_answer_is_carried_out_however_many_were_cut_before():
    assert following(answered(call("c"), stop="toolUse"), CALL_CUT, CALL_CUT) == CallTools((call("c"),), 1)


@pytest.mark.rule("CASE-B9")
@pytest.mark.parametrize("retry", [Retry(), Retry(enabled=False), Retry(max_retries=0)])
def test_refused_thoughts_are_left_out_at_once_and_only_once(retry):
    refused = failed("thinking_refused", retryable=False)
    problem = Problem(reason="thinking_refused", message="it broke")
    assert after(refused, retry=retry, jitter=0.9) == TryAgain(START_MS, problem, without_thinking=True)
    assert after(refused, retry=retry, without_thinking=True) == GiveUp(Problem(reason="model_error", message="it broke"))


# ----------------------------------------------------------------------------------------------------------------- rounds


def results(*data: Any) -> list[Entry]:
    return [entry(number, gave(f"c{number}", "ok"), data=each) for number, each in enumerate(data, 1)]


@pytest.mark.rule("TO-6")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([], RoundEnd()),
        ([None, {}, {"terminate": False, "handoff": None}], RoundEnd()),
        ([{"terminate": True}, {}], RoundEnd(is_terminated=True)),
        ([{"terminate": "yes", "handoff": 5}], RoundEnd()),
        ([{"handoff": "a"}, {"handoff": "b"}, {}], RoundEnd(handoff="b")),
        ([{"handoff": "a"}, {"terminate": True}], RoundEnd(is_terminated=True, handoff="a")),
    ],
)
def test_one_result_that_asks_for_it_ends_the_run_and_the_last_handoff_counts(data, expected):
    assert after_round(results(*data)) == expected


# --------------------------------------------------------------------------------------------------------------- failures


@pytest.mark.rule("GE-3", "GE-6")
@pytest.mark.parametrize(("attempt", "wait_ms"), [(1, 2_000), (2, 4_000), (3, 8_000), (5, 32_000), (6, 60_000), (7, 60_000), (10_000, 60_000)])
def test_the_wait_doubles_with_each_attempt_up_to_the_maximum(attempt, wait_ms):
    assert backoff_ms(attempt, RETRY) == wait_ms


@pytest.mark.rule("GE-6", "CASE-B3")
@pytest.mark.parametrize(
    ("attempt", "retry", "expected_ms"),
    [
        (1, RETRY, 2_000),
        (3, RETRY, 8_000),
        (4, RETRY, None),
        (1, Retry(max_retries=0), None),
        (1, Retry(enabled=False), None),
        (2, Retry(base_delay_ms=10, max_delay_ms=15), 15),
    ],
)
def test_a_retryable_failure_is_tried_again_until_the_retries_are_used_up(attempt, retry, expected_ms):
    found = after(failed(), attempt=attempt, retry=retry)
    if expected_ms is None:
        assert found == GiveUp(Problem(reason="model_error", message="it broke"))
    else:
        assert found == TryAgain(START_MS + expected_ms, Problem(reason="server", message="it broke"))


@pytest.mark.rule("GE-6", "CASE-B3", "CASE-B5")
@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("no_model", "no_model"),
        ("auth", "model_error"),
        ("quota", "model_error"),
        ("context_overflow", "model_error"),
        ("invalid_request", "model_error"),
        ("unknown", "model_error"),
    ],
)
def test_any_other_failure_ends_the_run_at_once_with_the_words_of_the_provider(reason, expected):
    found = after(failed(reason, retryable=False, retry_after_ms=5), may_compact=False, jitter=0.5)
    assert found == GiveUp(Problem(reason=expected, message="it broke"))


@pytest.mark.rule("GE-6", "CASE-B5", "CASE-F2")
@pytest.mark.parametrize("retryable", [False, True])
def test_a_context_that_is_too_long_is_compacted_first_and_a_bounded_number_of_times(retryable):
    too_long = failed("context_overflow", retryable=retryable)
    assert [after(too_long, compacted=compacted, attempt=9) for compacted in range(3)] == [
        Compact(),
        Compact(),
        GiveUp(Problem(reason="model_error", message="it broke")),
    ]
    assert after(failed("server", retryable=False)) == GiveUp(Problem(reason="model_error", message="it broke"))


@pytest.mark.rule("GE-6", "CASE-B3")
@pytest.mark.parametrize(("retry_after_ms", "wait_ms"), [(None, 2_000), (0, 2_000), (1_999, 2_000), (30_000, 30_000), (90_000, 90_000)])
def test_a_provider_may_ask_for_a_longer_wait_but_not_for_a_shorter_one(retry_after_ms, wait_ms):
    found = after(failed("rate_limit", retry_after_ms=retry_after_ms))
    assert found == TryAgain(START_MS + wait_ms, Problem(reason="rate_limit", message="it broke"))


@pytest.mark.parametrize(("jitter", "added_ms"), [(0.0, 0), (0.5, 100), (0.999, 199)])
def test_chance_adds_up_to_a_tenth_to_the_wait(jitter, added_ms):
    found = after(failed(), jitter=jitter)
    assert found == TryAgain(START_MS + 2_000 + added_ms, Problem(reason="server", message="it broke"))


@pytest.mark.rule("GE-3", "FA-15", "FA-17")
@pytest.mark.parametrize(
    ("attempt", "retry", "expected"),
    [
        (1, RETRY, TryAgain(START_MS + 2_000, CUT_OFF)),
        (3, RETRY, TryAgain(START_MS + 8_000, CUT_OFF)),
        (4, RETRY, GiveUp(CUT_OFF)),
        (1, Retry(max_retries=0), GiveUp(CUT_OFF)),
        (1, Retry(enabled=False), GiveUp(CUT_OFF)),
    ],
)
def test_a_request_that_a_kill_cut_off_counts_as_a_failed_attempt(attempt, retry, expected):
    assert after_cut_off(attempt=attempt, retry=retry, now_ms=START_MS) == expected
    assert CUT_OFF.reason == "interrupted"
