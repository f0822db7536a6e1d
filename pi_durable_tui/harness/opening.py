"""What opening a session for work does to it, and what it found (rules ST-18, TK-10, TK-13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pi_durable_tui.harness.chats import chats
from pi_durable_tui.harness.kinds import TOOL
from pi_durable_tui.harness.tasks.recovery import recovered
from pi_durable_tui.harness.tasks.table import TaskTable
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.entry import REPAIRED, Entry
from pi_durable_tui.records.json import Json
from pi_durable_tui.records.task import Task
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.port import PutAside

REPAIRS = Definition(kind="pidurable.repairs", scope="session", initial=lambda: {"told": []})
"""Which of the copies beside the store the transcript tells of, so that each is told once, also when a process dies in between."""


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


async def recover(session: Session, table: TaskTable) -> Recovery:
    """Turn what was running into pending (rule TK-10), and have the transcript tell what was cut off the store's files (rule ST-18).

    Both in one commit; nothing is written when there is neither, or when the session is read-only.

    Returns:
        What was found.
    """
    changed = recovered(table.tasks.values())
    cut = () if session.read_only else await _untold(session)
    last_at_ms = (await session.storage.metadata()).last_at_ms
    queued = await session.storage.submissions(statuses=("queued",), limit=1_000)
    if (changed or cut) and not session.read_only:

        async def write(transaction: Transaction) -> None:
            for conversation_id, copies in cut:
                _tell(transaction, conversation_id, copies)
            if cut:
                (await transaction.document(REPAIRS)).value["told"] = [_key(copy) for copy in await session.storage.put_aside()]
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


async def _untold(session: Session) -> tuple[tuple[int, tuple[PutAside, ...]], ...]:
    """The copies that no transcript tells of yet, by the conversation that shall: their own, or else the one with the newest work."""
    there = await session.storage.put_aside()
    told = (await session.snapshot(REPAIRS) or {}).get("told") if there else None
    fresh = [copy for copy in there if not isinstance(told, list) or _key(copy) not in told]
    if not fresh:
        return ()
    # What one commit had begun to write in several files is cut from all of them; where one part tells whose it was, the others follow.
    known = next((copy.conversation_id for copy in fresh if copy.conversation_id is not None), None)
    newest = known if known is not None else next((chat.conversation_id for chat in await chats(session)), None)
    if newest is None:
        return ()  # there is no transcript yet; the next opening looks again
    found: dict[int, list[PutAside]] = {}
    for copy in fresh:
        found.setdefault(newest if copy.conversation_id is None else copy.conversation_id, []).append(copy)
    return tuple((conversation_id, tuple(copies)) for conversation_id, copies in found.items())


def _tell(transaction: Transaction, conversation_id: int, copies: Sequence[PutAside]) -> None:
    size_bytes = sum(copy.size_bytes for copy in copies)
    places, names = (", ".join(dict.fromkeys(item)) for item in ([copy.cut_from for copy in copies], [copy.name for copy in copies]))
    message = f"{size_bytes} bytes at the end of {places} {copies[0].what}: they were cut off and are kept in {names}, beside the session."
    files: list[Json] = [{"name": copy.name, "cutFrom": copy.cut_from, "bytes": copy.size_bytes} for copy in copies]
    entry = Entry(
        id=transaction.new_id(),
        conversation_id=conversation_id,
        kind=REPAIRED,
        at_ms=transaction.now_ms,
        data={"message": message, "files": files},
    )
    transaction.insert_entry(entry)


def _key(copy: PutAside) -> str:
    return f"{copy.name} {copy.digest}"


def _is_in_doubt(task: Task) -> bool:
    checkpoint = task.checkpoint or {}
    return task.kind == TOOL and checkpoint.get("phase") == "execute" and checkpoint.get("replay") == "unsafe"
