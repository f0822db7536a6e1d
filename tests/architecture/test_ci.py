"""The one command runs every test there is, and the machine's script is that command."""

from __future__ import annotations

import re
import tomllib

from tests import ci
from tests.architecture.source import PACKAGE, ROOT, modules, name
from tests.support import sometimes

VARIABLE = re.compile(r"PIDURABLE_TEST_[A-Z]+(?:_[A-Z]+)*")


def test_every_test_file_belongs_to_exactly_one_part():
    files = [name(path) for path in modules(ROOT / "tests") if path.name.startswith("test_")]
    parts = {
        path: [part for part, entries in ci.TEST_PARTS.items() for entry in entries if path == f"tests/{entry}" or path.startswith(f"tests/{entry}/")]
        for path in files
    }
    assert {path: found for path, found in parts.items() if len(found) != 1} == {}


def test_the_machine_script_ends_in_the_one_command():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").rstrip().splitlines()
    assert "tests/ci.py" in script[-1]


def test_the_stories_looked_for_in_the_wheel_are_those_the_wheel_is_told_to_carry():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    carried = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert carried == {f"sessions/{story}": f"pi_durable_tui/_sessions/{story}" for story in ci.STORIES}
    assert sorted(ci.STORIES) == sorted(path.name for path in (ROOT / "sessions").iterdir() if path.is_dir() and not path.name.startswith("_"))


def test_every_pure_rule_is_held_to_all_of_its_branches():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    held = project["tool"]["coverage"]["run"]["include"]
    named = {"rules", "ownership", "recovery", "decide", "inbox", "context", "select"}
    assert {name(path) for path in modules(PACKAGE / "harness") if path.stem in named} - set(held) == set()
    assert [path for path in (*held, *ci.RULE_TESTS) if not (ROOT / path).exists()] == []
    assert project["tool"]["coverage"]["report"]["fail_under"] == 100


def test_the_totals_add_up_over_all_parts():
    results = {
        "prepare": ci.Result(ok=True, output="", shown="9 passed"),
        "pure": ci.Result(ok=True, output="", shown="12 passed, 1 skipped in 0.5s"),
        "contract": ci.Result(ok=False, output="", shown="= 2 failed, 30 passed, 1 error in 3.2s ="),
    }
    assert ci.totals(results) == "tests: 42 passed, 3 failed, 1 skipped"


def test_a_part_without_tests_fails(monkeypatch, tmp_path):
    monkeypatch.setitem(ci.TEST_PARTS, "pure", ("nothing_here",))
    assert not ci.run_tests(ci.Bench(tmp_path), "pure").ok


def test_what_must_happen_sometimes_is_judged_only_when_all_that_may_bring_it_ran(tmp_path):
    assert ci.run_sometimes(ci.Bench(tmp_path)).ok
    for part in ci.SOMETIMES_PARTS[:-1]:
        (tmp_path / f"ran-{part}").touch()
    told = ci.run_sometimes(ci.Bench(tmp_path, tmp_path))
    assert (told.ok, told.shown) == (True, "not judged, because this did not run: crash")


def test_a_moment_that_never_came_is_named(tmp_path, capsys):
    (tmp_path / "seen-1").write_text("\n".join(sometimes.WANTED[:4]))
    (tmp_path / "seen-2").write_text("\n".join(sometimes.WANTED[5:]))
    assert sometimes.main(tmp_path) == 1
    assert capsys.readouterr().out.startswith(f"this never happened in any test: {sometimes.WANTED[4]}\n")
    (tmp_path / "seen-3").write_text(sometimes.WANTED[4])
    assert sometimes.main(tmp_path) == 0


def test_every_moment_that_must_come_is_told_by_a_test():
    telling = "".join(path.read_text(encoding="utf-8") for path in modules(ROOT / "tests") if path.name != "sometimes.py")
    said = {moment for moment in sometimes.WANTED if f'happened("{moment}")' in telling}
    by_pattern = {moment for moment in sometimes.WANTED if moment.startswith(("the restart limit of kind: ", "an uncertain commit that was "))}
    assert set(sometimes.WANTED) == said | by_pattern


def test_every_variable_that_makes_tests_longer_stands_in_the_table_of_them_with_its_file():
    rows = [line for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `PIDURABLE_TEST_")]
    told = {(variable, file) for row in rows for variable in VARIABLE.findall(row) for file in re.findall(r"`(tests/[\w/.]+)`", row)}
    read = {
        (variable, "tests/bench" if name(path).startswith("tests/bench/") else name(path))
        for path in modules(ROOT / "tests")
        if path.name != "ci.py"
        for variable in VARIABLE.findall(path.read_text(encoding="utf-8"))
    }
    assert told == read
