"""The calls of a conversation that go on behind their results, for the tools that look after them (rule TO-10)."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from pi_durable_tui.harness.kinds import BACKGROUND
from pi_durable_tui.harness.ports import BackgroundInfo
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.tool.checkpoint import BackgroundInput
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.task import Completed, Task
from pi_durable_tui.session.transaction import Transaction


class OwnBackgroundCalls:
    """See `ports.BackgroundCalls`."""

    def __init__(self, services: Services, conversation_id: int) -> None:
        self._services = services
        self._conversation_id = conversation_id

    async def list(self) -> tuple[BackgroundInfo, ...]:
        """See the port."""
        page = await self._services.session.storage.tasks(kind=BACKGROUND, conversation_id=self._conversation_id, limit=1_000)
        return tuple(_info(task) for task in page.items)

    async def stop(self, task_id: int) -> bool:
        """See the port."""

        async def write(transaction: Transaction) -> bool:
            task = await transaction.task(task_id)
            if not self._is_running(task):
                return False
            if task is not None and task.abort_at_ms is None:
                transaction.put_task(msgspec.structs.replace(task, abort_at_ms=transaction.now_ms))
            return True

        return await self._services.session.commit(write)

    async def wait(self, task_id: int, *, limit_ms: float) -> bool:
        """See the port."""
        ended = asyncio.ensure_future(self._ended(task_id))
        timer = asyncio.ensure_future(self._services.clock.sleep_ms(limit_ms))
        try:
            await asyncio.wait({ended, timer}, return_when=asyncio.FIRST_COMPLETED)
            return ended.done()
        finally:
            ended.cancel()
            timer.cancel()

    async def _ended(self, task_id: int) -> None:
        session = self._services.session
        with contextlib.closing(session.watch()) as watch:
            while self._is_running(await session.storage.task(task_id)):
                await anext(watch)

    def _is_running(self, task: Task | None) -> bool:
        return task is not None and task.kind == BACKGROUND and task.conversation_id == self._conversation_id and task.is_live


def _info(task: Task) -> BackgroundInfo:
    wanted = from_json(task.input, BackgroundInput)
    value = task.outcome.value if isinstance(task.outcome, Completed) else None
    return BackgroundInfo(
        task_id=task.id,
        name=wanted.name,
        title=wanted.title,
        started_at_ms=task.started_at_ms or task.created_at_ms,
        is_running=task.is_live,
        details=value if isinstance(value, dict) else None,
    )
