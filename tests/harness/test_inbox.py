"""Which queued submissions are placed when (harness/inbox.py)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.harness.inbox import Taken, take, with_item, without
from pi_durable_tui.harness.live import Inbox, InboxItem
from pi_durable_tui.harness.settings import Settings
from tests.support.harness_builders import START_MS, text_of

MODES = {"f": "followUp", "s": "steer", "w": "write"}
ALL = Settings(steering_mode="all", follow_up_mode="all")


def item(name: str) -> InboxItem:
    """`item("s3")` is submission 3, which steers."""
    mode: Any = MODES[name[0]]
    return InboxItem(submission_id=int(name[1:]), mode=mode, content=text_of(name), at_ms=START_MS)


def inbox(names: str) -> Inbox:
    return Inbox(items=tuple(item(name) for name in names.split()))


def taken(names: str, boundary: Any, settings: Settings | None = None) -> tuple[str, str, str]:
    """Names of writes, inputs and what stays."""
    found = take(inbox(names), boundary, settings or Settings())
    return (_names(found.writes), _names(found.inputs), _names(found.rest.items))


def _names(items: tuple[InboxItem, ...]) -> str:
    return " ".join(f"{each.mode[0]}{each.submission_id}" for each in items)


@pytest.mark.rule("SU-3", "SU-4")
@pytest.mark.parametrize(
    ("queued", "boundary", "writes", "inputs", "rest"),
    [
        # After a tool round: writes, and one steering input.
        ("f1 s2 w3 s4 w5", "turn", "w3 w5", "s2", "f1 s4"),
        ("f1 f2", "turn", "", "", "f1 f2"),
        ("f1 w2", "turn", "w2", "", "f1"),
        # At the end of a run: steering inputs go first, then follow-ups.
        ("f1 s2 s3", "end", "", "s2", "f1 s3"),
        ("f1 f2 w3", "end", "w3", "f1", "f2"),
        ("w1", "end", "w1", "", ""),
        # In an idle conversation the oldest decides.
        ("f1 s2", "start", "", "f1", "s2"),
        ("s1 f2 s3", "start", "", "s1", "f2 s3"),
        ("w1 f2 w3", "start", "w1 w3", "f2", ""),
        ("", "start", "", "", ""),
        ("", "turn", "", "", ""),
        ("", "end", "", "", ""),
    ],
)
def test_writes_come_first_and_then_one_input_as_the_boundary_says(queued, boundary, writes, inputs, rest):
    assert taken(queued, boundary) == (writes, inputs, rest)


@pytest.mark.rule("SU-4")
@pytest.mark.parametrize(
    ("queued", "boundary", "inputs", "rest"),
    [
        ("f1 s2 f3 s4", "turn", "s2 s4", "f1 f3"),
        ("f1 s2 f3 s4", "end", "s2 s4", "f1 f3"),
        ("f1 f3", "end", "f1 f3", ""),
        ("f1 s2 f3 s4", "start", "f1 f3", "s2 s4"),
        ("s1 f2 s3", "start", "s1 s3", "f2"),
    ],
)
def test_with_the_mode_all_every_input_of_one_kind_is_placed_together(queued, boundary, inputs, rest):
    assert taken(queued, boundary, ALL) == ("", inputs, rest)


@pytest.mark.rule("SU-4")
def test_each_mode_has_its_own_setting():
    steering = Settings(steering_mode="all")
    assert taken("s1 s2 f3 f4", "end", steering) == ("", "s1 s2", "f3 f4")
    assert taken("f3 f4", "end", steering) == ("", "f3", "f4")
    following = Settings(follow_up_mode="all")
    assert taken("s1 s2 f3 f4", "end", following) == ("", "s1", "s2 f3 f4")
    assert taken("f3 f4", "end", following) == ("", "f3 f4", "")


@pytest.mark.rule("SU-5")
def test_what_stayed_queued_after_a_failed_run_is_placed_before_anything_newer():
    stayed = inbox("f1 s2")
    assert take(with_item(stayed, item("f9")), "start", Settings()) == Taken(writes=(), inputs=(item("f1"),), rest=inbox("s2 f9"))


@pytest.mark.rule("SU-4")
def test_an_inbox_is_in_order_of_ids_in_whatever_order_items_come():
    for order in itertools.permutations(["f1", "w2", "s3"]):
        box = Inbox()
        for name in order:
            box = with_item(box, item(name))
        assert box == inbox("f1 w2 s3")


@pytest.mark.rule("SU-7")
def test_items_are_taken_out_by_id():
    assert without(inbox("f1 w2 s3"), frozenset({1, 3, 99})) == inbox("w2")


@pytest.mark.rule("SU-6")
@given(st.lists(st.sampled_from("fsw"), max_size=8), st.sampled_from(["start", "turn", "end"]), st.sampled_from([Settings(), ALL]))
def test_nothing_is_lost_and_nothing_is_placed_twice(modes, boundary, settings):
    box = Inbox(items=tuple(item(f"{mode}{number}") for number, mode in enumerate(modes, 1)))
    found = take(box, boundary, settings)
    assert sorted([*found.writes, *found.inputs, *found.rest.items], key=lambda each: each.submission_id) == list(box.items)
    for part in (found.writes, found.inputs, found.rest.items):
        assert list(part) == sorted(part, key=lambda each: each.submission_id)
