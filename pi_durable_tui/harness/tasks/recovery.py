"""What opening a session makes of the tasks it finds, and what closing leaves (rules TK-10, SE-7). PURE."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pi_durable_tui.records.task import Pending, Running, Task


def cut_off(task: Task) -> Task:
    """A task whose process died: pending at the same checkpoint, one restart more. Any other than a running task is returned as it is."""
    if not isinstance(task.state, Running):
        return task
    return msgspec.structs.replace(task, state=Pending(checkpoint=task.state.checkpoint), restarts=(task.restarts or 0) + 1)


def handed_back(task: Task) -> Task:
    """A task whose process closes cleanly: pending at the same checkpoint, no restart counted."""
    if not isinstance(task.state, Running):
        return task
    return msgspec.structs.replace(task, state=Pending(checkpoint=task.state.checkpoint))


def recovered(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """The records to replace when a session is opened for writing, by id; empty after a clean close."""
    return tuple(cut_off(task) for task in sorted(tasks, key=lambda item: item.id) if isinstance(task.state, Running))
