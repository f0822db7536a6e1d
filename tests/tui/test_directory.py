"""/tree and /resume over all sessions of the directory: one tree, and the way to each chat of it (TU-16)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from pi_durable_tui.errors import StoreLocked
from pi_durable_tui.harness.chats import Branch, Chat
from pi_durable_tui.tui.actions.directory import directory_rows
from pi_durable_tui.tui.actions.tree import root_of
from pi_durable_tui.tui.bridge import Opened
from pi_durable_tui.tui.house import Others, OtherSession
from tests.support.tui_conversation import FakeConversation, opened
from tests.support.tui_house import FakeHouse
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import START_MS, answer, user, view


def branch(conversation_id: int, title: str, *, parent: int | None = None, subagent: bool = False, at_ms: int = 0, **facts: Any) -> Branch:
    made = {"first_text": f"words of {title}", "last_at_ms": START_MS + at_ms, "last_seq": conversation_id, "unfinished": False, "is_empty": False, **facts}
    return Branch(chat=Chat(conversation_id=conversation_id, title=title, model="a/b", **made), parent=parent, is_subagent=subagent)


OWN = (branch(1, "here", at_ms=5_000), branch(2, "here too", parent=1, at_ms=6_000))
FREE = OtherSession(
    number=2,
    holder="",
    branches=(branch(1, "elsewhere", at_ms=1_000, unfinished=True), branch(4, "dig", parent=1, subagent=True), branch(5, "empty", is_empty=True)),
)
HELD = OtherSession(number=3, holder="pid 4711", branches=(branch(7, "theirs", at_ms=9_000),))


@dataclass
class FakeSessions:
    """Sessions beside the open one; `made` is what entering any of them opens."""

    found: Others
    made: Opened | None = None
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    async def others(self) -> Others:
        return self.found

    async def enter(self, session: int, conversation_id: int) -> Opened:
        self.asked.append(("enter", session, conversation_id))
        if self.made is None:
            raise StoreLocked("session-2.sqlite", holder="pid 9")
        return self.made

    def watch(self, name: str) -> None:
        self.asked.append(("watch", name))


def beside(rig: Rig, *others: OtherSession, remarks: Sequence[str] = ()) -> FakeSessions:
    """The open session, and these beside it; entering one opens a session of two conversations."""
    rig.harness.answers["branches"] = OWN
    rig.harness.answers["chats"] = tuple(each.chat for each in OWN)
    there = rig.thread.call(FakeConversation, view(user(1, "an old question"), answer(2, "an old answer")))
    sub = rig.thread.call(FakeConversation, view(user(1, "dig here"), conversation_id=4))
    sessions = FakeSessions(Others(sessions=others, remarks=tuple(remarks)), opened(rig.thread, there, sub))
    house = FakeHouse()
    house.sessions = sessions
    rig.app._opened = rig.app.bridge._opened = replace(rig.app._opened, house=house)
    sessions.made = replace(sessions.made, house=house)
    return sessions


async def say(rig: Rig, text: str) -> None:
    await rig.type(text)
    await rig.press("enter")
    await rig.settle()


def shown(rig: Rig) -> list[str]:
    return [" ".join(line.strip(" │").split()) for line in rig.screen_lines()]


# ----------------------------------------------------------------------------------------------------------------- the tree


@pytest.mark.rule("TU-16")
def test_all_sessions_are_one_forest_with_the_newest_work_last_and_empty_chats_left_out() -> None:
    rows = directory_rows(OWN, (FREE, HELD), shown=1)
    assert [(stem, spot.branch.chat.title, spot.name) for stem, spot in rows] == [
        ("", "elsewhere", "2.1"),
        ("└ ", "dig", "2.4"),
        ("", "here", "1"),
        ("└ ", "here too", "2"),
        ("", "theirs", "3.7"),
    ]
    assert [spot.name for _, spot in directory_rows((branch(1, "new", is_empty=True),), (), shown=1)] == ["1"]


def test_a_subagent_belongs_to_the_chat_above_all_its_callers() -> None:
    below = branch(9, "deeper", parent=4, subagent=True)
    assert [root_of(each, (*FREE.branches, below)) for each in (*FREE.branches[:2], below)] == [1, 1, 1]


@pytest.mark.rule("TU-16", "CL-3")
async def test_the_tree_shows_the_chats_of_all_sessions_and_says_which_are_open_elsewhere() -> None:
    async with running() as rig:
        beside(rig, FREE, HELD, remarks=["Session 5 cannot be shown: it is damaged."])
        await say(rig, "/tree")
        lines = [line.rpartition(" ")[0] for line in shown(rig) if line.endswith(("now", "ago"))]
        assert [line.removesuffix(" just") for line in lines] == [
            "elsewhere unfinished",
            "└ subagent dig",
            "› here shown",
            "└ fork: here too",
            "theirs open elsewhere",
        ]
        await rig.press("down", "down")
        assert any("chat 7 · session 3, open in another process (pid 4711)" in line for line in shown(rig))
        await rig.press("escape")
        assert "Session 5 cannot be shown: it is damaged." in rig.text()


@pytest.mark.rule("TU-16", "CL-3")
async def test_opening_a_chat_of_a_free_session_goes_there_with_its_own_draft_and_its_own_work() -> None:
    async with running(view(user(1, "here"), streaming=["at work"])) as rig:
        sessions = beside(rig, FREE)
        await rig.type("half a thought")
        rig.app.deeds.directory.tree("")
        await rig.settle()
        await rig.press("up", "up", "enter")
        await rig.settle()
        assert sessions.asked == [("enter", 2, 1)]
        assert "an old answer" in rig.text()
        assert rig.chat.prompt.text == ""
        saved = [call for call in rig.conversation.asked if call[0] == "save_draft"]
        assert saved[-1] == ("save_draft", "half a thought", 14), "it is the draft of the chat that was left"
        assert ("abort",) not in rig.conversation.asked
        await say(rig, "go on there")
        assert ("submit", "go on there", "followUp") in sessions.made.conversation.asked
        assert rig.asked == []


@pytest.mark.rule("TU-16", "TU-7")
async def test_a_subagent_of_another_session_is_looked_into_and_esc_comes_back_to_its_chat() -> None:
    async with running() as rig:
        sessions = beside(rig, FREE)
        await say(rig, "/tree")
        await rig.press("up", "enter")
        await rig.settle()
        assert sessions.asked == [("enter", 2, 1)]
        assert "dig here" in rig.text()
        assert (rig.app.bridge.conversation_id, rig.app.deeds.moves.is_away) == (4, True)
        rig.app.deeds.moves.back()
        await rig.settle()
        assert (rig.app.bridge.conversation_id, rig.app.deeds.moves.is_away) == (1, False)


@pytest.mark.rule("TU-16", "TU-15")
async def test_f_forks_a_chat_of_another_session_there() -> None:
    async with running() as rig:
        sessions = beside(rig, FREE)
        there = sessions.made.conversation
        there.older = there.view.entries
        await say(rig, "/tree")
        await rig.press("up", "up", "f")
        await rig.settle()
        assert sessions.asked == [("enter", 2, 1)]
        assert ("fork", 1, 2) in sessions.made.harness.asked
        assert ("fork", 1, 2) not in rig.harness.asked


@pytest.mark.rule("TU-16", "OB-6")
async def test_a_chat_that_another_process_has_open_can_be_watched_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as rig:
        sessions = beside(rig, HELD)
        monkeypatch.setattr(rig.app, "lent", nullcontext)
        await say(rig, "/tree")
        await rig.press("down", "down", "f")
        assert "Chat 3.7 is open in another process (pid 4711), which alone can fork it." in rig.text()
        await say(rig, "/resume")
        await rig.press("down", "down", "enter")
        await rig.settle()
        assert "Chat 3.7 is open in another process" in rig.text()
        assert "It is held by pid 4711." in rig.text()
        await rig.press("enter")
        await rig.settle()
        assert sessions.asked == [("watch", "3.7")]
        assert rig.app.screen is rig.chat


@pytest.mark.rule("TU-16")
async def test_a_session_that_somebody_took_meanwhile_leaves_everything_as_it_is() -> None:
    async with running(view(user(1, "here"))) as rig:
        sessions = beside(rig, FREE)
        sessions.made = None
        await rig.type("half a thought")
        rig.app.deeds.directory.tree("")
        await rig.settle()
        await rig.press("up", "up", "enter")
        await rig.settle()
        assert "session-2.sqlite" in rig.text()
        assert rig.chat.prompt.text == "half a thought"
        assert rig.app.bridge.conversation_id == 1


@pytest.mark.rule("TU-16", "CL-2")
async def test_resume_lists_unfinished_chats_first_whichever_session_they_are_in() -> None:
    async with running() as rig:
        beside(rig, FREE, HELD)
        await say(rig, "/resume")
        found = [line.split(" unfinished")[0].split(" shown")[0].removesuffix(" just now") for line in shown(rig) if line.endswith("just now")]
        assert found == ["› elsewhere", "here", "here too", "theirs open elsewhere"]
