"""The library is loaded once for all tests of the gateway: it takes seconds."""

from __future__ import annotations

import asyncio

import pytest

from pi_durable_tui.models import litellm_gateway
from pi_durable_tui.models.reading import Library


@pytest.fixture(scope="session")
def library() -> Library:
    """The real library, loaded as the program loads it."""

    async def load() -> Library:
        return await litellm_gateway._in_thread()

    return asyncio.run(load())
