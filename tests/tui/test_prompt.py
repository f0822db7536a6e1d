"""The composer: typing, pasting, sending, recalling."""

from __future__ import annotations

import pytest
from textual import events

from pi_durable_tui.harness.live import Draft
from pi_durable_tui.tui.commands import Offer, nearest
from pi_durable_tui.tui.widgets.prompt import TYPING_GAP_S, is_burst
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import user, view

THREE_LINES = "first line\nsecond [line]\nthird line"


async def paste(rig: Rig, text: str) -> None:
    rig.chat.prompt.post_message(events.Paste(text))
    await rig.settle()


def drafts(rig: Rig) -> list[tuple[str, int]]:
    return [(text, cursor) for name, text, cursor in (call for call in rig.conversation.asked if call[0] == "save_draft")]


@pytest.mark.rule("TU-12")
async def test_enter_sends_what_is_typed_and_empties_the_composer() -> None:
    async with running() as rig:
        await rig.press(*"hello", "enter")
        assert rig.asked == [("submit", "hello", "followUp")]
        assert rig.chat.prompt.text == ""


@pytest.mark.rule("TU-12")
async def test_enter_while_busy_steers_and_alt_enter_queues() -> None:
    async with running(view(streaming=[])) as rig:
        await rig.press(*"now", "enter")
        await rig.press(*"later", "alt+enter")
        assert rig.asked == [("submit", "now", "steer"), ("submit", "later", "followUp")]


async def test_a_blank_line_is_not_sent() -> None:
    async with running() as rig:
        await rig.press("space", "enter", "ctrl+j", "enter")
        assert rig.asked == []


@pytest.mark.rule("TU-10")
async def test_shift_enter_and_ctrl_j_make_new_lines() -> None:
    async with running() as rig:
        await rig.press("a", "shift+enter", "b", "ctrl+j", "c", "enter")
        assert rig.asked == [("submit", "a\nb\nc", "followUp")]


@pytest.mark.rule("CASE-E3")
@pytest.mark.parametrize("text", [THREE_LINES, THREE_LINES.replace("\n", "\r\n")], ids=["lf", "crlf"])
@pytest.mark.parametrize("is_busy", [False, True])
async def test_a_bracketed_paste_is_one_draft_and_sends_nothing(text: str, is_busy: bool) -> None:
    async with running(view(busy=is_busy)) as rig:
        await paste(rig, text)
        assert rig.chat.prompt.text == THREE_LINES
        assert rig.asked == []
        await rig.press("enter")
        assert rig.asked == [("submit", THREE_LINES, "steer" if is_busy else "followUp")]


@pytest.mark.rule("CASE-E3")
async def test_lines_that_arrive_faster_than_typing_are_a_paste_and_send_nothing() -> None:
    async with running(typing_gap_s=60.0) as rig:
        await rig.press("a", "enter", "b", "enter", "c", "enter")
        assert rig.chat.prompt.text == "a\nb\nc\n"
        assert rig.asked == []


@pytest.mark.rule("CASE-E3")
def test_a_key_is_pasted_when_it_follows_within_the_time_nobody_types_in() -> None:
    assert [is_burst(gap_s) for gap_s in (0.0, 0.001, TYPING_GAP_S - 0.001)] == [True, True, True]
    assert [is_burst(gap_s) for gap_s in (TYPING_GAP_S, 0.03, 5.0, float("inf"))] == [False, False, False, False]


@pytest.mark.rule("CASE-E3", "TU-10")
async def test_a_huge_paste_is_folded_to_a_marker_and_sent_in_full() -> None:
    huge = "0123456789abcde\n" * 312_500
    async with running() as rig:
        await paste(rig, huge)
        assert rig.chat.prompt.text == "[pasted text 1: 5,000,000 characters, 312,501 lines]"
        assert drafts(rig)[-1][0] == huge
        await rig.press("x", "enter")
        assert rig.asked == [("submit", huge + "x", "followUp")]


@pytest.mark.rule("TU-10")
async def test_backspace_takes_a_folded_paste_as_a_whole_and_undo_a_paste_as_one_edit() -> None:
    async with running() as rig:
        await paste(rig, "word " * 2_000)
        await rig.press("backspace")
        assert rig.chat.prompt.text == ""
        await paste(rig, THREE_LINES)
        rig.chat.prompt.undo()
        assert rig.chat.prompt.text == ""


@pytest.mark.rule("SA-1", "CASE-G1")
async def test_a_paste_brings_no_escape_sequence_into_the_composer() -> None:
    async with running() as rig:
        await paste(rig, "a\x1b]52;c;QQ==\x07b\x1b[201~\x9b2Jc\u202e")
        assert rig.chat.prompt.text == "abc"


@pytest.mark.rule("TU-10")
async def test_the_draft_is_stored_while_typing_at_most_every_tenth_of_a_second() -> None:
    async with running() as rig:
        await rig.pilot.press(*"hello")
        await rig.thread.drained()
        first = drafts(rig)
        assert len(first) == 1, "the first key at once, the next ones wait"
        rig.clock.advance(99)
        await rig.pilot.pause()
        await rig.thread.drained()
        assert drafts(rig) == first
        rig.clock.advance(1)
        await rig.settle()
        assert drafts(rig)[-1] == ("hello", 5)


@pytest.mark.rule("TU-10")
async def test_the_stored_draft_comes_back_with_its_cursor() -> None:
    async with running(view(draft=Draft(text="half a\nthought", cursor=4))) as rig:
        assert rig.chat.prompt.text == "half a\nthought"
        assert rig.chat.prompt.cursor_location == (0, 4)
        await rig.press("x")
        assert drafts(rig)[-1] == ("halfx a\nthought", 5)


@pytest.mark.rule("TU-10")
async def test_sending_empties_the_stored_draft_only_after_the_message_is_stored() -> None:
    async with running() as rig:
        await rig.press(*"hi", "enter")
        order = [call for call in rig.conversation.asked if call[0] == "submit" or call[:2] == ("save_draft", "")]
        assert order == [("submit", "hi", "followUp"), ("save_draft", "", 0)]


@pytest.mark.rule("TU-10")
async def test_a_command_empties_the_stored_draft_too() -> None:
    async with running() as rig:
        await rig.type("/model")
        await rig.press("enter")
        assert drafts(rig)[-1] == ("", 0)


@pytest.mark.rule("TU-10")
async def test_up_and_down_recall_what_was_sent_and_bring_the_typed_line_back() -> None:
    async with running() as rig:
        await rig.press(*"one", "enter")
        await rig.press(*"two", "enter")
        await rig.press(*"typed", "up")
        assert rig.chat.prompt.text == "two"
        await rig.press("up", "up")
        assert rig.chat.prompt.text == "one"
        await rig.press("down", "down")
        assert rig.chat.prompt.text == "typed"


async def test_a_slash_offers_commands_tab_completes_and_enter_runs() -> None:
    async with running() as rig:
        await rig.press("slash")
        assert "› /help" in rig.text()
        await rig.press("up")
        assert "› /quit" in rig.text()
        await rig.press("down")
        await rig.press("m", "tab")
        assert rig.chat.prompt.text == "/model "
        await rig.press(*"a/b", "enter")
        assert rig.asked == [("set_agent", {"model": "a/b"})]


@pytest.mark.rule("TU-10")
async def test_a_path_is_a_message_and_an_unknown_command_is_said_and_stays_to_be_set_right() -> None:
    async with running() as rig:
        await rig.type("/etc/hosts looks odd")
        await rig.press("enter")
        await rig.type("/nonsense")
        await rig.press("enter")
        assert rig.asked == [("submit", "/etc/hosts looks odd", "followUp")]
        assert "There is no command /nonsense. /help shows all of them." in rig.text()
        assert rig.chat.prompt.text == "/nonsense"
        await rig.press("ctrl+u")
        await rig.type("/modle a/b")
        await rig.press("enter")
        assert "There is no command /modle. Is it /model? /help shows all of them." in rig.text()
        await rig.press("ctrl+u")
        await rig.type("/model a/b")
        await rig.press("enter")
        assert rig.chat.prompt.text == ""
        assert rig.asked[1:] == [("set_agent", {"model": "a/b"})]


def test_what_is_like_an_unknown_command_is_named_and_nothing_else() -> None:
    skill = Offer(name="fix-bug", argument="", help="")
    assert [nearest(name, (skill,)) for name in ("exprt", "Setings", "fixbug", "zzz", "")] == ["export", "settings", "fix-bug", "", ""]


@pytest.mark.rule("CASE-E6")
async def test_wide_characters_leave_the_cursor_behind_the_last_one() -> None:
    async with running(view(user(1, "x")), size=(80, 24)) as rig:
        await rig.type("日本語e\u0301")
        assert rig.chat.prompt.cursor_location == (0, 5)
        (line,) = [line for line in rig.screen_lines() if "日本語" in line]
        assert line.endswith("│")
