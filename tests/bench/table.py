"""The lines of the bench's table, as text for a terminal and as Markdown for the README."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

HEAD = f"{'':<74} {'median':>9} {'p95':>9} {'p99':>9} unit  allowed (median / p99)"
MARKDOWN_HEAD = "| figure | median | p99 | allowed (median / p99) | |\n|---|---|---|---|---|"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: many values, or one. `limits` are (median or value, p99), None where there is none; `is_least`: they are lower bounds."""

    name: str
    values: Sequence[float]
    unit: str = "ms"
    limits: tuple[float | None, float | None] = (None, None)
    is_least: bool = False

    def at(self, share: float) -> float:
        """The value below which that share of the values lies."""
        values = sorted(self.values)
        return values[min(len(values) - 1, int(len(values) * share))]

    @property
    def median(self) -> float:
        """The middle of the values."""
        return statistics.median(self.values)

    @property
    def verdict(self) -> str:
        """Whether the limits are kept; "" where there are none."""
        pairs = [(limit, value) for limit, value in zip(self.limits, (self.median, self.at(0.99)), strict=True) if limit is not None]
        holds = all(value >= limit if self.is_least else value <= limit for limit, value in pairs)
        return ("ok" if holds else "OVER") if pairs else ""

    @property
    def allowed(self) -> str:
        """The limits, in words."""
        limits = " / ".join(f"{limit:g}" for limit in self.limits if limit is not None)
        return f"at least {limits}" if limits and self.is_least else limits


def ratio(name: str, ours: Sequence[float], baseline: Sequence[float], limit: float | None = None) -> Row:
    """The ratio of two medians."""
    return Row(name=name, values=[statistics.median(ours) / statistics.median(baseline)], unit="x", limits=(limit, None))


def told(row: Row) -> str:
    """One line for a terminal."""
    figures = f"{row.median:9.1f} {row.at(0.95):9.1f} {row.at(0.99):9.1f}" if len(row.values) > 1 else f"{row.median:9.2f} {'':9} {'':9}"
    return f"{row.name:<74} {figures} {row.unit:<5} {row.allowed:<10} {row.verdict}".rstrip()


def markdown(row: Row) -> str:
    """One line for the README."""
    name = f"… {row.name.strip()}" if row.name.startswith(" ") else row.name
    late = f"{_short(row.at(0.99))} {row.unit}" if len(row.values) > 1 else ""
    return f"| {name} | {_short(row.median)} {row.unit} | {late} | {row.allowed} | {row.verdict} |"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
