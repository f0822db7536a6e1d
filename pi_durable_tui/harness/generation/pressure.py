"""The parts of a commit that start a compaction from a run: before the next request, or beside it (rules GE-1, GE-6, CO-2)."""

from __future__ import annotations

from pi_durable_tui.harness.compaction.checkpoint import CompactionInput, Reason
from pi_durable_tui.harness.compaction.phases import FIRST
from pi_durable_tui.harness.extensions.task_definition import Wait
from pi_durable_tui.harness.generation.checkpoint import Prepare
from pi_durable_tui.harness.kinds import COMPACTION
from pi_durable_tui.harness.live import CompactionRun
from pi_durable_tui.harness.runs import Desk, as_object
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.task import Pending, Task


def compact_first(runtime: TaskRuntime, desk: Desk, checkpoint: Prepare, reason: Reason) -> Wait:
    """The run waits for a summary and then prepares its request anew."""
    task = runtime.child(desk.transaction, COMPACTION, as_object(CompactionInput(reason=reason)), Pending(checkpoint=FIRST))
    _show(desk, task, reason, is_blocking=True)
    desk.change_live(generation=None)
    return Wait(as_object(checkpoint), (task.id,))


def compact_beside(desk: Desk) -> None:
    """A summary is made while the run goes on, unless one is being made already."""
    if not desk.live.compactions:
        begin_compaction(desk, "threshold")


def begin_compaction(desk: Desk, reason: Reason, *, focus: str = "") -> Task:
    """A compaction that nobody waits for: it outlives an abort of the run."""
    transaction = desk.transaction
    task = Task(
        id=transaction.new_id(),
        kind=COMPACTION,
        conversation_id=desk.conversation_id,
        input=as_object(CompactionInput(reason=reason, focus=focus)),
        state=Pending(checkpoint=FIRST),
        created_at_ms=transaction.now_ms,
        background=True,
    )
    transaction.put_task(task)
    _show(desk, task, reason, is_blocking=False)
    return task


def _show(desk: Desk, task: Task, reason: Reason, *, is_blocking: bool) -> None:
    run = CompactionRun(task_id=task.id, started_at_ms=desk.transaction.now_ms, reason=reason, is_blocking=is_blocking)
    desk.change_live(compactions=(*desk.live.compactions, run), compaction_failure=None)
