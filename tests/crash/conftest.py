from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Says how much was done; the summary of the run shows it."""
    return lambda text: record_property("told", text)
