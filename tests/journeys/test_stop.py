"""Esc stops what runs, at once and for good (terminal.md TU-8, CASE-E4)."""

from __future__ import annotations

import json

import pytest

from tests.journeys.conftest import Begin
from tests.support.journey_desk import calls, numbered, processes, says, wait_until


@pytest.mark.slow
@pytest.mark.rule("TU-8", "CASE-E4", "CASE-A1")
def test_esc_ends_a_running_command_and_the_next_prompt_works(begin: Begin) -> None:
    mark = "sleep 330.4711"
    command = f"{mark} & (setsid nohup {mark} &) ; {mark}; echo done >> effects.txt"
    journey = begin(calls(("bash", {"command": command})), says("Something else then."))
    terminal = journey.start("--approve", "all")
    terminal.send("make an effect")
    terminal.wait_until(lambda: len(processes(mark)) >= 3, what="the command to run")
    terminal.press("escape")
    terminal.wait_for("stopped", "● stored")
    assert wait_until(lambda: processes(mark) == [], what="the end of the command") < 1.0

    terminal.send("do something else")
    terminal.wait_for("Something else then.", "● stored")
    assert not (journey.work / "effects.txt").exists()
    assert journey.refused == []
    results = [message["tool_call_id"] for message in journey.requests[-1]["messages"] if message["role"] == "tool"]
    assert results == ["call_1"]


@pytest.mark.slow
@pytest.mark.rule("TU-8", "CASE-E4")
def test_esc_ends_a_running_answer_keeps_what_came_and_gives_queued_messages_back(begin: Begin) -> None:
    journey = begin([*numbered(20, delay_ms=10), {"stall": True}], says("Going on from there."))
    terminal = journey.start("--approve", "all")
    terminal.send("count for me")
    terminal.wait_for("n019")
    terminal.type("a queued message")
    terminal.press("alt+enter")
    terminal.wait_for("follow-up a queued message")
    terminal.press("escape")
    terminal.wait_for("Stopped", "n019", "● stored")
    terminal.wait_gone("follow-up a queued message", "Esc stops")
    assert "a queued message" in terminal.screen().rpartition("╭")[2]
    terminal.wait_until(lambda: [event["how"] for event in journey.events("end")] == ["client_left"], what="the end of the request")

    terminal.press("enter")
    terminal.wait_for("Going on from there.", "● stored")
    assert len(journey.requests) == 2
    assert "a queued message" in json.dumps(journey.requests[1]["messages"][-1])
    assert journey.refused == []
