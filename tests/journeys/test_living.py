"""A day in the app, on a real terminal: reading and writing, going back, what is at work, and the answer about a call in doubt."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.journeys.conftest import Begin
from tests.support.journey_desk import Journey, calls, says, wait_until
from tests.support.journey_terminal import Terminal
from tests.support.model_server import finish, usage, wait_file

PROGRAM = (sys.executable, "-P", "-m", "pi_durable_tui.cli.main")
ALT_ENTER = "\x1b\r"  # as terminals send it that know no keyboard protocol
CTRL_F, CTRL_G, CTRL_R, CTRL_T = "\x06", "\x07", "\x12", "\x14"
CTRL_HOME, CTRL_END, CTRL_UP, DOWN = "\x1b[1;5H", "\x1b[1;5F", "\x1b[1;5A", "\x1b[B"
WRONG, RIGHT = "cursor = meeting.end", "cursor = max(cursor, meeting.end)"
TOLD = "## Told\n\nSome **words**.\n\n| what | how much |\n|---|---:|\n| lines | 12 |\n\n```python\nanswer = 42\n```\n\n" + "\n\n".join(
    f"paragraph {number}" for number in range(40)
)


def editor(folder: Path) -> str:
    """An editor that adds a line of its own."""
    program = folder / "editor"
    program.write_text('#!/bin/sh\necho "and a line of the editor" >> "$1"\n')
    program.chmod(0o700)
    return str(program)


def read_an_answer(terminal: Terminal, go_on: Path) -> None:
    """It is drawn as what it is, and the view stays where somebody reads."""
    terminal.send("tell me")
    terminal.wait_for("paragraph 39", "Esc stops")
    terminal.press(CTRL_HOME)
    terminal.wait_for("❯ tell me", "Told", "what how much", "▏ answer = 42")
    assert [terminal.sees(mark) for mark in ("##", "**", "```")] == [False] * 3
    go_on.touch()
    terminal.wait_for("↓ 2 new lines", "● stored")
    assert terminal.sees("❯ tell me")
    terminal.press(CTRL_END)
    terminal.wait_for("the last paragraph")
    terminal.press(CTRL_F)
    terminal.wait_for("⌕")
    terminal.type("answer = 42")
    terminal.wait_for("▏ answer = 42")
    terminal.press("escape", CTRL_END, CTRL_UP)
    terminal.wait_for("❯ tell me")


def write_messages(journey: Journey, terminal: Terminal) -> None:
    """With files, an editor, what was sent before, and lines that are pasted without any marks."""
    terminal.type("look at @slo")
    terminal.wait_for("Files", "› slots.py")
    terminal.press("\t", CTRL_G)
    terminal.wait_for("look at @slots.py", "and a line of the editor")
    terminal.press("enter")
    terminal.wait_for("Looked.", "● stored")
    assert "def " in str(journey.requests[1]["messages"]), "the file came along"
    terminal.press(CTRL_R)
    terminal.wait_for("Sent before")
    terminal.type("tell")
    terminal.wait_for("› tell me")
    terminal.press("escape")
    terminal.wait_gone("Sent before")
    terminal.type("one\rtwo\rthree")
    assert len(journey.requests) == 2
    terminal.press("enter")
    terminal.wait_for("Taken as one.", "● stored")
    assert journey.requests[2]["messages"][-1]["content"] == "one\ntwo\nthree"


def go_back_and_forth(journey: Journey, terminal: Terminal) -> None:
    """Files with /undo and /redo, the chat with /rewind; pages tell how things stand."""
    slots = journey.work / "slots.py"
    before = slots.read_text()
    terminal.type("mend it")
    terminal.press(ALT_ENTER)
    terminal.wait_for("Mended.", "● stored")
    after = slots.read_text()
    terminal.send("/undo")
    terminal.wait_for("Take back 1 file?", f"+ {WRONG}")
    terminal.press("y")
    terminal.wait_for("1 file changed.")
    assert slots.read_text() == before
    terminal.send("/redo")
    terminal.wait_for("Bring 1 file back again?")
    terminal.press("y")
    wait_until(lambda: slots.read_text() == after, what="the file as it was mended")
    terminal.wait_for("1 file changed.")
    terminal.send("/rewind")
    terminal.wait_for("Go back to before", "› mend it")
    terminal.press("enter")
    terminal.wait_for("› The chat and the files", "1 file +1 −1")
    terminal.press(DOWN, "enter")
    terminal.wait_for("A new chat, as of before “mend it”", "│ mend it")
    assert slots.read_text() == after, "only the chat went back"
    terminal.press("enter")
    terminal.wait_for("In the fork.", "● stored")
    terminal.send("/tree")
    terminal.wait_for("Chats", "fork: tell me shown")
    terminal.press("escape")
    terminal.wait_gone("Chats")
    terminal.send("/compact")
    terminal.wait_for("─── Summary of", "● stored")
    for command, told in (("/context", "messages"), ("/session", "stored in")):
        terminal.send(command)
        terminal.wait_for(told)
        terminal.press("escape")
        terminal.wait_gone(told)


@pytest.mark.slow
@pytest.mark.rule("TU-2", "TU-3", "TU-4", "TU-10", "TU-12", "TU-15", "TU-16", "TU-17", "TU-18")
def test_an_answer_is_read_messages_are_written_as_in_a_shell_and_all_of_it_goes_back_and_forth(begin: Begin, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    told = [{"text": TOLD}, wait_file(go_on), {"text": "\n\nthe last paragraph"}, finish(), usage(100, 10)]
    mends = calls(("edit", {"path": "slots.py", "edits": [{"old": WRONG, "new": RIGHT}]}))
    journey = begin(told, says("Looked."), says("Taken as one."), mends, says("Mended."), says("In the fork."), says("They began."))
    terminal = journey.start("--approve", "all", command=["env", f"VISUAL={editor(tmp_path)}", *PROGRAM])
    read_an_answer(terminal, go_on)
    write_messages(journey, terminal)
    go_back_and_forth(journey, terminal)
    assert journey.refused == []


@pytest.mark.slow
@pytest.mark.rule("OB-4", "TU-9", "TO-2")
def test_a_command_is_stopped_in_the_task_graph_and_after_a_kill_a_person_says_what_became_of_the_next(begin: Begin) -> None:
    stopped, killed = "sleep 341.77", "sleep 342.77"
    journey = begin(calls(("bash", {"command": stopped})), calls(("bash", {"command": killed}), first=2), says("Goes on."), says("Taken as done."))
    terminal = journey.start("--approve", "all")
    terminal.send("run both")
    terminal.wait_for(f"◐ bash {stopped}")
    terminal.press(CTRL_T)
    terminal.wait_for("At work", "› answer", f"└ bash {stopped}", "running ·")
    terminal.press(DOWN, "x")
    terminal.wait_for(f"■ bash {stopped}", f"◐ bash {killed}")
    terminal.press("k", "eep")  # what is typed beside the composer goes into it
    terminal.wait_for("│ keep")
    terminal.press(CTRL_T)
    terminal.wait_gone("At work")
    terminal.kill()

    terminal = journey.start("--continue", "--approve", "all", ready="What became of this call?")
    terminal.wait_for("nothing lost; 1 command in doubt", "│ keep", "Goes on.")
    terminal.read_for(0.5)  # the card takes no answer in its first moments
    terminal.press("3")
    terminal.wait_gone("What became of this call?")
    terminal.wait_for(f"I checked: the interrupted call `bash {killed}` had finished", "Taken as done.", "● stored")
    told = str(journey.requests[-1]["messages"])
    assert [each in told for each in ("was stopped by the user", "was interrupted and may have partially run", "Take it as done")] == [True] * 3
    assert journey.refused == []
