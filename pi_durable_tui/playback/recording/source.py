"""Reads everything of a chat that a recording is made of. Only reads; decides nothing about the recording.

A chat that is a fork is read with the chats it comes from, as far as they had got when it was made: what they did to files is what it
began with.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pi_durable_tui.errors import NotFound, Refused
from pi_durable_tui.harness.kinds import SUBAGENT
from pi_durable_tui.harness.live import AGENT, Agent
from pi_durable_tui.harness.subagent.checkpoint import SubagentInput
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.entry import USER, Entry
from pi_durable_tui.records.messages import AssistantMessage, Message, Text, ToolResultMessage, UserMessage
from pi_durable_tui.records.modes import ApprovalMode
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task
from pi_durable_tui.session.session import Session
from pi_durable_tui.storage.port import Page
from pi_durable_tui.tools.history.log import FILES, FileChange, log_of

T = TypeVar("T")
PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Strand:
    """One conversation: its own records, oldest first, as far as they belong to the chat.

    Attributes:
        name: What the recording calls it: "" for the first chat.
        caller: The task whose call it works for; None: it is the person's.
        approvals: For each of its entries of a person: (entry id, what needed no question then).
        by_task: The entries of each task that made some.
        changes: The files that its calls changed.
        forgotten: How many such changes are not known any more.
    """

    conversation: Conversation
    name: str
    caller: Task | None = None
    entries: tuple[Entry, ...] = ()
    tasks: tuple[Task, ...] = ()
    submissions: tuple[Submission, ...] = ()
    approvals: tuple[tuple[int, ApprovalMode], ...] = ()
    by_task: Mapping[int, tuple[Entry, ...]] = field(default_factory=dict[int, tuple[Entry, ...]])
    changes: tuple[FileChange, ...] = ()
    forgotten: int = 0

    def of_task(self, task_id: int) -> tuple[Entry, ...]:
        """What a task brought into the transcript, oldest first."""
        return self.by_task.get(task_id, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is recorded.

    Attributes:
        line: The conversations in which the person acted, one after the other: the chat is the last one.
        subagents: Those that worked for them.
        approval: What needed no question at the beginning.
        model: Who answers at the end.
    """

    title: str
    line: tuple[Strand, ...]
    subagents: tuple[Strand, ...]
    approval: ApprovalMode
    model: str | None

    @property
    def strands(self) -> tuple[Strand, ...]:
        """All of them."""
        return (*self.line, *self.subagents)

    @property
    def began_at_ms(self) -> int:
        """When the first of them was made."""
        return self.line[0].conversation.created_at_ms


async def read(session: Session, conversation_id: int) -> Source:
    """The chat and what it comes from.

    Raises:
        NotFound: There is no such conversation.
        Refused: Something of it is unfinished. Nothing was changed.
    """
    reader = _Reader(session)
    chain = await reader.chain(conversation_id)
    line: list[Strand] = []
    for number, conversation in enumerate(chain):
        following = chain[number + 1].id if number + 1 < len(chain) else None
        line.append(await reader.strand(conversation, f"fork {number}" if number else "", before=following))
    subagents = await reader.subagents(line)
    agent = from_json(await session.snapshot(AGENT, conversation_id) or {}, Agent)
    modes: list[ApprovalMode] = [mode for strand in line for _, mode in strand.approvals]
    first = next((entry.message for strand in line for entry in strand.entries if entry.kind == USER), None)
    return Source(
        title=agent.title or text_of(first), line=tuple(line), subagents=tuple(subagents), approval=modes[0] if modes else agent.approval, model=agent.model
    )


@dataclass(slots=True)
class _Reader:
    session: Session
    names: set[str] = field(default_factory=set[str])

    async def chain(self, conversation_id: int) -> list[Conversation]:
        """The conversation behind those it was forked from."""
        found: list[Conversation] = []
        wanted: int | None = conversation_id
        while wanted is not None:
            conversation = await self.session.storage.conversation(wanted)
            if conversation is None:
                raise NotFound(f"conversation {wanted}", where=self.session.storage.name)
            found.insert(0, conversation)
            wanted = conversation.parent.conversation_id if conversation.parent is not None else None
        return found

    async def strand(self, conversation: Conversation, name: str, *, before: int | None = None, caller: Task | None = None) -> Strand:
        """The conversation's own records; of a chat that a fork was made of, those before the fork (of id `before`)."""
        storage, own = self.session.storage, conversation.id

        def kept(record: Entry | Task | Submission) -> bool:
            return record.conversation_id == own and (before is None or record.id < before)

        stored = await _every(lambda cursor: storage.entries(own, cursor=cursor, limit=PAGE))
        entries = tuple(each.entry for each in stored if kept(each.entry))
        tasks = tuple(filter(kept, await _every(lambda cursor: storage.tasks(conversation_id=own, cursor=cursor, limit=PAGE))))
        submissions = tuple(filter(kept, await _every(lambda cursor: storage.submissions(conversation_id=own, cursor=cursor, limit=PAGE))))
        if any(task.is_live for task in tasks) or any(each.is_open for each in submissions):
            raise Refused("The chat is unfinished. Nothing was written.", hint="Let pidurable --continue finish it, or stop it there; then record it.")
        log = log_of(await self.session.snapshot(FILES, own))
        return Strand(
            conversation=conversation,
            name=name,
            caller=caller,
            entries=entries,
            tasks=tasks,
            submissions=submissions,
            approvals=tuple([(entry.id, await self._approval(own, entry.id)) for entry in entries if entry.kind == USER and caller is None]),
            by_task=_by_task(entries),
            changes=log.changes,
            forgotten=log.dropped,
        )

    async def subagents(self, line: Sequence[Strand]) -> list[Strand]:
        """Those that worked for the conversations of the line, and for one another."""
        found: list[Strand] = []
        waiting = list(line)
        while waiting:
            strand = waiting.pop(0)
            calls = {task.id: task for task in strand.tasks}
            for task in strand.tasks:
                if task.kind != SUBAGENT:
                    continue
                wanted = from_json(task.input, SubagentInput)
                conversation = (await self.chain(wanted.conversation))[-1]
                caller = calls.get(task.owner) if task.owner is not None else None
                found.append(await self.strand(conversation, self._free_name(wanted.name), caller=caller or task))
                waiting.append(found[-1])
        return found

    async def _approval(self, conversation_id: int, entry_id: int) -> ApprovalMode:
        return from_json(await self.session.snapshot_as_of(AGENT, conversation_id, entry_id) or {}, Agent).approval

    def _free_name(self, wanted: str) -> str:
        name = next(name for number in range(1, len(self.names) + 2) if (name := f"{wanted} {number}" if number > 1 else wanted) not in self.names)
        self.names.add(name)
        return name


async def _every(page_at: Callable[[int | None], Awaitable[Page[T]]]) -> list[T]:
    """The items of all pages."""
    found: list[T] = []
    cursor: int | None = None
    while True:
        page = await page_at(cursor)
        found += page.items
        if page.next is None:
            return found
        cursor = page.next


def _by_task(entries: Sequence[Entry]) -> dict[int, tuple[Entry, ...]]:
    found: dict[int, list[Entry]] = {}
    for entry in entries:
        if isinstance(task_id := (entry.data or {}).get("taskId"), int):
            found.setdefault(task_id, []).append(entry)
    return {task_id: tuple(made) for task_id, made in found.items()}


def text_of(message: Message | None) -> str:
    """What a message says in words. PURE."""
    match message:
        case UserMessage() | AssistantMessage() | ToolResultMessage():
            return "".join(part.text for part in message.content if isinstance(part, Text))
        case _:
            return ""
