"""An open session plus the machinery that runs agents on it (durable.md, sections 5 to 12).

Opening recovers what a killed process left, and runs nothing (rule TK-13). Closing hands running tasks back without counting a
restart (rule SE-7), so that a close and a kill can be told apart afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from pi_durable_tui.clock import Clock
from pi_durable_tui.entropy import Entropy
from pi_durable_tui.errors import BadRequest, NotFound, ReadOnlySession, SessionFailed
from pi_durable_tui.harness import chats as chatting
from pi_durable_tui.harness.chats import Chat
from pi_durable_tui.harness.compaction import phases as compaction
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.generation import phases as generation
from pi_durable_tui.harness.live import AGENT, PROVIDER, Agent, Provider
from pi_durable_tui.harness.ports import Environment, ModelGateway, Tool
from pi_durable_tui.harness.registry import Extension, Registry
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.harness.services import Report, Services
from pi_durable_tui.harness.settings import Settings
from pi_durable_tui.harness.tasks.recovery import handed_back, recovered
from pi_durable_tui.harness.tasks.rules import reason
from pi_durable_tui.harness.tasks.scheduler import Scheduler
from pi_durable_tui.harness.tasks.table import TaskTable
from pi_durable_tui.harness.tool import phases as tool
from pi_durable_tui.harness.tool.checkpoint import TOOL
from pi_durable_tui.records import conversation as conversations
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Checkpoint, Pending, Running, Task
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.port import Storage

BUILT_IN = "pidurable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What opening found.

    Attributes:
        was_killed: Some process died while tasks ran.
        last_commit_at_ms: When the newest commit before the opening was made; None in a new store.
        interrupted: The tasks found running, as they stand after recovery.
        in_doubt: Those of them that are tool calls cut off after their intent and not safe to run again.
        queued: How many inputs wait in inboxes.
    """

    was_killed: bool
    last_commit_at_ms: int | None
    interrupted: tuple[Task, ...]
    in_doubt: tuple[Task, ...]
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """A live task and why it is where it is."""

    task: Task
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Live tasks and open submissions, by id (rule OB-5)."""

    tasks: tuple[TaskInfo, ...]
    submissions: tuple[Submission, ...]


class Harness:
    """See the module docstring; made by `open`. Used on one event loop."""

    def __init__(self, services: Services, table: TaskTable, recovery: Recovery) -> None:
        self.recovery = recovery
        self._services = services
        self._table = table
        self._scheduler = Scheduler(services, table)
        self._is_closed = False
        services.session.subscribe(table.adopt)
        services.session.subscribe(self._scheduler.adopt)

    @classmethod
    async def open(
        cls,
        storage: Storage,
        *,
        models: ModelGateway,
        clock: Clock,
        entropy: Entropy,
        environment: Callable[[Agent], Environment],
        tools: Sequence[Tool] = (),
        extensions: Sequence[Extension] = (),
        settings: Settings | None = None,
        reporter: Callable[[Report], None] | None = None,
    ) -> Self:
        """Open a session for work: recover what a killed process left, run nothing yet.

        Args:
            storage: Owned by the harness from now on; closed by `close`.
            tools: Installed as an extension of the name "pidurable", before `extensions`.
            reporter: Hears of faults and of tasks that are given up; must not raise.

        Raises:
            StoreCorrupt, SessionFailed, StorageRejected: The store could not be recovered; it is closed again.
        """
        registry = Registry()
        session = await Session.open(storage, clock=clock)
        services = Services(
            session=session,
            clock=clock,
            entropy=entropy,
            models=models,
            registry=registry,
            settings=settings or Settings(),
            environment=environment,
            report=reporter or (lambda _report: None),
        )
        registry.install(Extension(name=BUILT_IN, tools=tuple(tools), tasks=(generation.DEFINITION, *tool.DEFINITIONS, compaction.DEFINITION)))
        for extension in extensions:
            registry.install(extension)
        table = TaskTable()
        try:
            await table.load(storage)
            recovery = await _recover(session, table)
        except BaseException:
            await session.close()
            raise
        return cls(services, table, recovery)

    @property
    def session(self) -> Session:
        """The session underneath."""
        return self._services.session

    @property
    def settings(self) -> Settings:
        """Read at every use: a change takes effect at once (rule EX-2)."""
        return self._services.settings

    @property
    def failed(self) -> SessionFailed | None:
        """Why nothing can be stored any more; None while all is well."""
        return self.session.failed

    def install(self, extension: Extension) -> None:
        """Add or replace an extension while running (rule EX-1); tasks that waited for its definitions go on."""
        self._services.registry.install(extension)
        self._scheduler.wake()

    async def create_conversation(self, agent: Agent) -> Conversation:
        """A new, empty chat with its own provider-facing id (rule GE-9)."""

        async def write(transaction: Transaction) -> int:
            conversation = conversations.Conversation(id=transaction.new_id(), created_at_ms=transaction.now_ms)
            transaction.insert_conversation(conversation)
            (await transaction.document(AGENT, conversation.id)).value = as_object(agent)
            (await transaction.document(PROVIDER, conversation.id)).value = as_object(Provider(session_id=self._services.entropy.uuid7()))
            return conversation.id

        return self._conversation(await self.session.commit(write))

    async def conversation(self, conversation_id: int) -> Conversation:
        """A stored conversation.

        Raises:
            NotFound: There is none of that id.
        """
        if await self.session.storage.conversation(conversation_id) is None:
            raise NotFound(f"conversation {conversation_id}", where=self.session.storage.name)
        return self._conversation(conversation_id)

    async def chats(self) -> tuple[Chat, ...]:
        """The chats of this session: unfinished work first, then the newest work; those nobody wrote in come last."""
        return await chatting.chats(self.session)

    async def start_task(self, conversation_id: int, kind: str, task_input: JsonObject, checkpoint: Checkpoint, *, background: bool = False) -> int:
        """Create a task of an installed kind and run it; returns its id once it is stored.

        Raises:
            BadRequest: No definition of that kind is installed. Nothing was written.
        """
        definition = self._services.registry.task(kind)
        if definition is None:
            raise BadRequest(f"No task kind {kind!r} is installed. Nothing was written.")

        async def write(transaction: Transaction) -> int:
            task = Task(
                id=transaction.new_id(),
                kind=kind,
                version=definition.version,
                conversation_id=conversation_id,
                input=task_input,
                state=Pending(checkpoint=checkpoint),
                created_at_ms=transaction.now_ms,
                background=background,
            )
            transaction.put_task(task)
            return task.id

        task_id = await self.session.commit(write)
        self._scheduler.start()
        return task_id

    async def resume(self) -> None:
        """Go on with whatever is unfinished, in every conversation of the session.

        Raises:
            ReadOnlySession: The session was opened read-only. Nothing was written.
        """
        if self.session.read_only:
            raise ReadOnlySession("Resuming work")
        self._scheduler.start()

    async def inspect(self) -> Inspection:
        """What lives and why it waits. Writes nothing (rule OB-5)."""
        world = self._scheduler.world()
        open_ones = await self.session.storage.submissions(statuses=("queued", "placed"), limit=1_000)
        tasks = tuple(TaskInfo(task=self._table.tasks[task_id], reason=reason(self._table.tasks[task_id], world)) for task_id in sorted(self._table.tasks))
        return Inspection(tasks=tasks, submissions=open_ones.items)

    async def close(self) -> None:
        """Stop the handlers, hand running tasks back as pending without counting a restart, and close the store (rule SE-7).

        May be called again. Tasks that could not be handed back, because the session failed, count as cut off at the next opening.
        """
        if self._is_closed:
            return
        self._is_closed = True
        await self._scheduler.stop()
        try:
            if self.session.failed is None and not self.session.read_only:
                await self.session.commit(self._hand_back)
        finally:
            await self._services.models.close()
            await self.session.close()

    async def _hand_back(self, transaction: Transaction) -> None:
        for task in self._table.tasks.values():
            if isinstance(task.state, Running):
                transaction.put_task(handed_back(task))

    def _conversation(self, conversation_id: int) -> Conversation:
        return Conversation(conversation_id, self._services, self._table, self._scheduler.start)


async def _recover(session: Session, table: TaskTable) -> Recovery:
    """Turn what was running into pending, in one commit (rule TK-10), and say what was found. Read-only: only say."""
    changed = recovered(table.tasks.values())
    last_at_ms = (await session.storage.metadata()).last_at_ms
    queued = await session.storage.submissions(statuses=("queued",), limit=1_000)
    if changed and not session.read_only:

        async def write(transaction: Transaction) -> None:
            for task in changed:
                transaction.put_task(task)

        await session.commit(write)
        table.tasks |= {task.id: task for task in changed}
    return Recovery(
        was_killed=bool(changed),
        last_commit_at_ms=last_at_ms,
        interrupted=changed,
        in_doubt=tuple(task for task in changed if _is_in_doubt(task)),
        queued=len(queued.items),
    )


def _is_in_doubt(task: Task) -> bool:
    checkpoint = task.checkpoint or {}
    return task.kind == TOOL and checkpoint.get("phase") == "execute" and checkpoint.get("replay") == "unsafe"
