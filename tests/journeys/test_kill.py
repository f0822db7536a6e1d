"""The app is killed with SIGKILL in the middle of work, and `pidurable --continue` finishes it (proof.md, PR-2, PR-3, PR-6, PR-7; TU-9)."""

from __future__ import annotations

import re

import pytest

from tests.journeys.conftest import Begin
from tests.support.journey_desk import calls, numbered, processes, says, wait_until
from tests.support.journey_terminal import Terminal

TOKEN = re.compile(r"n\d{3}")


def tokens(text: str) -> list[str]:
    """The whole numbered words of a text, in order."""
    return TOKEN.findall(text)


def transcript(terminal: Terminal) -> list[str]:
    """The lines above the composer that are not about what goes on right now."""
    lines = terminal.app_lines()
    end = max(index for index, line in enumerate(lines) if line.startswith("╭"))
    return [line.strip() for line in lines[:end] if line.strip() and line[0] not in "⠋⠙⠹⠸⠼⠴⠦⠧"]


@pytest.mark.slow
@pytest.mark.rule("PR-2", "PR-3", "TU-9", "CASE-A1", "FA-15", "FA-16")
def test_a_kill_in_the_middle_of_an_answer_loses_nothing_that_was_seen_and_the_run_goes_on_by_itself(begin: Begin) -> None:
    journey = begin([*numbered(60, delay_ms=15), {"stall": True}], says("This is the whole answer."))
    terminal = journey.start("--approve", "all")
    terminal.send("count for me")
    terminal.wait_for("n040")
    terminal.kill()
    seen = transcript(terminal)
    shown = tokens(" ".join(seen))
    assert shown[:41] == [f"n{number:03}" for number in range(41)]

    again = journey.start("--continue")
    again.wait_for("This is the whole answer.", "● stored", "killed", "nothing lost", "Interrupted here")
    after = " ".join(transcript(again))
    assert tokens(after)[: len(shown)] == shown
    assert [line for line in seen if not TOKEN.search(line) and line not in after] == []
    assert len(journey.requests) == 2
    assert journey.refused == []
    assert journey.requests[1]["messages"][-1]["role"] == "user"


@pytest.mark.slow
@pytest.mark.rule("PR-6", "PR-7", "TU-9", "CASE-A5", "CASE-A1", "FA-33", "FA-34", "FA-36")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", "", id="in-the-foreground"),
        pytest.param("setsid nohup sh -c '", "' & wait", id="in-a-session-of-its-own"),
        pytest.param("trap '' TERM; ", "", id="deaf-to-TERM"),
    ],
)
def test_a_kill_while_a_command_runs_ends_the_command_and_never_runs_it_again(begin: Begin, before: str, after: str) -> None:
    mark = "sleep 5.0" + str(len(before)).zfill(4)
    journey = begin(calls(("bash", {"command": f"{before}{mark}; echo done >> effects.txt{after}"})), says("I heard it was interrupted."))
    terminal = journey.start("--approve", "all")
    terminal.send("make an effect")
    terminal.wait_for("Running bash")
    terminal.wait_until(lambda: processes(mark) != [], what="the command to run")
    terminal.kill()
    assert wait_until(lambda: processes(mark) == [], what="the end of the command") < 1.0

    again = journey.start("--continue")
    again.wait_for("I heard it was interrupted.", "● stored", "1 command in doubt")
    assert processes(mark) == []
    assert not (journey.work / "effects.txt").exists()
    results = [message for message in journey.requests[-1]["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == ["call_1"]
    assert "was interrupted and may have partially run" in results[0]["content"]
    assert journey.refused == []


@pytest.mark.slow
@pytest.mark.rule("PR-6", "CASE-A5", "TU-9")
def test_a_kill_after_the_effect_does_not_make_it_twice(begin: Begin) -> None:
    journey = begin(calls(("bash", {"command": "echo done >> effects.txt; sleep 331.7"})), says("I look at the file instead."))
    terminal = journey.start("--approve", "all")
    terminal.send("make an effect")
    terminal.wait_until((journey.work / "effects.txt").exists, what="the effect")
    terminal.kill()
    again = journey.start("--continue")
    again.wait_for("I look at the file instead.", "● stored")
    assert (journey.work / "effects.txt").read_text() == "done\n"
    assert journey.refused == []


@pytest.mark.slow
@pytest.mark.rule("TU-10", "CASE-A2", "TU-12")
def test_the_draft_and_the_queued_messages_survive_a_kill(begin: Begin) -> None:
    journey = begin([{"text": "Working on the first."}, {"stall": True}], says("First done."), says("Second done."), says("Third done."))
    terminal = journey.start("--approve", "all")
    terminal.send("first request")
    terminal.wait_for("Working on the first.")
    terminal.type("second request")
    terminal.press("alt+enter")
    terminal.wait_for("follow-up second request")
    terminal.type("third request")
    terminal.press("alt+enter")
    terminal.wait_for("follow-up third request")
    terminal.type("a thought not sent yet")
    terminal.read_for(0.4)  # a draft is stored at most every 100 ms
    terminal.kill()

    again = journey.start("--continue")
    again.wait_for("2 messages queued", "a thought not sent yet")
    again.wait_for("First done.", "second request", "Second done.", "third request", "Third done.", "● stored")
    assert "a thought not sent yet" in again.screen().rpartition("╭")[2]
    assert journey.refused == []
    assert [tokens_of(body) for body in journey.requests[1:]] == [
        ["first request"],
        ["first request", "second request"],
        ["first request", "second request", "third request"],
    ]


def tokens_of(body: dict) -> list[str]:
    """What the person said in a request."""
    return [
        message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]
        for message in body["messages"]
        if message["role"] == "user"
    ]


@pytest.mark.slow
@pytest.mark.rule("TU-19", "TU-9")
def test_an_open_question_is_asked_again_after_a_kill_and_its_answer_counts(begin: Begin) -> None:
    journey = begin(calls(("bash", {"command": "echo done >> effects.txt"})), says("It is done."))
    terminal = journey.start("--approve", "ask")
    terminal.send("make an effect")
    terminal.wait_for("Run this command?", "echo done >> effects.txt")
    terminal.kill()
    assert not (journey.work / "effects.txt").exists()

    again = journey.start("--continue")
    again.wait_for("Run this command?", "echo done >> effects.txt")
    again.read_for(0.4)  # the card takes no answer in its first moments
    again.press("y")
    again.wait_for("It is done.", "● stored")
    assert (journey.work / "effects.txt").read_text() == "done\n"
    assert len(journey.requests) == 2
    assert journey.refused == []


@pytest.mark.slow
@pytest.mark.rule("TU-10")
def test_a_draft_in_a_new_chat_survives_a_kill(begin: Begin) -> None:
    journey = begin(says("unused"))
    terminal = journey.start("--approve", "all")
    terminal.wait_for("● stored")
    terminal.type("a thought not sent yet")
    terminal.read_for(0.4)  # a draft is stored at most every 100 ms
    terminal.kill()
    again = journey.start("--continue", ready="a thought not sent yet")
    again.wait_for("● stored")
    assert journey.requests == []


@pytest.mark.slow
@pytest.mark.rule("TU-10", "PR-1", "CASE-A2")
@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.06])
def test_a_message_that_is_sent_at_the_moment_of_a_kill_is_in_the_transcript_or_still_in_the_composer(begin: Begin, after_s: float) -> None:
    journey = begin(says("The answer."))
    terminal = journey.start("--approve", "all")
    terminal.wait_for("● stored")
    terminal.type("a message sent just now")
    terminal.read_for(0.4)
    terminal.press("enter")
    terminal.read_for(after_s)
    terminal.kill()
    again = journey.start("--continue", ready="a message sent just now")
    again.wait_for("● stored")
    if "a message sent just now" in again.screen().rpartition("╭")[2] and not again.sees("❯ a message sent just now"):
        again.press("enter")
    again.wait_for("❯ a message sent just now", "The answer.")
    assert journey.refused == []
