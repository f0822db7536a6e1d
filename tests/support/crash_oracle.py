"""The oracle of the crash tests is the one of `pidurable selftest`, so that a promise is judged in one way."""

from __future__ import annotations

from pi_durable_tui.selftest.oracle import Effects, faults

__all__ = ["Effects", "faults"]
