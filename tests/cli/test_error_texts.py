"""What the command line says when something is wrong, whole: what happened, to what, what is true now, the next step (CL-6, CL-5)."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pi_durable_tui.cli import main
from pi_durable_tui.cli.commands.misuse import near_miss
from pi_durable_tui.cli.wish import COMMANDS, HIDDEN
from pi_durable_tui.models.catalog import PROVIDERS
from pi_durable_tui.playback import folder
from tests.support.cli_runs import Desk

ASK = ["-p", "--model", "playback/01-hello", "hi"]
STORIES = ", ".join(folder.names())


@pytest.fixture
def at_desk(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """This process at that desk: its folders, an empty input, and no key of anybody."""
    for name in {name for provider in PROVIDERS.values() for name in (*provider.keys, *provider.tokens, *provider.bases)} | {"PIDURABLE_MODEL"}:
        monkeypatch.delenv(name, raising=False)
    for name, value in desk.environ().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(desk.work)
    (desk.root / "input").touch()
    with (desk.root / "input").open(encoding="utf-8") as given:
        monkeypatch.setattr("sys.stdin", given)
        yield desk


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code, and the one paragraph on stderr; nothing is on stdout."""
    code = main.run(arguments)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("pidurable: ")
    assert err.count("\n") == 1
    return code, err.removeprefix("pidurable: ").rstrip("\n")


OR_A_FOLDER = "Or name a folder that pidurable sessions record has made."
EXAMPLES = "anthropic/claude-sonnet-4-5, openai/gpt-5 or ollama_chat/qwen3"
NO_NUMBER = "input should be a valid number, unable to parse string as a number"
CHAT = "See pidurable --help; words after -- are always a prompt."
MISUSES = {
    "an option that is none": (["--modle", "x"], f"There is no option --modle here. Nothing was started. Did you mean --mode or --model? {CHAT}"),
    "one of a command": (["demo", "--spee", "3"], "There is no option --spee here. Nothing was started. Did you mean --speed? See pidurable demo --help."),
    "one like no other": (["log", "--zz"], "There is no option --zz here. Nothing was started. See pidurable log --help."),
    "a command with a letter wrong": (["doctr"], "'doctr' is no command. Nothing was started. Did you mean pidurable doctor? As a prompt: pidurable -- doctr"),
    "help as a word": (["help"], "'help' is no command. Nothing was started. Did you mean pidurable --help? As a prompt: pidurable -- help"),
    "a command below one": (["sessions", "lst"], "No such command 'lst'. Did you mean 'list'? Nothing was started. See pidurable sessions --help."),
    "no number": (
        ["demo", "--speed", "fast"],
        f"The value of --speed does not fit: {NO_NUMBER}. Nothing was started. See pidurable demo --help.",
    ),
    "too small a number": (
        ["-p", "--max-turns", "0", "x"],
        f"The value of --max-turns does not fit: input should be greater than or equal to 1. Nothing was started. {CHAT}",
    ),
    "no such choice": (
        ["--thinking", "max", "x"],
        f"The value of --thinking does not fit: 'max' is not one of 'off', 'low', 'medium', 'high'. Nothing was started. {CHAT}",
    ),
    "a missing word": (["sessions", "rename", "1.3"], "NAME is missing. Nothing was started. See pidurable sessions rename --help."),
    "a missing option": (["sessions", "prune"], "--older-than is missing. Nothing was started. See pidurable sessions prune --help."),
    "a word too many": (["inspect", "a", "b"], "Got unexpected extra argument(s) (b). Nothing was started. See pidurable inspect --help."),
    "two chats at once": (["-c", "-r", "1.2"], "--continue and --resume both say which chat. Nothing was started. Take one of them."),
    "JSON in the app": (["--mode", "json", "x"], "--mode json needs print mode. Nothing was started. Add -p."),
    "commits in the app": (["demo", "--golden"], "--golden needs --headless. Nothing was started. Add --headless."),
    "no age": (["sessions", "prune", "--older-than", "3"], "'3' is not an age. Nothing was changed. Such as 12h, 30d or 4w."),
    "no id": (["log", "first"], "'first' is not the id of a chat. Nothing was started. pidurable sessions lists the ids."),
    "no such story": (
        ["demo", "99"],
        f"There is no recorded session '99' in this installation. Nothing was changed. There are: {STORIES}. {OR_A_FOLDER}",
    ),
    "a pipe instead of a terminal": (
        ["hi there"],
        'The app needs a terminal for its input and output. Nothing was started. For use in scripts and pipes: pidurable -p "PROMPT".',
    ),
    "a model without a provider": (
        ["-p", "--model", "gpt5", "x"],
        (
            f"'gpt5' names no provider. Write provider/name, such as {EXAMPLES}. "
            "Or choose another model: --model, or /model in the app. Without a key: pidurable demo"
        ),
    ),
}


@pytest.mark.rule("CL-6")
@pytest.mark.parametrize("name", MISUSES)
def test_what_was_asked_wrongly_is_told_whole(at_desk: Desk, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, text = MISUSES[name]
    assert said(arguments, capsys) == (2, text)
    assert not at_desk.data.exists()


@pytest.mark.rule("CASE-H3")
@pytest.mark.parametrize("words", [["patch"], ["login"], ["explain"], ["sesions", "list"], ["fix the sessions"], ["--"], ["demos", "x"]])
def test_a_word_of_its_own_and_more_than_one_word_are_prompts(words: list[str]) -> None:
    assert near_miss(words, COMMANDS - HIDDEN) is None


def _settings(text: str) -> Callable[[Desk], str]:
    def prepare(desk: Desk) -> str:
        (desk.root / "config").mkdir()
        (desk.root / "config" / "settings.json").write_text(text, encoding="utf-8")
        return str(desk.root / "config" / "settings.json")

    return prepare


def _settings_folder(desk: Desk) -> str:
    (desk.root / "config" / "settings.json").mkdir(parents=True)
    return str(desk.root / "config" / "settings.json")


WRONG_SETTINGS = {
    "no JSON": (
        _settings("{ nope"),
        "are not JSON: JSON is malformed: object keys must be strings (byte 2). Nothing was started. Correct the file, or remove it.",
    ),
    "another value": (
        _settings('{"model": 3}'),
        "have the value 3 for 'model'. Nothing was started. Allowed: a model id such as \"anthropic/claude-sonnet-4-5\".",
    ),
    "a folder": (_settings_folder, "cannot be read: Is a directory. Nothing was started. Make the file readable, or remove it."),
}


@pytest.mark.rule("CL-6")
@pytest.mark.parametrize("name", WRONG_SETTINGS)
@pytest.mark.parametrize("command", [ASK, ["log"], ["sessions"]])
def test_wrong_settings_are_named_with_their_file_by_every_command(at_desk: Desk, name: str, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    prepare, text = WRONG_SETTINGS[name]
    path = prepare(at_desk)
    assert said(command, capsys) == (2, f"The settings {path!r} {text}")


@pytest.mark.rule("CL-6")
def test_a_directory_that_is_none_or_cannot_be_entered_is_named(at_desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    hint = "Nothing was started. Go to a directory that exists, or name one with --cwd."
    assert said(["--cwd", "/none", *ASK], capsys) == (2, f"The directory '/none' cannot be used: No such file or directory. {hint}")
    file = at_desk.work / "a file"
    file.touch()
    assert said(["--cwd", str(file), *ASK], capsys) == (2, f"'{file}' is not a directory. Nothing was started. Name a directory with --cwd.")


@pytest.mark.rule("CL-6")
def test_the_current_directory_may_have_been_removed(at_desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    gone = at_desk.work / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        text = "The current directory cannot be used: No such file or directory. Nothing was started. Go to a directory that exists, or name one with --cwd."
        assert said(ASK, capsys) == (2, text)
    finally:
        os.chdir(at_desk.work)


@pytest.mark.rule("CL-6", "CL-4")
def test_a_data_folder_that_cannot_be_used_is_named_and_ends_with_4(at_desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (at_desk.root / "no folder").touch()
    monkeypatch.setenv("PIDURABLE_DATA_DIR", str(at_desk.root / "no folder" / "x"))
    code, text = said(ASK, capsys)
    assert code == 4
    assert text.endswith("cannot be used: Not a directory. Nothing was started. Make room or rights there, or set PIDURABLE_DATA_DIR to another folder.")
    monkeypatch.setenv("PIDURABLE_DATA_DIR", "here")
    assert said(ASK, capsys) == (2, "PIDURABLE_DATA_DIR is 'here', which is not an absolute path. Nothing was started. Set it to a path that starts with /.")


@pytest.mark.rule("CL-5")
def test_a_first_start_without_a_key_names_every_way_to_a_model(at_desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(["-p", "hi"], capsys)
    assert code == 2
    assert text.startswith("No model is chosen, and no key was found. Nothing was sent. ")
    assert "With a key: set one of ANTHROPIC_API_KEY, OPENAI_API_KEY, " in text
    assert f'start again with --model openai/NAME. For good: name it as "model" in {at_desk.root}/config/settings.json.' in text
    assert text.endswith("Without a key: pidurable demo")
    assert not at_desk.data.exists()


@pytest.mark.slow
@pytest.mark.rule("CL-5")
def test_without_a_home_the_user_database_tells_it_and_a_home_that_is_not_there_is_no_bug(desk: Desk, tmp_path: Path) -> None:
    for home in ("", str(tmp_path / "nowhere")):
        ended = desk.run("sessions", HOME=home)
        assert (ended.code, ended.stderr) == (0, f"pidurable: no chats in '{desk.work}' yet.\n")


@pytest.mark.slow
@pytest.mark.rule("CL-6", "ST-13", "ST-15")
def test_the_only_chat_that_cannot_be_read_is_not_told_as_none(at_desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert at_desk.run("-p", "--model", "playback/01-hello", "what happens if the power goes out now?").code == 0
    (path,) = at_desk.data.glob("*/session.sqlite")
    whole = path.read_bytes()
    commands = (["log"], ["inspect"], ["-c", "-p"], ["sessions", "record", "../new"], ["export"])
    for change, code, words in (
        ("UPDATE entries SET record = replace(record, 'power', 'qower')", 6, "is damaged: entries"),
        ("UPDATE durable_metadata SET schema_version = 99; PRAGMA user_version = 99", 3, "has schema version 99; this program knows versions up to"),
    ):
        with contextlib.closing(sqlite3.connect(path)) as store:
            store.executescript(change)
        for command in commands:
            ended, text = said(command, capsys)
            assert (ended, words in text, "The file was not touched." in text) == (code, True, True), (command, text)
        assert (main.run(["sessions"]), words in capsys.readouterr().err) == (0, True)
        path.write_bytes(whole)
