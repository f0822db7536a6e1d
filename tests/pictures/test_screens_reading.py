"""Pictures of searching, selecting, choosing, calls in doubt, other scripts and no colours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pi_durable_tui.tui.terminal_app import WithoutColor
from tests.pictures.test_screens import FIGURES, Looks, looks  # noqa: F401 - a fixture
from tests.support.tui_rig import running
from tests.support.tui_story import DIFF, STORY
from tests.support.tui_views import answer, result, slot, user, view
from tests.tui.test_composer import equip
from tests.tui.test_doubt import task
from tests.tui.test_reading import command

WIDE = """# 日本語の見出し

Emoji: 👩\u200d💻 ✅ 🇩🇪 ⏺\ufe0f, combining: e\u0301 a\u0308, Hangul: 한국어, Arabic: العربية

| 名前 | 値 |
|------|---:|
| りんご | 12 |
| 🍎 | 7 |

```python
print("こんにちは")  # 日本語
```"""


@pytest.mark.rule("TU-4")
async def test_search(looks: Looks) -> None:  # noqa: F811
    async with running(view(*STORY, **FIGURES), size=(100, 44)) as rig:
        await rig.press("ctrl+f", *"cart")
        assert "in what is loaded" in rig.text()
        looks(rig, "a word highlighted")


@pytest.mark.rule("TU-4")
async def test_selection(looks: Looks) -> None:  # noqa: F811
    async with running(view(*STORY, **FIGURES), size=(100, 44)) as rig:
        y = next(index for index, line in enumerate(rig.screen_lines()) if "def total" in line)
        await rig.pilot.mouse_down(rig.chat.transcript, offset=(4, y))
        await rig.pilot.hover(rig.chat.transcript, offset=(30, y + 2))
        await rig.pilot.mouse_up(rig.chat.transcript, offset=(30, y + 2))
        await rig.settle()
        assert rig.app.clipboard.startswith("def total(")
        looks(rig, "code copied")


@pytest.mark.rule("TU-9")
async def test_doubt(looks: Looks) -> None:  # noqa: F811
    first = replace(view(*STORY[:4], seq=4, **FIGURES), tasks=(task(71, "make deploy STAGE=test"), task(72, "pytest -q")))
    async with running(first, seam="killed 14:02:11; nothing lost; 2 commands in doubt") as rig:
        assert "What became of this call?" in rig.text()
        looks(rig, "a command in doubt")


@pytest.mark.rule("TU-10")
async def test_choices(looks: Looks) -> None:  # noqa: F811
    async with running(view(*STORY, command(20, shown=False, output="M shop/cart.py\n\x1b[31mD\x1b[0m shop/old.py"), **FIGURES)) as rig:
        equip(rig, names=["shop/cart.py", "tests/test_cart.py", "shop/cart till.py"])
        await rig.press(*"look at @cart")
        assert "Files  1 of 3" in rig.text()
        looks(rig, "file names")


@pytest.mark.rule("TU-5")
async def test_side_by_side(looks: Looks) -> None:  # noqa: F811
    edit = result(7, "edit", "edit shop/cart.py", "ok", arguments={"path": "shop/cart.py"}, details={"diff": DIFF, "added": 2, "removed": 1})
    colored = slot(99, "bash", "bash pytest", output="\x1b[32m12 passed\x1b[0m, \x1b[1;31m1 failed\x1b[0m")
    async with running(view(user(1, "fix it"), edit, tools=[colored], **FIGURES), size=(180, 24)) as rig:
        assert "12 passed, 1 failed" in rig.text()
        looks(rig, "a diff in two columns, a tool in colours")


@pytest.mark.rule("TU-14", "CASE-E6")
async def test_other_scripts(looks: Looks) -> None:  # noqa: F811
    async with running(view(user(1, "日本語で書いてください 👩\u200d💻"), answer(2, WIDE), **FIGURES), size=(80, 30)) as rig:
        await rig.type("ありがとう ✅ e\u0301")
        (line,) = [line for line in rig.screen_lines() if "ありがとう" in line]
        assert line.endswith("│")
        looks(rig, "CJK, emoji, combining")


@pytest.mark.rule("TU-14")
async def test_no_color(looks: Looks) -> None:  # noqa: F811
    async with running(view(*STORY, **FIGURES)) as rig:
        rig.app._filters = [WithoutColor()]
        await rig.press("ctrl+f", *"cart")
        styles = [
            segment.style
            for strip in rig.app.screen._compositor.render_strips()
            for segment in WithoutColor().apply(list(strip), rig.app.screen.background_colors[1])
            if segment.style
        ]
        assert all(style.color is None and style.bgcolor is None for style in styles)
        assert any(style.reverse for style in styles)
        looks(rig, "NO_COLOR")
