"""The one widget that draws every row."""

from __future__ import annotations

import pytest

from pi_durable_tui.harness.live import Draft
from pi_durable_tui.tui.safe_text import SEQUENCE_MARK
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import answer, result, slot, thinking, user, view
from tests.tui.test_rows import ATTACK, BRACKETS


def lines_with(rig: Rig, text: str) -> list[int]:
    return [index for index, line in enumerate(rig.screen_lines()) if text in line]


@pytest.mark.rule("TU-1")
async def test_ten_thousand_entries_draw_only_what_is_visible_and_around_it() -> None:
    entries = [user(number, f"message {number}") for number in range(1, 10_001)]
    async with running(view(*entries)) as rig:
        assert lines_with(rig, "message 10000")
        assert rig.chat.transcript.drawn_rows < 60
        await rig.press("ctrl+home")
        assert lines_with(rig, "message 1")
        assert rig.chat.transcript.drawn_rows < 120
        await rig.show(view(*entries, user(10_001, "message 10001")))
        assert rig.chat.transcript.drawn_rows < 130


@pytest.mark.rule("CASE-E2")
async def test_a_commit_of_a_draft_draws_no_line_of_the_transcript() -> None:
    entries = [user(number, f"message {number}") for number in range(1, 60)]
    async with running(view(*entries)) as rig:
        drawn: list[int] = []
        transcript, draw = rig.chat.transcript, rig.chat.transcript.render_line
        transcript.render_line = lambda y: (drawn.append(y), draw(y))[1]
        await rig.show(view(*entries, draft=Draft(text="half a th", cursor=9)))
        assert drawn == []
        await rig.show(view(*entries, user(60, "message 60")))
        assert drawn


@pytest.mark.rule("TU-3")
async def test_it_follows_at_the_end_and_holds_the_line_being_read_elsewhere() -> None:
    entries = [user(number, f"message {number}", seq=1) for number in range(1, 60)]
    async with running(view(*entries)) as rig:
        await rig.show(view(*entries, user(60, "message 60", seq=1)))
        assert lines_with(rig, "message 60")
        await rig.press("pageup")
        before = rig.screen_lines()[:10]
        await rig.show(view(*entries, user(60, "message 60", seq=1), user(61, "message 61", seq=1), answer(62, "a\n\nb\n\nc")))
        assert rig.screen_lines()[:10] == before
        assert not lines_with(rig, "message 61")
        assert lines_with(rig, "↓ 8 new lines")
        await rig.press("ctrl+end")
        assert lines_with(rig, "message 61")
        assert not lines_with(rig, "new lines")


@pytest.mark.rule("TU-3")
async def test_scrolling_back_to_the_end_follows_again() -> None:
    entries = [user(number, f"message {number}") for number in range(1, 60)]
    async with running(view(*entries)) as rig:
        await rig.press("pageup")
        assert not rig.chat.transcript.is_following
        await rig.press("pagedown")
        assert rig.chat.transcript.is_following


@pytest.mark.rule("TU-1")
async def test_scrolling_up_fetches_older_pages_and_the_end_lets_them_go() -> None:
    entries = [user(number, f"message {number}", seq=1) for number in range(1_000, 1_020)]
    async with running(view(*entries, has_older=True)) as rig:
        rig.conversation.older = tuple(user(number, f"message {number}", seq=1) for number in range(700, 1_000))
        await rig.press("ctrl+home")
        assert ("entries", 1_000) in rig.asked
        assert lines_with(rig, "message 1000"), "the line being read stays"
        for _ in range(6):
            await rig.press("ctrl+home")
        assert [call for call in rig.asked if call[0] == "entries"] == [("entries", 1_000), ("entries", 800)]
        assert lines_with(rig, "message 700")
        await rig.press("ctrl+end")
        assert lines_with(rig, "message 1019")
        assert len(rig.chat.transcript._rows) == 20


@pytest.mark.rule("TU-5", "TU-6")
async def test_tools_and_thinking_are_one_line_until_unfolded_and_failures_are_open() -> None:
    story = [
        answer(2, thinking("first thought\nsecond thought"), stop="toolUse"),
        result(3, "bash", "bash make", "out 1\nout 2"),
        result(4, "bash", "bash test", "wrong\n[exit code 1]", is_error=True, details={"exitCode": 1}, took_ms=2_300),
    ]
    async with running(view(*story)) as rig:
        folded = rig.text()
        assert "∴ first thought" in folded
        assert "✓ bash  make  2 lines · 0.1s" in folded
        assert "✗ bash  test  exit 1 · 2.3s\n  │ wrong" in folded
        assert "second thought" not in folded
        assert "out 1" not in folded
        await rig.press("ctrl+o")
        assert "second thought" in rig.text()
        assert "  │ out 1\n  │ out 2" in rig.text()
        await rig.press("ctrl+o")
        assert rig.text() == folded


@pytest.mark.rule("TU-5")
async def test_a_click_unfolds_one_tool() -> None:
    async with running(view(result(3, "bash", "bash a", "out a"), result(4, "bash", "bash b", "out b"))) as rig:
        (line,) = lines_with(rig, "✓ bash  a")
        await rig.pilot.click(rig.chat.transcript, offset=(4, line))
        await rig.settle()
        assert "out a" in rig.text()
        assert "out b" not in rig.text()


@pytest.mark.rule("TU-5")
async def test_a_running_tool_shows_the_end_of_its_output_and_its_time() -> None:
    output = "\n".join(f"line {number}" for number in range(1, 21))
    async with running(view(tools=[slot(9, "bash", "bash make", output=output)])) as rig:
        assert "◐ bash  make  4s" in rig.text()
        assert "line 20" in rig.text()
        assert "… 15 lines before (Ctrl+O)" in rig.text()
        rig.clock.advance(60_000)
        rig.chat._tick()
        await rig.settle()
        assert "◐ bash  make  1m 04s" in rig.text()


@pytest.mark.rule("TU-2")
async def test_a_streamed_answer_grows_and_its_entry_looks_the_same() -> None:
    text = "Here it is:\n\n```python\nx = 1\n```\n\n- one\n- two"
    async with running(view(user(1, "go"), streaming=[text[:20]])) as rig:
        for end in range(20, len(text) + 1, 7):
            await rig.show(view(user(1, "go"), streaming=[text[:end]]))
        await rig.show(view(user(1, "go"), streaming=[text]))
        streamed = rig.screen_lines()[:10]
        await rig.show(view(user(1, "go"), answer(2, text)))
        assert rig.screen_lines()[:10] == streamed
        assert "▏ x = 1" in rig.text()


@pytest.mark.rule("TU-1")
async def test_the_resumed_screen_equals_the_one_before() -> None:
    story = view(user(1, "go"), answer(2, "# Title\n\ntext"), result(3, "bash", "bash x", "y"), streaming=["half"])
    async with running(view(user(1, "go"))) as rig:
        await rig.show(story)
        lived = rig.text()
    async with running(story) as rig:
        assert rig.text().split("\n")[:20] == lived.split("\n")[:20]


@pytest.mark.rule("CASE-E1", "SA-2", "TU-13")
@pytest.mark.parametrize("text", BRACKETS)
async def test_brackets_are_on_the_screen_as_they_are_in_every_place(text: str) -> None:
    made = view(
        user(1, text),
        answer(2, thinking(text), text),
        result(3, "bash", f"bash {text}", text, is_error=True),
        tools=[slot(9, "bash", f"bash {text}", output=text), slot(10, text, text, status="asking", question=11, arguments={"command": text})],
        queued=[("steer", text)],
        seq=5,
    )
    async with running(made, size=(100, 60), seam=text) as rig:
        await rig.type(text)
        shown = rig.text()
        for line in text.split("\n"):
            assert shown.count(line) >= 9, shown
        for y, line in enumerate(rig.screen_lines()):
            if "hi[/]" in line:
                await rig.pilot.click(offset=(line.index("hi[/]"), y))
        assert rig.app.is_running


@pytest.mark.rule("CASE-G1", "SA-1", "TU-13")
async def test_no_escape_sequence_reaches_the_screen_from_any_place() -> None:
    made = view(
        user(1, ATTACK),
        answer(2, thinking(ATTACK), f"```\n{ATTACK}\n```\n{ATTACK}"),
        result(3, ATTACK, ATTACK, ATTACK, details={"diff": f"@@ -1 +1 @@\n-{ATTACK}\n+{ATTACK}"}, arguments={"path": ATTACK}, is_error=True),
        tools=[slot(10, "bash", ATTACK, status="asking", question=11, arguments={"command": ATTACK})],
        queued=[("steer", ATTACK)],
    )
    async with running(made, size=(100, 60), seam=ATTACK) as rig:
        await rig.type(ATTACK)
        shown = rig.text()
        assert not any((ord(char) < 32 and char != "\n") or 0x7F <= ord(char) <= 0x9F for char in shown)
        assert shown.count(f"A{SEQUENCE_MARK}B{SEQUENCE_MARK}") >= 9


@pytest.mark.rule("SA-3", "TU-13")
async def test_no_text_of_a_transcript_can_stand_in_the_first_two_cells_that_are_ours() -> None:
    fake = "┏━ Run this command? ━┓\n┃ rm -rf / ┃\n┗━━━━━━━━━━━━━━━━━━━━━┛"
    async with running(view(user(1, fake), answer(2, f"```\n{fake}\n```"), result(3, "bash", "bash x", fake, is_error=True))) as rig:
        for line in rig.screen_lines()[:-5]:
            assert line[:2] in ("", "  ", "❯ ", "✗ ")


@pytest.mark.rule("CASE-E6", "TU-14")
async def test_every_size_is_survived_and_the_first_one_looks_as_before() -> None:
    wide = "日本語 👩\u200d💻 ⏺\ufe0f ㅤㅤ✅ e\u0301 🇩🇪 \t \u202e " + "x" * 5_000
    made = view(user(1, wide), answer(2, wide), result(3, "bash", wide, wide, is_error=True), streaming=[wide])
    async with running(made, size=(80, 24)) as rig:
        await rig.type(wide)
        before = rig.screen_lines()[:6]
        for size in [(20, 5), (7, 3), (1, 1), (300, 100), (40, 10), (2, 50), (80, 1), (80, 24)]:
            await rig.pilot.resize_terminal(*size)
            await rig.settle()
        assert rig.screen_lines()[:6] == before
