"""What the model is really sent by the whole program: AG-1, AG-3, SA-5, CASE-F6."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.conftest import Begin
from tests.support.journey_desk import Journey, says
from tests.support.patience import RUN_S


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def system_of(request: dict[str, Any]) -> str:
    return "\n".join(str(message["content"]) for message in request["messages"] if message["role"] in {"system", "developer"})


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def piped(journey: Journey, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "pi_durable_tui.cli.main", *arguments]
    return subprocess.run(command, cwd=journey.work, env=journey.environ, input=text, capture_output=True, text=True, timeout=RUN_S, check=False)


@pytest.mark.rule("AG-1", "AG-3")
def test_print_mode_fills_in_templates_and_brings_files_along_but_not_those_that_a_pipe_names(begin: Begin):
    journey = begin(says("done"))
    put(journey.work.parent / "config" / "prompts" / "review.md", "Review $1 as a $2.")
    put(journey.work / "my notes.txt", "remember the milk")
    put(journey.work / "secret.txt", "not asked for")
    ended = piped(journey, "a diff that says @secret.txt", "-p", '/review slots.py "strict reader"', "@my notes.txt", "@gone/away.py")
    assert (ended.returncode, ended.stdout) == (0, "done\n")
    assert "There is no file 'gone/away.py'; it was not attached." in ended.stderr
    [request] = journey.requests
    said = text_of(request["messages"][-1])
    assert said.startswith("a diff that says @secret.txt\n\nReview slots.py as a strict reader.")
    assert "Attached my notes.txt:" in said
    assert "remember the milk" in said
    assert "not asked for" not in said
    assert "You are pidurable" in system_of(request)
    assert f"Working directory: {journey.work}" in system_of(request)


@pytest.mark.rule("AG-1", "CASE-F6", "SA-5")
def test_instructions_that_changed_before_continue_are_sent_as_a_change(begin: Begin):
    journey = begin(says("one"), says("two"), says("three"))
    put(journey.work / "AGENTS.md", "Use tabs.")
    assert journey.run("-p", "--trust", "a").stdout == "one\n"
    put(journey.work / "AGENTS.md", "Use blanks.")
    assert journey.run("-c", "-p", "--trust", "b").stdout == "two\n"
    ended = journey.run("-c", "-p", "c")
    assert ended.stdout == "three\n"
    assert "Files of the project are not used: AGENTS.md (--trust uses them)." in ended.stderr
    first, second, third = (system_of(request) for request in journey.requests)
    assert ("Use tabs." in first, "Use blanks." in first) == (True, False)
    assert 'The section "AGENTS.md" now reads:' in str(journey.requests[1]["messages"])
    assert "Use blanks." in str(journey.requests[1]["messages"])
    assert second.count("You are pidurable") == 1
    assert 'The section "AGENTS.md" no longer applies.' in str(journey.requests[2]["messages"])
    assert third.count("You are pidurable") == 1


@pytest.mark.rule("SA-5", "AG-3")
def test_a_change_while_the_app_runs_waits_for_a_yes_that_is_asked_for_with_the_difference(begin: Begin):
    journey = begin(says("first answer"), says("second answer"), says("third answer"))
    put(journey.work / "AGENTS.md", "Use tabs.")
    terminal = journey.start("hello", ready="y trusts these files")
    terminal.read_for(0.8)
    terminal.press("y")
    terminal.wait_for("first answer")
    put(journey.work / "AGENTS.md", "Use tabs.\nObey me.")
    terminal.send("go on")
    terminal.wait_for("second answer", "New or changed, and not used before you say so: AGENTS.md")
    terminal.send("/trust")
    terminal.wait_for("changed since you decided", "+Obey me.")
    terminal.read_for(0.8)
    terminal.press("y")
    terminal.wait_for("These files are used from now on.")
    terminal.send("and on")
    terminal.wait_for("third answer")
    asked = [str(request["messages"]) for request in journey.requests]
    assert ["Obey me." in text for text in asked] == [False, False, True]
    assert ["Use tabs." in text for text in asked] == [True, True, True]
