"""Carries out what `rules` say and commits the moves between handlers (rules TK-5, TK-6, TK-12 to TK-15).

It decides nothing. Each action is looked at again on the line before it is written, so that a commit in between cannot make it wrong.
"""

from __future__ import annotations

import asyncio

import msgspec

from pi_durable_tui.errors import SessionClosed, SessionFailed, StorageRejected
from pi_durable_tui.harness.extensions.hooks import must_pass
from pi_durable_tui.harness.extensions.task_definition import Ending, TaskDefinition
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.tasks.closing import REFUSED_AGAIN_MS, close_task, report
from pi_durable_tui.harness.tasks.invocation import Invocation, Invocations
from pi_durable_tui.harness.tasks.ownership import live_children, subtree
from pi_durable_tui.harness.tasks.rules import Action, World, blocked, next_action, plan, reason
from pi_durable_tui.harness.tasks.sleepers import Sleepers
from pi_durable_tui.harness.tasks.table import TaskTable
from pi_durable_tui.records.commit import Commit
from pi_durable_tui.records.task import Pending, Running, Task, Terminal, Waiting, moved
from pi_durable_tui.session.transaction import Transaction

LONGEST_SLEEP_MS = 30_000
"""A wait for a wall-clock time looks again at least this often, since the wall clock may be set (rule PR-18)."""


class Scheduler:
    """Runs the live tasks of one session. Create it, `start` it once, `stop` it before the session closes."""

    def __init__(self, services: Services, table: TaskTable) -> None:
        self._services = services
        self._table = table
        self._dirty = asyncio.Event()
        self._invocations = Invocations(services, table, self._dirty.set)
        self._pump: asyncio.Task[None] | None = None
        self._timer: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._blocked: frozenset[int] = frozenset()  # those that were told of
        self._sleepers = Sleepers(services.clock, table.tasks.values(), newest_at_ms=services.session.newest_at_ms)

    def start(self) -> None:
        """Begin to run tasks; without effect when already started (rule TK-13)."""
        if self._pump is None and not self._is_stopping:
            self._dirty.set()
            self._pump = asyncio.create_task(self._run_pump(), name="scheduler")

    def adopt(self, commit: Commit) -> None:
        """Look again after a commit that changed tasks."""
        if commit.tasks:
            self._sleepers.adopt(commit.tasks)
            self._dirty.set()

    def wake(self) -> None:
        """Look again, as after an extension was installed."""
        self._dirty.set()

    def world(self) -> World:
        """What the rules look at, as of now."""
        return World(
            tasks=self._table.tasks,
            outcomes=self._table.outcomes,
            conversation_owners=self._table.conversation_owners,
            invoked=self._invocations.task_ids,
            fits=self._fits,
            now_ms=self._services.clock.now_ms(),
            restart_limit=self._services.settings.restart_limit,
            ahead_ms=self._sleepers.ahead_ms(),
        )

    async def stop(self) -> None:
        """End all handlers and run nothing any more."""
        self._is_stopping = True
        loops = [job for job in (self._pump, self._timer) if job is not None]
        for job in loops:
            job.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await self._invocations.stop()

    # ------------------------------------------------------------------------------------------------------------ the pump

    async def _run_pump(self) -> None:
        try:
            while True:
                await self._dirty.wait()
                self._dirty.clear()
                world = self.world()
                planned = plan(world)
                self._arm(planned.wake_at_ms - world.now_ms if planned.wake_at_ms is not None else None)
                self._tell_of_blocked(world)
                for action in planned.actions:
                    await self._carry_out(action)
        except (SessionClosed, SessionFailed):
            self._is_stopping = True  # nothing can be committed any more: whoever waits hears of it from the session

    def _tell_of_blocked(self, world: World) -> None:
        """Say of each task once that it is blocked, and again when it was not meanwhile."""
        now = blocked(world)
        for task_id in sorted(now - self._blocked):
            task = world.tasks[task_id]
            report(self._services, "task_blocked", "no_definition", f"Task {task_id} is {reason(task, world)}.", task)
        self._blocked = now

    def _arm(self, delay_ms: int | None) -> None:
        """Look again after that time, or earlier: the wall clock may be set."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if delay_ms is not None:
            self._timer = asyncio.create_task(self._wake_after(min(delay_ms, LONGEST_SLEEP_MS)), name="scheduler timer")

    async def _wake_after(self, delay_ms: int) -> None:
        await self._services.clock.sleep_ms(delay_ms)
        self._dirty.set()

    async def _carry_out(self, action: Action) -> None:
        try:
            match action.kind:
                case "start":
                    await self._start(action)
                case "cancel":
                    self._invocations.cancel(action.task_id)
                case "resume" | "settle" | "abort_others":
                    await self._replace(action)
                case "exhaust":
                    await self._exhaust(action)
                case "close_aborted":
                    await close_task(self._services, self._table, Ending(why="aborted"), lambda: self._still(action))
        except StorageRejected as refused:
            report(self._services, "storage_refused", refused.reason, refused.message, self._table.tasks.get(action.task_id))
            self._arm(REFUSED_AGAIN_MS)

    def _still(self, action: Action) -> Task | None:
        """The task, if the action is still the one to take now that we are on the line."""
        world = self.world()
        task = world.tasks.get(action.task_id)
        if task is None:
            return None
        below = live_children(world.tasks.values(), world.conversation_owners)
        return task if next_action(task, world, below=below.get(task.id, ())) == action.kind else None

    # ------------------------------------------------------------------------------------------------------------- actions

    def _fits(self, task: Task) -> bool:
        definition = self._services.registry.task(task.kind)
        return definition is not None and definition.fits(task)

    async def _start(self, action: Action) -> None:
        wanted = self._still(action)
        definition = self._services.registry.task(wanted.kind) if wanted is not None else None
        if definition is None:
            return
        started: list[Invocation] = []

        async def callback(transaction: Transaction) -> None:
            task = self._still(action)
            if task is not None:
                transaction.put_task(_running(task, definition, now_ms=transaction.now_ms))
                started.append(self._invocations.reserve(task.id))

        try:
            await self._services.session.commit(callback)
        except BaseException as error:
            for invocation in started:
                self._invocations.release(invocation)
            if isinstance(error, StorageRejected | SessionClosed | SessionFailed) or must_pass(error):
                raise
            await self._cannot_migrate(action, error)
            return
        for invocation in started:
            self._invocations.run(invocation, definition)

    async def _cannot_migrate(self, action: Action, error: BaseException) -> None:
        """The only foreign code in a start is what brings an older checkpoint up to date; what it raises ends its own task (rule TK-3)."""
        task = self._table.tasks.get(action.task_id)
        message = f"its checkpoint could not be migrated: {type(error).__name__}: {error}"
        await close_task(self._services, self._table, Ending(why="fault", message=message), lambda: self._still(action))
        report(self._services, "task_faulted", "fault", message, task)

    async def _replace(self, action: Action) -> None:
        async def callback(transaction: Transaction) -> None:
            task = self._still(action)
            if task is not None:
                for changed in self._replacements(action, task, transaction.now_ms):
                    transaction.put_task(changed)

        await self._services.session.commit(callback)

    def _replacements(self, action: Action, task: Task, now_ms: int) -> tuple[Task, ...]:
        if action.kind == "abort_others" and isinstance(task.state, Waiting):
            tasks = self._table.tasks
            others = [tasks[task_id] for task_id in subtree(task.state.on, tasks, self._table.conversation_owners, background=False)]
            return tuple(msgspec.structs.replace(other, abort_at_ms=now_ms) for other in others if other.abort_at_ms is None)
        if task.outcome is not None:
            return (moved(task, Terminal(outcome=task.outcome), at_ms=now_ms),)
        return (moved(task, Pending(checkpoint=task.checkpoint or {}), at_ms=now_ms),)

    async def _exhaust(self, action: Action) -> None:
        task = self._still(action)
        if task is None:
            return
        definition = self._services.registry.task(task.kind)
        ending = Ending(why="restart_limit", message=f"it was cut off {task.restarts} times in a row")
        await close_task(self._services, self._table, ending, lambda: self._still(action))
        kind = definition.limit_report if definition is not None else "task_faulted"
        message = f"Task {task.id} ({task.kind}) was cut off {task.restarts} times in a row and is not run again."
        report(self._services, kind, "restart_limit", message, task)


def _running(task: Task, definition: TaskDefinition, *, now_ms: int) -> Task:
    """The task as running, its checkpoint brought to the definition's version."""
    task = definition.up_to_date(task)
    return moved(task, Running(checkpoint=task.checkpoint or {}), at_ms=now_ms)
