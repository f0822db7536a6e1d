"""A workplace for the tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tools_calls import Workplace


@pytest.fixture
def work(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)
