"""`pidurable demo` as a real process: an empty home, no key, no network, real kills (CL-5, CL-6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pi_durable_tui.cli.demo import effects
from pi_durable_tui.playback import folder
from tests.support.cli_runs import ROOT, Desk

SPEED = ("--headless", "--speed", "20")
RULE = "─" * 72


def _parts(output: str) -> list[str]:
    """Heading, story and effects; a kill cuts the story."""
    return output.split(RULE + "\n")


@pytest.mark.slow
def test_the_first_story_is_told_to_its_end_and_changes_nothing(desk: Desk) -> None:
    result = desk.run("demo", "01-hello", *SPEED)
    heading, story, effect = _parts(result.stdout)
    assert (result.code, result.stderr) == (0, "")
    assert heading.startswith("01-hello: One question, one answer\n")
    assert story.startswith("\n> In three sentences")
    assert story.endswith("not just the transcript.\n")
    assert effect == "no file was changed\n"


@pytest.mark.slow
def test_the_second_story_finds_fixes_and_proves_a_bug_with_real_tools(desk: Desk) -> None:
    result = desk.run("demo", *SPEED)
    _, story, effect = _parts(result.stdout)
    assert (result.code, result.stderr) == (0, "")
    assert story.index("FAILED (failures=1)") < story.index("▸ edit slots.py") < story.index("Ran 4 tests", story.index("▸ edit slots.py"))
    assert effect == "changed: slots.py\n    -        cursor = meeting.end\n    +        cursor = max(cursor, meeting.end)\n"


@pytest.mark.slow
@pytest.mark.rule("TU-9", "FA-28")
def test_the_third_story_dies_in_the_middle_of_an_answer_and_keeps_what_was_shown(desk: Desk) -> None:
    result = desk.run("demo", "03", *SPEED)
    _, before, after, _ = _parts(result.stdout)
    shown = before.split("forget?\n\n")[1].strip()
    assert (result.code, result.stderr) == (0, "")
    assert shown.endswith("A power cut loses it.")
    assert "Killed by SIGKILL" in after
    assert "; nothing lost" in after
    assert f"{shown}\n  [interrupted: this answer was cut off here]\n" in after
    assert after.count(shown) == 2


@pytest.mark.slow
@pytest.mark.rule("TU-9", "TO-2", "CASE-A5")
def test_the_fourth_story_dies_in_the_middle_of_a_command_and_its_effect_happens_once(desk: Desk) -> None:
    result = desk.run("demo", "04", *SPEED)
    _, before, after, effect = _parts(result.stdout)
    assert (result.code, result.stderr) == (0, "")
    assert before.endswith("  ▸ bash sh publish.sh\n    │ publishing notes.md\n\n")
    assert "nothing lost; 1 command in doubt" in after
    assert "[error] Tool bash was interrupted and may have partially run" in after
    assert effect == "new: effects.txt\n    +published notes.md\n"


@pytest.mark.slow
@pytest.mark.rule("CL-5")
def test_a_demo_leaves_nothing_behind(desk: Desk) -> None:
    (desk.work / "mine.txt").write_text("mine", encoding="utf-8")
    desk.run("demo", "03", *SPEED, PIDURABLE_MODEL="anthropic/any")
    left = sorted(str(path.relative_to(desk.root)) for path in desk.root.rglob("*") if path.is_file())
    assert left == ["work/mine.txt"]


@pytest.mark.slow
def test_a_player_that_fails_is_not_started_again_and_its_code_is_the_demos(desk: Desk, tmp_path: Path) -> None:
    stage = tmp_path / "stage"
    (stage / "workspace").mkdir(parents=True)
    # All steps were taken, yet nothing is there: the player has nothing to continue.
    (stage / "steps.txt").write_text("Submit\n", encoding="utf-8")
    result = desk.run("demo-player", "01-hello", str(stage), "--headless")
    assert (result.code, result.stdout) == (2, "")
    assert "There is no chat in" in result.stderr


@pytest.mark.slow
@pytest.mark.rule("CL-5")
def test_without_a_terminal_a_demo_is_played_as_text_and_says_so(desk: Desk) -> None:
    result = desk.run("demo", "01", *[option for option in SPEED if option != "--headless"])
    assert result.code == 0
    assert result.stderr == "pidurable: There is no terminal for the app here, so the story is played as text.\n"
    assert "\x1b" not in result.stdout


def test_the_list_has_one_line_for_every_story_and_fits_a_screen(desk: Desk) -> None:
    result = desk.run("demo", "--list")
    names = [path.parent.name for path in sorted((ROOT / "sessions").glob("*/session.toml"))]
    lines = result.stdout.splitlines()
    assert (result.code, [line.split()[0] for line in lines]) == (0, names)
    assert [line for line in lines if len(line) > 80 or len(line.split()) < 3] == []


def test_effects_show_new_changed_and_removed_files() -> None:
    before, after = {"a": "1\n2\n", "b": "x\n", "c": "same\n"}, {"a": "1\n3\n", "c": "same\n", "d": "new\n"}
    assert effects(before, after) == "changed: a\n    -2\n    +3\nremoved: b\n    -x\nnew: d\n    +new\n"


def test_every_story_of_the_checkout_is_in_the_package() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert [name for name in folder.names() if f'"sessions/{name}" = "pi_durable_tui/_sessions/{name}"' not in project] == []


def test_recorded_answers_name_no_folder_of_the_machine_they_were_made_on() -> None:
    lines = [line for path in sorted((ROOT / "sessions").glob("*/model.jsonl")) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if "pidurable-demo-" in line or "/home/" in line] == []
    assert all(isinstance(json.loads(line), dict) for line in lines)
