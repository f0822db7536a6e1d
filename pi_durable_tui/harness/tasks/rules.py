"""What the scheduler has to do next (rules TK-2 to TK-16). PURE: the scheduler carries it out and decides nothing.

Theory. The world is the set of live task records plus the set of tasks that a handler of this process is working on. From these
alone follows, task by task, at most one next action; a commit changes the records, and the question is asked again. Nothing is
remembered between two questions, which is why a crash at any point is the same as asking later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, assert_never

from pi_durable_tui.harness.tasks.ownership import live_children, subtree
from pi_durable_tui.records.task import Completed, Completing, Outcome, Pending, Running, Sleeping, Task, Terminal, Waiting

ActionKind: TypeAlias = Literal["start", "exhaust", "resume", "abort_others", "cancel", "close_aborted", "settle"]
"""start: run the handler. exhaust: too many cut-offs, end it. resume: waiting or sleeping is over. abort_others: fail-fast.
cancel: marked for abort while a handler runs. close_aborted: marked, nothing runs, and below lives background work at most.
settle: completing is over."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do about one task."""

    kind: ActionKind
    task_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """All that the rules look at.

    Attributes:
        tasks: Every live task by id.
        outcomes: How the terminal tasks ended that somebody waits for.
        conversation_owners: The owning task of each owned conversation.
        invoked: Ids of the tasks that a handler of this process works on.
        fits: Whether a fitting definition is installed.
        restart_limit: Cut-offs without progress after which a task is not run again; 0 is as 1, since what was never cut off runs.
        ahead_ms: By sleeping task, how far its own time is ahead of `now_ms`, as after the wall clock was set back.
    """

    tasks: Mapping[int, Task]
    outcomes: Mapping[int, Outcome]
    conversation_owners: Mapping[int, int]
    invoked: Collection[int]
    fits: Callable[[Task], bool]
    now_ms: int
    restart_limit: float
    ahead_ms: Mapping[int, int] = field(default_factory=dict[int, int])


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, by task id, and when to ask again if nothing is committed before (None: never)."""

    actions: tuple[Action, ...]
    wake_at_ms: int | None


def plan(world: World) -> Plan:
    """The next actions for all live tasks."""
    below = live_children(world.tasks.values(), world.conversation_owners)
    actions: list[Action] = []
    for task_id in sorted(world.tasks):
        kind = next_action(world.tasks[task_id], world, below=below.get(task_id, ()))
        if kind is not None:
            actions.append(Action(kind, task_id))
    due = [due_ms for task in world.tasks.values() if (due_ms := _due_ms(task, world)) is not None]
    return Plan(tuple(actions), min((due_ms for due_ms in due if due_ms > world.now_ms), default=None))


def blocked(world: World) -> frozenset[int]:
    """The tasks that would run if a fitting definition were installed (rule TK-8)."""
    ready = (task for task in world.tasks.values() if isinstance(task.state, Pending) and task.abort_at_ms is None)
    return frozenset(task.id for task in ready if not world.fits(task))


def next_action(task: Task, world: World, *, below: Collection[int]) -> ActionKind | None:
    """The one thing to do about a task now; None: nothing.

    Args:
        below: Ids of its live children.
    """
    if isinstance(task.state, Completing):
        return None if below or task.id in world.invoked else "settle"
    if task.abort_at_ms is not None:
        return _next_of_marked(task, world, below)
    match task.state:
        case Pending():
            return _next_of_pending(task, world)
        case Waiting():
            return _next_of_waiting(task.state, world)
        case Sleeping():
            due_ms = _due_ms(task, world)
            return "resume" if due_ms is not None and due_ms <= world.now_ms else None
        case Running() | Terminal():
            return None
        case _ as never:
            assert_never(never)


def _due_ms(task: Task, world: World) -> int | None:
    """When a sleeping task wakes, by the wall clock as it is now; None: it does not sleep, or until somebody answers it."""
    if not isinstance(task.state, Sleeping) or task.state.until is None:
        return None
    return task.state.until - world.ahead_ms.get(task.id, 0)


def _next_of_marked(task: Task, world: World, below: Collection[int]) -> ActionKind | None:
    if task.id in world.invoked:
        return "cancel"
    return None if _is_held_up(world, below) else "close_aborted"


def _is_held_up(world: World, below: Collection[int]) -> bool:
    """Whether work below has to end first: an abort passes over background work, also where that keeps what is completing (rule TK-16)."""
    living = live_children(world.tasks.values(), world.conversation_owners)
    foreground = [child for child in below if not world.tasks[child].background]
    found = subtree(foreground, world.tasks, world.conversation_owners, background=False)
    return any(not isinstance(world.tasks[task_id].state, Completing) or task_id not in living for task_id in found)


def _next_of_pending(task: Task, world: World) -> ActionKind | None:
    if task.id in world.invoked or not world.fits(task):
        return None
    return "exhaust" if task.restarts and task.restarts >= world.restart_limit else "start"


def _next_of_waiting(state: Waiting, world: World) -> ActionKind | None:
    live = [task_id for task_id in state.on if task_id in world.tasks]
    if not live:
        return "resume"
    if state.policy == "failFast" and any(not isinstance(world.outcomes.get(task_id), Completed | None) for task_id in state.on):
        unmarked = [task_id for task_id in live if world.tasks[task_id].abort_at_ms is None]
        return "abort_others" if unmarked else None
    return None


def reason(task: Task, world: World) -> str:
    """Why a live task is where it is, in words for `inspect` (rule OB-5)."""
    if task.abort_at_ms is not None:
        return "being aborted"
    match task.state:
        case Pending() | Running():
            if task.id in world.invoked:
                return "running"
            if not world.fits(task):
                return f"blocked: no definition of {task.kind} for version {task.version} is installed"
            return "ready"
        case Waiting():
            live = [str(task_id) for task_id in task.state.on if task_id in world.tasks]
            return f"waiting for {', '.join(live)}" if live else "ready"
        case Sleeping():
            return "asks a person" if task.state.until is None else f"sleeping until {task.state.until}"
        case Completing():
            return "finished, waiting for work below"
        case Terminal():
            return "ended"
        case _ as never:
            assert_never(never)
