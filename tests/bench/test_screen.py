"""The measures of the screen run and print a line for each budget; what they say of time is for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.screen import MEASURES, TINY, told


@pytest.mark.slow
@pytest.mark.parametrize("name", ["streams", "changes"])
def test_what_is_measured_in_this_process_gives_a_line_for_each_budget(name: str, tmp_path: Path) -> None:
    rows = list(MEASURES[name](tmp_path, TINY))
    assert all(value > 0 for row in rows for value in row.values)
    assert all(row.name in told(row) for row in rows)
