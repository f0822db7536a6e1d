"""What the scheduler is told to do, for every state of every task (harness/tasks/rules.py)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.harness.tasks.ownership import live_children
from pi_durable_tui.harness.tasks.rules import Action, Plan, World, blocked, next_action, plan, reason
from pi_durable_tui.records.task import Completed, Completing, Outcome, Pending, Task, Terminal, Waiting, moved
from tests.support.harness_builders import DONE, HERE, NOT_COMPLETED, OUTCOMES, START_MS, sleeping, task, waiting


def world(
    *tasks: Task,
    outcomes: Mapping[int, Outcome] | None = None,
    owners: Mapping[int, int] | None = None,
    invoked: Collection[int] = (),
    fits: bool = True,
    now_ms: int = START_MS,
    restart_limit: float = 5,
    ahead_ms: Mapping[int, int] | None = None,
) -> World:
    return World(
        tasks={each.id: each for each in tasks},
        outcomes=outcomes or {},
        conversation_owners=owners or {},
        invoked=invoked,
        fits=lambda _task: fits,
        now_ms=now_ms,
        restart_limit=restart_limit,
        ahead_ms=ahead_ms or {},
    )


def action_for(subject: Task, *others: Task, below: tuple[int, ...] = (), **circumstances: Any) -> str | None:
    return next_action(subject, world(subject, *others, **circumstances), below=below)


# -------------------------------------------------------------------------------------------------------------- one action


@pytest.mark.rule("TK-7")
@pytest.mark.parametrize(("invoked", "expected"), [((), "start"), ((1,), None), ((2,), "start")])
def test_a_pending_task_is_started_unless_a_handler_works_on_it_already(invoked, expected):
    assert action_for(task(1), invoked=invoked) == expected


@pytest.mark.rule("TK-8")
@pytest.mark.parametrize("restarts", [None, 5])
def test_a_task_without_a_fitting_definition_stays_as_it_is(restarts):
    assert action_for(task(1, restarts=restarts), fits=False) is None


@pytest.mark.rule("TK-8")
def test_a_task_is_blocked_when_only_its_definition_is_missing():
    ready = (task(1), task(2, abort_at_ms=START_MS), task(3, "running"), task(4, sleeping(START_MS)), task(5, "completing"))
    assert blocked(world(*ready, fits=False)) == {1}
    assert blocked(world(*ready, fits=True)) == frozenset()


@pytest.mark.rule("TK-12", "FA-20", "FA-26")
@pytest.mark.parametrize(
    ("restarts", "limit", "expected"),
    [
        (None, 1, "start"),
        (None, 5, "start"),
        (4, 5, "start"),
        (5, 5, "exhaust"),
        (6, 5, "exhaust"),
        (1, 1, "exhaust"),
        (1, 2, "start"),
        (1_000_000, math.inf, "start"),
        (None, 0, "start"),
        (0, 0, "start"),
        (1, 0, "exhaust"),
    ],
)
def test_a_task_that_was_cut_off_as_often_as_the_limit_says_is_not_started_again(restarts, limit, expected):
    assert action_for(task(1, restarts=restarts), restart_limit=limit) == expected


@pytest.mark.parametrize("invoked", [(), (1,)])
@pytest.mark.parametrize("state", ["running", "terminal"])
def test_nothing_is_to_do_about_a_task_that_runs_or_has_ended(state, invoked):
    assert action_for(task(1, state), invoked=invoked) is None


@pytest.mark.rule("TK-5", "FA-2")
@pytest.mark.parametrize(("until", "expected"), [(START_MS - 1, "resume"), (START_MS, "resume"), (START_MS + 1, None), (None, None)])
def test_a_sleeping_task_resumes_at_its_time_and_a_question_does_not(until, expected):
    assert action_for(task(1, sleeping(until))) == expected


@pytest.mark.rule("TK-6")
def test_a_waiting_task_resumes_when_everything_it_waits_for_has_ended():
    assert action_for(task(1, waiting(2, 3)), task(2), task(3)) is None
    assert action_for(task(1, waiting(2, 3)), task(3), outcomes={2: DONE}) is None
    assert action_for(task(1, waiting(2, 3)), outcomes={2: DONE, 3: OUTCOMES["failed"]}) == "resume"
    assert action_for(task(1, waiting())) == "resume"


@pytest.mark.rule("TK-6", "FB-26")
@pytest.mark.parametrize("outcome", NOT_COMPLETED)
def test_failing_fast_aborts_the_others_after_the_first_outcome_that_is_not_completed(outcome):
    ended = {2: OUTCOMES[outcome]}
    failing_fast = task(1, waiting(2, 3, policy="failFast"))
    assert action_for(failing_fast, task(3), outcomes=ended) == "abort_others"
    assert action_for(failing_fast, task(3, abort_at_ms=START_MS), outcomes=ended) is None
    assert action_for(failing_fast, outcomes={**ended, 3: OUTCOMES["aborted"]}) == "resume"
    assert action_for(failing_fast, task(3), outcomes={2: DONE}) is None
    assert action_for(task(1, waiting(2, 3)), task(3), outcomes=ended) is None


@pytest.mark.rule("TK-15")
@pytest.mark.parametrize("state", ["pending", "running", "waiting", "sleeping"])
def test_a_marked_task_is_cancelled_first_then_waits_for_the_work_below_and_then_is_closed(state):
    marked = task(1, state, abort_at_ms=START_MS)
    assert action_for(marked, task(2), invoked=(1,), below=(2,)) == "cancel"
    assert action_for(marked, invoked=(1,)) == "cancel"
    assert action_for(marked, task(2), below=(2,)) is None
    assert action_for(marked) == "close_aborted"


@pytest.mark.rule("TK-15", "TK-16")
def test_a_marked_task_does_not_wait_for_background_work_below():
    marked, beside = task(1, abort_at_ms=START_MS), task(2, background=True)
    assert action_for(marked, beside, below=(2,)) == "close_aborted"
    assert action_for(marked, beside, task(3), below=(2, 3)) is None


@pytest.mark.rule("TK-14", "TK-15", "TK-16")
@pytest.mark.parametrize(("background", "middle", "expected"), [(True, "completing", "close_aborted"), (False, "completing", None), (True, "waiting", None)])
def test_a_marked_task_does_not_wait_for_background_work_that_keeps_a_completing_child(background, middle, expected):
    marked, child, lowest = task(1, "waiting", abort_at_ms=START_MS), task(2, middle, owner=1), task(3, "running", owner=2, background=background)
    assert action_for(marked, child, lowest, below=(2,)) == expected
    assert action_for(marked, child, below=(2,)) is None  # it settles first


@pytest.mark.rule("TK-8", "TK-15")
def test_a_marked_task_without_a_definition_is_closed_all_the_same():
    assert action_for(task(1, abort_at_ms=START_MS, restarts=9), fits=False) == "close_aborted"


@pytest.mark.rule("TK-14")
@pytest.mark.parametrize("abort_at_ms", [None, START_MS])
def test_a_completing_task_settles_once_nothing_lives_below_and_its_handler_is_gone(abort_at_ms):
    completing = task(1, "completing", abort_at_ms=abort_at_ms)
    assert action_for(completing, task(2), below=(2,)) is None
    assert action_for(completing, task(2, background=True), below=(2,)) is None
    assert action_for(completing, invoked=(1,)) is None
    assert action_for(completing) == "settle"


# -------------------------------------------------------------------------------------------------------------------- plan


def test_the_plan_names_each_task_at_most_once_in_order_of_ids_and_the_next_time_to_look():
    planned = plan(
        world(
            task(4),
            task(3, sleeping(START_MS + 70)),
            task(2, sleeping(START_MS)),
            task(1, waiting(2, 3)),
            task(5, sleeping(START_MS + 30)),
            task(6, sleeping(None)),
            task(7, "running"),
        )
    )
    assert planned == Plan((Action("resume", 2), Action("start", 4)), START_MS + 30)


def test_the_plan_of_nothing_is_nothing():
    assert plan(world()) == Plan((), None)


def test_a_sleep_that_is_over_is_no_time_to_look_again():
    assert plan(world(task(1, sleeping(START_MS)))) == Plan((Action("resume", 1),), None)


@pytest.mark.rule("PR-18", "TK-5")
def test_a_sleep_whose_own_time_is_ahead_of_the_clock_is_over_so_much_earlier():
    asleep = (task(1, sleeping(START_MS + 70)), task(2, sleeping(START_MS + 50)), task(3, sleeping(None)))
    assert plan(world(*asleep, ahead_ms={1: 70, 3: 70})) == Plan((Action("resume", 1),), START_MS + 50)
    assert plan(world(*asleep, ahead_ms={1: 69, 2: 10})) == Plan((), START_MS + 1)


@pytest.mark.rule("TK-14")
def test_work_below_is_found_through_the_owner_and_through_an_owned_conversation():
    outer = task(1, "completing")
    assert plan(world(outer, task(2, "running", owner=1))).actions == ()
    assert plan(world(outer, task(2, "running", conversation_id=7), owners={7: 1})).actions == ()
    assert plan(world(outer, task(2, "running", conversation_id=7), owners={7: 3})).actions == (Action("settle", 1),)


# ------------------------------------------------------------------------------------------- the plan leads to an end


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Tasks 1 … n: each owned by an older one or by nobody, waiting for younger ones only, in any state a crash may leave."""
    count = draw(st.integers(1, 7))
    ids = range(1, count + 1)
    outcomes = {ended: draw(st.sampled_from(sorted(OUTCOMES))) for ended in (101, 102)}
    tasks: list[Task] = []
    for task_id in ids:
        younger = [*range(task_id + 1, count + 1), 101, 102]
        state = draw(
            st.one_of(
                st.just(Pending(checkpoint=HERE)),
                st.builds(waiting, st.sampled_from(younger), st.sampled_from(younger), policy=st.sampled_from(["allSettled", "failFast"])),
                st.builds(sleeping, st.integers(START_MS - 50, START_MS + 50)),
                st.just(Completing(outcome=DONE)),
            )
        )
        owner = draw(st.none() | st.integers(1, task_id - 1)) if task_id > 1 else None
        marked = draw(st.sampled_from([None, None, START_MS]))
        tasks.append(task(task_id, state, owner=owner, abort_at_ms=marked, restarts=draw(st.sampled_from([None, 4, 5]))))
    return world(*draw(st.permutations(tasks)), outcomes={ended: OUTCOMES[name] for ended, name in outcomes.items()})


def carried_out(at: World, action: Action) -> World:
    """What the world is after an action whose handlers all complete at once."""
    subject = at.tasks[action.task_id]
    changed: list[Task] = []
    match action.kind:
        case "start" | "exhaust":
            has_below = subject.id in live_children(at.tasks.values(), at.conversation_owners)
            changed.append(msgspec.structs.replace(subject, state=Completing(outcome=DONE) if has_below else Terminal(outcome=DONE)))
        case "resume":
            changed.append(moved(subject, Pending(checkpoint=HERE), at_ms=at.now_ms))
        case "abort_others":
            assert isinstance(subject.state, Waiting)
            changed += [msgspec.structs.replace(at.tasks[other], abort_at_ms=at.now_ms) for other in subject.state.on if other in at.tasks]
        case "settle" | "close_aborted":
            outcome = subject.outcome or OUTCOMES["aborted"]
            changed.append(moved(subject, Terminal(outcome=outcome), at_ms=at.now_ms))
        case "cancel":
            raise AssertionError("nothing is invoked here")
    live = {**at.tasks, **{each.id: each for each in changed if each.is_live}}
    ended = {each.id: each.outcome for each in changed if each.outcome is not None and not each.is_live}
    tasks = {task_id: each for task_id, each in live.items() if task_id not in ended}
    return World(
        tasks=tasks,
        outcomes={**at.outcomes, **ended},
        conversation_owners=at.conversation_owners,
        invoked=(),
        fits=at.fits,
        now_ms=at.now_ms,
        restart_limit=at.restart_limit,
    )


def at_time(at: World, now_ms: int) -> World:
    return world(*at.tasks.values(), outcomes=at.outcomes, now_ms=now_ms)


@pytest.mark.rule("TK-5", "TK-6", "TK-14", "TK-15")
@given(worlds())
def test_whatever_a_crash_left_carrying_out_the_plan_ends_every_task_and_owners_last(start: World):
    at = start
    ended: list[int] = []
    for _ in range(100):
        if not at.tasks:
            break
        planned = plan(at)
        if planned.actions:
            below = live_children(at.tasks.values(), at.conversation_owners)
            after = carried_out(at, planned.actions[0])
            gone = [task_id for task_id in at.tasks if task_id not in after.tasks]
            assert [task_id for task_id in gone if task_id in below] == []
            ended += gone
            at = after
        else:
            assert planned.wake_at_ms is not None, f"nothing to do and nothing to wait for: {at.tasks}"
            at = at_time(at, planned.wake_at_ms)
    assert sorted(ended) == sorted(start.tasks)


@given(worlds())
def test_the_plan_depends_on_the_records_alone(start: World):
    backwards = world(*reversed(start.tasks.values()), outcomes=start.outcomes)
    assert plan(backwards) == plan(start)


# ------------------------------------------------------------------------------------------------------------------ reason


@pytest.mark.rule("OB-5")
@pytest.mark.parametrize(
    ("subject", "circumstances", "expected"),
    [
        (task(1, abort_at_ms=START_MS), {}, "being aborted"),
        (task(1), {}, "ready"),
        (task(1), {"invoked": (1,)}, "running"),
        (task(1, "running"), {"invoked": (1,)}, "running"),
        (task(1, version=3), {"fits": False}, "blocked: no definition of test.work for version 3 is installed"),
        (task(1, waiting(9)), {}, "ready"),
        (task(1, sleeping(None)), {}, "asks a person"),
        (task(1, sleeping(START_MS)), {}, f"sleeping until {START_MS}"),
        (task(1, "completing"), {}, "finished, waiting for work below"),
        (task(1, "terminal"), {}, "ended"),
    ],
)
def test_a_reason_says_why_a_task_is_where_it_is(subject, circumstances, expected):
    assert reason(subject, world(subject, **circumstances)) == expected


def test_a_waiting_task_names_what_it_still_waits_for():
    subject = task(1, waiting(2, 3, 4))
    assert reason(subject, world(subject, task(2), task(4), outcomes={3: Completed()})) == "waiting for 2, 4"
