"""An open session plus the machinery that runs agents on it (durable.md, sections 5 to 12).

Opening recovers what a killed process left, and runs nothing (rule TK-13). Closing hands running tasks back without counting a
restart (rule SE-7), so that a close and a kill can be told apart afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from pi_durable_tui.clock import Clock
from pi_durable_tui.entropy import Entropy
from pi_durable_tui.errors import BadRequest, NotFound, ReadOnlySession, SessionFailed, StorageRejected
from pi_durable_tui.harness import chats as chatting
from pi_durable_tui.harness.approval import Approver, by_mode
from pi_durable_tui.harness.chats import Chat
from pi_durable_tui.harness.compaction import phases as compaction
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.extensions.registry import Extension, Registry
from pi_durable_tui.harness.generation import phases as generation
from pi_durable_tui.harness.generation.time_limit import TimeLimit
from pi_durable_tui.harness.live import AGENT, PROVIDER, USAGE, Agent, Provider, UsageTotals
from pi_durable_tui.harness.live import BUILT_IN as BUILT_IN_DOCUMENTS
from pi_durable_tui.harness.observation.frames import open_submissions
from pi_durable_tui.harness.observation.inspection import Inspection, TaskNode, task_infos, task_nodes
from pi_durable_tui.harness.observation.overview import Overview
from pi_durable_tui.harness.opening import Recovery, recover
from pi_durable_tui.harness.ports import Environment, ModelGateway, Tool
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.harness.services import Report, Services
from pi_durable_tui.harness.settings import Settings
from pi_durable_tui.harness.subagent import phases as subagent
from pi_durable_tui.harness.tasks.recovery import handed_back
from pi_durable_tui.harness.tasks.scheduler import Scheduler
from pi_durable_tui.harness.tasks.table import TaskTable
from pi_durable_tui.harness.tool import background, command
from pi_durable_tui.harness.tool import phases as tool
from pi_durable_tui.harness.tool.grants import Permissions
from pi_durable_tui.records import conversation as conversations
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.keys import Hide
from pi_durable_tui.records.messages import Usage
from pi_durable_tui.records.task import Checkpoint, Outcome, Pending, Running, Task
from pi_durable_tui.session.forks import documents_at_fork, fork_entry, forked
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.port import Storage

BUILT_IN = "pidurable"


@dataclass(frozen=True, slots=True)
class _Directory:
    """The environment of tools that need no more than a path."""

    cwd: str


class Harness:
    """See the module docstring; made by `open`. Used on one event loop."""

    def __init__(self, services: Services, table: TaskTable, recovery: Recovery) -> None:
        self.recovery = recovery
        self.overview = Overview(services)
        self._services = services
        self._table = table
        self._scheduler = Scheduler(services, table)
        self._closing: asyncio.Task[None] | None = None
        services.session.subscribe(table.adopt)
        services.session.subscribe(self._scheduler.adopt)
        self._time_limit = TimeLimit(services, table)
        services.session.subscribe(self._time_limit.adopt)

    @classmethod
    async def open(
        cls,
        storage: Storage,
        *,
        models: ModelGateway,
        clock: Clock,
        entropy: Entropy,
        environment: Callable[[int, Agent], Environment] | None = None,
        tools: Sequence[Tool] = (),
        extensions: Sequence[Extension] = (),
        settings: Settings | None = None,
        reporter: Callable[[Report], None] | None = None,
        approver: Approver = by_mode,
        hide: Hide | None = None,
    ) -> Self:
        """Open a session for work: recover what a killed process left, run nothing yet.

        Over a storage that was opened read-only it recovers and runs nothing, and follows what another process writes (rule OB-6).

        Args:
            storage: Owned by the harness from now on; closed by `close`.
            environment: (conversation id, its agent) -> what its tools act on; None: no more than the agent's directory.
            tools: Installed as an extension of the name "pidurable", before `extensions`.
            approver: Decides whether a call may be carried out; by default the approval mode alone.
            hide: Takes loaded keys out of everything that is written (rule SA-17).
            reporter: Hears of faults and of tasks that are given up; must not raise.

        Raises:
            StoreCorrupt, SessionFailed, StorageRejected: The store could not be recovered; it is closed again.
        """
        registry = Registry()
        session = await Session.open(storage, clock=clock, hide=hide)
        services = Services(
            session=session,
            clock=clock,
            entropy=entropy,
            models=models,
            registry=registry,
            settings=settings or Settings(),
            environment=environment or (lambda _conversation_id, agent: _Directory(agent.cwd)),
            report=reporter or (lambda _report: None),
            approver=approver,
        )
        tasks = (generation.DEFINITION, *tool.DEFINITIONS, background.DEFINITION, command.DEFINITION, compaction.DEFINITION, subagent.DEFINITION)
        registry.install(Extension(name=BUILT_IN, tools=tuple(tools), tasks=tasks))
        for extension in extensions:
            registry.install(extension)
        table = TaskTable()
        try:
            await table.load(storage)
            recovery = await recover(session, table)
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
    def permissions(self) -> Permissions:
        """The standing permissions of the session."""
        return Permissions(self.session)

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

    async def fork(self, conversation_id: int, entry_id: int | None = None) -> Conversation:
        """A new chat that shares a conversation up to and including an entry (None: its newest), and is its own from there.

        It has the agent and the other rewindable documents as of that entry, its own provider-facing id and its own usage; nothing
        queued and nothing running comes along. The old conversation is not touched and keeps running (CASE-F4).

        Raises:
            NotFound: The conversation does not see that entry, or has none. Nothing was written.
        """

        async def write(transaction: Transaction) -> int:
            storage = self.session.storage
            at = await fork_entry(storage, conversation_id, entry_id)
            known = {definition.kind: definition for definition in BUILT_IN_DOCUMENTS} | self._services.registry.documents()
            copies = await documents_at_fork(storage, known, conversation_id, at)
            conversation = forked(transaction.new_id(), at, now_ms=transaction.now_ms)
            transaction.insert_conversation(conversation)
            for copied in copies:
                (await transaction.document(copied.definition, conversation.id)).value = copied.value
            (await transaction.document(PROVIDER, conversation.id)).value = as_object(Provider(session_id=self._services.entropy.uuid7()))
            return conversation.id

        return self._conversation(await self.session.commit(write))

    async def usage(self) -> UsageTotals:
        """What all conversations of the session used together; `context_tokens` is 0, a session has no context."""
        total = UsageTotals()
        cursor: int | None = None
        while True:
            page = await self.session.storage.conversations(cursor=cursor, limit=1_000)
            for conversation in page.items:
                used = from_json(await self.session.snapshot(USAGE, conversation.id) or {}, UsageTotals)
                total = UsageTotals(models=_added(total.models, used.models), tools=_added(total.tools, used.tools))
            if page.next is None:
                return total
            cursor = page.next

    async def chats(self, *, most: int | None = None) -> tuple[Chat, ...]:
        """The chats of this session, or so many of the first: unfinished work first, then the newest; those nobody wrote in come last."""
        return await chatting.chats(self.session, most=most)

    async def start_task(self, conversation_id: int, kind: str, task_input: JsonObject, checkpoint: Checkpoint, *, background: bool = False) -> int:
        """Create a task of an installed kind and run it; returns its id once it is stored. Each call makes another one.

        Raises:
            BadRequest: No definition of that kind is installed. Nothing was written.
            NotFound: There is no such conversation. Nothing was written.
        """
        definition = self._services.registry.task(kind)
        if definition is None:
            raise BadRequest(f"No task kind {kind!r} is installed. Nothing was written.")

        async def write(transaction: Transaction) -> int:
            if await transaction.conversation(conversation_id) is None:
                raise NotFound(f"conversation {conversation_id}", where=self.session.storage.name)
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
        self._start()
        return task_id

    async def ended(self, task_id: int) -> Outcome:
        """Wait for the end of a task and say how it ended; the scheduler runs (rule TK-13). Cancelling ends only the wait (rule SE-8).

        In a session that was opened read-only, the task is worked on by the process that writes it, if there is one.

        Raises:
            NotFound: There is no such task.
            SessionClosed, SessionFailed: The session ended first; the task goes on with the next one.
        """
        self._start()

        async def look() -> Outcome | None:
            task = await self.session.storage.task(task_id)
            if task is None:
                raise NotFound(f"task {task_id}", where=self.session.storage.name)
            return None if task.is_live else task.outcome

        return await self.session.until(look, what=f"The end of task {task_id}")

    async def resume(self) -> None:
        """Go on with whatever is unfinished, in every conversation of the session.

        Raises:
            ReadOnlySession: The session was opened read-only. Nothing was written.
        """
        if self.session.read_only:
            raise ReadOnlySession("Resuming work")
        self._start()

    async def inspect(self) -> Inspection:
        """What lives and why it waits. Writes nothing (rule OB-5)."""
        if self.session.read_only:
            await self._table.look_again(self.session.storage)
        open_ones = await open_submissions(self.session.storage)
        return Inspection(tasks=task_infos(self._scheduler.world()), submissions=tuple(open_ones))

    def task_graph(self) -> tuple[TaskNode, ...]:
        """All live tasks with what they belong to and wait for, by id (rule OB-4); in a session that was opened read-only, as of the opening.

        `follow_tasks` reads them anew.
        """
        return task_nodes(self._scheduler.world())

    async def close(self) -> None:
        """Stop the handlers, hand running tasks back as pending without counting a restart, and close the store (rule SE-7).

        May be called again, and by a handler, which it ends. Cancelling ends only the wait. Tasks that could not be handed back, because the
        session failed or the disk is full, count as cut off at the next opening.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._shut(), name="close")
        await asyncio.shield(self._closing)

    async def _shut(self) -> None:
        await self._scheduler.stop()
        await self._time_limit.stop()
        try:
            if self.session.failed is None and not self.session.read_only:
                await background.end_with_the_process(self._services, self._table)
                with contextlib.suppress(StorageRejected):
                    await self.session.commit(self._hand_back, priority="outcome")
        finally:
            try:
                await self._services.models.close()
            finally:
                await self.session.close()

    async def _hand_back(self, transaction: Transaction) -> None:
        for task in self._table.tasks.values():
            if isinstance(task.state, Running):
                transaction.put_task(handed_back(task))

    def _start(self) -> None:
        """Work begins (rule TK-13); not in a session that was opened read-only, where nothing of it could be stored."""
        if not self.session.read_only:
            self._scheduler.start()
            self._time_limit.start()

    def _conversation(self, conversation_id: int) -> Conversation:
        return Conversation(conversation_id, self._services, self._table, self._start)


def _added(total: dict[str, Usage], more: dict[str, Usage]) -> dict[str, Usage]:
    return total | {name: total.get(name, Usage()) + used for name, used in more.items()}
