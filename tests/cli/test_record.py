"""`pidurable sessions record` and the playing of what it made (CL-6, SA-16)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli_runs import Desk

WORDS = "In three sentences: what happens if the power goes out now?"


@pytest.mark.slow
@pytest.mark.rule("SA-16")
def test_a_chat_becomes_a_private_folder_that_plays_by_its_path_and_as_a_model(desk: Desk, tmp_path: Path) -> None:
    assert desk.run("-p", "--model", "playback/01-hello", WORDS).code == 0
    made = desk.run("sessions", "record", "../the bug")
    assert (made.code, made.stdout) == (0, "")
    assert "chat 1.1 is recorded in " in made.stderr
    assert made.stderr.endswith("It plays with: pidurable demo '../the bug'. Look through it before you give it to anybody.\n")
    place = tmp_path / "the bug"
    assert {str(path.relative_to(place)): path.stat().st_mode & 0o777 for path in place.rglob("*")} == {
        "session.toml": 0o600,
        "input.jsonl": 0o600,
        "model.jsonl": 0o600,
        "workspace": 0o700,
    }
    shown = desk.run("demo", "../the bug", "--headless", "--speed", "100", "--keep", "kept")
    assert (shown.code, shown.stdout.count("Your question was stored")) == (0, 1)
    assert shown.stderr == f"pidurable: Kept in {desk.work / 'kept'}: its files in workspace/, its session in data/.\n"
    asked = desk.run("-p", "--model", "playback/../the bug", WORDS)
    assert (asked.code, asked.stdout.startswith("Your question was stored")) == (0, True)
    again = desk.run("sessions", "record", "../the bug")
    assert (again.code, again.stderr) == (2, f"pidurable: '{place}' is there already. Nothing was written. Name a new folder.\n")
    assert desk.run("demo", "../the bug", "--headless", "--keep", "kept").code == 2
    nothing = desk.run("sessions", "record", "9.9", "elsewhere")
    assert (nothing.code, "There is no chat 9.9" in nothing.stderr, (desk.work / "elsewhere").exists()) == (2, True, False)


def test_without_a_chat_nothing_is_recorded(desk: Desk) -> None:
    made = desk.run("sessions", "record", "new")
    assert (made.code, (desk.work / "new").exists()) == (2, False)
    assert made.stderr.startswith(f"pidurable: There is no chat in '{desk.work}'.")
