"""What a look at one thing found, and how it is told. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_durable_tui.tui.safe_text import safe_line

State: TypeAlias = Literal["good", "note", "bad"]
_MARKS: dict[State, str] = {"good": "✓", "note": "!", "bad": "✗"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor.

    Attributes:
        state: good; note: works, with a remark; bad: something is wrong.
        next_step: What to do about it; "" for nothing.
    """

    name: str
    state: State
    text: str
    next_step: str = ""


def as_text(findings: Sequence[Finding]) -> str:
    """For people: a line each, and below it the next step."""
    width = max((len(finding.name) for finding in findings), default=0)
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{_MARKS[finding.state]} {finding.name:<{width}}  {safe_line(finding.text)}")
        if finding.next_step:
            lines.append(f"  {'':<{width}}  → {safe_line(finding.next_step)}")
    return "\n".join(lines)


def as_values(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """For programs."""
    return [{"name": one.name, "state": one.state, "text": one.text, "nextStep": one.next_step} for one in findings]
