"""A chat is recorded, and the recording comes to the same when it is played: what the person did, and what the model said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest

from pi_durable_tui.errors import NotFound, Refused
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Finished, TextDelta, ThinkingDelta, Tool, ToolCallDelta, ToolContext, ToolResult
from pi_durable_tui.playback.folder import CARD, INPUT, MODEL
from pi_durable_tui.playback.recording.story import cleaning
from pi_durable_tui.playback.steps import Answer, Approve, Compact, Fork, Join, Kill, Step, Stop, Submit, When
from pi_durable_tui.records.messages import Text
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.harness_rig import Rig
from tests.support.recorded_rig import logical_dump, played, recording_of, steps_of
from tests.support.scripted_model import Hold, Pause, call, fail, say
from tests.support.scripted_model import Step as Said

Happening: TypeAlias = Callable[[Rig, Conversation], Awaitable[object]]


class Words(msgspec.Struct):
    """Arguments of the tools here."""

    words: str = ""


async def _act(arguments: Words, _context: ToolContext) -> ToolResult:
    return ToolResult(content=(Text(text=f"acted {arguments.words}"),))


async def _wait(arguments: Words, context: ToolContext) -> ToolResult:
    context.output(f"begun {arguments.words}\n")
    await asyncio.get_running_loop().create_future()
    raise AssertionError


ACT = Tool(name="act", description="", arguments=Words, execute=_act, title=lambda _: "act", access="edit")
WAIT = Tool(name="wait", description="", arguments=Words, execute=_wait, title=lambda _: "wait", access="edit")
TOOLS = (ACT, WAIT, *subagent_tools())
FINE = say("fine")


async def _ask(rig: Rig, conversation: Conversation, text: str = "go") -> None:
    await conversation.submit(text)
    await rig.run_out(conversation)


async def _during(rig: Rig, conversation: Conversation, act: Callable[[], Coroutine[Any, Any, object]], *, goes_on: bool = True) -> None:
    """Ask, let everything happen that can happen, act, and run to the end."""
    await conversation.submit("go")
    for _ in range(4):
        await rig.settle()
        rig.clock.advance(500)  # what is said and printed meanwhile is stored
    await rig.settle()
    acting = asyncio.ensure_future(act())
    await rig.until(acting.done, jump=True)
    await acting
    if goes_on:
        await rig.run_out(conversation)


async def stopped(rig: Rig, conversation: Conversation) -> None:
    await _during(rig, conversation, conversation.abort)


async def killed(rig: Rig, conversation: Conversation) -> None:
    await _during(rig, conversation, rig.kill, goes_on=False)
    await rig.open()
    again = await rig.harness.conversation(conversation.id)
    await rig.harness.resume()
    await rig.run_out(again)


async def steered(rig: Rig, conversation: Conversation) -> None:
    async def act() -> None:
        await conversation.submit("left instead", mode="steer")
        await conversation.submit("and then?", mode="followUp")

    await _during(rig, conversation, act)


async def answered_for_good(rig: Rig, conversation: Conversation) -> None:
    async def act() -> None:
        questions = [slot.question for slot in (await rig.live(conversation.id)).tools]
        for question, decision in zip(reversed(questions), ("deny", "allow"), strict=True):
            assert question is not None
            await conversation.answer(question, decision, by="the person of the story")  # type: ignore[arg-type]

    await _during(rig, conversation, act)


async def changed_mind(rig: Rig, conversation: Conversation) -> None:
    await _ask(rig, conversation, "one")
    await conversation.set_agent(approval="plan")
    await _ask(rig, conversation, "two")


async def compacted(rig: Rig, conversation: Conversation) -> None:
    for text in ("one", "two", "three"):
        await _ask(rig, conversation, f"{text} {'word ' * 30_000}")
    await conversation.compact("the words")
    await rig.run_out(conversation)
    await _ask(rig, conversation, "four")


async def forked(rig: Rig, conversation: Conversation) -> None:
    await _ask(rig, conversation, "one")
    await _ask(rig, conversation, "two")
    first = next(entry.id for entry in await rig.entries(conversation.id) if entry.kind == "pi.assistant")
    fork = await rig.harness.fork(conversation.id, first)
    await _ask(rig, fork, "three")


async def stopped_with_its_subagent(rig: Rig, conversation: Conversation) -> None:
    await _during(rig, conversation, conversation.abort)
    await _ask(rig, conversation, "again")


async def stopped_subagent(rig: Rig, conversation: Conversation) -> None:
    async def act() -> None:
        slot = (await rig.live(conversation.id)).tools[0]
        assert slot.subagent is not None
        await conversation.abort_task(slot.subagent)

    await _during(rig, conversation, act)


HALF = (TextDelta("half of "), TextDelta("it"), Hold())
SILENT = (Hold(),)
SUBAGENT = ("subagent", {"name": "reader", "prompt": "read"})
STORIES: dict[str, tuple[Sequence[Sequence[Said]], Happening, tuple[Step, ...]]] = {
    "a thought, a call and its result": (
        (
            (ThinkingDelta("hm "), ThinkingDelta("so"), TextDelta("Look:"), ToolCallDelta(0, "c1", "act", '{"words": "é"}'), Finished("toolUse")),
            FINE,
        ),
        _ask,
        (Submit(text="go"),),
    ),
    "a call that is no JSON": (((ToolCallDelta(0, "c1", "act", '{"words": '), Finished("toolUse")), FINE), _ask, (Submit(text="go"),)),
    "an answer cut at the limit": (((TextDelta("so far"), Finished("length")),), _ask, (Submit(text="go"),)),
    "attempts that fail, with words and without": (((TextDelta("a bit"), *fail("overloaded")), fail(), FINE), _ask, (Submit(text="go"),)),
    "a request that is refused": ((fail("auth", retryable=False, message="No such key."),), _ask, (Submit(text="go"),)),
    "an answer that is stopped": ((HALF,), stopped, (Submit(text="go"), Stop(when=When(answer_contains="half of it")))),
    "a model that says nothing and is stopped": ((SILENT,), stopped, (Submit(text="go"), Stop(when=When(answer_contains="", turn=1)))),
    "a call that is stopped": (
        (call(("wait", {"words": "w"})),),
        stopped,
        (Submit(text="go"), Stop(when=When(tool="wait", call="c1", output_contains="begun w\n"))),
    ),
    "silence after a call, and a stop": ((call(("act", {})), SILENT), stopped, (Submit(text="go"), Stop(when=When(answer_contains="", turn=2)))),
    "a death in an answer": ((HALF, FINE), killed, (Submit(text="go"), Kill(when=When(answer_contains="half of it")))),
    "a death in a call": (
        (call(("wait", {"words": "w"})), FINE),
        killed,
        (Submit(text="go"), Kill(when=When(tool="wait", call="c1", output_contains="begun w\n"))),
    ),
    "words that join a run, and words for after it": (
        ((TextDelta("some words first, "), Pause(5_000), *call(("act", {}))), FINE, FINE),
        steered,
        (
            Submit(text="go"),
            Join(text="left instead", mode="steer", when=When(answer_contains="some words first,", turn=1)),
            Join(text="and then?", mode="followUp", when=When(answer_contains="some words first,", turn=1)),
        ),
    ),
    "two questions, answered the other way round": (
        (call(("act", {"words": "1"}), ("act", {"words": "2"})), FINE),
        answered_for_good,
        (
            Submit(text="go"),
            Answer(decision="allow", when=When(asks="act", call="c1")),
            Answer(decision="deny", when=When(asks="act", call="c2")),
        ),
    ),
    "another approval mode": (
        (call(("act", {})), FINE, call(("act", {}), ids=("c2",)), FINE),
        changed_mind,
        (Submit(text="one"), Approve(mode="plan"), Submit(text="two")),
    ),
    "a fork": ((say("first"), say("second"), say("third")), forked, (Submit(text="one"), Submit(text="two"), Fork(at="first"), Submit(text="three"))),
    "a subagent that is stopped": (
        (call(SUBAGENT), HALF, FINE),
        stopped_subagent,
        (Submit(text="go"), Stop(when=When(answer_contains="half of it", in_subagent="c1"))),
    ),
    "a run that is stopped with its subagent": (
        (call(SUBAGENT), HALF, FINE),
        stopped_with_its_subagent,
        (Submit(text="go"), Stop(when=When(answer_contains="half of it", in_subagent="c1"), all_of_it=True), Submit(text="again")),
    ),
}


def _fresh(script: Sequence[Said]) -> Sequence[Said]:
    """The script with holds of its own: one can be waited for on one event loop only."""
    return [Hold() if isinstance(step, Hold) else step for step in script]


@pytest.mark.parametrize("name", STORIES)
async def test_a_chat_and_the_playing_of_its_recording_leave_the_same_records(tmp_path: Path, name: str) -> None:
    scripts, happening, steps = STORIES[name]
    approval = "ask" if "question" in name else "all"
    rig = Rig(tmp_path, tools=TOOLS)
    conversation = await rig.start(*map(_fresh, scripts), agent=Agent(model="test/model", approval=approval, cwd=str(tmp_path)))
    await happening(rig, conversation)
    newest = max(chat.conversation_id for chat in await rig.harness.chats())
    made = await recording_of(rig, newest)
    again = await played(made, Rig(tmp_path, tools=TOOLS), tmp_path / "progress.txt", approval=approval)
    assert (steps_of(made), made.missing) == (steps, ())
    assert await logical_dump(again) == await logical_dump(rig)
    await rig.close()
    await again.close()


async def test_a_summary_that_was_asked_for_is_asked_for_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=TOOLS)
    conversation = await rig.start(FINE, FINE, FINE, say("they said words"), FINE)
    await compacted(rig, conversation)
    made = await recording_of(rig, conversation.id)
    assert [step for step in steps_of(made) if not isinstance(step, Submit)] == [Compact(focus="the words")]
    again = await played(made, Rig(tmp_path, tools=TOOLS), tmp_path / "progress.txt")
    assert await logical_dump(again) == await logical_dump(rig)
    await rig.close()
    await again.close()


async def test_an_unfinished_chat_and_one_without_words_are_not_recorded(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=TOOLS)
    conversation = await rig.start((Hold(),))
    with pytest.raises(Refused, match="Nobody has said anything"):
        await recording_of(rig, conversation.id)
    await conversation.submit("go")
    await rig.settle()
    with pytest.raises(Refused, match=r"The chat is unfinished\. Nothing was written\."):
        await recording_of(rig, conversation.id)
    with pytest.raises(NotFound):
        await recording_of(rig, 999)
    await rig.close()


@pytest.mark.rule("SA-17")
async def test_keys_and_the_names_of_folders_stay_out_of_every_file_and_what_is_missing_is_said(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=TOOLS)
    key, directory, home = "sk-0123456789abcdef", "/h/project", "/h"
    conversation = await rig.start(
        call(("act", {"words": f"{directory}/a.py {directory} {directory}2 {home}/b"}), text=f"See {directory}/a.py"), say(f"It is {key}.")
    )
    await conversation.submit([Text(text=f"Use {key} in {directory}/x"), Text(text="Attached file x")])
    await rig.run_out(conversation)
    made = await recording_of(rig, conversation.id, cleaning(lambda text: text.replace(key, "[redacted]"), directory=directory, home=home))
    lines = [json.loads(line) for line in made.texts[MODEL].splitlines()]
    assert [line["text"] for line in lines if line["type"] == "text"] == ["See a.py", "It is [redacted]."]
    assert next(line["arguments"] for line in lines if line["type"] == "call") == {"words": "a.py . ~/project2 ~/b"}
    assert json.loads(made.texts[INPUT]) == {"submit": "Use [redacted] in x"}
    assert made.missing == ("1 message(s) brought files or pictures along: put the files into workspace/.",)
    assert made.texts[CARD].splitlines() == [
        'title = "Use [redacted] in xAttached file x"',
        'shows = "A chat as it was recorded."',
        'approve = "all"',
        "",
        "# What happened and is not in it, or not as it was:",
        "# - 1 message(s) brought files or pictures along: put the files into workspace/.",
    ]
    await rig.close()


async def test_an_answer_comes_over_the_time_that_it_took_and_a_slow_one_is_not_waited_for(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=TOOLS)
    conversation = await rig.start((Pause(1_000), TextDelta("one two three four")), (Pause(3_600_000), *say("late")))
    assert await _paces(rig, conversation) == [(200, 200), (5_000, 250)]
    await rig.close()


async def _paces(rig: Rig, conversation: Conversation) -> list[tuple[int, int]]:
    """(before the first word, between words) of each answer that was recorded; the first one breaks off and is tried again."""
    await _ask(rig, conversation)
    made = await recording_of(rig, conversation.id)
    lines = [json.loads(line) for line in made.texts[MODEL].splitlines()]
    return [(line["after_ms"], line["each_ms"]) for line in lines if line["type"] == "text"]
