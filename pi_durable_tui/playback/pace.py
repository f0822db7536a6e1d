"""A clock that runs faster or slower than the machine's, for `demo --speed`."""

from __future__ import annotations

from pi_durable_tui.clock import Clock


class PacedClock:
    """Time that passes `speed` times as fast since `anchor_ms`.

    The anchor is kept over a kill, so that what is stored by one process lies in the past of the next.

    Args:
        clock: The machine's.
        speed: Above 0; 2 is twice as fast.
        anchor_ms: The wall time at which both clocks agree.
    """

    def __init__(self, clock: Clock, *, speed: float, anchor_ms: int) -> None:
        self._clock = clock
        self._speed = speed
        self._anchor_ms = anchor_ms

    def now_ms(self) -> int:
        return self._anchor_ms + int((self._clock.now_ms() - self._anchor_ms) * self._speed)

    def monotonic_ms(self) -> float:
        return self._clock.monotonic_ms() * self._speed

    async def sleep_ms(self, duration_ms: float) -> None:
        await self._clock.sleep_ms(duration_ms / self._speed)
