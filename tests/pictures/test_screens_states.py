"""Pictures of the first start, of a wait before the next attempt, and of going back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace as with_changes

from pi_durable_tui.cli.providers import no_model
from pi_durable_tui.harness.live import Agent, Generation, RetryWait, Run
from pi_durable_tui.records.messages import Problem
from pi_durable_tui.tui.rows import Notice
from tests.pictures.test_screens import FIGURES, Looks, looks  # noqa: F401 - a fixture
from tests.support.tui_rig import running
from tests.support.tui_story import STORY
from tests.support.tui_views import START_MS, user, view, with_live


@pytest.mark.rule("CL-5", "CASE-H2")
async def test_first_run(looks: Looks) -> None:  # noqa: F811
    problem = no_model(settings_file="~/.config/pidurable/settings.json")
    told = (Notice(tone="warn", text=f"{problem.message}\n{problem.hint}"),)
    async with running(replace(view(), agent=Agent(model=None, cwd="/")), notices=told) as rig:
        assert "  Without a key: pidurable demo" in rig.screen_lines()
        assert "no model · approve ask · ● stored" in rig.text()
        looks(rig, "without a key")


@pytest.mark.rule("GE-6", "TU-11")
async def test_retry(looks: Looks) -> None:  # noqa: F811
    asked = view(*STORY, user(30, "Now the tax"), **FIGURES)
    wait = RetryWait(attempt=2, until_ms=START_MS + 16_000, problem=Problem(reason="overloaded", message="The provider is overloaded"))
    generation = Generation(task_id=900, attempt=3, started_at_ms=START_MS, retry=wait)
    waiting = with_live(asked, run=Run(task_id=900, started_at_ms=START_MS), generation=generation)
    async with running(replace(asked, live=waiting)) as rig:
        assert "↻ Attempt 2 failed: The provider is overloaded. Next one in 12 s" in rig.screen_lines()
        assert "Waiting to try again · 4s   Esc stops" in rig.text()
        looks(rig, "the next attempt counts down")


@dataclass
class Kept:
    """Files of which a test says how they would go back."""

    steps: tuple[Any, ...]

    async def plan_back(self, _conversation_id: int, _entry_id: int) -> Any:
        return SimpleNamespace(steps=self.steps, impossible=(), is_whole=True)


@pytest.mark.rule("TU-18")
async def test_rewind(looks: Looks) -> None:  # noqa: F811
    steps = (
        SimpleNamespace(path="/shop/shop/cart.py", diff=SimpleNamespace(added=1, removed=2)),
        SimpleNamespace(path="/shop/notes.txt", diff=SimpleNamespace(added=0, removed=1)),
    )
    shown = view(*STORY, **FIGURES)
    async with running(replace(shown, agent=with_changes(shown.agent, cwd="/shop"))) as rig:
        rig.conversation.older = STORY
        object.__setattr__(rig.opened, "files", Kept(steps))
        await rig.type("/rewind")
        await rig.press("enter")
        await rig.press("enter")
        assert "› The chat and the files" in rig.text()
        looks(rig, "the chat and the files")
