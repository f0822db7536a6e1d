"""What Esc stops (rules TU-8, TU-17). PURE: a view in, a decision out; the same one the line above the composer announces."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from pi_durable_tui.harness.view import ConversationView

Round: TypeAlias = tuple[int, int]
"""A run's task and its turn: the round of tools in which a subagent was stopped."""


class StopSubagent(Struct, frozen=True):
    """Its call gets what it had said, and the run goes on. A second Esc in the same `round` stops the run."""

    task_id: int
    round: Round


class StopRun(Struct, frozen=True):
    """The run and everything below it, but for work in the background."""


class StopCompaction(Struct, frozen=True):
    """The summary being made; the context stays as it was."""

    task_id: int


Stop: TypeAlias = StopSubagent | StopRun | StopCompaction


def what_stops(view: ConversationView, *, stopped_in: Round | None) -> Stop | None:
    """What Esc stops now; None: nothing runs.

    Args:
        stopped_in: The round in which Esc stopped a subagent last; None: it never did.
    """
    run = view.live.run
    if run is None and view.live.commands:
        return StopRun()
    if run is None:
        compactions = view.live.compactions
        return StopCompaction(compactions[-1].task_id) if compactions else None
    background = {task.id for task in view.tasks if task.background}
    subagents = [slot.subagent for slot in view.live.tools if slot.subagent is not None and slot.subagent not in background]
    here = (run.task_id, run.turn)
    return StopSubagent(max(subagents), here) if subagents and stopped_in != here else StopRun()


def hint(stop: Stop | None, key: str) -> str:
    """What a person is told about the key that stops; "" when there is nothing to tell. `key`: as it is shown; "": there is none."""
    if not key:
        return ""
    match stop:
        case StopSubagent():
            return f"{key} stops the subagent, twice the run"
        case StopCompaction():
            return f"{key} cancels the summary"
        case StopRun():
            return f"{key} stops"
        case None:
            return ""
