"""What a phase handler is given: its task, the services, and the only way to write (rules TK-1, TK-4, TK-5, PR-22).

Every write of a handler goes through `commit`, which looks on the line whether the handler may still write: a handler that was
cancelled, whose task was marked for abort, or whose harness was closed is fenced off and writes nothing more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, assert_never

import msgspec

from pi_durable_tui.errors import BadRequest, StorageRejected
from pi_durable_tui.harness.extensions.task_definition import Advance, End, Move, Sleep, Wait
from pi_durable_tui.harness.tasks.closing import REFUSED_AGAIN_MS, report
from pi_durable_tui.records.commit import Priority
from pi_durable_tui.records.json import Json, JsonObject, strict
from pi_durable_tui.records.task import Checkpoint, Outcome, Running, Sleeping, Task, TaskState, Waiting, WaitPolicy, moved

if TYPE_CHECKING:
    from pi_durable_tui.harness.services import Services
    from pi_durable_tui.harness.tasks.table import TaskTable
    from pi_durable_tui.session.transaction import Transaction

Write: TypeAlias = Callable[["Transaction", Task], Awaitable[Move | None]]
"""Reads, then writes; returns how the task moves with this commit (None: it stays where it is)."""


class Fenced(Exception):
    """This handler may not write any more: it was aborted, or the harness is closing. Nothing was written."""


class TaskRuntime:
    """One invocation of one task in this process. Two never exist at the same time for a task (rule TK-7)."""

    def __init__(self, task_id: int, services: Services, table: TaskTable) -> None:
        self.task_id = task_id
        self.services = services
        self._table = table
        self._alive = True

    @property
    def task(self) -> Task:
        """The task as of the newest commit.

        Raises:
            Fenced: It has ended.
        """
        task = self._table.tasks.get(self.task_id)
        if task is None:
            raise Fenced
        return task

    @property
    def checkpoint(self) -> Checkpoint:
        """Where the task is.

        Raises:
            Fenced: It has ended.
        """
        checkpoint = self.task.checkpoint
        if checkpoint is None:
            raise Fenced
        return checkpoint

    @property
    def is_aborted(self) -> bool:
        """True once the task is marked for abort (rule TK-15)."""
        task = self._table.tasks.get(self.task_id)
        return task is not None and task.abort_at_ms is not None

    def fence(self) -> None:
        """From now on nothing this invocation does can be committed."""
        self._alive = False

    async def commit(self, write: Write, *, priority: Priority = "record") -> None:
        """Run `write` in a transaction and move the task as it says, all in one commit.

        An outcome that the store has no room for waits until it is taken, since what was done for it is done; so does whatever another program
        keeps out. Then `write` runs again. Partial states do not wait: the next one comes soon.

        Raises:
            Fenced: The handler may not write any more. Nothing was written.
        """

        async def callback(transaction: Transaction) -> None:
            task = self.task
            if not self._alive or task.abort_at_ms is not None or not isinstance(task.state, Running):
                raise Fenced
            move = await write(transaction, task)
            if isinstance(move, Wait):
                await self._table.load_outcomes(self.services.session.storage, move.on)
            if move is not None:
                transaction.put_task(moved(task, self._state_after(task, move, transaction), at_ms=transaction.now_ms))

        is_told = False
        while True:
            try:
                await self.services.session.commit(callback, priority=priority)
            except StorageRejected as refused:
                waits = refused.may_pass if priority == "outcome" else refused.reason == "busy" and priority == "record"
                if not waits:
                    raise
                if not is_told:
                    report(self.services, "storage_refused", refused.reason, refused.message, self._table.tasks.get(self.task_id))
                is_told = True
                await self.services.clock.sleep_ms(REFUSED_AGAIN_MS)
            else:
                return

    async def advance(self, checkpoint: Checkpoint) -> None:
        """The next phase is the one in `checkpoint`."""
        await self._move(Advance(checkpoint))

    async def sleep_until(self, until_ms: int, checkpoint: Checkpoint) -> None:
        """Go on from `checkpoint` at `until_ms`; both are stored in one commit, and no handler is held meanwhile (rule TK-5)."""
        await self._move(Sleep(checkpoint, until_ms))

    async def wait(self, on: tuple[int, ...], checkpoint: Checkpoint, policy: WaitPolicy = "allSettled") -> None:
        """Go on from `checkpoint` when all tasks of `on` have ended."""
        await self._move(Wait(checkpoint, on, policy))

    async def end(self, outcome: Outcome, *, priority: Priority = "outcome") -> None:
        """The task has ended."""

        async def write(_transaction: Transaction, _task: Task) -> Move:
            return End(outcome)

        await self.commit(write, priority=priority)

    def recall(self, name: str) -> Json:
        """The memo of that name; None when nobody wrote it."""
        return (self.task.memos or {}).get(name)

    async def memo(self, name: str, value: Json) -> Json:
        """Write a memo unless there is one, and return the one that stands: the first writer wins, also across restarts (rule TK-4).

        Raises:
            BadRequest: The value is None or not JSON. Nothing was written.
            Fenced: As for `commit`.
        """
        if value is None:
            raise BadRequest(f"The memo {name!r} cannot be None: that means that nobody wrote it.")
        clean = strict(value)

        async def write(transaction: Transaction, task: Task) -> None:
            memos = task.memos or {}
            if name not in memos:
                transaction.put_task(msgspec.structs.replace(task, memos={**memos, name: clean}))

        if self.recall(name) is None:
            await self.commit(write)
        return self.recall(name)

    def child(self, transaction: Transaction, kind: str, task_input: JsonObject, state: TaskState, *, background: bool = False) -> Task:
        """A new task owned by this one, inserted with the commit of `transaction`.

        Its input and checkpoint are of the version of `kind` that is installed; of its own kind, of the version that this handler is.
        """
        installed = self.services.registry.task(kind)
        version = self.task.version if kind == self.task.kind else installed.version if installed is not None else 1
        task = Task(
            id=transaction.new_id(),
            kind=kind,
            version=version,
            conversation_id=self.task.conversation_id,
            input=task_input,
            state=state,
            created_at_ms=transaction.now_ms,
            owner=self.task_id,
            background=background,
        )
        transaction.put_task(task)
        return task

    async def _move(self, move: Move) -> None:
        async def write(_transaction: Transaction, _task: Task) -> Move:
            return move

        await self.commit(write)

    def _state_after(self, task: Task, move: Move, transaction: Transaction) -> TaskState:
        match move:
            case Advance():
                return Running(checkpoint=move.checkpoint)
            case Wait():
                return Waiting(checkpoint=move.checkpoint, on=move.on, policy=move.policy)
            case Sleep():
                return Sleeping(checkpoint=move.checkpoint, until=move.until_ms)
            case End():
                return self._table.ended(task, move.outcome, transaction)
            case _ as never:
                assert_never(never)
