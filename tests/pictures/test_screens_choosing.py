"""Pictures of what a person chooses and looks at: settings, the model, differences, the chats of the directory."""

from __future__ import annotations

from pi_durable_tui.tui.palette import LIGHT
from pi_durable_tui.tui.rewinding.difference import DifferenceScreen, FileChange
from tests.pictures.test_screens import FIGURES, Looks, looks  # noqa: F401 - a fixture
from tests.support.tui_house import FakeHouse, FakeModels
from tests.support.tui_rig import running
from tests.support.tui_story import DIFF, STORY
from tests.support.tui_views import view
from tests.tui.test_directory import FREE, HELD, beside
from tests.tui.test_settings import KNOWN, chat


async def test_settings(looks: Looks) -> None:  # noqa: F811
    async with running(view(*STORY, **FIGURES), house=FakeHouse(), size=(80, 24)) as rig:
        await rig.type("/settings")
        await rig.press("enter", "down", "down")
        assert "your file" in rig.text()
        looks(rig, "80x24")


async def test_model(looks: Looks) -> None:  # noqa: F811
    async with running(view(*STORY, **FIGURES), house=FakeHouse(models=FakeModels(KNOWN)), palette=LIGHT) as rig:
        rig.harness.answers["chats"] = (chat(3, "openai/gpt-large"),)
        await rig.press("alt+p", "down")
        assert "272k · $0.25 / $2" in rig.text()
        looks(rig, "light")


async def test_difference(looks: Looks) -> None:  # noqa: F811
    changes = [
        FileChange(name="shop/cart.py", remark="", diff=DIFF, added=2, removed=1),
        FileChange(name="notes.md", remark="new", diff="@@ -0,0 +1,2 @@\n+# Notes\n+The total is a sum.", added=2, removed=0),
    ]
    async with running(view(*STORY, **FIGURES), size=(160, 50)) as rig:
        rig.app.push_screen(DifferenceScreen(rig.app.palette, "2 files changed since your last message", changes, asks=False))
        await rig.settle()
        assert "n next file · p previous" in rig.text()
        looks(rig, "160x50")


async def test_directory(looks: Looks) -> None:  # noqa: F811
    async with running(view(*STORY, **FIGURES)) as rig:
        beside(rig, FREE, HELD)
        await rig.type("/tree")
        await rig.press("enter", "down", "down")
        assert "open elsewhere" in rig.text()
        looks(rig, "three sessions")
