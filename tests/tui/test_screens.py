"""Pictures: what a person sees in each state worth a name. The states themselves are asserted first; a picture alone says "looks"."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_durable_tui.harness.live import Draft
from pi_durable_tui.records.messages import Problem
from pi_durable_tui.tui.palette import LIGHT
from tests.support.pictures import Picture, why_not_update
from tests.support.tui_rig import Rig, running
from tests.support.tui_story import ASKED, DIFF, FINAL, FIXED, LOOKED, STORY
from tests.support.tui_views import answer, slot, view

Looks = Callable[[Rig, str], None]
FIGURES = {"context_tokens": 18_400, "cost_usd": 0.0412}


@pytest.fixture
def looks(snapshot: SnapshotAssertion, request: pytest.FixtureRequest) -> Looks:
    """Compare the screen with the picture of a moment."""
    refusal = why_not_update(is_ci="CI" in os.environ)
    if request.config.option.update_snapshots and refusal:
        pytest.fail(refusal)
    pictures = snapshot.use_extension(Picture)

    def compare(rig: Rig, moment: str) -> None:
        assert rig.app.export_screenshot(title="pidurable") == pictures(name=moment)

    return compare


async def test_start(looks: Looks) -> None:
    async with running() as rig:
        assert "every step is stored before it is shown" in rig.text()
        looks(rig, "empty chat")


@pytest.mark.rule("TU-2")
async def test_streaming(looks: Looks) -> None:
    async with running(view(ASKED, *LOOKED, *FIXED, streaming=[FINAL[:430]], **FIGURES)) as rig:
        assert "Answering · 4s   Esc stops" in rig.text()
        assert "  • including the rounding ones" in rig.text()
        looks(rig, "answer coming in")


@pytest.mark.rule("TU-5")
async def test_tools(looks: Looks) -> None:
    running_tool = slot(
        99, "bash", "bash pytest -q", output="\n".join(f"tests/test_{name}.py ....." for name in ("cart", "till", "tax", "stock", "mail", "api"))
    )
    async with running(view(ASKED, *LOOKED, *FIXED[:2], tools=[running_tool], **FIGURES), size=(100, 36)) as rig:
        assert "✗ bash  pytest -q tests/test_cart.py  exit 1 · 1.2s" in rig.text()
        assert "✓ edit  shop/cart.py  +2 −1" in rig.text()
        assert "◐ bash  pytest -q  4s" in rig.text()
        looks(rig, "failed, edited, running")


@pytest.mark.rule("TU-19", "SA-3")
async def test_question(looks: Looks) -> None:
    command = slot(
        99, "bash", "bash rm -rf build dist && make -j4 all", status="asking", question=77, arguments={"command": "rm -rf build dist \\\n  && make -j4 all"}
    )
    edit = slot(99, "edit", "edit shop/cart.py", status="asking", question=78, arguments={"path": "shop/cart.py"}, details={"diff": DIFF})
    async with running(view(ASKED, *LOOKED, tools=[command], **FIGURES)) as rig:
        assert "Run this command?" in rig.text()
        looks(rig, "command")
        await rig.show(view(ASKED, *LOOKED, tools=[edit], **FIGURES))
        assert "Make this change?" in rig.text()
        looks(rig, "edit")


@pytest.mark.rule("TU-12")
async def test_queue(looks: Looks) -> None:
    queued = [("steer", "also run the linter"), ("followUp", "then write a changelog entry")]
    async with running(view(ASKED, *LOOKED, streaming=["The discount is applied"], queued=queued, **FIGURES)) as rig:
        await rig.type("and tell me\nwhat the linter says")
        assert "queued, steers     also run the linter" in rig.text()
        looks(rig, "two messages wait")


@pytest.mark.rule("TU-9", "TU-10")
async def test_resumed(looks: Looks) -> None:
    cut = answer(6, FINAL[:120], stop="aborted", problem=Problem(reason="interrupted"))
    draft = Draft(text="when done, also check the rounding", cursor=34)
    seam = "killed 14:02:11; nothing lost; 1 message queued"
    async with running(view(ASKED, *LOOKED, cut, streaming=[], draft=draft, **FIGURES), seam=seam) as rig:
        await rig.show(view(ASKED, *LOOKED, cut, streaming=["The discount was multiplied"], draft=draft, live_task_id=901, **FIGURES))
        assert f"─── {seam} ───" in rig.text()
        assert "! Interrupted here" in rig.text()
        assert "when done, also check the rounding" in rig.text()
        looks(rig, "after kill -9")


@pytest.mark.rule("TU-14")
async def test_narrow(looks: Looks) -> None:
    async with running(view(*STORY, **FIGURES), size=(80, 24)) as rig:
        assert "● stored" in rig.screen_lines()[-1]
        looks(rig, "80x24")


@pytest.mark.rule("TU-14")
async def test_light(looks: Looks) -> None:
    async with running(view(*STORY, **FIGURES), size=(160, 50), palette=LIGHT) as rig:
        assert "✓ edit  shop/cart.py  +2 −1" in rig.text()
        looks(rig, "160x50")


async def test_help(looks: Looks) -> None:
    async with running(view(*STORY, **FIGURES)) as rig:
        await rig.type("/help")
        await rig.press("enter")
        assert "Commands" in rig.text()
        looks(rig, "keys and commands")
