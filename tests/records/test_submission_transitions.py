"""The life of a submission is a table (records/submission.py)."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from pi_durable_tui.errors import InternalError
from pi_durable_tui.records.messages import Problem
from pi_durable_tui.records.submission import TRANSITIONS, Done, Placed, Queued, SubmissionState, Unanswered, moved, status_of
from tests.support.storage_records import submission

STATES: dict[str, SubmissionState] = {
    "queued": Queued(),
    "placed": Placed(entry_id=8),
    "done": Done(entry_id=8, answer_entry_id=9),
    "unanswered": Unanswered(problem=Problem(reason="withdrawn")),
}


def test_the_table_names_every_state():
    assert set(TRANSITIONS) == {status_of(state) for state in STATES.values()} == set(STATES)
    assert len(STATES) == len(get_args(SubmissionState))


@pytest.mark.rule("SU-1", "FB-17")
@pytest.mark.parametrize(("before", "after"), list(itertools.product(STATES, STATES)))
def test_a_submission_moves_as_the_table_says_and_not_otherwise(before: str, after: str):
    one = submission(7, state=STATES[before])
    if after in TRANSITIONS[before]:
        assert moved(one, STATES[after]) == submission(7, state=STATES[after])
    else:
        with pytest.raises(InternalError, match=f"submission 7 cannot go from {before} to {after}"):
            moved(one, STATES[after])
