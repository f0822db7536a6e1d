"""One store per backend, closed at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.storage_backends import BACKENDS, ReopenableStorage


@pytest.fixture(params=sorted(BACKENDS))
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ReopenableStorage]:
    opened = await BACKENDS[request.param](tmp_path).open()
    yield opened
    await opened.close()
