"""Who lives below whom (harness/tasks/ownership.py)."""

from __future__ import annotations

import pytest

from pi_durable_tui.harness.tasks.ownership import live_children, owner_task, subtree
from tests.support.harness_builders import task

OWNED_CONVERSATIONS = {7: 2}
"""Conversation 7 belongs to task 2: a subagent's."""

FAMILY = {
    each.id: each
    for each in (
        task(1),
        task(2, "waiting", owner=1),
        task(3, "running", conversation_id=7),
        task(4, "sleeping", owner=3, conversation_id=7),
        task(5, owner=1, background=True),
        task(6, owner=5),
        task(8, "completing", owner=2),
        task(9),
    )
}


@pytest.mark.rule("TK-14")
def test_a_task_works_for_its_owner_else_for_the_owner_of_its_conversation_else_for_nobody():
    assert owner_task(task(4, owner=3, conversation_id=7), OWNED_CONVERSATIONS) == 3
    assert owner_task(task(3, conversation_id=7), OWNED_CONVERSATIONS) == 2
    assert owner_task(task(1), OWNED_CONVERSATIONS) is None


@pytest.mark.rule("TK-14")
def test_children_are_listed_by_owner_in_order_of_ids_and_only_while_they_live():
    tasks = [*reversed(FAMILY.values()), task(10, "terminal", owner=1), task(11, "terminal", owner=9)]
    assert live_children(tasks, OWNED_CONVERSATIONS) == {1: (2, 5), 2: (3, 8), 3: (4,), 5: (6,)}


@pytest.mark.rule("TK-15")
def test_a_subtree_goes_through_owned_conversations():
    assert subtree([2], FAMILY, OWNED_CONVERSATIONS, background=False) == (2, 3, 4, 8)
    assert subtree([2], FAMILY, {}, background=False) == (2, 8)


@pytest.mark.rule("TK-16")
def test_background_work_is_left_out_with_all_below_it_unless_it_is_asked_for():
    assert subtree([1], FAMILY, OWNED_CONVERSATIONS, background=False) == (1, 2, 3, 4, 8)
    assert subtree([1], FAMILY, OWNED_CONVERSATIONS, background=True) == (1, 2, 3, 4, 5, 6, 8)


def test_a_background_task_that_is_named_itself_is_in():
    assert subtree([5], FAMILY, OWNED_CONVERSATIONS, background=False) == (5, 6)


def test_roots_that_are_gone_are_left_out_and_shared_ones_are_named_once():
    assert subtree([9, 4, 3, 404], FAMILY, OWNED_CONVERSATIONS, background=False) == (3, 4, 9)
    assert subtree([], FAMILY, OWNED_CONVERSATIONS, background=True) == ()
