"""Letting the event loop come to rest, for tests on a clock that stands still."""

from __future__ import annotations

import asyncio


async def settle(turns: int = 20) -> None:
    """Everything that can go on without time passing has gone on."""
    for _ in range(turns):
        await asyncio.sleep(0)
