"""Asking for work in the real app: a real terminal, real files and commands, a scripted model over HTTP."""

from __future__ import annotations

import pytest

from tests.journeys.conftest import Begin
from tests.support.journey_desk import calls, says

FOCUS_IN, FOCUS_OUT, BELL = "\x1b[I", "\x1b[O", b"\a"
WRONG, RIGHT = "cursor = meeting.end", "cursor = max(cursor, meeting.end)"


@pytest.mark.slow
@pytest.mark.rule("CASE-A1")
def test_the_model_reads_edits_and_runs_and_its_answer_stands_on_the_screen(begin: Begin) -> None:
    journey = begin(
        calls(("read", {"path": "slots.py"}), ("bash", {"command": "ls"}), text="I look first."),
        calls(("edit", {"path": "slots.py", "edits": [{"old": WRONG, "new": RIGHT}]}), first=3),
        calls(("bash", {"command": "python3 -m unittest 2>&1"}), first=4),
        says("All four tests pass now."),
    )
    before = (journey.work / "slots.py").read_text()
    terminal = journey.start("--approve", "all")
    terminal.send("please fix the failing test")
    terminal.wait_for("please fix the failing test", "I look first.", "All four tests pass now.", "● stored")

    assert (journey.work / "slots.py").read_text() == before.replace(WRONG, RIGHT)
    assert [terminal.sees(line) for line in ("✓ read slots.py", "✓ bash ls", "✓ edit slots.py", "✓ bash python3 -m unittest", RIGHT)] == [True] * 5
    results = [message for message in journey.requests[-1]["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in results] == ["call_1", "call_2", "call_3", "call_4"]
    assert "OK" in results[-1]["content"]
    assert journey.refused == []


@pytest.mark.slow
@pytest.mark.rule("TU-19", "TU-20")
def test_somebody_who_looks_elsewhere_is_called_and_what_is_not_allowed_is_not_done_and_the_model_hears_it(begin: Begin) -> None:
    journey = begin(calls(("bash", {"command": "echo done > effects.txt"})), says("Then not."))
    terminal = journey.start("--approve", "ask")
    quiet = terminal.raw.count(BELL)  # a title, or the form of the pointer, ends with one too
    terminal.send("make an effect")
    terminal.press(FOCUS_OUT)
    terminal.wait_for("Run this command?", "echo done > effects.txt")
    assert terminal.raw.count(BELL) == quiet + 1
    terminal.press(FOCUS_IN)
    terminal.read_for(0.4)  # the card takes no answer in its first moments
    terminal.press("n")
    terminal.wait_for("Then not.", "● stored")
    assert not (journey.work / "effects.txt").exists()
    assert "The call was not run" in journey.requests[-1]["messages"][-1]["content"]
    assert terminal.raw.count(BELL) == quiet + 1


@pytest.mark.slow
@pytest.mark.rule("CASE-H3", "TU-19", "SA-14")
@pytest.mark.parametrize("mode", ["ask", "edits"])
def test_print_mode_also_answers_what_a_subagent_asks(begin: Begin, mode: str) -> None:
    helper = calls(("subagent", {"name": "helper", "prompt": "make an effect"}))
    asking = calls(("bash", {"command": "echo done > effects.txt"}), first=2)
    journey = begin(helper, asking, says("Not allowed."), says("Nothing was done."))
    ended = journey.run("-p", "--approve", mode, "do it")
    assert (ended.returncode, ended.stdout) == (0, "Nothing was done.\n")
    assert "bash was not allowed: bash echo done > effects.txt" in ended.stderr
    assert (journey.refused, (journey.work / "effects.txt").exists()) == ([], False)
