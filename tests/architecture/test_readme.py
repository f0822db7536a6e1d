"""The README says what is there: its tables, its commands, its pictures and its links."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.readme import README, with_tables

ROOT = Path(__file__).parents[2]
TEXT = README.read_text(encoding="utf-8")


def test_tables_are_the_programs_own():
    assert with_tables(TEXT) == TEXT, "run: python -m tests.support.readme"


def test_every_picture_and_every_file_that_is_linked_exists():
    links = [match.strip("<>") for match in re.findall(r"\]\((<[^>]+>|[^)\s]+)\)", TEXT)]
    assert [link for link in links if not link.startswith("https://") and not (ROOT / link).is_file()] == []
    assert any(link.startswith("snapshots/") for link in links)


def test_the_test_command_is_the_one_that_ci_calls():
    assert "    python3 tests/ci.py\n" in TEXT
    assert "tests/ci.py" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_the_first_command_plays_a_story_that_is_there():
    (story,) = re.findall(r"\.venv/bin/pidurable demo (\S+)", TEXT)
    assert (ROOT / "sessions" / story / "session.toml").is_file()
    assert [name for name in re.findall(r"`(?:pidurable demo )?(\d\d-[a-z-]+)`", TEXT) if not (ROOT / "sessions" / name).is_dir()] == []


def test_every_module_that_the_way_of_a_keystroke_names_exists():
    named = re.findall(r"(?<![\w/])((?:tui|session|storage|harness|generation)/[\w/]*\.py)", TEXT)
    missing = [path for path in named if not (ROOT / "pi_durable_tui" / path).is_file() and not (ROOT / "pi_durable_tui/harness" / path).is_file()]
    assert missing == []
