"""Options of the chat: which one is resumed, what it may use, what it is called, where nothing is kept (CL-2, CL-6, SA-14)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pi_durable_tui.cli.chat import check_tools
from pi_durable_tui.cli.chats import Found
from pi_durable_tui.cli.routing import with_resume_values
from pi_durable_tui.cli.sessions.picking import fitting
from pi_durable_tui.errors import BadRequest
from pi_durable_tui.harness.chats import Chat
from pi_durable_tui.tools.catalog import all_tools
from tests.support.cli_runs import Desk
from tests.support.journey_terminal import Terminal

ASK = ("-p", "--model", "playback/01-hello")
WORDS = "In three sentences: what happens if the power goes out now?"
REPAIR = "A colleague was invited to a meeting while she was still in a workshop: slots.py had called that time free. Please fix it."


def listed(desk: Desk) -> list[dict[str, object]]:
    return json.loads(desk.run("sessions", "--json").stdout)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["-r"], ["-r", ""]),
        (["-r", "1.3"], ["-r", "1.3"]),
        (["--resume", "7", "go", "on"], ["--resume", "7", "go", "on"]),
        (["-r", "go", "on"], ["-r", "", "go", "on"]),
        (["-r", "-p"], ["-r", "", "-p"]),
        (["--", "-r"], ["--", "-r"]),
        (["-p", "--", "x", "-r", "y"], ["-p", "--", "x", "-r", "y"]),
    ],
)
def test_resume_takes_an_id_if_one_follows_and_stands_alone_otherwise(typed: list[str], meant: list[str]) -> None:
    assert with_resume_values(typed) == meant


def _found(number: int, title: str) -> Found:
    chat = Chat(conversation_id=number, title=title, first_text=title, last_at_ms=0, last_seq=1, unfinished=False, is_empty=False, model="m")
    return Found(session=1, chat=chat)


FOUND = (_found(7, "fix the slow query"), _found(3, "the query planner"))


@pytest.mark.parametrize(
    ("typed", "chats"),
    [
        ("\n", ["1.7"]),
        ("1.3\n", ["1.3"]),
        ("PLANNER\n", ["1.3"]),
        ("slow\n", ["1.7"]),
        ("query\n", ["1.7", "1.3"]),
        ("planner the\n", ["1.3"]),
        ("9.9\n", []),
        ("nothing like it\n", []),
    ],
)
def test_a_chat_is_chosen_by_nothing_by_its_id_or_by_words_that_it_holds(typed: str, chats: list[str]) -> None:
    assert [item.id for item in fitting(typed, FOUND, FOUND)] == chats


def test_words_search_what_is_shown_and_an_id_means_any_chat() -> None:
    assert [item.id for item in fitting("the", FOUND[1:], FOUND)] == ["1.3"]
    assert [item.id for item in fitting("1.7", FOUND[1:], FOUND)] == ["1.7"]


def test_a_tool_that_is_not_there_is_named_with_those_that_are() -> None:
    check_tools(None, all_tools())
    check_tools(("read", "bash"), all_tools())
    with pytest.raises(BadRequest, match="There is no tool 'rm'") as caught:
        check_tools(("read", "rm"), all_tools())
    assert "read, write" in caught.value.hint


@pytest.mark.slow
@pytest.mark.rule("CL-2")
def test_a_named_chat_is_resumed_by_its_id_while_a_newer_one_is_there(desk: Desk) -> None:
    assert desk.run(*ASK, "--name", "the first", WORDS).code == 0
    assert desk.run(*ASK, "--name", "the second", WORDS).code == 0
    newest, first = listed(desk)
    assert (newest["title"], first["title"]) == ("the second", "the first")
    again = desk.run("-r", str(first["id"]), "-p")
    assert (again.code, "nothing was left to do" in again.stderr) == (0, True)
    renamed = desk.run("-r", str(first["id"]), "-p", "--name", "renamed")
    assert (renamed.code, {one["title"] for one in listed(desk)}) == (0, {"the second", "renamed"})


@pytest.mark.slow
@pytest.mark.rule("CL-2")
def test_without_an_id_the_person_chooses_before_the_app_opens(desk: Desk) -> None:
    for name in ("the first", "the second"):
        assert desk.run(*ASK, "--name", name, f"{name}: {WORDS}").code == 0
    terminal = Terminal([sys.executable, "-m", "pi_durable_tui.cli.main", "--resume"], cwd=desk.work, environ=desk.environ())
    try:
        terminal.wait_for("the second", "the first", "Which one?")
        terminal.type("first")
        terminal.press("enter")
        terminal.wait_for("the first: In three sentences", "Your question was stored")
    finally:
        terminal.close()


@pytest.mark.slow
@pytest.mark.rule("SA-16")
def test_without_a_session_nothing_is_kept_anywhere(desk: Desk) -> None:
    ended = desk.run(*ASK, "--no-session", WORDS)
    assert (ended.code, ended.stdout.startswith("Your question was stored")) == (0, True)
    assert [path for path in desk.root.rglob("*") if path.is_file()] == []
    assert list((desk.root / "tmp").iterdir()) == []


@pytest.mark.slow
@pytest.mark.rule("SA-14", "CL-6")
def test_a_run_that_reaches_its_turns_ends_with_status_3_and_what_it_did_is_stored(desk: Desk) -> None:
    for path in (Path(__file__).parents[2] / "sessions/02-read-edit-test/workspace").iterdir():
        if path.is_file():
            (desk.work / path.name).write_bytes(path.read_bytes())
    ended = desk.run("-p", "--model", "playback/02", "--approve", "all", "--max-turns", "2", REPAIR)
    assert (ended.code, ended.stdout) == (3, "")
    assert "The run was ended before it had an answer. The run has had its 2 turns." in ended.stderr
    assert "[bash ls -1]" in desk.run("log").stdout
    assert listed(desk)[0]["unfinished"] is False


@pytest.mark.slow
def test_only_the_tools_that_are_named_are_offered(desk: Desk) -> None:
    assert desk.run(*ASK, "--tools", "read, bash", WORDS).code == 0
    assert json.loads(desk.run("sessions", "show", "--json").stdout)["agent"]["tools"] == ["read", "bash"]
    wrong = desk.run(*ASK, "--tools", "read,rm", WORDS)
    assert (wrong.code, "There is no tool 'rm'. Nothing was started." in wrong.stderr) == (2, True)
    assert len(listed(desk)) == 1


@pytest.mark.rule("CL-6")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-c", "-r", "1.1"], "both say which chat"),
        (["-c", "--no-session"], "cannot be resumed with --no-session"),
        (["-r", "-p", "x"], "cannot ask which chat"),
        (["-r", "9.9", "-p"], "There is no chat 9.9"),
        (["-p", "--max-turns", "0", "x"], "--max-turns"),
        (["-p", "--max-cost", "-1", "x"], "--max-cost"),
    ],
)
def test_options_that_do_not_go_together_end_with_2(desk: Desk, arguments: list[str], words: str) -> None:
    ended = desk.run(*arguments)
    assert (ended.code, ended.stdout) == (2, "")
    assert words in ended.stderr
