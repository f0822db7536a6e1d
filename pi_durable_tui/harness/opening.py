"""What opening a session for work does to it, and what it found (rules TK-10, TK-13)."""

from __future__ import annotations

from dataclasses import dataclass

from pi_durable_tui.harness.tasks.recovery import recovered
from pi_durable_tui.harness.tasks.table import TaskTable
from pi_durable_tui.harness.tool.checkpoint import TOOL
from pi_durable_tui.records.task import Task
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What opening found.

    Attributes:
        was_killed: Some process died while tasks ran.
        last_commit_at_ms: When the newest commit before the opening was made; None in a new store.
        interrupted: The tasks found running, as they stand after recovery.
        in_doubt: Those of them that are tool calls cut off after their intent and not safe to run again.
        queued: How many inputs wait in inboxes.
    """

    was_killed: bool
    last_commit_at_ms: int | None
    interrupted: tuple[Task, ...]
    in_doubt: tuple[Task, ...]
    queued: int


async def recover(session: Session, table: TaskTable) -> Recovery:
    """Turn what was running into pending, in one commit (rule TK-10), and say what was found. Read-only: only say."""
    changed = recovered(table.tasks.values())
    last_at_ms = (await session.storage.metadata()).last_at_ms
    queued = await session.storage.submissions(statuses=("queued",), limit=1_000)
    if changed and not session.read_only:

        async def write(transaction: Transaction) -> None:
            for task in changed:
                transaction.put_task(task)

        await session.commit(write)
        table.tasks |= {task.id: task for task in changed}
    return Recovery(
        was_killed=bool(changed),
        last_commit_at_ms=last_at_ms,
        interrupted=changed,
        in_doubt=tuple(task for task in changed if _is_in_doubt(task)),
        queued=len(queued.items),
    )


def _is_in_doubt(task: Task) -> bool:
    checkpoint = task.checkpoint or {}
    return task.kind == TOOL and checkpoint.get("phase") == "execute" and checkpoint.get("replay") == "unsafe"
