"""Keys and commands through the whole app, against a conversation that remembers what it was asked."""

from __future__ import annotations

import pytest

from pi_durable_tui.errors import SessionFailed, StoreLocked
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.records.messages import Text
from pi_durable_tui.records.submission import Queued, Submission
from pi_durable_tui.tui.following import Sight, Subagent
from pi_durable_tui.tui.keymap import KEYS
from pi_durable_tui.tui.keys.bindings import keymap
from pi_durable_tui.tui.last_lines import last_lines
from pi_durable_tui.tui.rows import Notice
from pi_durable_tui.tui.status import footer_parts
from tests.support.tui_rig import PLACE, Rig, running
from tests.support.tui_views import MODEL, START_MS, answer, result, slot, user, view
from tests.tui.test_rows import ATTACK

ASKING = slot(10, "bash", "bash make", status="asking", question=77, arguments={"command": "make all"})


def queued(submission_id: int, text: str) -> Submission:
    return Submission(id=submission_id, conversation_id=1, mode="followUp", content=(Text(text=text),), digest="", at_ms=0, state=Queued())


async def answerable(rig: Rig) -> None:
    rig.clock.advance(1_000)
    await rig.settle()


@pytest.mark.rule("TU-8")
async def test_escape_stops_the_run_and_brings_queued_messages_back() -> None:
    async with running(view(streaming=["half"])) as rig:
        rig.conversation.withdrawn = (queued(5, "first"), queued(6, "second"))
        await rig.type("typed")
        await rig.press("escape")
        assert rig.asked == [("abort",)]
        assert rig.chat.prompt.text == "first\n\nsecond\n\ntyped"


@pytest.mark.rule("TU-19", "SA-13")
async def test_a_question_about_a_foreign_tool_shows_everything_that_it_is_given() -> None:
    arguments = {"command": "ls", "target": "production"}
    foreign = slot(10, "ops__run", "ops: run command: ls", status="asking", question=77, arguments=arguments)
    async with running(view(tools=[foreign])) as rig:
        assert "Allow ops__run?" in rig.text()
        assert '"command": "ls"' in rig.text()
        assert '"target": "production"' in rig.text()


@pytest.mark.rule("TU-8")
async def test_escape_with_nothing_running_asks_for_nothing() -> None:
    async with running() as rig:
        await rig.press("escape", "escape")
        assert rig.asked == []


async def test_ctrl_c_clears_the_line_then_says_so_then_leaves() -> None:
    async with running() as rig:
        await rig.type("a long thought")
        await rig.press("ctrl+c")
        assert rig.chat.prompt.text == ""
        await rig.press("up")
        assert rig.chat.prompt.text == "a long thought", "Up brings it back"
        await rig.press("ctrl+c")
        rig.clock.advance(5_000)
        await rig.press("ctrl+c")
        assert "Ctrl+C again leaves" in rig.text()
        await rig.press("ctrl+c")
        assert rig.app.return_code == 0


async def test_ctrl_d_leaves_only_when_nothing_is_typed() -> None:
    async with running() as rig:
        await rig.press("a", "b", "home", "ctrl+d")
        assert rig.chat.prompt.text == "b"
        await rig.press("ctrl+d", "ctrl+d")
        assert rig.app.return_code == 0


@pytest.mark.rule("TU-12")
async def test_alt_up_takes_the_newest_queued_message_back() -> None:
    async with running(view(streaming=[], queued=[("steer", "older"), ("followUp", "newer")])) as rig:
        await rig.press("alt+up")
        assert rig.asked == [("withdraw", 501)]
        assert rig.chat.prompt.text == "newer"


@pytest.mark.rule("TU-12")
async def test_the_newest_message_that_waits_says_which_key_takes_it_back_where_there_is_room() -> None:
    waiting = [("steer", "older"), ("followUp", "newer " * 40)]
    async with running(view(streaming=[], queued=waiting)) as rig:
        older, newer = [line for line in rig.screen_lines() if line.startswith("⋯ queued")]
        assert older == "⋯ queued, steers     older"
        assert newer.startswith("⋯ queued, follow-up  newer newer")
        assert newer.endswith("…   Alt+Up takes it back")
        assert len(newer) <= 100
    async with running(view(queued=[("followUp", "push it")])) as rig:
        held = next(line for line in rig.screen_lines() if line.startswith("⋯"))
        assert held == "⋯ waits for you      push it   goes ahead of your next message · Alt+Up takes it back", "the run failed, and nothing goes on by itself"
    async with running(view(queued=[("followUp", "push it")]), size=(80, 20)) as rig:
        assert "⋯ waits for you      push it   goes ahead of your next message\n" in rig.text()
    async with running(view(streaming=[], queued=waiting), size=(48, 20)) as rig:
        assert "Alt+Up" not in rig.text(), "the message itself comes first"
    async with running(view(streaming=[], queued=waiting), keys=keymap('{"take_back": []}')) as rig:
        assert "takes it back" not in rig.text()


@pytest.mark.rule("TU-19")
async def test_shift_tab_goes_through_the_approval_modes() -> None:
    async with running(view(agent=Agent(model=MODEL, approval="all"))) as rig:
        assert "approve all" in rig.text()
        await rig.press("shift+tab")
        assert rig.asked == [("set_agent", {"approval": "plan"})]


@pytest.mark.rule("TU-19", "SA-3")
@pytest.mark.parametrize(("key", "decision"), [("y", "allow"), ("enter", "allow"), ("n", "deny"), ("escape", "deny")])
async def test_a_question_shows_the_exact_command_and_takes_an_answer(key: str, decision: str) -> None:
    async with running(view(tools=[ASKING])) as rig:
        assert "Run this command?" in rig.text()
        assert "┃ make all" in rig.text()
        await answerable(rig)
        await rig.press(key)
        assert rig.asked == [("answer", 77, decision, "the user")]
        assert "Run this command?" in rig.text(), "it goes when the answer is stored, not before"
        await rig.show(view(tools=[slot(10, "bash", "bash make")]))
        assert "Run this command?" not in rig.text()
        await rig.press("x")
        assert rig.chat.prompt.text == "x"


@pytest.mark.rule("TU-19", "SA-3")
@pytest.mark.parametrize(("before", "asked"), [((), []), (("o", "k"), [("submit", "okyn", "steer")])])
async def test_a_key_pressed_as_the_question_appears_answers_nothing(before: tuple[str, ...], asked: list[tuple[str, ...]]) -> None:
    """Also when it comes right after a message that was being written."""
    async with running(view(streaming=[])) as rig:
        await rig.pilot.press(*before)
        rig.thread.call(rig.conversation.publish, view(tools=[ASKING]))
        for _ in range(3):
            await rig.thread.drained()
            rig.clock.advance(33)
            await rig.pilot.pause()
        assert rig.chat.question.question_id == 77
        await rig.pilot.press("y", "n", "enter", "y", "enter", "n", "escape")
        assert rig.asked == asked


@pytest.mark.rule("SA-15", "TU-19")
@pytest.mark.parametrize(("details", "shown"), [({"sandbox": "full"}, True), ({"sandbox": "files"}, True), ({}, False), ({"sandbox": "none"}, False)])
async def test_a_question_says_when_the_command_would_run_in_a_sandbox(details: dict[str, str], shown: bool) -> None:
    asking = slot(10, "bash", "bash make", status="asking", question=77, arguments={"command": "make all"}, details=details)
    async with running(view(tools=[asking])) as rig:
        assert ("┃ In a sandbox: it can change files of the working directory only" in rig.text()) == shown


@pytest.mark.rule("TU-19")
async def test_a_question_about_an_edit_shows_its_diff_and_how_many_more_wait() -> None:
    edit = slot(
        10,
        "edit",
        "edit a.py",
        status="asking",
        question=77,
        arguments={"path": "a.py"},
        details={"diff": "@@ -1,2 +1,2 @@\n same\n-old\n+new"},
    )
    async with running(view(tools=[edit, ASKING])) as rig:
        shown = rig.text()
        assert "Make this change? · 1 more after this" in shown
        assert "┃ a.py" in shown
        assert "  2 - old" in shown
        assert "  2 + new" in shown


@pytest.mark.rule("TU-11")
async def test_the_footer_tells_place_model_mode_context_cost_and_that_all_is_stored() -> None:
    async with running(view(context_tokens=18_400, cost_usd=0.0412)) as rig:
        assert " ".join(rig.screen_lines()[-1].split()) == "~/code/shop · main playback/story · approve ask · 18.4k context · $0.0412 · ● stored"
        await rig.show(view(streaming=[], committed_at_ms=rig.clock.now_ms() - 3_000))
        assert "● stored 3s ago" in rig.screen_lines()[-1]


@pytest.mark.rule("TU-11", "CASE-E6")
async def test_a_narrow_footer_keeps_the_light_and_the_model() -> None:
    async with running(view(context_tokens=18_400), size=(40, 10)) as rig:
        assert " ".join(rig.screen_lines()[-1].split()) == "playback/story · ● stored"


@pytest.mark.rule("TU-11", "ST-6")
async def test_a_failed_session_turns_the_light_red_and_takes_no_more_work() -> None:
    async with running() as rig:
        rig.thread.call(rig.conversation.break_watch, SessionFailed("disk full"))
        await rig.settle()
        assert "● not stored any more" in rig.screen_lines()[-1]
        assert "disk full" in rig.text()
        await rig.press("x", "enter")
        assert rig.asked == []
        await rig.press("ctrl+d")
        assert rig.app.return_code == SessionFailed.exit_code


@pytest.mark.rule("SE-7")
async def test_a_message_that_was_not_stored_comes_back() -> None:
    async with running() as rig:
        rig.conversation.refuse = SessionFailed("no")
        await rig.type("keep me")
        await rig.press("enter")
        assert rig.chat.prompt.text == "keep me"


async def test_a_store_that_cannot_be_opened_ends_the_app_with_its_code() -> None:
    refuse = StoreLocked("s.sqlite", holder="pid 7")
    async with running(refuse=refuse) as rig:
        assert rig.app.return_code == 3
        assert rig.app.problem is refuse


async def test_the_first_prompt_is_sent_once_open() -> None:
    async with running(first_prompt="do it") as rig:
        assert rig.asked == [("submit", "do it", "followUp")]


async def test_what_is_sent_before_the_store_is_open_goes_out_afterwards() -> None:
    rig = Rig(view())
    try:
        async with rig.app.run_test(size=(100, 30)) as pilot:
            rig.pilot = pilot
            rig.chat.prompt.put("early")
            rig.chat.prompt.send("steer")
            await rig.settle()
            assert rig.asked == [("submit", "early", "followUp")]
            assert rig.chat.prompt.text == ""
    finally:
        rig.thread.close()


async def test_a_new_chat_takes_over_with_the_same_agent() -> None:
    async with running(view(user(1, "old words"), agent=Agent(model=MODEL, title="old"))) as rig:
        await rig.type("/new")
        await rig.press("enter")
        assert rig.asked == [("new", Agent(model=MODEL))]
        assert "old words" not in rig.text()
        await rig.type("hi")
        await rig.press("enter")
        assert ("submit", "hi", "followUp") in rig.following.asked


async def test_approve_says_what_holds_and_changes_it_and_model_takes_a_name() -> None:
    async with running() as rig:
        for line in ("/approve", "/approve nonsense", "/approve edits", "/model my/own"):
            await rig.type(line)
            await rig.press("enter")
        assert rig.asked == [("set_agent", {"approval": "edits"}), ("set_agent", {"model": "my/own"})]


async def test_help_shows_every_key_and_command_and_closes() -> None:
    async with running(size=(120, 110)) as rig:
        await rig.type("/help")
        await rig.press("enter")
        shown = " ".join(word for line in rig.screen_lines() for word in line.strip(" │").split())
        assert all(key.help in shown for key in KEYS)
        assert "/approve [ask|edits|all|plan]" in shown
        await rig.press("escape")
        assert "Commands" not in rig.text()
        assert rig.asked == []


@pytest.mark.rule("TU-9")
async def test_the_seam_and_the_notices_are_shown() -> None:
    notice = Notice(tone="warn", text="No key found for openai")
    async with running(view(user(1, "go"), streaming=["half"]), seam="Killed 14:02:11; nothing lost", notices=[notice]) as rig:
        assert "─── Killed 14:02:11; nothing lost ───" in rig.text()
        assert "! No key found for openai" in rig.text()


@pytest.mark.rule("CL-8", "SA-1")
@pytest.mark.rule("TU-7", "TU-11")
def test_what_subagents_store_counts_too_and_a_quiet_command_is_no_warning() -> None:
    def light(sight: Sight) -> tuple[str, str]:
        _, right = footer_parts(sight, PLACE, light="storing", now_ms=START_MS + 95_000)
        return right[-1].text, right[-1].tone

    quiet = view(committed_at_ms=START_MS)
    said = view(conversation_id=9, committed_at_ms=START_MS + 93_000)
    assert light(Sight(view=quiet)) == ("● stored 1m 35s ago", "good")
    reader = Subagent(task_id=5, name="reader", conversation_id=9, is_background=False, view=said)
    unread = Subagent(task_id=6, name="writer", conversation_id=10, is_background=False, view=None)
    assert light(Sight(view=quiet, subagents=(reader, unread))) == ("● stored 2s ago", "good")


def test_the_last_lines_are_plain_safe_and_at_most_as_many_as_asked() -> None:
    story = view(user(1, "fix"), result(2, "bash", "bash make", "x"), answer(3, f"# Done\n\n{ATTACK}"))
    assert last_lines(story, 5) == ("✓ bash  make  1 line · 0.1s", "", "  Done", "", "  A␛B␛")
    assert last_lines(story, 2) == ("  A␛B␛",)
    assert last_lines(view(), 5) == ()


@pytest.mark.rule("TU-19", "SA-3")
async def test_a_question_that_came_while_something_lay_over_the_chat_takes_no_answer_at_once() -> None:
    async with running(view(streaming=[])) as rig:
        await rig.type("/help")
        await rig.press("enter")
        await rig.show(view(tools=[ASKING]))
        await answerable(rig)
        await rig.pilot.press("escape", "y", "enter")
        assert rig.asked == [], "what was pressed for the page allows nothing"
        await answerable(rig)
        await rig.press("y")
        assert rig.asked == [("answer", 77, "allow", "the user")]


@pytest.mark.rule("TU-7")
async def test_keys_of_the_chat_do_nothing_while_a_page_lies_over_it() -> None:
    async with running(view(user(1, "x"), streaming=[])) as rig:
        await rig.type("/hotkeys")
        await rig.press("enter", "ctrl+t", "alt+s")
        assert "Keys" in rig.text()
        await rig.press("escape")
        assert rig.asked == []
        assert "At work" not in rig.text()
        assert "no subagents" not in rig.text()
