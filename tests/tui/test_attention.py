"""Who looks elsewhere is called back by the terminal's bell; who looks is not disturbed (TU-20)."""

from __future__ import annotations

from typing import Any

import pytest
from textual.events import AppBlur, AppFocus

from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.tui.following import Sight, Subagent
from pi_durable_tui.tui.watching.attention import LONG_MS, calls_back
from tests.support.tui_house import FakeHouse
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import START_MS, answer, slot, user, view

WORKING = view(user(1, "go"), streaming=[])
ASKING = view(user(1, "go"), tools=[slot(10, "bash", "bash make", status="asking", question=77)])
TWO = view(user(1, "go"), tools=[slot(10, "bash", "bash make", status="asking", question=77), slot(11, "bash", "bash test", status="asking", question=78)])


def ended(after_ms: int) -> ConversationView:
    return view(user(1, "go"), answer(2, "done"), committed_at_ms=START_MS + after_ms)


def of_subagent(shown: ConversationView) -> Sight:
    reader = Subagent(task_id=5, name="reader", conversation_id=9, is_background=False, view=shown)
    return Sight(view=WORKING, subagents=(reader,))


@pytest.mark.rule("TU-20")
@pytest.mark.parametrize(
    ("before", "now", "is_called"),
    [
        (Sight(view=WORKING), Sight(view=ASKING), True),
        (Sight(view=ASKING), Sight(view=ASKING), False),
        (Sight(view=ASKING), Sight(view=TWO), True),
        (Sight(view=TWO), Sight(view=ASKING), False),
        (Sight(view=WORKING), of_subagent(ASKING), True),
        (of_subagent(WORKING), Sight(view=WORKING), False),
        (Sight(view=WORKING), Sight(view=ended(LONG_MS)), True),
        (Sight(view=WORKING), Sight(view=ended(LONG_MS - 1)), False),
        (Sight(view=ended(LONG_MS)), Sight(view=ended(2 * LONG_MS)), False),
        (None, Sight(view=ASKING), False),
        (Sight(view=view(conversation_id=3)), Sight(view=ASKING), False),
    ],
    ids=["question", "same question", "one more", "one less", "of a subagent", "it ended", "long run", "short run", "idle", "opening", "other chat"],
)
def test_a_question_and_the_end_of_a_long_run_call_back(before: Sight | None, now: Sight, is_called: bool) -> None:
    assert calls_back(before, now) == is_called


class Bell:
    """Counts how often the app rings."""

    def __init__(self, rig: Rig) -> None:
        self.count = 0
        rig.app.bell = self.ring

    def ring(self) -> None:
        self.count += 1


@pytest.mark.rule("TU-20")
async def test_the_terminal_rings_only_while_its_window_is_not_looked_at() -> None:
    async with running(WORKING) as rig:
        bell = Bell(rig)
        await rig.show(ASKING)
        assert bell.count == 0, "somebody looks, or the terminal does not tell"
        rig.app.post_message(AppBlur())
        await rig.settle()
        await rig.show(TWO)
        assert bell.count == 1
        rig.app.post_message(AppFocus())
        await rig.settle()
        await rig.show(ended(LONG_MS))
        assert bell.count == 1


@pytest.mark.rule("TU-20", "CL-4")
@pytest.mark.parametrize(("house", "count"), [(FakeHouse(rings=False), 0), (FakeHouse(), 1), (None, 1)])
async def test_the_setting_keeps_the_terminal_quiet(house: Any, count: int) -> None:
    async with running(WORKING, house=house) as rig:
        bell = Bell(rig)
        rig.app.post_message(AppBlur())
        await rig.settle()
        await rig.show(ASKING)
        assert bell.count == count
