"""The live tasks as of the newest commit, kept in memory so that rules and handlers need not ask the store.

It only mirrors: every change comes in as a commit, in order, before the next commit's callback runs.
"""

from __future__ import annotations

from collections.abc import Iterable

from pi_durable_tui.harness.tasks.ownership import live_children
from pi_durable_tui.records.commit import Commit
from pi_durable_tui.records.task import Completing, Outcome, Task, Terminal, Waiting
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.port import Storage

LIVE_STATUSES = ("pending", "running", "waiting", "sleeping", "completing")


class TaskTable:
    """Live tasks, outcomes that live tasks wait for, and the owners of owned conversations."""

    def __init__(self) -> None:
        self.tasks: dict[int, Task] = {}
        self.outcomes: dict[int, Outcome] = {}
        self.conversation_owners: dict[int, int] = {}

    async def load(self, storage: Storage) -> None:
        """Read all live tasks and what belongs to them. Writes nothing."""
        cursor: int | None = None
        while True:
            page = await storage.tasks(statuses=LIVE_STATUSES, cursor=cursor, limit=1_000)
            self.tasks |= {task.id: task for task in page.items}
            if page.next is None:
                break
            cursor = page.next
        for task in self.tasks.values():
            await self._load_around(storage, task)

    async def look_again(self, storage: Storage) -> None:
        """Read all of it anew, where no commit tells: in a session that another process is writing (rule OB-6)."""
        now = TaskTable()
        await now.load(storage)
        self.tasks, self.outcomes, self.conversation_owners = now.tasks, now.outcomes, now.conversation_owners

    async def _load_around(self, storage: Storage, task: Task) -> None:
        conversation = await storage.conversation(task.conversation_id)
        if conversation is not None and conversation.owner is not None:
            self.conversation_owners[conversation.id] = conversation.owner
        # Also the ones without live tasks: what begins in them later is below this task, too (rule TK-14).
        owned = await storage.conversations(owner=task.id, limit=1_000)
        self.conversation_owners |= {each.id: task.id for each in owned.items}
        if isinstance(task.state, Waiting):
            await self.load_outcomes(storage, task.state.on)

    async def load_outcomes(self, storage: Storage, task_ids: Iterable[int]) -> None:
        """Read how those of the tasks ended that have ended. They are kept while a live task waits for them."""
        for task_id in task_ids:
            ended = None if task_id in self.tasks else await storage.task(task_id)
            if ended is not None and ended.outcome is not None:
                self.outcomes[task_id] = ended.outcome

    def ended(self, task: Task, outcome: Outcome, transaction: Transaction) -> Completing | Terminal:
        """The state of a task that ends in this commit: completing when work below it lives once the commit is stored (rule TK-14)."""
        tasks = self.tasks | {written.id: written for written in transaction.tasks_written}
        owners = self.conversation_owners | {made.id: made.owner for made in transaction.conversations_written if made.owner is not None}
        return Completing(outcome=outcome) if task.id in live_children(tasks.values(), owners) else Terminal(outcome=outcome)

    def adopt(self, commit: Commit) -> None:
        """Take over what a commit changed."""
        for conversation in commit.conversations:
            if conversation.owner is not None:
                self.conversation_owners[conversation.id] = conversation.owner
        for task in commit.tasks:
            if isinstance(task.state, Terminal):
                self.tasks.pop(task.id, None)
                self.outcomes[task.id] = task.state.outcome
            else:
                self.tasks[task.id] = task
        if commit.tasks:
            awaited = {task_id for task in self.tasks.values() if isinstance(task.state, Waiting) for task_id in task.state.on}
            self.outcomes = {task_id: outcome for task_id, outcome in self.outcomes.items() if task_id in awaited}
