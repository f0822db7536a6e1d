"""Every recorded session makes the commits that its golden.txt says; sessions/README.md tells how to change one."""

from __future__ import annotations

import pytest

from pi_durable_tui.cli import main
from pi_durable_tui.playback import folder, golden
from pi_durable_tui.records.commit import Commit, DocumentChange
from pi_durable_tui.records.document import Address
from pi_durable_tui.records.messages import Problem, Text
from pi_durable_tui.records.submission import Done, Submission
from pi_durable_tui.records.task import Failed, Pending, Task, Terminal
from tests.support.cli_runs import Desk
from tests.support.tui_views import answer, result, user


@pytest.mark.slow
@pytest.mark.rule("TK-10", "GE-3", "TO-2")
@pytest.mark.parametrize("name", folder.names())
def test_a_story_makes_the_commits_that_were_recorded_and_so_does_a_recording_of_its_chat(desk: Desk, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stage, recording = desk.root / "stage", desk.root / "recording"
    played = desk.run("demo", name, "--headless", "--golden", "--speed", "20", "--keep", str(stage))
    assert (played.code, played.stdout) == (0, folder.recorded_commits(folder.load(name)))
    for variable, value in desk.environ(PIDURABLE_DATA_DIR=str(stage / "data")).items():
        monkeypatch.setenv(variable, value)
    assert main.run(["sessions", "record", str(recording), "--cwd", str(stage / "workspace"), "--files", "all"]) == 0
    again = desk.run("demo", str(recording), "--headless", "--golden", "--speed", "100")
    assert (again.code, again.stderr) == (0, "")
    assert again.stdout == played.stdout


def _task(**changes: object) -> Task:
    values: dict[str, object] = {
        "id": 7,
        "kind": "pi.tool",
        "conversation_id": 1,
        "input": {},
        "state": Pending(checkpoint={"phase": "call"}),
        "created_at_ms": 0,
    }
    return Task(**(values | changes))


def test_a_line_names_every_record_with_its_state() -> None:
    failed = _task(state=Terminal(outcome=Failed(problem=Problem(reason="interrupted"))))
    done = Submission(id=4, conversation_id=1, mode="followUp", content=(Text(text="x"),), digest="", at_ms=0, state=Done(entry_id=5, answer_entry_id=9))
    commit = Commit(seq=3, at_ms=0, entries=(user(5, 'say "hi"\n'), answer(9, "hi")), tasks=(_task(restarts=2), failed), submissions=(done,))
    assert golden.line_of(commit, {}) == (
        'entry 5 pi.user "say \\"hi\\"\\n" | entry 9 pi.assistant stop "hi" | task 7 pi.tool pending/call restarts 2'
        " | task 7 pi.tool terminal failed (interrupted) | submission 4 done by 9"
    )


def test_what_differs_between_runs_is_replaced() -> None:
    commit = Commit(seq=3, at_ms=0, entries=(result(5, "bash", "bash x", "Ran 4 tests in 0.013s in /place/x-77/work; 250 ms"),))
    assert golden.line_of(commit, {"/place/x-77": "<stage>"}) == 'entry 5 pi.tool-result c5 "Ran 4 tests in <time> s in <stage>/work; <time> ms"'


def test_pieces_of_running_work_leave_no_line() -> None:
    change = DocumentChange(address=Address(kind="pi.live", scope="conversation", scope_id=1), previous={"a": 1}, value={"a": 2}, ops=[])
    assert golden.line_of(Commit(seq=3, at_ms=0, documents=(change,)), {}) == ""


def test_empty_and_repeated_lines_are_left_out() -> None:
    assert golden.collapsed(["a", "", "a", "b", "a"]) == "a\nb\na\n"
