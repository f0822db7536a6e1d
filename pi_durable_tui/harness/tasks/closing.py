"""Ending a task from outside: aborted, at the restart limit, or after a fault of its handler (rules TK-3, TK-8, TK-12, TK-15)."""

from __future__ import annotations

from collections.abc import Callable

from pi_durable_tui.errors import SessionClosed, SessionFailed, StorageRejected
from pi_durable_tui.harness.extensions.hooks import must_pass
from pi_durable_tui.harness.extensions.task_definition import Ending, TaskDefinition
from pi_durable_tui.harness.services import Report, ReportKind, Services
from pi_durable_tui.harness.tasks.table import TaskTable
from pi_durable_tui.records.task import Aborted, Faulted, Orphaned, Outcome, Task, moved
from pi_durable_tui.session.transaction import Transaction

REFUSED_AGAIN_MS = 5_000
"""How long to wait before asking a store again that refused a commit which it may take later."""


async def close_task(services: Services, table: TaskTable, ending: Ending, still: Callable[[], Task | None]) -> None:
    """End a task in one commit, with what its definition has to say about it; with live work below it is completing (rule TK-14).

    A definition that raises, or says what cannot be stored, has nothing to say: its task ends as faulted without it, and nothing else suffers
    (rule TK-3).

    Args:
        still: Asked on the line: the task as it is now, or None when it shall not be ended any more.
    """
    task = still()
    definition = services.registry.task(task.kind) if task is not None else None
    try:
        await _close(services, table, ending, still, definition)
    except (SessionClosed, SessionFailed):
        raise
    except BaseException as error:  # code of an extension
        if must_pass(error) or (isinstance(error, StorageRejected) and error.may_pass):
            raise
        message = f"{ending.message or ending.why}; then its definition could not end it: {type(error).__name__}: {error}"
        await _close(services, table, Ending(why="fault", message=message), still, None)
        report(services, "task_faulted", "fault", message, task)


async def _close(services: Services, table: TaskTable, ending: Ending, still: Callable[[], Task | None], definition: TaskDefinition | None) -> None:
    async def callback(transaction: Transaction) -> None:
        task = still()
        if task is not None:
            outcome = await _outcome(definition, transaction, task, ending)
            transaction.put_task(moved(task, table.ended(task, outcome, transaction), at_ms=transaction.now_ms))

    await services.session.commit(callback, priority="outcome")


async def _outcome(definition: TaskDefinition | None, transaction: Transaction, task: Task, ending: Ending) -> Outcome:
    if definition is None or not definition.fits(task):
        return Orphaned() if ending.why == "aborted" else Faulted(message=ending.message)
    if definition.on_ending is not None:
        return await definition.on_ending(transaction, definition.up_to_date(task), ending)
    if ending.why == "aborted":
        return Aborted()
    return Faulted(message=ending.message, detail={"reason": ending.why} if ending.why == "restart_limit" else None)


def report(services: Services, kind: ReportKind, reason: str, message: str, task: Task | None) -> None:
    """Tell whoever listens about a task."""
    at_ms = services.clock.now_ms()
    task_id, conversation_id = (task.id, task.conversation_id) if task is not None else (None, None)
    services.report(Report(kind=kind, reason=reason, message=message, at_ms=at_ms, task_id=task_id, conversation_id=conversation_id))
