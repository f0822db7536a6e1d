"""After a crash: what a person says of calls whose end nobody knows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual import events

from pi_durable_tui.harness.tool.checkpoint import CallInput, Execute
from pi_durable_tui.records.codec import to_json
from pi_durable_tui.records.task import Pending, Task
from pi_durable_tui.tui.actions.doubt import Doubt, doubts, instruction
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import START_MS, result, user, view

INTERRUPTED = [{"level": "error", "code": "interrupted", "message": "Tool bash was interrupted and may have partially run"}]


def task(task_id: int, title: str, *, phase: str = "execute", replay: str = "unsafe") -> Task:
    asked = CallInput(assistant=1, call_id="c", name="bash", arguments={"command": title})
    intent = to_json(Execute(arguments={"command": title}, replay=replay, title=title))
    checkpoint = intent if phase == "execute" else {"phase": phase}
    return Task(id=task_id, kind="pi.tool", conversation_id=1, input=to_json(asked), state=Pending(checkpoint=checkpoint), created_at_ms=START_MS)


def interrupted(entry_id: int, title: str, task_id: int):
    return result(entry_id, "bash", title, "half", is_error=True, diagnostics=INTERRUPTED, taskId=task_id)


async def answerable(rig: Rig) -> None:
    rig.clock.advance(1_000)
    await rig.settle()


@pytest.mark.rule("TU-9")
def test_calls_in_doubt_are_those_that_wait_and_those_that_were_told_since_the_opening() -> None:
    made = view(interrupted(3, "old", 70), user(4, "x"), interrupted(6, "bash make", 71), result(7, "bash", "bash ok", "fine"), seq=7)
    made = replace(made, tasks=(task(71, "bash make"), task(72, "bash [/x]"), task(73, "safe", replay="safe"), task(74, "asked", phase="call")))
    assert doubts(made, 5) == (Doubt(task_id=71, title="bash make"), Doubt(task_id=72, title="bash [/x]"))


def test_each_answer_is_a_message_that_says_what_the_person_knows() -> None:
    doubt = Doubt(task_id=1, title="bash make")
    assert [instruction(doubt, answer) for answer in ("interrupted", "again", "finished", "skip")] == [
        "",
        "Run the interrupted call `bash make` again.",
        "I checked: the interrupted call `bash make` had finished before the interruption. Take it as done and do not run it again.",
        "Leave out the interrupted call `bash make`: do not run it again, and go on without it.",
    ]


@pytest.mark.rule("TU-9")
@pytest.mark.parametrize(("key", "said"), [("enter", None), ("1", None), ("2", "Run the"), ("3", "I checked"), ("4", "Leave out")])
async def test_the_card_asks_about_each_call_and_the_work_goes_on_meanwhile(key: str, said: str | None) -> None:
    first = replace(view(user(1, "go"), seq=5), tasks=(task(71, "bash make all"), task(72, "bash make test")))
    async with running(first, seam="killed 14:02:11; nothing lost; 2 commands in doubt") as rig:
        assert ("resume",) in rig.conversation.asked
        assert "What became of this call? · 1 more after this" in rig.text()
        assert "┃ bash make all" in rig.text()
        await rig.press(key)
        assert "bash make all" in rig.text(), "a key pressed as it appears answers nothing"
        await answerable(rig)
        await rig.press(key)
        assert "┃ bash make test" in rig.text()
        await rig.press(key)
        assert "What became" not in rig.text()
        submitted = [call for call in rig.asked if call[0] == "submit"]
        assert [mode for _, _, mode in submitted] == (["steer", "steer"] if said else [])
        assert [text.startswith(said or "") for _, text, _ in submitted] == [True] * len(submitted)
        await rig.show(view(user(1, "go"), interrupted(6, "bash make all", 71), interrupted(7, "bash make test", 72), seq=7))
        assert "What became" not in rig.text(), "told once"
        await rig.press("x")
        assert rig.chat.prompt.text == "x"


@pytest.mark.rule("TU-9", "SA-3")
async def test_typing_goes_into_the_composer_and_escape_closes_the_card() -> None:
    first = replace(view(user(1, "go"), seq=5), tasks=(task(71, "bash [/dim] make"),))
    async with running(first) as rig:
        assert "bash [/dim] make" in rig.text()
        await rig.press("h", "i")
        assert rig.chat.prompt.text == "hi"
        await rig.press("escape")
        assert "What became" not in rig.text()
        assert [call for call in rig.asked if call[0] != "abort"] == []


@pytest.mark.rule("TU-9", "TU-10")
async def test_digits_in_a_burst_of_typing_are_text_and_no_answers() -> None:
    first = replace(view(user(1, "go"), seq=5), tasks=(task(71, "bash make all"),))
    async with running(first) as rig:
        await answerable(rig)
        for key in ("h", "1", "2"):  # all of it arrives before the focus has moved
            rig.pilot.app.post_message(events.Key(key, key))
        await rig.settle()
        assert rig.chat.prompt.text == "h12"
        assert rig.asked == []


@pytest.mark.rule("TU-9")
async def test_work_waits_for_a_word_when_the_person_wished_to_be_asked() -> None:
    first = replace(view(user(1, "go"), seq=5), tasks=(task(71, "bash make all"),))
    async with running(first, waits=True) as rig:
        assert ("resume",) not in rig.conversation.asked
        await answerable(rig)
        await rig.press("2")
        assert rig.asked == [("submit", "Run the interrupted call `bash make all` again.", "steer")]
        assert ("resume",) in rig.conversation.asked


@pytest.mark.rule("TU-9")
async def test_without_doubt_it_asks_whether_to_go_on() -> None:
    first = replace(view(user(1, "go"), seq=5), tasks=(task(71, "x", phase="call"),))
    async with running(first, waits=True) as rig:
        assert "Go on with what was cut off?" in rig.text()
        await answerable(rig)
        await rig.press("enter")
        assert ("resume",) in rig.conversation.asked
        assert "Go on with" not in rig.text()
