"""Playing the person's steps on a conversation, over kills, and telling what happened as text."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal, NoReturn

import msgspec
import pytest

from pi_durable_tui.errors import ConfigError
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.live import Agent, Generation, Live, RetryWait
from pi_durable_tui.harness.ports import TextDelta, Tool, ToolContext, ToolResult
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.playback.player import PlainHands, holds, play
from pi_durable_tui.playback.steps import Answer, Fork, Kill, Step, Stop, Submit, When
from pi_durable_tui.playback.story import Told, tell, told_so_far
from pi_durable_tui.records.entry import ASSISTANT, TOOL_RESULT
from pi_durable_tui.records.messages import AssistantMessage, Problem, Text
from pi_durable_tui.records.submission import Done
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.harness_rig import Rig
from tests.support.scripted_model import Hold, call, say
from tests.support.tui_views import answer, result, slot, user, view


class _Died(Exception):
    """Stands for SIGKILL."""


def _die() -> NoReturn:
    raise _Died


ANSWER = say("fine")


async def _play(rig: Rig, conversation: Conversation, *steps: Step) -> list[Step]:
    """Play all steps, jumping over every wait; the steps that were noted."""
    noted: list[Step] = []
    playing = asyncio.ensure_future(
        play(
            steps,
            taken=0,
            conversation=conversation,
            conversations=rig.harness,
            hands=PlainHands(conversation, rig.harness, lambda _made, _entry: None),
            clock=rig.clock,
            note=noted.append,
            die=_die,
        )
    )
    await rig.until(playing.done, jump=True)
    try:
        await playing
    except _Died:
        noted.append(DEATH)
    return noted


DEATH = Kill(when=When())


class Nothing(msgspec.Struct):
    """No arguments."""


async def _act(_arguments: Nothing, _context: ToolContext) -> ToolResult:
    return ToolResult(content=(Text(text="acted"),))


ACT = Tool(name="act", description="", arguments=Nothing, execute=_act, title=lambda _: "act")


async def test_prompts_are_sent_one_after_the_other_and_each_step_is_noted(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    conversation = await rig.start(ANSWER, ANSWER)
    steps = (Submit(text="one"), Submit(text="two"))
    assert await _play(rig, conversation, *steps) == list(steps)
    submissions = (await rig.harness.session.storage.submissions()).items
    assert [(item.request_id, type(item.state)) for item in submissions] == [("step-1", Done), ("step-2", Done)]
    await rig.close()


@pytest.mark.rule("SU-2")
async def test_a_prompt_whose_note_was_lost_in_a_kill_is_not_sent_twice(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    conversation = await rig.start(ANSWER)
    for _ in range(2):
        await _play(rig, conversation, Submit(text="one"))
    assert len((await rig.harness.session.storage.submissions()).items) == 1
    await rig.close()


async def test_the_kill_comes_at_its_moment_and_after_its_note(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    conversation = await rig.start((TextDelta("half of it"), Hold()))
    steps = (Submit(text="one"), Kill(when=When(answer_contains="half of")), Submit(text="two"))
    assert await _play(rig, conversation, *steps) == [*steps[:2], DEATH]
    await rig.close()


async def test_escape_stops_the_run_at_its_moment(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    conversation = await rig.start((TextDelta("half of it"), Hold()))
    steps = (Submit(text="one"), Stop(when=When(answer_contains="half")))
    assert await _play(rig, conversation, *steps) == list(steps)
    assert not (await conversation.view()).is_busy
    await rig.close()


@pytest.mark.rule("TU-8")
async def test_escape_stops_the_subagent_at_work_and_the_run_goes_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=subagent_tools())
    conversation = await rig.start(call(("subagent", {"name": "reader", "prompt": "read"})), (TextDelta("half of it"), Hold()), say("went on"))
    steps = (Submit(text="one"), Stop(when=When(in_subagent=True, answer_contains="half")))
    assert await _play(rig, conversation, *steps) == list(steps)
    assert (await rig.entries(conversation.id))[-1].message.text == "went on"
    await rig.close()


@pytest.mark.rule("TU-19")
@pytest.mark.parametrize(("decision", "is_error"), [("allow", False), ("deny", True)])
async def test_a_question_is_answered_at_its_moment(tmp_path: Path, decision: Literal["allow", "deny"], *, is_error: bool) -> None:
    rig = Rig(tmp_path, tools=(ACT,))
    conversation = await rig.start(call(("act", {})), say("done"), agent=Agent(model="test/model", approval="ask", cwd=str(tmp_path)))
    steps = (Submit(text="one"), Answer(decision=decision, when=When(asks="act")))
    assert await _play(rig, conversation, *steps) == list(steps)
    assert [entry.message.is_error for entry in await rig.entries(conversation.id) if entry.kind == TOOL_RESULT] == [is_error]
    await rig.close()


async def test_a_fork_goes_on_from_the_answer_that_holds_the_text_and_the_first_chat_stays(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    conversation = await rig.start(say("a or b"), say("took a"), say("took b"))
    steps = (Submit(text="which?"), Submit(text="a"), Fork(at="a or b"), Submit(text="b"))
    assert await _play(rig, conversation, *steps) == list(steps)
    newest = max(chat.conversation_id for chat in await rig.harness.chats())
    assert [entry.message.text for entry in await rig.entries(conversation.id) if entry.kind == ASSISTANT] == ["a or b", "took a"]
    assert [entry.message.text for entry in await rig.entries(newest) if entry.kind == ASSISTANT] == ["a or b", "took b"]
    with pytest.raises(ConfigError, match="forks at an answer with 'never said'"):
        await _play(rig, conversation, Fork(at="never said"))
    await rig.close()


async def test_a_moment_that_never_comes_is_told_instead_of_waited_for(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    conversation = await rig.start(ANSWER)
    with pytest.raises(ConfigError, match="The moment of step 2 of the recorded session never came"):
        await _play(rig, conversation, Submit(text="one"), Kill(when=When(answer_contains="never said")))
    await rig.close()


@pytest.mark.parametrize(
    ("when", "seen", "expected"),
    [
        (When(answer_contains="ab"), view(user(1, "x"), streaming=["xaby"]), True),
        (When(answer_contains="ab"), view(user(1, "x"), answer(2, "ab")), False),
        (When(tool="bash"), view(tools=[slot(5, "bash", "bash x")]), True),
        (When(tool="bash"), view(tools=[slot(5, "bash", "bash x", status="pending")]), False),
        (When(tool="bash", output_contains="go"), view(tools=[slot(5, "bash", "bash x", output="g")]), False),
        (When(tool="bash", output_contains="go"), view(tools=[slot(5, "bash", "bash x", output="gogo")]), True),
        (When(tool="read"), view(tools=[slot(5, "bash", "bash x")]), False),
        (When(asks="bash"), view(tools=[slot(5, "bash", "bash x", status="asking", question=9)]), True),
        (When(asks="bash"), view(tools=[slot(5, "bash", "bash x")]), False),
        (When(asks="read"), view(tools=[slot(5, "bash", "bash x", status="asking", question=9)]), False),
    ],
)
def test_a_moment_is_told_by_what_is_stored(when: When, seen: ConversationView, *, expected: bool) -> None:
    assert holds(when, seen) is expected


# ------------------------------------------------------------------------------------------------------------- the telling


def _told(*views: ConversationView) -> list[str]:
    told, pieces = Told(), []
    for each in views:
        piece, told = tell(told, each)
        pieces.append(piece)
    return pieces


def test_an_answer_is_told_as_it_grows_and_not_again_when_it_is_whole() -> None:
    asked = user(1, "why?")
    assert _told(view(asked), view(asked, streaming=["Be"]), view(asked, streaming=["Because"]), view(asked, answer(2, "Because so."))) == [
        "\n> why?\n",
        "\nBe",
        "cause",
        " so.\n",
    ]


def test_a_command_is_told_with_its_output_as_it_comes_and_then_the_rest() -> None:
    running = [slot(5, "bash", "bash make", output=output) for output in ("", "one\ntw", "one\ntwo\n")]
    ended = result(9, "bash", "bash make", "one\ntwo\nthree\n")
    ended_call = view(ended, tools=[])
    shown = _told(*(view(tools=[each]) for each in running))
    assert shown == ["\n  ▸ bash make\n", "    │ one\n", "    │ two\n"]
    assert tell(Told(calls={"c9": 2}), ended_call)[0] == "    │ three\n"


def test_a_result_that_was_not_seen_running_is_told_with_its_last_lines() -> None:
    told = _told(view(result(9, "read", "read f", "\n".join(str(number) for number in range(10)), is_error=True)))
    assert told == ["\n  ▸ read f\n  ✗ │ … 2 lines more\n" + "".join(f"  ✗ │ {number}\n" for number in range(2, 10))]


def test_what_was_there_before_is_not_told_again() -> None:
    seen = view(user(1, "why?"), answer(2, "so"))
    assert tell(told_so_far(seen), seen)[0] == ""


def test_an_answer_that_was_cut_off_says_so_and_a_wait_is_told_once() -> None:
    cut = answer(2, "half", stop="aborted", problem=Problem(reason="interrupted"))
    message = AssistantMessage(content=(Text(text=""),), model="m", stop_reason="aborted")
    retry = RetryWait(attempt=2, until_ms=0, problem=Problem(reason="interrupted"))
    waiting = Live(generation=Generation(task_id=1, attempt=2, started_at_ms=0, message=message, retry=retry))
    seen = view(user(1, "x"), cut)
    later = ConversationView(conversation=seen.conversation, seq=9, committed_at_ms=0, entries=seen.entries, live=waiting)
    assert _told(seen, later, later) == ["\n> x\n\nhalf\n  [interrupted: this answer was cut off here]\n", "  … trying again: interrupted\n", ""]
