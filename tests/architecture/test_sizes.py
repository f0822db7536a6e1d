"""Files and functions stay small enough to be read in one go."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import pytest

from tests.architecture.source import PACKAGE, ROOT, functions, modules, name

MODULE_LINES = 500
MODULE_MEDIAN_LINES = 150
TEST_LINES = 800
FUNCTION_LINES = 50

WATCHED = {
    # The files that everything wants to go into.
    "pi_durable_tui/tui/app.py": 250,
    "pi_durable_tui/harness/tasks/scheduler.py": 300,
    "pi_durable_tui/session/session.py": 300,
    "pi_durable_tui/cli/main.py": 250,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """One file that may be longer than the rest, how long, and why."""

    path: str
    lines: int
    reason: str


EXEMPTIONS: tuple[Exemption, ...] = ()


def lines_of(path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def limit_of(path: str, default: int) -> int:
    exempt = {exemption.path: exemption.lines for exemption in EXEMPTIONS}
    return exempt.get(path, WATCHED.get(path, default))


def test_no_module_is_longer_than_its_limit():
    too_long = [f"{name(path)}: {lines_of(path)}" for path in modules(PACKAGE) if lines_of(path) > limit_of(name(path), MODULE_LINES)]
    assert too_long == []


def test_no_test_file_is_longer_than_its_limit():
    too_long = [f"{name(path)}: {lines_of(path)}" for path in modules(ROOT / "tests") if lines_of(path) > limit_of(name(path), TEST_LINES)]
    assert too_long == []


def test_no_function_is_longer_than_its_limit():
    too_long = [f"{name(f.path)}:{f.line} {f.name}: {f.lines}" for path in modules(PACKAGE) for f in functions(path) if f.lines > FUNCTION_LINES]
    assert too_long == []


def test_half_of_the_modules_are_short():
    lengths = [lines_of(path) for path in modules(PACKAGE) if path.name != "__init__.py"]
    assert statistics.median(lengths) <= MODULE_MEDIAN_LINES


@pytest.mark.parametrize("path", sorted(WATCHED))
def test_the_watched_files_exist(path: str):
    assert (ROOT / path).is_file(), "a watched file was renamed: rename it in WATCHED too"


def test_an_exemption_names_a_file_that_needs_it():
    stale = [exemption.path for exemption in EXEMPTIONS if not (ROOT / exemption.path).is_file() or lines_of(ROOT / exemption.path) <= MODULE_LINES]
    assert stale == []
