"""Carries out what `rules` say: starts handlers, joins them, and commits the moves between (rules TK-2, TK-3, TK-7, TK-15).

It decides nothing. Each action is looked at again on the line before it is written, so that a commit in between cannot make it wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pi_durable_tui.errors import SessionClosed, SessionFailed, StorageRejected
from pi_durable_tui.harness.services import Report, ReportKind, Services
from pi_durable_tui.harness.tasks.definition import Ending, TaskDefinition
from pi_durable_tui.harness.tasks.ownership import live_children
from pi_durable_tui.harness.tasks.rules import Action, World, next_action, plan
from pi_durable_tui.harness.tasks.runtime import Fenced, TaskRuntime
from pi_durable_tui.harness.tasks.table import TaskTable
from pi_durable_tui.records.commit import Commit
from pi_durable_tui.records.task import Aborted, Faulted, Orphaned, Outcome, Pending, Running, Task, Terminal, Waiting, moved
from pi_durable_tui.session.transaction import Transaction

LONGEST_SLEEP_MS = 30_000
"""A wait for a wall-clock time looks again at least this often, since the wall clock may be set (rule PR-18)."""
REFUSED_AGAIN_MS = 5_000
"""How long to wait before asking a store again that refused a commit for want of space."""


@dataclass(slots=True)
class Invocation:
    """A handler at work in this process."""

    runtime: TaskRuntime
    job: asyncio.Task[None] | None = None
    is_cancelled: bool = False


class Scheduler:
    """Runs the live tasks of one session. Create it, `start` it once, `stop` it before the session closes."""

    def __init__(self, services: Services, table: TaskTable) -> None:
        self._services = services
        self._table = table
        self._invocations: dict[int, Invocation] = {}
        self._dirty = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._timer: asyncio.Task[None] | None = None
        self._joins: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    def start(self) -> None:
        """Begin to run tasks; without effect when already started (rule TK-13)."""
        if self._pump is None and not self._is_stopping:
            self._dirty.set()
            self._pump = asyncio.create_task(self._run_pump(), name="scheduler")

    def adopt(self, commit: Commit) -> None:
        """Look again after a commit that changed tasks."""
        if commit.tasks:
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
            invoked=self._invocations.keys(),
            fits=self._fits,
            now_ms=self._services.clock.now_ms(),
            restart_limit=self._services.settings.restart_limit,
        )

    async def stop(self) -> None:
        """Fence off, cancel and join every handler; who does not end within the grace time is left behind, unable to write."""
        self._is_stopping = True
        jobs = [job for job in (self._pump, self._timer, *self._joins) if job is not None]
        for invocation in self._invocations.values():
            invocation.runtime.fence()
            if invocation.job is not None:
                jobs.append(invocation.job)
        for job in jobs:
            job.cancel()
        await self._joined(jobs)

    # ------------------------------------------------------------------------------------------------------------ the pump

    async def _run_pump(self) -> None:
        try:
            while True:
                await self._dirty.wait()
                self._dirty.clear()
                planned = plan(self.world())
                self._arm(planned.wake_at_ms)
                for action in planned.actions:
                    await self._carry_out(action)
        except (SessionClosed, SessionFailed):
            self._is_stopping = True  # nothing can be committed any more: whoever waits hears of it from the session

    def _arm(self, wake_at_ms: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wake_at_ms is not None:
            self._timer = asyncio.create_task(self._wake_at(wake_at_ms), name="scheduler timer")

    async def _wake_at(self, wake_at_ms: int) -> None:
        while (gap_ms := wake_at_ms - self._services.clock.now_ms()) > 0:
            await self._services.clock.sleep_ms(min(gap_ms, LONGEST_SLEEP_MS))
        self._dirty.set()

    async def _carry_out(self, action: Action) -> None:
        try:
            match action.kind:
                case "start":
                    await self._start(action)
                case "cancel":
                    self._cancel(action.task_id)
                case "resume" | "settle" | "abort_others":
                    await self._replace(action)
                case "exhaust":
                    await self._exhaust(action)
                case "close_aborted":
                    await self._close(action.task_id, Ending(why="aborted"), lambda: self._still(action))
        except StorageRejected as refused:
            self._report("storage_refused", refused.reason, refused.message, self._table.tasks.get(action.task_id))
            self._arm(self._services.clock.now_ms() + REFUSED_AGAIN_MS)

    def _still(self, action: Action) -> Task | None:
        """The task, if the action is still the one to take now that we are on the line."""
        world = self.world()
        task = world.tasks.get(action.task_id)
        if task is None:
            return None
        below = live_children(world.tasks.values(), world.conversation_owners)
        return task if next_action(task, world, has_live_below=task.id in below) == action.kind else None

    # ------------------------------------------------------------------------------------------------- moves between handlers

    async def _replace(self, action: Action) -> None:
        async def callback(transaction: Transaction) -> None:
            task = self._still(action)
            if task is not None:
                for changed in self._replacements(action, task, transaction.now_ms):
                    transaction.put_task(changed)

        await self._services.session.commit(callback)

    def _replacements(self, action: Action, task: Task, now_ms: int) -> tuple[Task, ...]:
        if action.kind == "abort_others" and isinstance(task.state, Waiting):
            others = [self._table.tasks[task_id] for task_id in task.state.on if task_id in self._table.tasks]
            return tuple(msgspec.structs.replace(other, abort_at_ms=now_ms) for other in others if other.abort_at_ms is None)
        if task.outcome is not None:
            return (moved(task, Terminal(outcome=task.outcome), at_ms=now_ms),)
        return (moved(task, Pending(checkpoint=task.checkpoint or {}), at_ms=now_ms),)

    async def _exhaust(self, action: Action) -> None:
        task = self._table.tasks[action.task_id]
        definition = self._services.registry.task(task.kind)
        await self._close(task.id, Ending(why="restart_limit", message=f"it was cut off {task.restarts} times in a row"), lambda: self._still(action))
        kind = definition.limit_report if definition is not None else "task_faulted"
        self._report(kind, "restart_limit", f"Task {task.id} ({task.kind}) was cut off {task.restarts} times in a row and is not run again.", task)

    async def _close(self, task_id: int, ending: Ending, still: Callable[[], Task | None]) -> None:
        """End a task from outside, as its definition says."""

        async def callback(transaction: Transaction) -> None:
            task = still()
            if task is None:
                return
            outcome = await self._outcome(transaction, task, ending)
            transaction.put_task(moved(task, Terminal(outcome=outcome), at_ms=transaction.now_ms))
            await transaction.retire_documents("task", task_id)

        await self._services.session.commit(callback, priority="outcome")

    async def _outcome(self, transaction: Transaction, task: Task, ending: Ending) -> Outcome:
        definition = self._services.registry.task(task.kind)
        if definition is None or not definition.fits(task):
            return Orphaned() if ending.why == "aborted" else Faulted(message=ending.message)
        if definition.on_ending is not None:
            return await definition.on_ending(transaction, task, ending)
        if ending.why == "aborted":
            return Aborted()
        return Faulted(message=ending.message, detail={"reason": ending.why} if ending.why == "restart_limit" else None)

    # ------------------------------------------------------------------------------------------------------------- handlers

    def _fits(self, task: Task) -> bool:
        definition = self._services.registry.task(task.kind)
        return definition is not None and definition.fits(task)

    async def _start(self, action: Action) -> None:
        definition = self._services.registry.task(self._table.tasks[action.task_id].kind)
        if definition is None:
            return
        invocation = Invocation(TaskRuntime(action.task_id, self._services, self._table))

        async def callback(transaction: Transaction) -> bool:
            task = self._still(action)
            if task is None or task.checkpoint is None:
                return False
            checkpoint = task.checkpoint
            if task.version < definition.version and definition.migrate is not None:
                checkpoint = definition.migrate(checkpoint, task.version)
                task = msgspec.structs.replace(task, version=definition.version, state=Pending(checkpoint=checkpoint))
            transaction.put_task(moved(task, Running(checkpoint=checkpoint), at_ms=transaction.now_ms))
            self._invocations[task.id] = invocation
            return True

        try:
            is_started = await self._services.session.commit(callback)
        except BaseException:
            self._invocations.pop(action.task_id, None)
            raise
        if is_started:
            invocation.job = asyncio.create_task(self._invoke(invocation, definition), name=f"task {action.task_id}")

    async def _invoke(self, invocation: Invocation, definition: TaskDefinition) -> None:
        try:
            await self._run_phases(invocation.runtime, definition)
        except (Fenced, SessionClosed, SessionFailed):
            return
        except Exception as error:  # noqa: BLE001 - the phase boundary: whatever a handler raises ends its task, not the harness
            await self._fault(invocation.runtime, f"{type(error).__name__}: {error}")
        finally:
            if self._invocations.get(invocation.runtime.task_id) is invocation:
                del self._invocations[invocation.runtime.task_id]
            self._dirty.set()

    async def _run_phases(self, runtime: TaskRuntime, definition: TaskDefinition) -> None:
        while True:
            before = runtime.checkpoint
            phase = definition.phases.get(str(before.get("phase")))
            if phase is None:
                await self._fault(runtime, f"{definition.kind} has no phase {before.get('phase')!r}")
                return
            await phase(runtime)
            after = self._table.tasks.get(runtime.task_id)
            if after is None or not isinstance(after.state, Running):
                return
            if after.state.checkpoint == before:
                await self._fault(runtime, f"phase {before.get('phase')!r} returned without progress")
                return

    async def _fault(self, runtime: TaskRuntime, message: str) -> None:
        task = self._table.tasks.get(runtime.task_id)

        def still() -> Task | None:
            now = self._table.tasks.get(runtime.task_id)
            return now if now is not None and isinstance(now.state, Running) and now.abort_at_ms is None else None

        if task is None or self._is_stopping:
            return
        runtime.fence()
        try:
            await self._close(runtime.task_id, Ending(why="fault", message=message), still)
        except StorageRejected as refused:
            message = f"{message}; the end could not be stored: {refused.message}"
        except (SessionClosed, SessionFailed):
            return
        self._report("task_faulted", "fault", message, task)

    def _cancel(self, task_id: int) -> None:
        invocation = self._invocations.get(task_id)
        if invocation is None or invocation.job is None or invocation.is_cancelled:
            return
        invocation.is_cancelled = True
        invocation.runtime.fence()
        invocation.job.cancel()
        join = asyncio.create_task(self._give_up_on(task_id, invocation, invocation.job), name=f"join task {task_id}")
        self._joins.add(join)
        join.add_done_callback(self._joins.discard)

    async def _give_up_on(self, task_id: int, invocation: Invocation, job: asyncio.Task[None]) -> None:
        """Wait for a cancelled handler; after the grace time it is left behind, fenced off."""
        await self._joined([job])
        if self._invocations.get(task_id) is invocation:
            del self._invocations[task_id]
        self._dirty.set()

    async def _joined(self, jobs: list[asyncio.Task[None]]) -> None:
        if not jobs:
            return
        grace = asyncio.create_task(self._services.clock.sleep_ms(self._services.settings.close_grace_ms))
        joined = asyncio.create_task(asyncio.wait(jobs))
        await asyncio.wait({grace, joined}, return_when=asyncio.FIRST_COMPLETED)
        grace.cancel()
        joined.cancel()

    def _report(self, kind: ReportKind, reason: str, message: str, task: Task | None) -> None:
        self._services.report(
            Report(
                kind=kind,
                reason=reason,
                message=message,
                at_ms=self._services.clock.now_ms(),
                task_id=task.id if task is not None else None,
                conversation_id=task.conversation_id if task is not None else None,
            )
        )
