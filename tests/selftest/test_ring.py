"""`pidurable selftest`: it kills for real, finds nothing where all is well, and finds what is wrong (PR-1, PR-5, PR-6, PR-10)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from pi_durable_tui.cli.check.selftest import progress, report, shared_out
from pi_durable_tui.clock import SystemClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.selftest import script
from pi_durable_tui.selftest.ring import Run, Told, total
from pi_durable_tui.selftest.script import Stage
from tests.support.cli_runs import Desk, new_desk


@pytest.mark.slow
@pytest.mark.rule("PR-1", "PR-5", "PR-6", "PR-10")
def test_it_kills_as_often_as_it_is_told_finds_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    desk = new_desk(tmp_path)
    ended = desk.run("selftest", "--kill", "6", "--seed", "7")
    first, aimed, *_ = ended.stdout.splitlines()
    assert (ended.code, ended.stderr) == (0, "")
    assert first.startswith("6 kills by SIGKILL in ")
    assert first.endswith("seed 7")
    assert sum(int(part.split()[0]) for part in aimed.split("·")) == 6
    assert "found: 0 violations\nagain: pidurable selftest --kill 6 --seed 7\n" in ended.stdout
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not desk.data.exists()


@pytest.mark.slow
@pytest.mark.rule("PR-1", "PR-6", "PR-10")
def test_a_folder_of_lines_is_killed_and_judged_alike(tmp_path: Path) -> None:
    ended = new_desk(tmp_path).run("selftest", "--kill", "3", "--seed", "7", "--store", "jsonl")
    assert (ended.code, ended.stderr) == (0, "")
    runs = ended.stdout.splitlines()[3]
    assert runs.startswith("  runs: ")
    assert runs.endswith(" over a folder of JSON lines")
    assert "found: 0 violations\nagain: pidurable selftest --kill 3 --seed 7 --store jsonl\n" in ended.stdout


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A run that came to its end without a kill."""
    stage = Stage(tmp_path_factory.mktemp("run"))
    stage.work.mkdir()
    assert script.live(stage) == 0
    return stage


def copy_of(stage: Stage, root: Path) -> Run:
    for name in ("session.sqlite", "acknowledged", "effects", "work/notes.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes((stage.root / name).read_bytes())
    return Run(Stage(root), "a run", SeededEntropy(1), SystemClock(), lambda _told: None)


def _append(name: str, text: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        with (root / name).open("a") as file:
            file.write(text)

    return change


def _overwrite(name: str, text: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / name).write_text(text)

    return change


def _statement(sql: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        connection = apsw.Connection(str(root / "session.sqlite"))
        connection.execute(sql)
        connection.close()

    return change


@pytest.mark.slow
@pytest.mark.rule("PR-6", "PR-10")
def test_a_run_without_faults_is_found_good(finished: Stage, tmp_path: Path) -> None:
    run = copy_of(finished, tmp_path)
    assert (run.wrong_after_kill(), run.wrong_at_the_end()) == ([], [])


@pytest.mark.slow
@pytest.mark.rule("PR-1", "PR-6", "PR-10")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_append("effects", "c1 start\n"), "call c1 started 2 times"),
        (_overwrite("effects", "c1 start\nc3 start\nc3 end\n"), "call c1 is told as done and was not"),
        (_overwrite("work/notes.txt", "half"), "the files are {'notes.txt': 'half'}"),
        (_statement("DELETE FROM entries WHERE id = (SELECT max(id) FROM entries)"), "the run ended with"),
        (_statement("UPDATE entries SET record = replace(record, 'done', 'gone')"), "its checksum does not fit its content"),
    ],
)
def test_each_kind_of_fault_is_found(finished: Stage, tmp_path: Path, change: Callable[[Path], None], words: str) -> None:
    run = copy_of(finished, tmp_path)
    change(tmp_path)
    assert any(words in fault for fault in run.wrong_at_the_end()), run.wrong_at_the_end()


@pytest.mark.slow
@pytest.mark.rule("PR-1")
def test_an_acknowledged_commit_that_is_not_stored_is_found(finished: Stage, tmp_path: Path) -> None:
    run = copy_of(finished, tmp_path)
    _append("acknowledged", "9999\n")(tmp_path)
    assert [fault.split(",")[0] for fault in run.wrong_after_kill()] == ["commit 9999 was acknowledged"]
    (tmp_path / "session.sqlite").unlink()
    assert run.wrong_after_kill() == ["commit 9999 was acknowledged, and there is no store"]


@pytest.mark.slow
@pytest.mark.rule("CL-6")
def test_a_violation_ends_with_status_1_names_it_and_keeps_the_run(tmp_path: Path) -> None:
    desk: Desk = new_desk(tmp_path)
    broken = "from pi_durable_tui.selftest import script; script.live = lambda stage: 3; from pi_durable_tui.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", broken, "selftest", "--kill", "1", "--seed", "1"], env=desk.environ(), cwd=desk.work, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "the run did not come to its end: 3" in ended.stdout
    kept = next(line for line in ended.stdout.splitlines() if line.startswith("What was left is kept: ")).partition(": ")[2]
    assert (os.path.commonpath([kept, desk.root]), Path(kept).is_dir()) == (str(desk.root), True)


# ------------------------------------------------------------------------------------------------------------------ texts


def test_kills_are_shared_out_and_no_shard_is_idle() -> None:
    assert [shared_out(kills, 2) for kills in (1, 2, 5)] == [[1], [1, 1], [3, 2]]


def test_what_shards_tell_adds_up() -> None:
    told = [Told(kills={"time": 1}, commits=4), Told(kills={"time": 2, "effect": 1}, runs=1, effects=2, traces={"x": 1}), Told(faults=("bad",), kept="/k")]
    assert total(told) == Told(kills={"time": 3, "effect": 1}, runs=1, commits=4, effects=2, traces={"x": 1}, faults=("bad",), kept="/k")
    assert progress(total(told), 9) == "killed 4 of 9 times · 1 runs ended and judged · 1 violations"


def test_the_report_names_violations_and_how_to_see_them_again() -> None:
    text = report(Told(kills={"time": 3}, faults=("run 1: lost",), kept="/k"), kills=3, seed=5, took_ms=1_234)
    assert text.splitlines()[0] == "3 kills by SIGKILL in 0 runs, 1.2 s, seed 5"
    assert text.splitlines()[-5:-1] == [
        "1 violations",
        "  run 1: lost",
        "What was left is kept: /k",
        "This must not happen. Please report it, with that folder.",
    ]
