"""What lives in a session, for people and for a panel (rules OB-4, OB-5). PURE."""

from __future__ import annotations

from dataclasses import dataclass

from pi_durable_tui.harness.kinds import BACKGROUND
from pi_durable_tui.harness.tasks.ownership import owner_task
from pi_durable_tui.harness.tasks.rules import World, reason
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Sleeping, Task, TaskStatus, Waiting

_NAMES = {BACKGROUND: ("title",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """A live task and why it is where it is."""

    task: Task
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Live tasks and open submissions, by id."""

    tasks: tuple[TaskInfo, ...]
    submissions: tuple[Submission, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNode:
    """A live task in the graph of work.

    Attributes:
        name: What its input calls it: the tool, what a call in the background does, the subagent, why it summarizes; "" when it has no name.
        title: What a call does, from its stored intent on; "" for others, and before.
        owner: The task it works for, in its own conversation or the one that owns its conversation; None at the top.
        phase: Of its checkpoint; None once it is completing.
        waits_for: Ids of the live tasks it waits for.
        until_ms: When it wakes; None when it does not sleep, or only an answer wakes it.
        conversations: Ids of the conversations it owns and that have live tasks.
    """

    task_id: int
    kind: str
    name: str
    conversation_id: int
    owner: int | None
    status: TaskStatus
    phase: str | None
    waits_for: tuple[int, ...]
    until_ms: int | None
    background: bool
    is_aborted: bool
    restarts: int
    started_at_ms: int | None
    conversations: tuple[int, ...]
    title: str = ""


def task_infos(world: World) -> tuple[TaskInfo, ...]:
    """Every live task with its reason, by id."""
    return tuple(TaskInfo(task=world.tasks[task_id], reason=reason(world.tasks[task_id], world)) for task_id in sorted(world.tasks))


def task_nodes(world: World) -> tuple[TaskNode, ...]:
    """Every live task as a node, by id."""
    return tuple(_node(world.tasks[task_id], world) for task_id in sorted(world.tasks))


def _node(task: Task, world: World) -> TaskNode:
    checkpoint = task.checkpoint
    owned = (conversation_id for conversation_id, owner in world.conversation_owners.items() if owner == task.id)
    live_in = {each.conversation_id for each in world.tasks.values()}
    return TaskNode(
        task_id=task.id,
        kind=task.kind,
        name=next((str(task.input[key]) for key in _NAMES.get(task.kind, ("name", "reason")) if key in task.input), ""),
        conversation_id=task.conversation_id,
        owner=owner_task(task, world.conversation_owners),
        status=task.status,
        phase=str(checkpoint["phase"]) if checkpoint is not None and "phase" in checkpoint else None,
        waits_for=tuple(task_id for task_id in task.state.on if task_id in world.tasks) if isinstance(task.state, Waiting) else (),
        until_ms=task.state.until if isinstance(task.state, Sleeping) else None,
        background=task.background,
        is_aborted=task.abort_at_ms is not None,
        restarts=task.restarts or 0,
        started_at_ms=task.started_at_ms,
        conversations=tuple(sorted(conversation_id for conversation_id in owned if conversation_id in live_in)),
        title=str((checkpoint or {}).get("title", "")),
    )
