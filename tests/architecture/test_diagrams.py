"""The pictures in SPEC.md are drawn from the tables in the code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pi_durable_tui.records import submission, task
from tests.architecture.source import SPEC

TABLES = {"task": task.TRANSITIONS, "submission": submission.TRANSITIONS}


def drawn(table: Mapping[Any, frozenset[Any]]) -> str:
    """The table as a mermaid diagram; steps in the order of the table, targets by name."""
    steps = [f"    {before} --> {after}" for before, targets in table.items() for after in sorted(targets)]
    ends = [f"    {status} --> [*]" for status, targets in table.items() if not targets]
    first = next(iter(table))
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {first}", *steps, *ends, "```"]) + "\n"


@pytest.mark.parametrize("name", TABLES)
def test_a_picture_of_states_is_the_table(name: str):
    begin, end = f"<!-- {name} states: begin -->\n", f"<!-- {name} states: end -->\n"
    text = SPEC.read_text(encoding="utf-8")
    assert text.count(begin) == text.count(end) == 1
    assert text.split(begin)[1].split(end)[0] == drawn(TABLES[name]), f"put this between the markers:\n{drawn(TABLES[name])}"
