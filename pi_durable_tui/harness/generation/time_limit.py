"""Counts how long runs work, and ends those that have used their time (rule SA-14).

Counted is what passes on the monotonic clock while a process works on the run: a clock that is set, a machine that sleeps and the time
between a kill and the next start do not count, and neither does the time in which a person is asked. What is counted is stored every
second, so a kill takes no more than that from the count. A run is ended as a person would end it: marked first, with the reason, so that
a kill in between changes nothing. The subagents that a run waits for work on its time; those in the background have a time of their own.
"""

from __future__ import annotations

import asyncio

import msgspec

from pi_durable_tui.errors import SessionClosed, SessionFailed, StorageRejected
from pi_durable_tui.harness.generation.limits import LIMIT
from pi_durable_tui.harness.kinds import GENERATION, QUESTION
from pi_durable_tui.harness.live import LIVE, Live
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.tasks.ownership import subtree
from pi_durable_tui.harness.tasks.table import TaskTable
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.commit import Commit
from pi_durable_tui.records.messages import Problem
from pi_durable_tui.records.task import Task
from pi_durable_tui.session.transaction import Transaction

TICK_MS = 1_000


class TimeLimit:
    """Of one harness. Create it, `start` it once work begins, `stop` it before the session closes."""

    def __init__(self, services: Services, table: TaskTable) -> None:
        self._services = services
        self._table = table
        self._changed = asyncio.Event()
        self._counted_at_ms: dict[int, float] = {}  # run -> until when it is counted, on the monotonic clock
        self._job: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to count; without effect when already begun."""
        if self._job is None:
            self._job = asyncio.create_task(self._watch(), name="time limit")

    def adopt(self, commit: Commit) -> None:
        """Look again after a commit that changed tasks."""
        if commit.tasks:
            self._changed.set()

    async def stop(self) -> None:
        """Count no more."""
        if self._job is not None:
            self._job.cancel()
            await asyncio.gather(self._job, return_exceptions=True)

    async def _watch(self) -> None:
        try:
            while True:
                limit_ms = self._services.settings.limits.max_time_ms
                runs = self._runs()
                if limit_ms is None or not runs:
                    self._counted_at_ms.clear()
                    self._changed.clear()
                    await self._changed.wait()
                    continue
                left_ms = [await self._count(run, limit_ms) for run in runs]
                await self._services.clock.sleep_ms(min(TICK_MS, *left_ms))
        except (SessionClosed, SessionFailed):
            return  # nothing can be stored any more: whoever waits hears of it from the session

    def _runs(self) -> list[Task]:
        """The generations whose time is their own: all but those of subagents that a run waits for."""
        tasks, owners = self._table.tasks, self._table.conversation_owners
        asking = {task.conversation_id: tasks.get(owners[task.conversation_id]) for task in tasks.values() if task.conversation_id in owners}
        own = (task for task in tasks.values() if task.kind == GENERATION and task.abort_at_ms is None)
        return [task for task in own if (asker := asking.get(task.conversation_id)) is None or asker.background]

    async def _count(self, run: Task, limit_ms: int) -> float:
        """Count what has passed since the last look; returns how much is left."""
        now_ms = self._services.clock.monotonic_ms()
        passed_ms = now_ms - self._counted_at_ms.get(run.id, now_ms)
        below = subtree((run.id,), self._table.tasks, self._table.conversation_owners, background=False)
        if any(self._table.tasks[task_id].kind == QUESTION for task_id in below):
            passed_ms = 0.0
        try:
            used_ms = await self._services.session.commit(lambda transaction: self._store(transaction, run, passed_ms, limit_ms))
        except StorageRejected:
            return float(TICK_MS)  # it is counted with the next look
        self._counted_at_ms[run.id] = now_ms
        return float(TICK_MS) if used_ms is None or used_ms >= limit_ms else limit_ms - used_ms

    async def _store(self, transaction: Transaction, run: Task, passed_ms: float, limit_ms: int) -> int | None:
        """Store the count, and mark the run when it is over its time; None when it is no longer the run of its conversation."""
        draft = await transaction.document(LIVE, run.conversation_id)
        live = from_json(draft.value, Live)
        if live.run is None or live.run.task_id != run.id or live.run.limit is not None:
            return None
        used_ms = live.run.used_ms + round(passed_ms)
        if used_ms < limit_ms:
            if used_ms != live.run.used_ms:
                draft.value = as_object(msgspec.structs.replace(live, run=msgspec.structs.replace(live.run, used_ms=used_ms)))
            return used_ms
        for task_id in subtree((run.id,), self._table.tasks, self._table.conversation_owners, background=False):
            task = self._table.tasks[task_id]
            if task.abort_at_ms is None:
                transaction.put_task(msgspec.structs.replace(task, abort_at_ms=transaction.now_ms))
            if task.kind == GENERATION:
                await self._say_why(transaction, task, used_ms if task.id == run.id else None, limit_ms)
        return used_ms

    async def _say_why(self, transaction: Transaction, run: Task, used_ms: int | None, limit_ms: int) -> None:
        draft = await transaction.document(LIVE, run.conversation_id)
        live = from_json(draft.value, Live)
        if live.run is not None and live.run.task_id == run.id:
            problem = Problem(reason=LIMIT, message=f"The run has used its {limit_ms / 1_000:g} s.")
            known_ms = live.run.used_ms if used_ms is None else used_ms
            draft.value = as_object(msgspec.structs.replace(live, run=msgspec.structs.replace(live.run, limit=problem, used_ms=known_ms)))
