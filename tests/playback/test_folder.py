"""The format of recorded sessions, and the stage that survives a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.errors import BadRequest, ConfigError, EnvironmentFailure, NotFound
from pi_durable_tui.playback import folder
from pi_durable_tui.playback.steps import Answer, Approve, Compact, Fork, Join, Kill, Run, Step, Stop, Submit, When, parse_steps, text_of_steps


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
    assert parse_steps(text, "input.jsonl") == (
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
        ('{"steer": "x"}', "must be one of"),
        ('{"compact": "", "when": {}}', "must be one of"),
        ('{"approve": "some"}', "does not fit"),
        ('{"answer": "allow"}', "must be one of"),
        ('{"fork": "a", "when": {}}', "must be one of"),
        ('{"answer": "perhaps", "when": {}}', "does not fit"),
        ('{"wait": 3}', "Line 1 of input.jsonl does not fit: Object contains unknown field `wait`"),
    ],
)
def test_a_step_that_does_not_follow_the_format_is_named(line: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_steps(line, "input.jsonl")


@pytest.mark.parametrize(
    "step",
    [
        Submit(text="two\nlines é"),
        Submit(text=""),
        Join(text="x", mode="steer", when=When(answer_contains="")),
        Join(text="x", mode="followUp", when=When(tool="bash", call="c1")),
        Kill(when=When(answer_contains="x", after_ms=3)),
        Stop(when=When(in_subagent="call_02")),
        Answer(decision="always", when=When(asks="edit", in_subagent=True)),
        Fork(at="x"),
        Approve(mode="plan"),
        Compact(focus=""),
        Run(command="ls", shown=True),
        Run(command="ls", shown=False),
    ],
)
def test_every_step_that_is_written_is_read_as_the_same(step: Step) -> None:
    assert parse_steps(text_of_steps([step]), "input.jsonl") == (step,)


def test_a_folder_is_a_story_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelves = (_shelf(tmp_path / "shelf", "01-hello"),)
    _shelf(tmp_path, "my-bug")
    monkeypatch.chdir(tmp_path)
    for name in ("my-bug", "./my-bug", str(tmp_path / "my-bug")):
        story = folder.load(name, shelves)
        assert (story.name, story.reference, folder.load(story.reference, shelves)) == ("my-bug", str(tmp_path / "my-bug"), story)
    (tmp_path / "my-bug" / "session.toml").write_text("title = \n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"my-bug/session.toml is not TOML"):
        folder.load("my-bug", shelves)


def test_a_folder_is_saved_whole_and_private_or_not_at_all(tmp_path: Path) -> None:
    place = tmp_path / "new"
    folder.save(place, {"session.toml": "x"}, {"a/b.txt": b"b"})
    assert {str(path.relative_to(place)): path.stat().st_mode & 0o777 for path in place.rglob("*") if path.is_file()} == {
        "session.toml": 0o600,
        "workspace/a/b.txt": 0o600,
    }
    with pytest.raises(BadRequest, match="is there already"):
        folder.save(place, {}, {})
    with pytest.raises(EnvironmentFailure, match="cannot be written"):
        folder.save(tmp_path / "bad", {}, {"a": b"", "a/b": b""})
    assert not (tmp_path / "bad").exists()


def test_a_stage_that_is_to_be_kept_is_a_new_folder(tmp_path: Path) -> None:
    story = folder.load("01-a", (_shelf(tmp_path, "01-a"),))
    assert folder.set_up(story, tmp_path / "kept").root == tmp_path / "kept"
    with pytest.raises(BadRequest, match="is there already"):
        folder.set_up(story, tmp_path / "kept")


def test_a_story_is_found_by_its_name_its_number_or_a_part_if_only_one_fits(tmp_path: Path) -> None:
    shelves = (_shelf(tmp_path, "01-hello", "02-kill-one", "03-kill-two"),)
    assert [folder.load(name, shelves).name for name in ("01-hello", "02", "two", "hello")] == ["01-hello", "02-kill-one", "03-kill-two", "01-hello"]
    for name in ("kill", "0", "", "nothing", "../01-hello"):
        with pytest.raises(NotFound) as caught:
            folder.load(name, shelves)
        assert caught.value.hint == "There are: 01-hello, 02-kill-one, 03-kill-two. Or name a folder that pidurable sessions record has made."


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


def test_which_requests_were_started_is_kept_in_a_file_that_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "started.txt"
    path.write_text("as-earlier-versions-noted\n", encoding="utf-8")
    path.chmod(0o600)
    for session, name in (("a", ""), ("b", None), ("a", "reader")):
        folder.Progress(path).note(session, name)
    assert folder.Progress(path).started() == (("as-earlier-versions-noted", None), ("a", ""), ("b", None), ("a", "reader"))
    assert path.stat().st_mode & 0o777 == 0o600
