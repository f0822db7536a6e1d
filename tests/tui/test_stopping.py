"""Esc with the real harness below: what runs stops at once, everything has a result, the next prompt works (TU-8, CASE-E4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.harness.ports import TextDelta
from pi_durable_tui.harness.settings import Settings
from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage
from tests.support.scripted_model import Hold, call, fail, say, texts
from tests.support.strict_provider import violations
from tests.support.tui_whole import Whole, whole

WORK = {"name": "reader", "prompt": "read it all"}


async def goes_on(made: Whole) -> None:
    """At once the next prompt is the next request, and a compaction is accepted."""
    asked = len(made.rig.model.requests)
    made.rig.model.then(say("hello to you"), say("the gist"))
    await made.say("hello")
    await made.until("hello to you")
    assert len(made.rig.model.requests) == asked + 1
    assert texts(made.rig.model.requests[-1])[-1][1].endswith("hello")
    assert [violations(request.messages) for request in made.rig.model.requests] == [[]] * (asked + 1)
    await made.say("/compact")
    await made.until("Summary of")
    assert not (await made.stored()).is_busy


async def results(made: Whole) -> list[str]:
    """The texts of all results in the transcript, in order."""
    return [entry.message.text for entry in await made.entries() if isinstance(entry.message, ToolResultMessage)]


@pytest.mark.rule("TU-7", "TU-8", "CASE-E4")
async def test_the_first_escape_stops_the_subagent_and_the_run_goes_on_with_what_it_had_said(tmp_path: Path) -> None:
    async with whole(tmp_path, call(("subagent", WORK)), (TextDelta("I found\ntwo places"), Hold()), say("then without it")) as made:
        await made.say("go")
        shown = await made.until("│ two places")
        assert "◆ reader  answering" in shown
        assert "Esc stops the subagent, twice the run" in shown
        await made.pilot.press("escape")
        shown = await made.until("then without it")
        assert "◆ reader" not in shown
        assert (await results(made))[0].startswith("I found\ntwo places\n<harness>\n[error] Tool subagent was stopped by the user")
        await goes_on(made)


@pytest.mark.rule("TU-8", "CASE-E4")
@pytest.mark.parametrize("pause", [True, False])
async def test_a_second_escape_stops_the_whole_run(tmp_path: Path, pause: bool) -> None:
    """Also when both come before the screen has shown anything of the first."""
    async with whole(tmp_path, call(("subagent", WORK), ("bash", {"command": "sleep 30"})), (TextDelta("I found two places"), Hold())) as made:
        await made.say("go")
        await made.until("│ I found two places")
        await made.pilot.press("escape")
        if pause:
            await made.until("◆ reader", gone=True)
            assert "sleep 30" in made.screen(), "the other call of the round goes on"
        await made.pilot.press("escape")
        await made.until("Esc stops", gone=True)
        assert len(await results(made)) == 2
        assert not (await made.stored()).is_busy
        assert (await made.ask(made.rig.harness.inspect())).tasks == ()
        await goes_on(made)


@pytest.mark.rule("TU-8", "CASE-E4", "CASE-B3")
async def test_escape_in_a_retry_wait_stops_and_is_no_retry(tmp_path: Path) -> None:
    async with whole(tmp_path, fail(retry_after_ms=20_000)) as made:
        await made.say("go")
        await made.until("Attempt 1 failed")
        await made.pilot.press("escape")
        await made.until("Stopped")
        for _ in range(10):
            await made.step(3_000)
        assert len(made.rig.model.requests) == 1
        await goes_on(made)


@pytest.mark.rule("TU-8", "CASE-E4", "CASE-A1")
async def test_escape_in_a_round_of_three_tools_keeps_the_finished_one_and_answers_the_others(tmp_path: Path) -> None:
    calls = call(("bash", {"command": "sleep 30"}), ("bash", {"command": "quick"}), ("bash", {"command": "sleep 60"}))
    async with whole(tmp_path, calls) as made:
        await made.say("go")
        await made.until("sleep 60 began")
        assert "✓ bash  quick" in made.screen()
        await made.pilot.press("escape", "escape")
        shown = await made.until("Esc stops", gone=True)
        assert shown.count("■ bash  sleep") == 2
        assert sorted(text.splitlines()[0] for text in await results(made)) == ["ran quick", "sleep 30 began", "sleep 60 began"]
        await goes_on(made)


@pytest.mark.rule("TU-8", "CASE-E4")
async def test_escape_while_an_answer_streams_keeps_what_came_and_brings_queued_messages_back(tmp_path: Path) -> None:
    async with whole(tmp_path, (TextDelta("half an answer"), Hold())) as made:
        await made.say("go")
        await made.until("half an answer")
        await made.say("and then this")
        await made.until("queued, steers")
        await made.pilot.press("escape")
        shown = await made.until("Stopped")
        assert "half an answer" in shown
        await made.until("and then this")
        assert made.app.chat.prompt.text == "and then this"
        made.app.chat.prompt.put("")
        (answer,) = [entry.message for entry in await made.entries() if isinstance(entry.message, AssistantMessage)]
        assert (answer.text, answer.stop_reason) == ("half an answer", "aborted")
        await goes_on(made)


@pytest.mark.rule("TU-8", "TU-17", "CASE-E4")
async def test_escape_cancels_a_summary_that_was_asked_for_and_nothing_else(tmp_path: Path) -> None:
    async with whole(tmp_path, say("one " + "a" * 400), say("two " + "b" * 400)) as made:
        for question, answer in (("first", "one"), ("second", "two")):
            await made.say(question)
            await made.until(answer)
            await made.rested()
        before = await made.entries()
        made.rig.model.then((TextDelta("the gi"), Hold()))
        await made.say("/compact the names")
        await made.until("Summarizing what came before")
        shown = await made.until("; the newest")
        assert "Summarizing 3 entries (105 tokens); the newest entry stays as before" in " ".join(shown.split())
        assert "Esc cancels the summary" in shown
        await made.pilot.press("escape")
        await made.until("Esc cancels", gone=True)
        await made.until("; the newest", gone=True)  # nothing speaks of a summary that is not being made any more
        assert await made.entries() == before
        assert (await made.stored()).live.compactions == ()
        await goes_on(made)


@pytest.mark.rule("TU-8", "TU-17", "CASE-E4")
async def test_escape_stops_the_run_first_and_a_summary_beside_it_next(tmp_path: Path) -> None:
    async with whole(tmp_path, say("one " + "a" * 400), say("two " + "b" * 400)) as made:
        for question, answer in (("first", "one"), ("second", "two")):
            await made.say(question)
            await made.until(answer)
            await made.rested()
        made.rig.model.then((TextDelta("three"), Hold()), (TextDelta("the gi"), Hold()))
        await made.say("third")
        await made.until("three")
        await made.say("/compact")
        await made.until("a summary is being made")
        await made.pilot.press("escape")
        await made.until("Stopped")
        await made.until("Esc cancels the summary")
        await made.pilot.press("escape")
        await made.until("Esc cancels", gone=True)
        await goes_on(made)


@pytest.mark.rule("TU-8", "CASE-E4")
async def test_escape_in_a_summary_that_the_run_waits_for_stops_both(tmp_path: Path) -> None:
    overflow = fail("context_overflow", retryable=False)
    async with whole(tmp_path, say("one " + "a" * 400), say("two " + "b" * 400), overflow, (TextDelta("the gi"), Hold()), settings=Settings()) as made:
        made.rig.settings.compaction.keep_tokens = 100
        for question, answer in (("first", "one"), ("second", "two")):
            await made.say(question)
            await made.until(answer)
            await made.rested()
        await made.say("third")
        await made.until("Summarizing what came before, then going on")
        await made.pilot.press("escape")
        await made.until("Stopped")
        assert (await made.ask(made.rig.harness.inspect())).tasks == ()
        await goes_on(made)
