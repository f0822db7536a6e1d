"""What opening and closing make of running tasks (harness/tasks/recovery.py)."""

from __future__ import annotations

import msgspec
import pytest

from pi_durable_tui.harness.tasks.recovery import cut_off, handed_back, recovered
from pi_durable_tui.records.task import Pending
from tests.support.harness_builders import HERE, START_MS, STATES, task

FACTS = {"memos": {"printed-1": True}, "started_at_ms": START_MS, "abort_at_ms": START_MS + 5}
NOT_RUNNING = sorted(set(STATES) - {"running"})


@pytest.mark.rule("TK-10", "FA-10")
@pytest.mark.parametrize(("restarts", "expected"), [(None, 1), (1, 2), (4, 5)])
def test_a_task_whose_process_died_is_pending_at_the_same_checkpoint_with_one_restart_more(restarts, expected):
    running = task(1, "running", restarts=restarts, **FACTS)
    assert cut_off(running) == msgspec.structs.replace(running, state=Pending(checkpoint=HERE), restarts=expected)


@pytest.mark.rule("SE-7", "TK-10", "FA-9")
@pytest.mark.parametrize("restarts", [None, 3])
def test_a_task_whose_process_closes_is_pending_at_the_same_checkpoint_and_no_restart_is_counted(restarts):
    running = task(1, "running", restarts=restarts, **FACTS)
    assert handed_back(running) == msgspec.structs.replace(running, state=Pending(checkpoint=HERE))


@pytest.mark.rule("FA-8")
def test_a_kill_and_a_close_differ_in_the_restarts_only():
    running = task(1, "running", **FACTS)
    assert msgspec.structs.replace(cut_off(running), restarts=None) == handed_back(running)


@pytest.mark.rule("TK-10", "FA-12")
@pytest.mark.parametrize("state", NOT_RUNNING)
def test_a_task_that_does_not_run_is_left_as_it_is(state):
    resting = task(1, state, restarts=2)
    assert cut_off(resting) is resting
    assert handed_back(resting) is resting


@pytest.mark.rule("TK-10", "FA-12", "FA-38")
def test_recovery_replaces_running_tasks_only_in_order_of_ids():
    tasks = [task(9, "running"), *(task(number, state) for number, state in enumerate(NOT_RUNNING, 2)), task(1, "running", restarts=1)]
    assert recovered(tasks) == (task(1, "pending", restarts=2), task(9, "pending", restarts=1))


@pytest.mark.rule("SE-7", "TK-10")
def test_after_a_clean_close_there_is_nothing_to_recover():
    assert recovered([handed_back(task(1, "running")), task(2, "waiting")]) == ()


def test_recovering_twice_counts_once():
    once = recovered([task(1, "running")])
    assert recovered(once) == ()
