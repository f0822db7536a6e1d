"""Going between chats, forks and subagents with the real harness below (TU-7, TU-15, TU-16; CASE-F4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.harness.ports import TextDelta
from pi_durable_tui.records.messages import Text, UserMessage
from tests.support.scripted_model import Hold, call, say, texts
from tests.support.strict_provider import violations
from tests.support.tui_whole import Whole, whole

WORK = {"name": "reader", "prompt": "read it all"}


async def turns(made: Whole, *questions: str) -> None:
    """Ask, and wait for each answer, which is "re QUESTION"."""
    for question in questions:
        made.rig.model.then(say(f"re {question}"))
        await made.say(question)
        await made.until(f"re {question}")
        await made.until("Esc stops", gone=True)


async def said(made: Whole, conversation_id: int) -> list[str]:
    """What people said in a conversation."""
    return [
        "".join(part.text for part in entry.message.content if isinstance(part, Text))
        for entry in await made.entries(conversation_id)
        if isinstance(entry.message, UserMessage)
    ]


@pytest.mark.rule("TU-15", "CASE-F4")
async def test_a_fork_from_a_picked_message_shares_what_came_before_and_the_old_chat_is_untouched(tmp_path: Path) -> None:
    async with whole(tmp_path) as made:
        await turns(made, "one", "two", "three", "four")
        made.rig.model.then((TextDelta("five and"), Hold()))
        await made.say("five")
        await made.until("five and")
        await made.pilot.press(*"wait", "alt+enter")
        await made.until("queued, follow-up")
        old, before = made.conversation.id, await made.entries()
        await made.say("/fork")
        shown = await made.until("Fork from")
        assert "› five" in shown, "the last one is chosen"
        await made.pilot.press("up", "up")
        shown = await made.until("› three")
        assert "re three" in shown, "the preview shows what was answered"
        await made.pilot.press("enter")
        await made.until("A new chat, as of “three”")
        shown = await made.until("four", gone=True)
        assert "re three" in shown
        assert "queued" not in shown
        fork = (await made.view()).conversation
        assert fork.parent.conversation_id == old
        made.rig.model.when("one", say("re new"))  # both chats begin with "one": this one is asked first
        await made.say("new")
        await made.until("re new")
        assert await said(made, fork.id) == ["one", "two", "three", "new"]
        assert await made.entries(old) == before
        there = await made.stored(old)
        assert (there.is_busy, len(there.inbox.items)) == (True, 1), "the old one works on and keeps its queue"
        newest = [request for request in made.rig.model.requests if texts(request)[-1][1].endswith("new")]
        assert [violations(request.messages) for request in newest] == [[]]


@pytest.mark.rule("TU-15", "CASE-F4", "CASE-A1")
async def test_a_fork_while_a_tool_runs_has_no_open_call_and_can_go_on_at_once(tmp_path: Path) -> None:
    async with whole(tmp_path, call(("bash", {"command": "sleep 30"}), text="I will look")) as made:
        await made.say("go")
        await made.until("sleep 30 began")
        await made.say("/fork")
        await made.until("Fork from")
        await made.pilot.press("enter")
        await made.until("A new chat, as of “go”")
        await made.until("sleep 30", gone=True)
        made.rig.model.then(say("fresh start"))
        await made.say("again")
        await made.until("fresh start")
        assert [role for role, _ in texts(made.rig.model.requests[-1])] == ["user"]
        assert (await made.stored()).is_busy


@pytest.mark.rule("TU-15", "CASE-F4")
async def test_a_fork_by_number_a_fork_of_a_fork_and_a_number_that_is_none(tmp_path: Path) -> None:
    async with whole(tmp_path) as made:
        await made.say("/fork")
        await made.until("Nothing to fork yet")
        await turns(made, "one", "two")
        first = (await made.entries())[0].id
        await made.say("/fork 0")
        await made.until("There is no message 0 here")
        await made.say(f"/fork {first}")
        await made.until("A new chat, as of “one”")
        one = (await made.view()).conversation.id
        await turns(made, "three")
        await made.say("/fork")
        await made.until("› three")
        await made.pilot.press("enter")
        await made.until("A new chat, as of “three”")
        two = (await made.view()).conversation
        assert two.parent.conversation_id == one
        assert await said(made, two.id) == ["one", "three"]
        assert await said(made, made.conversation.id) == ["one", "two"]


@pytest.mark.rule("TU-16")
async def test_the_tree_shows_chats_forks_and_subagents_and_opens_and_forks_them(tmp_path: Path) -> None:
    async with whole(tmp_path, call(("subagent", WORK)), say("all read"), say("thanks")) as made:
        await made.say("first chat")
        await made.until("thanks")
        await made.say("/fork")
        await made.until("› first chat")
        await made.pilot.press("enter")
        await made.until("A new chat")
        await made.pilot.press("escape")
        await made.step(1_000)
        await made.pilot.press("escape")
        await made.step(100)
        await made.pilot.press("escape")
        shown = await made.until("Enter opens · f forks there")
        lines = [line.strip(" │").split("  ")[0] for line in shown.splitlines() if "just now" in line]
        assert lines[:3] == ["first chat", "├ subagent reader", "› └ fork: first chat shown"]
        await made.pilot.press("up", "enter")
        shown = await made.until("Subagent reader: looking only")
        assert "❯ read it all" in shown
        assert "all read" in shown
        assert "Ask for work" not in shown
        await made.pilot.press(*"typed", "enter", "escape")
        await made.until("❯ first chat")
        assert made.app.chat.prompt.text == ""
        assert (await made.view()).conversation.parent is not None, "back where it was opened from"
        await made.say("/tree")
        await made.until("f forks there")
        await made.pilot.press("up", "up", "f")
        await made.until("A new chat, as of “first chat”")
        assert (await made.view()).conversation.parent.conversation_id == made.conversation.id


@pytest.mark.rule("TU-7", "TU-19")
async def test_a_subagent_at_work_can_be_looked_into_and_its_question_answered_from_the_chat_above(tmp_path: Path) -> None:
    made_call = call(("bash", {"command": "make all"}), text="I will build it")
    async with whole(tmp_path, call(("subagent", WORK)), made_call, say("built"), say("well done"), approval="ask") as made:
        await made.say("go")
        shown = await made.until("Run this command? · subagent reader")
        assert "◆ reader  waiting for your answer" in shown
        assert "│ I will build it" in shown
        assert "110 tokens" in shown
        made.clock.advance(1_000)
        await made.pilot.press("y")
        shown = await made.until("well done")
        assert "Run this command?" not in shown
        await made.pilot.press("alt+s")
        await made.until("› subagent reader")
        await made.pilot.press("enter")
        shown = await made.until("looking only")
        assert "✓ bash  make all" in shown
        await made.pilot.press("escape")
        await made.until("well done")


@pytest.mark.rule("TU-7")
async def test_looking_into_a_running_subagent_follows_it_and_escape_stops_nothing(tmp_path: Path) -> None:
    hold = Hold()
    async with whole(tmp_path, call(("subagent", WORK)), (TextDelta("I found"), hold, *say(" it all")), say("thanks")) as made:
        await made.pilot.press(*"go", "enter")
        await made.until("│ I found")
        await made.pilot.press("alt+s")
        await made.until("looking only")
        made.thread.call(hold.event.set)
        await made.until("I found it all")
        await made.pilot.press("escape")
        await made.until("thanks")
        assert [task.outcome.__class__.__name__ for task in await made.ask(made.rig.tasks("pi.subagent"))] == ["Completed"]


@pytest.mark.rule("CL-2", "TU-10")
async def test_resume_finds_a_chat_by_words_and_each_chat_keeps_its_draft(tmp_path: Path) -> None:
    async with whole(tmp_path) as made:
        await turns(made, "about apples")
        await made.say("/name Fruit")
        await made.until("now called Fruit")
        await made.say("/new")
        await made.until("every step is stored")
        await made.pilot.press(*"half")
        await made.step(200)
        made.rig.model.then((TextDelta("thinking"), Hold()))
        await made.say("and pears")
        await made.until("thinking")
        await made.pilot.press(*"later")
        await made.step(200)
        made.app.deeds.directory.resume("")
        shown = await made.until("Open a chat")
        assert "halfand pears shown · unfinished" in " ".join(shown.split())
        await made.pilot.press(*"frui")
        shown = await made.until("/ frui")
        assert "› Fruit" in shown
        assert "pears" not in shown.split("Open a chat")[1].split("❯")[0].split("about apples")[0]
        await made.pilot.press("enter")
        shown = await made.until("re about apples")
        assert made.app.chat.prompt.text == ""
        made.app.deeds.directory.resume("")
        await made.until("Open a chat")
        await made.pilot.press(*"pears", "enter")
        await made.until("thinking")
        await made.step()
        assert made.app.chat.prompt.text == "later"
