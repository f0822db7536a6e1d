"""The bench runs and says something of each budget; what it says of time is for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.measures import MEASURES, TINY, Row


@pytest.mark.slow
async def test_the_bench_measures_each_budget(tmp_path: Path):
    rows: list[Row] = []
    for number, measure in enumerate(MEASURES):
        (tmp_path / str(number)).mkdir()
        rows += await measure(tmp_path / str(number), TINY)

    assert [(row.limit, row.unit) for row in rows if row.limit is not None] == [
        (3, "x"),
        (3, "x"),
        (3, "x"),
        (300, "bytes"),
        (1.3, "x"),
        (2, "x"),
        (1.3, "x"),
        (300, "tasks/s"),
    ]
    assert all(row.value > 0 for row in rows)
    (stored,) = (row for row in rows if row.unit == "bytes" and row.limit is not None)
    assert stored.holds  # the one budget that is no matter of time
