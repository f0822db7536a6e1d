"""The handlers at work in this process: started, joined, fenced off (rules TK-2, TK-3, TK-7, TK-15)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

from pi_durable_tui.errors import SessionClosed, SessionFailed, StorageRejected
from pi_durable_tui.harness.extensions.hooks import must_pass
from pi_durable_tui.harness.extensions.task_definition import Ending, TaskDefinition
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.tasks.closing import REFUSED_AGAIN_MS, close_task, report
from pi_durable_tui.harness.tasks.runtime import Fenced, TaskRuntime
from pi_durable_tui.harness.tasks.table import TaskTable
from pi_durable_tui.records.task import Running, Task


@dataclass(slots=True)
class Invocation:
    """One handler at work."""

    runtime: TaskRuntime
    job: asyncio.Task[None] | None = None
    is_cancelled: bool = False


class Invocations:
    """At most one handler per task (rule TK-7).

    Args:
        changed: Called when a handler has ended, so that the rules are asked again.
    """

    def __init__(self, services: Services, table: TaskTable, changed: Callable[[], None]) -> None:
        self._services = services
        self._table = table
        self._changed = changed
        self._by_task: dict[int, Invocation] = {}
        self._joins: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    @property
    def task_ids(self) -> Collection[int]:
        """The tasks that a handler works on now."""
        return self._by_task.keys()

    def reserve(self, task_id: int) -> Invocation:
        """The place of a handler whose task is about to be stored as running; follow with `run` or `release`."""
        invocation = self._by_task[task_id] = Invocation(TaskRuntime(task_id, self._services, self._table))
        return invocation

    def release(self, invocation: Invocation) -> None:
        """Nobody works on that task any more."""
        if self._by_task.get(invocation.runtime.task_id) is invocation:
            del self._by_task[invocation.runtime.task_id]

    def run(self, invocation: Invocation, definition: TaskDefinition) -> None:
        """Let the handler work, phase after phase, until its task waits, sleeps or has ended."""
        invocation.job = asyncio.create_task(self._invoke(invocation, definition), name=f"task {invocation.runtime.task_id}")

    def cancel(self, task_id: int) -> None:
        """Cancel and join a handler; after the grace time it is left behind, unable to write. May be called again."""
        invocation = self._by_task.get(task_id)
        if invocation is None or invocation.job is None or invocation.is_cancelled:
            return
        invocation.is_cancelled = True
        invocation.runtime.fence()
        invocation.job.cancel()
        join = asyncio.create_task(self._give_up_on(invocation, invocation.job), name=f"join task {task_id}")
        self._joins.add(join)
        join.add_done_callback(self._joins.discard)

    async def stop(self) -> None:
        """Fence off, cancel and join all handlers; who does not end within the grace time is left behind, unable to write."""
        self._is_stopping = True
        jobs = list(self._joins)
        for invocation in self._by_task.values():
            invocation.runtime.fence()
            if invocation.job is not None:
                jobs.append(invocation.job)
        for job in jobs:
            job.cancel()
        await self._joined(jobs)

    async def _invoke(self, invocation: Invocation, definition: TaskDefinition) -> None:
        try:
            await self._run_phases(invocation.runtime, definition)
        except (Fenced, SessionClosed, SessionFailed):
            return
        except BaseException as error:  # the phase boundary: whatever a handler raises ends its task, not the harness
            if must_pass(error):
                raise
            await self._fault(invocation.runtime, f"{type(error).__name__}: {error}")
        finally:
            self.release(invocation)
            self._changed()

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
        """End a task whose handler broke, as soon as that can be stored; what can never be stored leaves it as running, and counts as cut off."""
        task = self._table.tasks.get(runtime.task_id)
        if task is None or self._is_stopping:
            return
        runtime.fence()

        def still() -> Task | None:
            now = self._table.tasks.get(runtime.task_id)
            return now if now is not None and isinstance(now.state, Running) and now.abort_at_ms is None else None

        report(self._services, "task_faulted", "fault", message, task)
        while still() is not None:
            try:
                await close_task(self._services, self._table, Ending(why="fault", message=message), still)
            except StorageRejected as refused:
                report(self._services, "storage_refused", refused.reason, refused.message, task)
                if not refused.may_pass:
                    return
                await self._services.clock.sleep_ms(REFUSED_AGAIN_MS)
            except (SessionClosed, SessionFailed):
                return

    async def _give_up_on(self, invocation: Invocation, job: asyncio.Task[None]) -> None:
        await self._joined([job])
        self.release(invocation)
        self._changed()

    async def _joined(self, jobs: list[asyncio.Task[None]]) -> None:
        """Wait for the jobs, but not longer than the grace time."""
        if not jobs:
            return
        grace = asyncio.create_task(self._services.clock.sleep_ms(self._services.settings.close_grace_ms))
        joined = asyncio.create_task(asyncio.wait(jobs))
        await asyncio.wait({grace, joined}, return_when=asyncio.FIRST_COMPLETED)
        grace.cancel()
        joined.cancel()
