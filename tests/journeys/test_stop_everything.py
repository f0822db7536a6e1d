"""Esc in every kind of work, one after the other in one chat: each time it stops, and the next prompt works (TU-8, CASE-E4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.journeys.conftest import Begin
from tests.support.journey_desk import Journey, calls, processes, says, wait_until
from tests.support.journey_terminal import Terminal

MARK = "sleep 330.2718"
SLOW_RETRY = {"retry": {"base_delay_ms": 60_000, "max_delay_ms": 60_000}}
OVERLOADED = [{"refuse": "overloaded", "message": "try later"}]
WORK = {"name": "reader", "prompt": "read it all"}


def open_calls(journey: Journey) -> list[str]:
    """The calls in the newest request that have no result."""
    messages = journey.requests[-1]["messages"]
    asked = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    return [call for call in asked if answered.count(call) != 1]


def refused(journey: Journey) -> list[object]:
    """What the strict provider refused."""
    return [event for event in journey.events("end") if event["how"] == "refused"]


def next_prompt(journey: Journey, terminal: Terminal, prompt: str, answer: str) -> None:
    """The next prompt is the next request, is answered, and everything that was stopped has its result in it."""
    asked = len(journey.requests)
    terminal.send(prompt)
    terminal.wait_for(answer, "● stored")
    terminal.wait_gone("Esc stops")
    newest: Any = journey.requests[-1]["messages"][-1]["content"]
    assert prompt in json.dumps(newest)
    assert (len(journey.requests), open_calls(journey), refused(journey)) == (asked + 1, [], [])


@pytest.mark.slow
@pytest.mark.rule("TU-8", "TU-17", "TU-19", "CASE-E4", "CASE-A7")
def test_esc_stops_a_subagent_three_tools_a_retry_wait_a_question_and_a_summary(begin: Begin) -> None:
    journey = begin(
        calls(("subagent", WORK)),
        [{"text": "I found two places"}, {"stall": True}],
        says("Then without it."),
        calls(("bash", {"command": f"{MARK}1"}), ("bash", {"command": "echo quick"}), ("bash", {"command": f"{MARK}2 & {MARK}3"}), first=10),
        says("Hello after three tools."),
        OVERLOADED,
        says("Hello after a retry."),
        calls(("bash", {"command": "echo effect > effect.txt"}), first=20),
        says("I was not allowed."),
        says("Hello after a question."),
        [{"text": "The gi"}, {"stall": True}],
        says("Hello after a summary."),
        says("The gist."),
    )
    (journey.desk.root / "config/settings.json").write_text(json.dumps(SLOW_RETRY | {"compaction": {"keep_tokens": 1}}))
    terminal = journey.start("--approve", "all")

    terminal.send("ask a reader")
    terminal.wait_for("I found two places", "Esc stops the subagent")
    terminal.press("escape")
    terminal.wait_for("Then without it.", "● stored")
    wait_until(lambda: [event["how"] for event in journey.events("end")][1:2] == ["client_left"], what="the end of the subagent's request")

    terminal.send("do three things")
    terminal.wait_until(lambda: len(processes(MARK)) >= 3, what="the commands to run")
    terminal.press("escape")
    terminal.wait_for("■ bash")
    wait_until(lambda: processes(MARK) == [], what="the end of the commands")
    next_prompt(journey, terminal, "hello after tools", "Hello after three tools.")

    terminal.send("try this")
    terminal.wait_for("Attempt 1 failed")
    terminal.press("escape")
    terminal.wait_for("Stopped")
    next_prompt(journey, terminal, "hello after a retry wait", "Hello after a retry.")

    terminal.send("/approve ask")
    terminal.wait_for("approve ask")
    terminal.send("make an effect")
    terminal.wait_for("Run this command?", "Esc denies")
    terminal.read_for(0.4)  # the card takes no answer in its first moments
    terminal.press("escape")
    terminal.wait_for("I was not allowed.", "● stored")
    assert not (journey.work / "effect.txt").exists()
    next_prompt(journey, terminal, "hello after being asked", "Hello after a question.")

    terminal.send("/compact")
    terminal.wait_for("Summarizing what came before", "Esc cancels the summary")
    terminal.press("escape")
    terminal.wait_gone("Summarizing what came before ·", "Esc cancels the summary")
    next_prompt(journey, terminal, "hello after cancelling", "Hello after a summary.")

    terminal.send("/compact")
    terminal.wait_for("Summary of")
    assert (refused(journey), processes(MARK)) == ([], [])
