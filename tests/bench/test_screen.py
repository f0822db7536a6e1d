"""The measures of the screen run and print a line for each budget; what they say of time is for people."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bench.__main__ import all_measures
from tests.bench.screen import MEASURES, TINY
from tests.bench.table import Row, markdown, told


@pytest.mark.slow
@pytest.mark.parametrize("name", ["streams", "changes"])
def test_what_is_measured_in_this_process_gives_a_line_for_each_budget(name: str, tmp_path: Path) -> None:
    rows = list(MEASURES[name](tmp_path, TINY))
    assert all(value > 0 for row in rows for value in row.values)
    assert all(row.name in told(row) for row in rows)


@pytest.mark.slow
@pytest.mark.skipif("PIDURABLE_TEST_BENCH" not in os.environ, reason="starts the app many times; for by hand")
@pytest.mark.parametrize("name", all_measures(is_tiny=True))
def test_every_measure_gives_a_line_for_each_budget(name: str, tmp_path: Path) -> None:
    rows = list(all_measures(is_tiny=True)[name](tmp_path))
    assert rows
    assert all(row.name.strip() in line for row in rows for line in (told(row), markdown(row)))


def test_a_line_says_whether_its_limits_are_kept() -> None:
    rows = [
        Row(name="a", values=[1.0, 2.0, 30.0], limits=(2, 25)),
        Row(name="  b", values=[1.26], unit="x", limits=(1.25, None)),
        Row(name="c", values=[868.9], unit="tasks/s", limits=(300, None), is_least=True),
        Row(name="d", values=[12.34], unit="MB"),
    ]
    assert [row.verdict for row in rows] == ["OVER", "OVER", "ok", ""]
    assert [markdown(row) for row in rows] == [
        "| a | 2.00 ms | 30.0 ms | 2 / 25 | OVER |",
        "| … b | 1.26 x |  | 1.25 | OVER |",
        "| c | 869 tasks/s |  | at least 300 | ok |",
        "| d | 12.3 MB |  |  |  |",
    ]
