"""The format of recorded sessions, and the stage that survives a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.errors import ConfigError, NotFound
from pi_durable_tui.playback import folder
from pi_durable_tui.playback.folder import Answer, Fork, Kill, Stop, Submit, When


def _shelf(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).mkdir(parents=True)
        (root / name / "session.toml").write_text('title = "T"\nshows = "S."\n', encoding="utf-8")
        (root / name / "input.jsonl").write_text('{"submit": "hi"}\n', encoding="utf-8")
        (root / name / "model.jsonl").write_text('{"type": "request", "number": 1}\n{"type": "finish", "reason": "stop"}\n', encoding="utf-8")
    return root


def test_steps_are_read_in_order_and_empty_lines_skipped() -> None:
    text = (
        '{"submit": "hi"}\n\n{"kill": true, "when": {"answer_contains": "x"}}\n{"press": "escape", "when": {"tool": "bash", "output_contains": "y"}}\n'
        '{"answer": "deny", "when": {"asks": "edit"}}\n{"fork": "z"}\n'
    )
    assert folder.parse_steps(text, "input.jsonl") == (
        Submit(text="hi"),
        Kill(when=When(answer_contains="x")),
        Stop(when=When(tool="bash", output_contains="y")),
        Answer(decision="deny", when=When(asks="edit")),
        Fork(at="z"),
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "Line 1 of input.jsonl is not JSON"),
        ('{"kill": true}', "Line 1 of input.jsonl must be one of"),
        ('{"submit": "a", "kill": true, "when": {}}', "must be one of"),
        ('{"press": "f1", "when": {}}', "must be one of"),
        ('{"answer": "allow"}', "must be one of"),
        ('{"fork": "a", "when": {}}', "must be one of"),
        ('{"answer": "perhaps", "when": {}}', "does not fit"),
        ('{"wait": 3}', "Line 1 of input.jsonl does not fit: Object contains unknown field `wait`"),
    ],
)
def test_a_step_that_does_not_follow_the_format_is_named(line: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        folder.parse_steps(line, "input.jsonl")


def test_a_story_is_found_by_its_name_its_number_or_a_part_if_only_one_fits(tmp_path: Path) -> None:
    shelves = (_shelf(tmp_path, "01-hello", "02-kill-one", "03-kill-two"),)
    assert [folder.load(name, shelves).name for name in ("01-hello", "02", "two", "hello")] == ["01-hello", "02-kill-one", "03-kill-two", "01-hello"]
    for name in ("kill", "0", "", "nothing", "../01-hello"):
        with pytest.raises(NotFound) as caught:
            folder.load(name, shelves)
        assert caught.value.hint == "There are: 01-hello, 02-kill-one, 03-kill-two."


def test_the_checkout_is_looked_in_before_the_package(tmp_path: Path) -> None:
    shelves = (_shelf(tmp_path / "checkout", "01-a"), _shelf(tmp_path / "package", "01-a", "02-b"))
    assert folder.names(shelves) == ("01-a",)
    assert folder.load("01", shelves).folder == tmp_path / "checkout" / "01-a"
    (tmp_path / "foreign" / "src").mkdir(parents=True)
    assert folder.names((tmp_path / "foreign", tmp_path / "none", tmp_path / "package")) == ("01-a", "02-b")
    assert folder.names(()) == ()


def test_a_stage_is_a_copy_and_goes_away_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = folder.load("01-a", (_shelf(tmp_path, "01-a"),))
    (story.folder / "workspace").mkdir()
    (story.folder / "workspace" / "file").write_text("recorded", encoding="utf-8")
    stage = folder.set_up(story)
    (stage.workspace / "file").write_text("played", encoding="utf-8")
    assert (folder.files_of(story.folder / "workspace"), folder.files_of(stage.workspace)) == ({"file": "recorded"}, {"file": "played"})
    folder.clear_away(stage)
    assert not stage.root.exists()


def test_requests_are_counted_per_conversation_in_a_file_that_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "started.txt"
    assert [folder.count_started(path, session) for session in ("a", "b", "a", "a")] == [1, 1, 2, 3]
    assert folder.lines(path) == ["a", "b", "a", "a"]
    assert path.stat().st_mode & 0o777 == 0o600
