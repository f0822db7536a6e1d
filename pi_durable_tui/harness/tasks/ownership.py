"""Who lives below whom (rules TK-14 to TK-16). PURE.

A task is owned by its conversation or by another task of that conversation; a conversation is ownerless or owned by a task.
Everything here is derived from the records, so that a crash cannot lose it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pi_durable_tui.records.task import Task


def owner_task(task: Task, conversation_owners: Mapping[int, int]) -> int | None:
    """The id of the task that `task` works for; None for a task at the top of an ownerless conversation."""
    return task.owner if task.owner is not None else conversation_owners.get(task.conversation_id)


def live_children(tasks: Iterable[Task], conversation_owners: Mapping[int, int]) -> dict[int, tuple[int, ...]]:
    """For each owner the ids of its live tasks, growing."""
    below: dict[int, tuple[int, ...]] = {}
    for task in sorted(tasks, key=lambda item: item.id):
        owner = owner_task(task, conversation_owners)
        if owner is not None and task.is_live:
            below[owner] = (*below.get(owner, ()), task.id)
    return below


def subtree(roots: Iterable[int], tasks: Mapping[int, Task], conversation_owners: Mapping[int, int], *, background: bool) -> tuple[int, ...]:
    """The ids of `roots` and of all live tasks below them, growing.

    Args:
        background: False stops at background tasks, which outlive an abort of what started them (rule TK-16).
    """
    below = live_children(tasks.values(), conversation_owners)
    found: set[int] = set()
    waiting = [root for root in roots if root in tasks]
    while waiting:
        task_id = waiting.pop()
        if task_id in found:
            continue
        found.add(task_id)
        waiting += [child for child in below.get(task_id, ()) if background or not tasks[child].background]
    return tuple(sorted(found))
