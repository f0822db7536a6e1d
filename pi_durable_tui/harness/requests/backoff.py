"""How long to wait before a request is made again (rule GE-6). PURE."""

from __future__ import annotations

from pi_durable_tui.harness.settings import Retry


def backoff_ms(attempt: int, retry: Retry) -> int:
    """The wait after failed attempt number `attempt`: the base, doubled each time, at most the maximum."""
    return min(retry.max_delay_ms, retry.base_delay_ms * 2 ** min(attempt - 1, 30))
