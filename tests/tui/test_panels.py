"""The task graph, the sheets and the colours with the real harness below (OB-4, TU-11, TU-14)."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color

from pi_durable_tui.harness.ports import TextDelta
from pi_durable_tui.tui.palette import ANSI, DARK, LIGHT, THEMES, Palette, palette_of
from pi_durable_tui.tui.screens.sheet import Part, SheetScreen
from tests.support.scripted_model import Hold, call, fail, say
from tests.support.tui_rig import running
from tests.support.tui_whole import whole

WORK = {"name": "reader", "prompt": "read it all"}


@pytest.mark.rule("OB-4")
async def test_the_task_graph_shows_what_is_at_work_and_stops_one_node(tmp_path: Path) -> None:
    calls = call(("subagent", WORK), ("bash", {"command": "sleep 30"}))
    async with whole(tmp_path, calls, (TextDelta("I found"), Hold()), say("without it"), size=(120, 30)) as made:
        await made.say("go")
        await made.until("│ I found")
        await made.pilot.press("ctrl+t")
        await made.step(300)
        shown = await made.until("At work")
        assert "› answer" in shown
        assert "waits for subagent, bash" in shown
        assert "subagent reader" in shown
        await made.pilot.press("down")
        chosen = made.app.chat.tasks.chosen
        assert chosen is not None
        assert (chosen.kind, chosen.name) == ("pi.tool", "subagent")
        await made.pilot.press("down", "x")
        await made.until("◆ reader", gone=True)
        assert made.app.chat.tasks.has_focus
        await made.pilot.press("escape")
        shown = await made.until("At work", gone=True)
        assert "◐ bash  sleep 30" in shown, "only the node that was chosen was stopped"
        assert (await made.stored()).is_busy


@pytest.mark.rule("OB-4")
async def test_the_task_graph_tells_when_a_wait_ends_and_how_often_work_was_restarted(tmp_path: Path) -> None:
    async with whole(tmp_path, fail(retry_after_ms=20_000), size=(60, 30)) as made:
        await made.say("go")
        await made.until("Attempt 1 failed")
        await made.say("/tasks")
        await made.step(300)
        await made.until("wakes in 1")
        await made.pilot.press("ctrl+t")
        await made.until("At work", gone=True)
        await made.pilot.press("escape")
        await made.until("Stopped")


@pytest.mark.rule("TU-11")
async def test_the_footer_tells_how_full_the_context_is_and_the_sheets_tell_what_fills_it(tmp_path: Path) -> None:
    async with whole(tmp_path, say("well " + "a" * 400)) as made:
        await made.say("how are you")
        await made.until("0% context")
        await made.say("/context")
        shown = await made.until("of 100.0k tokens")
        assert "tools" in shown
        assert "free" in shown
        await made.pilot.press("escape")
        await made.say("/session")
        shown = await made.until("stored in")
        assert "memory" in shown
        assert "used by test/model 100 in, 10 out, price unknown" in " ".join(shown.split())
        await made.pilot.press("escape")
        await made.until("stored in", gone=True)


@pytest.mark.rule("TU-14")
@pytest.mark.parametrize("width", [40, 100])
async def test_a_page_shows_the_whole_of_a_path_that_is_longer_than_its_line(width: int) -> None:
    path = "/srv/somebody/.local/share/pidurable/65a3aa33f9bb6b0de29307d4/session-12.files/" + "0123456789" * 6 + "/the-end"
    async with running(size=(width, 30)) as rig:
        rig.app.push_screen(SheetScreen(DARK, "Session", [Part(heading="The session", lines=(("stored in", path),))]))
        await rig.settle()
        lines = [line.strip(" │").removeprefix("stored in").strip() for line in rig.screen_lines()]
        assert path in "".join(lines)


async def test_thinking_and_name_say_what_holds_and_change_it(tmp_path: Path) -> None:
    async with whole(tmp_path, say("hello")) as made:
        await made.say("/thinking")
        await made.until("Thinking is off.")
        await made.say("/thinking high")
        await made.until("thinking high")
        await made.pilot.press("alt+t")
        await made.until("thinking high", gone=True)
        await made.say("/name Sunday walk")
        await made.until("now called Sunday walk")
        assert (await made.stored()).agent.title == "Sunday walk"


@pytest.mark.rule("TU-17", "CO-3")
async def test_compact_says_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    async with whole(tmp_path) as made:
        await made.say("/compact")
        await made.until("Nothing to compact")
        assert (await made.stored()).live.compactions == ()


@pytest.mark.rule("TU-14")
async def test_a_theme_changes_every_colour_at_once(tmp_path: Path) -> None:
    async with whole(tmp_path, say("hello")) as made:
        await made.say("hi")
        await made.until("hello")
        for theme in ("light", "ansi", "dark"):
            await made.say(f"/theme {theme}")
            for _ in range(5):
                await made.step()
            palette = palette_of(theme)
            assert made.app.palette is palette
            strips = made.app.screen._compositor.render_strips()
            used = {segment.style.color.name for strip in strips for segment in strip if segment.style is not None and segment.style.color is not None}
            others = {DARK.accent, LIGHT.accent} - {palette.accent}
            assert not used & others, theme
            if theme != "ansi":
                assert made.app.screen.styles.background == Color.parse(palette.background)
        await made.say("/theme pink")
        await made.until("The theme is dark. /theme takes dark, light, ansi, system.")


@pytest.mark.parametrize(("colors", "palette"), [("15;0", DARK), ("0;15", LIGHT), ("0;default;7", LIGHT), ("", DARK)])
def test_the_systems_theme_follows_what_the_terminal_says(colors: str, palette: object) -> None:
    assert palette_of("system", colors=colors) is palette
    assert [palette_of(theme, colors=colors) for theme in THEMES[:3]] == [DARK, LIGHT, ANSI]


@pytest.mark.rule("TU-14")
@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=["dark", "light"])
def test_surfaces_and_both_sides_of_a_diff_stand_apart_where_a_terminal_has_only_256_colors(palette: Palette) -> None:
    def shown(color: str) -> tuple[int, ...]:
        return tuple(RichColor.parse(color).downgrade(ColorSystem.EIGHT_BIT).get_truecolor())

    back, raised, sunken, added, removed = map(shown, (palette.background, palette.raised, palette.sunken, palette.added_back, palette.removed_back))
    assert len({back, raised, added, removed}) == 4
    assert len({back, sunken, added, removed}) == 4
    assert added[1] > max(added[0], added[2]), "green"
    assert removed[0] > max(removed[1], removed[2]), "red"
    lightness = [sum(color) * (1 if palette.is_dark else -1) for color in (back, sunken, raised)]
    assert lightness == sorted(lightness), "what lies higher is further from the screen, as with all colours"
