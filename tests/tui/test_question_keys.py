"""Keys while a question is open: what is written is no answer, and nothing that is written gets lost (TU-19, SA-3)."""

from __future__ import annotations

import pytest
from textual.events import AppBlur, AppFocus, Key

from tests.support.patience import UNHURRIED_S
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import slot, view

ASKING = slot(10, "bash", "bash make", status="asking", question=77, arguments={"command": "make all"}, details={"rule": "allow make"})
PERSON_S = 0.015


async def answerable(rig: Rig) -> None:
    rig.clock.advance(2_000)
    await rig.settle()


async def at_once(rig: Rig, *keys: str) -> None:
    """Keys that all arrive before the first of them is looked at, as an impatient person's do."""
    for key in keys:
        rig.chat.question.post_message(Key(key, key if len(key) == 1 else None))
    await rig.settle()


@pytest.mark.rule("TU-19", "SA-3")
@pytest.mark.parametrize("text", ["wait", "any other way?", "yes but later", "no, use ninja", "hello"])
async def test_a_word_that_begins_with_the_letter_of_an_answer_is_written_and_answers_nothing(text: str) -> None:
    async with running(view(tools=[ASKING]), typing_gap_s=UNHURRIED_S) as rig:
        await answerable(rig)
        await rig.pilot.press(*text)
        await rig.settle()
        assert rig.asked == []
        assert rig.chat.prompt.text == text
        assert "Esc goes back to the question" in rig.text()
        assert "Esc comes back here to answer" in rig.text()


@pytest.mark.rule("TU-19", "SA-3")
async def test_keys_that_come_before_the_composer_has_the_focus_answer_nothing_and_are_kept() -> None:
    async with running(view(tools=[ASKING]), typing_gap_s=PERSON_S) as rig:
        await answerable(rig)
        await at_once(rig, "w", "a", "enter", "y")
        assert rig.asked == []
        assert rig.chat.prompt.text == "way"


@pytest.mark.rule("TU-19")
@pytest.mark.parametrize(("key", "decision"), [("y", "allow"), ("a", "always"), ("n", "deny")])
async def test_a_letter_alone_answers_and_enter_after_it_says_the_same(key: str, decision: str) -> None:
    async with running(view(tools=[ASKING]), typing_gap_s=PERSON_S) as rig:
        await answerable(rig)
        await at_once(rig, key, "enter")
        assert rig.asked == [("answer", 77, decision, "the user")]
        rig.conversation.asked.clear()
        await at_once(rig, key)
        assert rig.asked == [], "a word may begin so"
        while not rig.asked:
            await rig.pilot.pause()
        assert rig.asked == [("answer", 77, decision, "the user")]
        assert rig.chat.prompt.text == ""


@pytest.mark.rule("TU-19", "TU-10")
async def test_a_question_takes_no_keys_from_somebody_who_is_writing() -> None:
    async with running(view(streaming=[]), typing_gap_s=PERSON_S) as rig:
        await rig.type("and then: ")
        await rig.show(view(tools=[ASKING]))
        await rig.press(*"any")
        rig.clock.advance(2_000)
        await rig.press(*"way")
        assert rig.chat.prompt.text == "and then: anyway"
        await rig.press("escape")
        assert rig.asked == [], "it only goes back to the question"
        assert "Esc denies" in rig.text()
        await answerable(rig)
        await rig.press("escape")
        assert rig.asked == [("answer", 77, "deny", "the user")]


@pytest.mark.rule("TU-19")
async def test_a_question_says_how_it_is_answered_also_while_the_window_has_no_focus_and_takes_the_answer_afterwards() -> None:
    async with running(view(tools=[ASKING])) as rig:
        rig.app.post_message(AppBlur())
        await rig.settle()
        assert "y or Enter allows" in rig.text()
        rig.app.post_message(AppFocus())
        await rig.settle()
        await rig.press("y")
        assert rig.asked == [], "it may be the key that was typed into another window"
        await answerable(rig)
        await rig.press("y")
        assert rig.asked == [("answer", 77, "allow", "the user")]


@pytest.mark.rule("TU-19", "TU-12")
async def test_a_question_has_the_keys_when_nobody_is_writing_and_again_once_the_message_is_sent() -> None:
    async with running(view(streaming=[])) as rig:
        await rig.type("left there")
        rig.clock.advance(2_000)
        await rig.show(view(tools=[ASKING]))
        await answerable(rig)
        assert "y or Enter allows · a always · n or Esc denies" in rig.text(), "a draft that was left alone does not keep the keys"
        await rig.press("!", "enter")
        assert [call[0] for call in rig.asked] == ["submit"]
        assert rig.chat.prompt.text == ""
        await rig.press("y", "enter")
        assert [call[0] for call in rig.asked] == ["submit"], "a key that follows at once was not meant for the question"
        await answerable(rig)
        await rig.press("y")
        assert [call[0] for call in rig.asked] == ["submit", "answer"]


@pytest.mark.rule("TU-19")
async def test_a_question_that_does_not_fit_says_how_long_it_is_and_which_key_shows_more() -> None:
    diff = "@@ -1,60 +1,60 @@\n" + "".join(f"-old {n}\n+new {n}\n" for n in range(60))
    edit = slot(10, "edit", "edit a.py", status="asking", question=77, arguments={"path": "a.py"}, details={"diff": diff})
    async with running(view(tools=[edit])) as rig:
        assert "Make this change? · 121 lines, PageDown shows more" in rig.text()
        assert "+ new 59" not in rig.text()
        for _ in range(12):
            await rig.press("pagedown")
        assert "+ new 59" in rig.text()
    async with running(view(tools=[ASKING])) as rig:
        assert "PageDown" not in rig.text()
