"""The command itself: which words are a command, help, exit codes and error texts (CL-6, CASE-H3, CASE-B11)."""

from __future__ import annotations

import io
import re

import pytest
import typer
from typer.testing import CliRunner

from pi_durable_tui import __version__
from pi_durable_tui.cli import main
from pi_durable_tui.cli.commands import application
from pi_durable_tui.cli.report import report
from pi_durable_tui.cli.routing import MORE, routed
from pi_durable_tui.errors import ConfigError, InternalError, ModelError, SessionFailed, StoreCorrupt, StoreLocked
from tests.support.cli_runs import Desk

COMMANDS = ("chat", "completion", "demo", "doctor", "export", "inspect", "log", "selftest", "sessions", "watch")
SESSIONS = ("list", "show", "path", "rename", "delete", "prune", "backup", "convert", "record", "salvage")
PAGES = ([], ["-p"], *([name] for name in COMMANDS[1:]), *(["sessions", name] for name in SESSIONS))
SCREEN = (80, 24)


@pytest.mark.rule("CASE-H3")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ([], ["chat"]),
        (["demo"], ["demo"]),
        (["sessions", "--json"], ["sessions", "--json"]),
        (["fix", "the", "bug"], ["chat", "fix", "the", "bug"]),
        (["--", "demo"], ["chat", "--", "demo"]),
        (["-c"], ["chat", "-c"]),
        (["-c", "log"], ["chat", "-c", "log"]),
        (["-p", "--", "--continue"], ["chat", "-p", "--", "--continue"]),
        (["--help"], ["--help"]),
        (["--version"], ["chat", "--version"]),
        (["chat", "about", "it"], ["chat", "chat", "about", "it"]),
        (["Demo"], ["chat", "Demo"]),
    ],
)
def test_a_first_word_that_names_a_command_is_that_command_and_all_else_is_a_prompt(typed: list[str], meant: list[str]) -> None:
    assert routed(typed, COMMANDS) == meant


@pytest.mark.parametrize(
    ("typed", "prompt"),
    [
        (["-p", "--", "--continue"], "--continue"),
        (["-p", "two", "words"], "two words"),
        (["two", "-p", "words"], "two words"),
        (["-p", "--", "sessions"], "sessions"),
        (["--", "-c", "--", "x"], "-c -- x"),
    ],
)
@pytest.mark.rule("CASE-H3")
def test_words_and_what_follows_two_dashes_become_the_prompt(typed: list[str], prompt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("pi_durable_tui.cli.wish.open_chat", lambda wish: seen.append(wish.prompt) or 0)
    assert main.run(typed) == 0
    assert seen == [prompt]


@pytest.mark.rule("CL-6")
@pytest.mark.parametrize("page", PAGES)
def test_every_help_fits_a_screen_and_shows_an_example(page: list[str]) -> None:
    output = CliRunner().invoke(application.app, [*page, "--help"], terminal_width=SCREEN[0]).output
    lines = output.rstrip("\n").split("\n")
    assert "Example:  " in lines[-1]
    assert [line for line in lines if re.search(r"<(str|int|float|path)|\[\[|[{}]|[<>]=", line)] == []  # the parser's own signs
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage: ")] == []
    assert len(lines) < SCREEN[1]
    assert max(len(line) for line in lines) <= SCREEN[0]


@pytest.mark.rule("CL-6")
def test_the_help_of_everything_names_every_command_and_the_options_that_its_own_page_does_not() -> None:
    first, more = (CliRunner().invoke(application.app, [*page, "-h"], terminal_width=SCREEN[0]).output for page in ([], ["-p"]))
    command = typer.main.get_group(application.app)
    options = [param for param in command.commands["chat"].params if not getattr(param, "hidden", False)]
    names = {option.name: option.opts for option in options}
    assert [word for name, words in names.items() if name not in MORE for word in words if word not in first] == []
    assert [word for words in names.values() for word in words if word not in more] == []
    assert names.keys() >= MORE
    assert [name for name in COMMANDS[1:] if f" {name} " not in first] == []
    assert "demo-player" not in first


@pytest.mark.rule("CASE-B11")
def test_the_version_is_one_line_on_stdout(desk: Desk) -> None:
    ended = desk.run("--version")
    assert (ended.code, ended.stdout, ended.stderr) == (0, f"pidurable {__version__}\n", "")


@pytest.mark.rule("CL-6")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nope"], "There is no option --nope here. Nothing was started."),
        (["--approve", "never"], "'never'"),
        (["demo", "--speed", "0"], "--speed"),
        (["inspect", "a", "b"], "unexpected extra argument"),
        (["--mode", "json", "hi"], "--mode json needs print mode"),
        (["demo", "--golden"], "--golden needs --headless"),
        (["demo", "nothing-of-that-name"], "There is no recorded session 'nothing-of-that-name'"),
        (["--cwd", "missing", "-p", "hi"], "The directory 'missing' cannot be used"),
        (["log", "first"], "'first' is not the id of a chat"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_one_paragraph_on_stderr(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(arguments)
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert err.startswith("pidurable: ")


@pytest.mark.rule("CASE-H3")
def test_the_app_without_a_terminal_says_so_instead_of_starting(desk: Desk) -> None:
    ended = desk.run()
    assert (ended.code, ended.stdout) == (2, "")
    assert (
        ended.stderr
        == 'pidurable: The app needs a terminal for its input and output. Nothing was started. For use in scripts and pipes: pidurable -p "PROMPT".\n'
    )


@pytest.mark.rule("CL-6")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("Wrong."), 2),
        (StoreLocked("/s", holder="pid 7"), 3),
        (ModelError("Down."), 4),
        (SessionFailed("io"), 5),
        (StoreCorrupt("/s", where="header", what="is gone"), 6),
        (InternalError("x"), 70),
        (ZeroDivisionError("division by zero"), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert report(error, debug=False, stream=io.StringIO()) == code


@pytest.mark.rule("CL-6")
def test_a_bug_is_reported_without_a_traceback_and_with_one_when_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def break_down(*_arguments: object, **_options: object) -> int:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("pi_durable_tui.cli.log.log_chat", break_down)
    assert main.run(["log"]) == 70
    plain = capsys.readouterr().err
    assert main.run(["log", "--debug"]) == 70
    debugged = capsys.readouterr().err
    assert plain.count("\n") == 1
    assert "Internal error: ZeroDivisionError: division by zero. Please report it." in plain
    assert "Traceback" not in plain
    assert debugged.startswith("Traceback (most recent call last):")
    assert "break_down" in debugged


@pytest.mark.rule("SA-1")
def test_foreign_text_in_an_error_cannot_reach_the_terminal_raw() -> None:
    output = io.StringIO()
    report(ConfigError("Bad \x1b]0;title\x07 name\x9b31m."), debug=True, stream=output)
    assert [character for character in output.getvalue() if ord(character) < 32 and character != "\n"] == []
    assert "\x9b" not in output.getvalue()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("pidurable se", ["sessions", "selftest"]),
        ("pidurable --mo", ["--mode", "--model"]),
        ("pidurable sessions re", ["rename", "record"]),
        ("pidurable export --ht", ["--html"]),
        ("pidurable -c --app", ["--approve"]),
        ("pidurable chat", []),
    ],
)
def test_a_shell_is_offered_commands_and_options(desk: Desk, typed: str, offered: list[str]) -> None:
    words = typed.split()
    ended = desk.run(_PIDURABLE_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(len(words) - 1))
    assert (ended.code, ended.stdout.split()) == (0, offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_asks_the_program_by_its_name(shell: str) -> None:
    output = CliRunner().invoke(application.app, ["completion", shell]).output
    assert f"_PIDURABLE_COMPLETE=complete_{shell}" in output
    assert "pidurable" in output
