from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from pi_durable_tui.errors import InternalError
from pi_durable_tui.records.messages import Problem
from pi_durable_tui.records.task import (
    TRANSITIONS,
    Aborted,
    Checkpoint,
    Completed,
    Completing,
    Failed,
    Faulted,
    Orphaned,
    Pending,
    Running,
    Sleeping,
    Task,
    TaskState,
    Terminal,
    Waiting,
    moved,
    status_of,
)

HERE: Checkpoint = {"phase": "here", "n": 2}
THERE: Checkpoint = {"phase": "there"}
AT_MS = 1_700_000_000_500

STATES: dict[str, TaskState] = {
    "pending": Pending(checkpoint=HERE),
    "running": Running(checkpoint=HERE),
    "waiting": Waiting(checkpoint=HERE, on=(7, 8)),
    "sleeping": Sleeping(checkpoint=HERE, until=AT_MS + 50),
    "completing": Completing(outcome=Completed(value="done")),
    "terminal": Terminal(outcome=Completed(value="done")),
}
"""One state of each status, with the same checkpoint where there is one."""

LEGAL = {
    ("pending", "running"),
    ("pending", "completing"),
    ("pending", "terminal"),
    ("running", "running"),
    ("running", "pending"),
    ("running", "waiting"),
    ("running", "sleeping"),
    ("running", "completing"),
    ("running", "terminal"),
    ("waiting", "pending"),
    ("waiting", "completing"),
    ("waiting", "terminal"),
    ("sleeping", "pending"),
    ("sleeping", "completing"),
    ("sleeping", "terminal"),
    ("completing", "terminal"),
}
"""Written out by hand: what a task may do, against which the table is held."""


def task(state: TaskState, **changes: Any) -> Task:
    fields: dict[str, Any] = {"memos": {"printed-1": True}, "restarts": 3, "abort_at_ms": AT_MS - 10, "started_at_ms": AT_MS - 100, **changes}
    return Task(id=4, kind="test.count", conversation_id=1, input={"to": 5}, state=state, created_at_ms=AT_MS - 200, **fields)


def test_the_table_names_every_status_and_allows_exactly_the_legal_steps() -> None:
    assert set(TRANSITIONS) == set(STATES)
    assert {(before, after) for before, allowed in TRANSITIONS.items() for after in allowed} == LEGAL


@pytest.mark.parametrize(("before", "after"), sorted(set(itertools.product(STATES, STATES)) - LEGAL))
def test_an_illegal_step_raises_and_changes_nothing(before: str, after: str) -> None:
    subject = task(STATES[before])
    kept = msgspec.json.encode(subject)
    with pytest.raises(InternalError) as caught:
        moved(subject, STATES[after], at_ms=AT_MS)
    assert caught.value.message == f"Internal error: task 4 cannot go from {before} to {after}."
    assert msgspec.json.encode(subject) == kept


@pytest.mark.rule("TK-11")
@pytest.mark.parametrize(("before", "after"), sorted(pair for pair in LEGAL if pair[1] not in {"completing", "terminal"}))
def test_a_step_that_keeps_the_checkpoint_keeps_the_restarts(before: str, after: str) -> None:
    assert moved(task(STATES[before]), STATES[after], at_ms=AT_MS) == task(STATES[after])


@pytest.mark.rule("TK-11", "FA-21")
@pytest.mark.parametrize(
    "after", [Running(checkpoint=THERE), Pending(checkpoint=THERE), Waiting(checkpoint=THERE, on=()), Sleeping(checkpoint=THERE, until=None)]
)
def test_a_new_checkpoint_is_progress_and_clears_the_restarts(after: TaskState) -> None:
    assert moved(task(STATES["running"]), after, at_ms=AT_MS) == task(after, restarts=None)


@pytest.mark.rule("TK-11")
def test_a_changed_value_in_the_same_phase_is_progress_too() -> None:
    after = Running(checkpoint={"phase": "here", "n": 3})
    assert moved(task(STATES["running"]), after, at_ms=AT_MS) == task(after, restarts=None)


@pytest.mark.rule("TK-9", "FA-11")
@pytest.mark.parametrize("before", ["pending", "running", "waiting", "sleeping", "completing"])
@pytest.mark.parametrize(
    "outcome",
    [Completed(value=5), Failed(problem=Problem(reason="tool_error")), Aborted(), Orphaned(), Faulted(message="bug", detail={"reason": "restart_limit"})],
)
def test_a_terminal_record_keeps_what_it_was_and_drops_memos_restarts_and_the_abort_mark(before: str, outcome: Any) -> None:
    ended = moved(task(STATES[before]), Terminal(outcome=outcome), at_ms=AT_MS)
    assert ended == task(Terminal(outcome=outcome), memos=None, restarts=None, abort_at_ms=None, ended_at_ms=AT_MS)
    assert (ended.is_live, ended.checkpoint, ended.outcome) == (False, None, outcome)


@pytest.mark.rule("TK-14")
def test_a_completing_task_keeps_its_memos_until_it_has_drained() -> None:
    state = Completing(outcome=Completed(value=5))
    completing = moved(task(STATES["running"]), state, at_ms=AT_MS)
    assert completing == task(state)
    assert (completing.is_live, completing.checkpoint, completing.outcome) == (True, None, Completed(value=5))


def test_the_first_run_stamps_the_start_and_later_ones_keep_it() -> None:
    running = Running(checkpoint=HERE)
    assert moved(task(STATES["pending"], started_at_ms=None), running, at_ms=AT_MS) == task(running, started_at_ms=AT_MS)
    assert moved(task(STATES["pending"]), running, at_ms=AT_MS) == task(running)


@pytest.mark.parametrize("status", STATES)
def test_a_state_knows_its_status_and_a_task_its_checkpoint(status: str) -> None:
    subject = task(STATES[status])
    expected = None if status in {"completing", "terminal"} else HERE
    assert (status_of(STATES[status]), subject.status, subject.checkpoint, subject.is_live) == (status, status, expected, status != "terminal")
    assert (subject.outcome is None) == (expected is not None)
