"""What follows an answer, a failure or a cut-off of a model request (rules GE-3, GE-5, GE-6). PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pi_durable_tui.harness.generation.checkpoint import Request
from pi_durable_tui.harness.ports import ModelFailed
from pi_durable_tui.harness.requests.backoff import backoff_ms
from pi_durable_tui.harness.settings import Retry, Settings
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.messages import AssistantMessage, Problem, ToolCall

LENGTH_LIMIT = 3
"""So many answers in a row that were cut at the output limit in the middle of a call end the run (CASE-B1)."""

COMPACTIONS = 2
"""So many compactions may stand between two requests; after them what is left is too large and a person has to know (CASE-F2)."""

NOTHING = Problem(reason="model_error", message="The model returned nothing.")
CUT_OFF = Problem(reason="interrupted", message="The process ended while the answer was coming in.")


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The run has its answer."""


@dataclass(frozen=True, slots=True)
class CallTools:
    """A tool round follows: `calls` in call order; `at_once` of them run together now, the others one after another."""

    calls: tuple[ToolCall, ...]
    at_once: int


@dataclass(frozen=True, slots=True)
class TryAgain:
    """The attempt failed; the next one starts at `until_ms`. `without_thinking`: it leaves out all thoughts, and asks for none (CASE-B9)."""

    until_ms: int
    problem: Problem
    without_thinking: bool = False


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The run ends without an answer."""

    problem: Problem


@dataclass(frozen=True, slots=True)
class GoOn:
    """An extension has something to say to the final answer: the run goes on with it."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compact:
    """The context was too long for the model: summarize the old part, then try again."""


Next: TypeAlias = FinalAnswer | GoOn | CallTools | TryAgain | GiveUp | Compact


def after_answer(message: AssistantMessage, history: Sequence[Entry], *, sequential: frozenset[str], settings: Settings) -> Next:
    """What follows a complete answer.

    Args:
        history: The entries before it, for counting answers cut at the output limit.
        sequential: Names of the tools that must run alone; one of them makes its round sequential (rule GE-5).
    """
    calls = message.tool_calls
    if not calls:
        return FinalAnswer() if message.text.strip() else GiveUp(NOTHING)
    if message.stop_reason == "length" and _cut_in_a_row(history) + 1 >= LENGTH_LIMIT:
        text = f"The answer was cut at the output limit in the middle of a tool call {LENGTH_LIMIT} times in a row."
        return GiveUp(Problem(reason="model_error", message=text))
    is_sequential = settings.tool_execution == "sequential" or any(call.name in sequential for call in calls)
    return CallTools(calls, 1 if is_sequential else len(calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundEnd:
    """What the results of a tool round ask for (rule TO-6)."""

    is_terminated: bool = False
    handoff: str | None = None


def after_round(results: Sequence[Entry]) -> RoundEnd:
    """What follows a tool round: ending wins over a handoff, and of two handoffs the last one counts."""
    asked = [entry.data for entry in results if entry.data is not None]
    handoffs = [text for data in asked if isinstance(text := data.get("handoff"), str)]
    return RoundEnd(is_terminated=any(data.get("terminate") is True for data in asked), handoff=handoffs[-1] if handoffs else None)


def after_failure(failure: ModelFailed, at: Request, *, settings: Settings, now_ms: int, jitter: float) -> Next:
    """What follows a failed attempt: wait and try again, compact, leave out thoughts once, or give up with the provider's words.

    Args:
        at: The request that failed.
        jitter: In [0, 1): adds up to a tenth to the wait, so that many clients do not come back at once.
    """
    reason = "no_model" if failure.reason == "no_model" else "model_error"
    problem = Problem(reason=failure.reason, message=failure.message)
    retry = settings.retry
    if failure.reason == "context_overflow" and settings.compaction.enabled and at.compacted < COMPACTIONS:
        return Compact()
    if failure.reason == "thinking_refused" and not at.without_thinking:
        return TryAgain(now_ms, problem, without_thinking=True)
    if not failure.retryable or not retry.enabled or at.attempt > retry.max_retries:
        return GiveUp(Problem(reason=reason, message=failure.message))
    wait_ms = max(backoff_ms(at.attempt, retry), failure.retry_after_ms or 0)
    return TryAgain(now_ms + wait_ms + int(wait_ms * jitter / 10), problem)


def after_cut_off(*, attempt: int, retry: Retry, now_ms: int) -> Next:
    """What follows when the process died while a request was in flight: the attempt counts as failed (rule GE-3)."""
    if not retry.enabled or attempt > retry.max_retries:
        return GiveUp(CUT_OFF)
    return TryAgain(now_ms + backoff_ms(attempt, retry), CUT_OFF)


def _cut_in_a_row(history: Sequence[Entry]) -> int:
    count = 0
    for entry in reversed(history):
        if isinstance(entry.message, AssistantMessage):
            if entry.message.stop_reason != "length" or not entry.message.tool_calls:
                break
            count += 1
    return count
