"""The pictures in SPEC.md are drawn from the tables in the code."""

from __future__ import annotations

from pi_durable_tui.records.task import TRANSITIONS
from tests.architecture.source import SPEC

BEGIN, END = "<!-- task states: begin -->\n", "<!-- task states: end -->\n"


def drawn() -> str:
    """The table as a mermaid diagram; steps in the order of the table, targets by name."""
    steps = [f"    {before} --> {after}" for before, targets in TRANSITIONS.items() for after in sorted(targets)]
    ends = [f"    {status} --> [*]" for status, targets in TRANSITIONS.items() if not targets]
    first = next(iter(TRANSITIONS))
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {first}", *steps, *ends, "```"]) + "\n"


def test_the_picture_of_the_task_states_is_the_table():
    text = SPEC.read_text(encoding="utf-8")
    assert text.count(BEGIN) == text.count(END) == 1
    assert text.split(BEGIN)[1].split(END)[0] == drawn(), f"put this between the markers:\n{drawn()}"
