"""What a person sets and looks at, in the real app: keys, settings, the model, differences, the chat as a file, the chats of the directory."""

from __future__ import annotations

import json

import pytest

from tests.journeys.conftest import Begin
from tests.support.journey_desk import calls, says, wait_until

WRONG, RIGHT = "cursor = meeting.end", "cursor = max(cursor, meeting.end)"
ALT_P, F4 = "\x1bp", "\x1bOS"


@pytest.mark.slow
@pytest.mark.rule("CL-4", "TU-8", "TU-18", "AG-5")
def test_keys_settings_model_differences_the_chat_as_a_file_and_that_a_run_was_stopped(begin: Begin) -> None:
    journey = begin(calls(("edit", {"path": "slots.py", "edits": [{"old": WRONG, "new": RIGHT}]})), says("It never goes back now."), [{"stall": True}])
    config = journey.desk.root / "config"
    settings = json.loads((config / "settings.json").read_text())
    (config / "keybindings.json").write_text(json.dumps({"tasks": ["f4"], "tassk": "f5"}))
    (config / "settings.json").write_text('{"theme" : "dark",  "retry": ' + json.dumps(settings["retry"]) + "}")
    terminal = journey.start("--approve", "all")
    terminal.wait_for('keybindings.json, "tassk": there is no such action. Is it "tasks"?')
    terminal.press(F4)
    terminal.wait_for("At work", "F4 hides")
    terminal.press(F4)
    terminal.wait_gone("At work")

    terminal.send("fix it")
    terminal.wait_for("It never goes back now.", "● stored")
    terminal.send("/diff")
    terminal.wait_for("1 file changed since your last message", "slots.py  +1 −1", f"- {WRONG}", f"+ {RIGHT}")
    terminal.press("escape")
    terminal.wait_gone("1 file changed since")
    terminal.send("/export markdown talk.md")
    terminal.wait_for("The chat is written to")
    assert "It never goes back now." in (journey.work / "talk.md").read_text()

    terminal.send("/settings theme light")
    terminal.wait_for("theme is light now, and stored.")
    terminal.send("/settings retry.max_retries 5")
    terminal.wait_for("retry.max_retries is 5 now, and stored.")
    written = (config / "settings.json").read_text()
    assert written.startswith('{"theme" : "light",  "retry": {')
    assert json.loads(written)["retry"] == {**settings["retry"], "max_retries": 5}
    terminal.send("/settings")
    terminal.wait_for("theme light your file", "openai/scripted environment", "all option")
    terminal.press("escape")
    terminal.wait_gone("your file")

    terminal.press(ALT_P)
    terminal.wait_for("Model", "openai/scripted now", "$")
    terminal.wait_gone("loading what is known")
    terminal.press(*"gpt-4o-min")
    terminal.wait_for("openai/gpt-4o-mini", "as typed")
    terminal.press("enter")
    terminal.wait_for("openai/gpt-4o-mini · ")

    terminal.send("think about it")
    wait_until(lambda: len(journey.events("request")) == 3, what="the request")
    terminal.press("escape")
    terminal.wait_for("! Stopped", "● stored")
    terminal.wait_gone("Esc stops")
    terminal.send("/quit")
    assert terminal.wait_end() == 0
    terminal = journey.start("--continue")
    terminal.wait_for("think about it", "! Stopped", "openai/gpt-4o-mini · ")
    assert journey.requests[-1]["model"] == "gpt-4o-mini"
    assert journey.refused == []


@pytest.mark.slow
@pytest.mark.rule("TU-16", "CL-3", "OB-6")
def test_the_chats_of_two_sessions_are_one_tree_held_ones_are_watched_and_free_ones_gone_on_with(begin: Begin) -> None:
    journey = begin(says("The first answers."), says("The second answers."), says("The first goes on."))
    first = journey.start()
    first.send("question one")
    first.wait_for("The first answers.", "● stored")
    second = journey.start()
    second.send("question two")
    second.wait_for("The second answers.", "● stored")

    second.send("/tree")
    second.wait_for("Chats", "question one open elsewhere", "› question two shown")
    second.press("\x1b[A")
    second.wait_for(f"session 1, open in another process (pid {first.process.pid})")
    second.press("enter")
    second.wait_for("Watch it here; q comes back")
    second.press("enter")
    second.wait_for("The first answers.", "Read-only")
    second.press("q")
    second.wait_for("The second answers.", "Ask for work")

    first.send("/quit")
    assert first.wait_end() == 0
    second.send("/tree")
    second.wait_for("Chats", "question one")
    second.wait_gone("open elsewhere")
    second.press("\x1b[A", "enter")
    second.wait_for("The first answers.")
    second.wait_gone("The second answers.")
    second.send("and now")
    second.wait_for("The first goes on.", "● stored")
    second.send("/quit")
    assert second.wait_end() == 0
    assert [json.dumps(body["messages"]).count("question one") for body in journey.requests] == [1, 0, 1]
    told = json.loads(journey.run("sessions", "--json").stdout)
    assert sorted(chat["id"] for chat in told) == ["1.1", "2.1"]
    assert journey.refused == []
