"""What the core costs, as ratios between two things measured in one run, so that the machine hardly matters (issue of the durable core, "Speed").

Each measure returns rows for the table of `python -m tests.bench`; none asserts anything about time.
"""

from __future__ import annotations

import asyncio
import gc
import shutil
import statistics
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import apsw

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.harness import chats as chatting
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.extensions.task_definition import End, Move, TaskDefinition
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import LIVE, Agent, Generation, Live, Run
from pi_durable_tui.harness.runs import as_object
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.commit import Batch, Priority
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.entry import USER, Entry
from pi_durable_tui.records.messages import AssistantMessage, Text, UserMessage
from pi_durable_tui.records.task import Completed, Pending, Task
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.conversion import write_store
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.big_stores import big
from tests.support.harness_rig import Folder
from tests.support.scripted_model import ScriptedModel

START_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    answer_chars: int = 100_000
    commits: int = 300
    entries: int = 100_000
    few_entries: int = 1_000
    chats: int = 1_000
    tasks: int = 500
    openings: int = 7


TINY = Sizes(answer_chars=2_000, commits=5, entries=60, few_entries=20, chats=4, tasks=10, openings=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. `limit` is what the design allows; `is_least` says that it is a lower bound."""

    name: str
    value: float
    limit: float | None
    unit: str = "x"
    is_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the limit is kept."""
        return self.limit is None or (self.value >= self.limit if self.is_least else self.value <= self.limit)


async def timed_ms(work: Callable[[], Awaitable[object]]) -> float:
    """How long one call takes."""
    start_ns = time.perf_counter_ns()
    await work()
    return (time.perf_counter_ns() - start_ns) / 1e6


async def median_ms(work: Callable[[], Awaitable[object]], times: int) -> float:
    """The median of some calls."""
    return statistics.median([await timed_ms(work) for _ in range(times)])


# --------------------------------------------------------------------------------------------------------------- partials


async def partials(folder: Path, sizes: Sizes) -> list[Row]:
    """Twenty more characters of a long answer: bytes stored, and time against a bare transaction of one row of as many bytes.

    The bare row is BEGIN IMMEDIATE, one INSERT and COMMIT with nothing around them. A program with keys to answer cannot wait for a disk on
    its event loop, so what a commit is held to is the same row handed from a loop to a writer's thread, as the product does it. Both on the
    calling thread is shown beside it, without a limit: there the row alone takes some ten microseconds, less than a task of asyncio and the
    difference of two documents cost in Python.
    """
    rows: list[Row] = []
    for level, priority in (("normal", "partial"), ("full", "record")):
        for place, inline in (("a writer's thread", False), ("the calling thread", True)):
            path = folder / f"partial-{level}-{inline}.sqlite"
            session = await Session.open(await open_sqlite(path, clock=ManualClock(), inline=inline), clock=ManualClock())
            append = await _answer(session, sizes.answer_chars, priority)
            bare = BareStore(folder / f"bare-{level}-{inline}.sqlite", level, inline=inline)
            await append()
            await bare.insert()
            pairs = [(await timed_ms(append), await timed_ms(bare.insert)) for _ in range(sizes.commits)]  # by turns: a disk has its moods
            ours_ms, bare_ms = (statistics.median(times) for times in zip(*pairs, strict=True))
            bare.close()
            await session.close()
            limit = None if inline and level == "normal" else 3
            rows.append(Row(name=f"commit of a partial against a bare row, {level}, on {place}", value=ours_ms / bare_ms, limit=limit))
            rows.append(Row(name=f"  the commit, {level}, on {place}", value=ours_ms, limit=None, unit="ms"))
            rows.append(Row(name=f"  the bare row, {level}, on {place}", value=bare_ms, limit=None, unit="ms"))
    stored = _delta_bytes(folder / "partial-normal-False.sqlite")
    rows.append(Row(name="commit of a partial, stored beside the row itself", value=stored, limit=300, unit="bytes"))
    return rows


async def _answer(session: Session, chars: int, priority: Priority) -> Callable[[], Awaitable[None]]:
    """A conversation whose running answer has `chars` characters; what adds twenty more."""
    message = AssistantMessage(content=(Text(text="x" * chars),), model="m", stop_reason="aborted")
    live = Live(run=Run(task_id=1, started_at_ms=0), generation=Generation(task_id=1, attempt=1, started_at_ms=0, message=message))

    async def begin(transaction: Transaction) -> int:
        conversation = Conversation(id=transaction.new_id(), created_at_ms=0)
        transaction.insert_conversation(conversation)
        (await transaction.document(LIVE, conversation.id)).value = as_object(live)
        return conversation.id

    conversation_id = await session.commit(begin)

    async def write(transaction: Transaction) -> None:
        draft = await transaction.document(LIVE, conversation_id)
        generation = draft.value["generation"]
        assert isinstance(generation, dict)
        part = generation["message"]["content"][0]
        part["text"] += "twenty more letters."

    async def append() -> None:
        await session.commit(write, priority=priority)

    return append


class BareStore:
    """One connection and one table: what a transaction costs with nothing around it. `inline`: on the calling thread."""

    def __init__(self, path: Path, level: str, *, inline: bool) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {level}")
        self._connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT, hash BLOB)")
        self._thread = None if inline else ThreadPoolExecutor(max_workers=1)

    async def insert(self) -> None:
        """A row as long as that of a partial is stored."""
        if self._thread is None:
            self._insert()
        else:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._insert)

    def close(self) -> None:
        """Nothing is open and no thread is left."""
        if self._thread is not None:
            self._thread.shutdown()
        self._connection.close()

    def _insert(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("INSERT INTO rows (text, hash) VALUES (?, ?)", ("x" * 97, b"x" * 16))
        self._connection.execute("COMMIT")


def _delta_bytes(path: Path) -> float:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    (found,) = connection.execute("SELECT avg(length(record) + length(hash)) FROM document_revisions WHERE type = 'delta'")
    connection.close()
    return float(str(found[0]))


# ------------------------------------------------------------------------------------------------------------------ sizes


async def sizes_of_stores(folder: Path, sizes: Sizes) -> list[Row]:
    """A commit does not cost more in a large store, and neither do opening it and reading its end."""
    empty = await _filled(folder / "empty.sqlite", 1)
    few = await _filled(folder / "few.sqlite", sizes.few_entries)
    many = await _filled(folder / "many.sqlite", sizes.entries)
    commits = [await _commit_ms(path, sizes.commits) for path in (empty, many)]
    opened = [await _open_ms(path, sizes.openings) for path in (few, many)]
    return [
        Row(name=f"commit of an entry with {sizes.entries:,} entries against 1", value=commits[1] / commits[0], limit=1.3),
        Row(name=f"open and read the last 200 of {sizes.entries:,} against {sizes.few_entries:,}", value=opened[1] / opened[0], limit=2),
        Row(name=f"  open and read the last 200 of {sizes.entries:,}", value=opened[1], limit=None, unit="ms"),
    ]


async def lists_of_chats(folder: Path, sizes: Sizes) -> list[Row]:
    """A list of chats does not take longer because they are long, and finding the one that --continue takes is a part of it."""
    chats = sizes.chats
    listed: list[tuple[float, float]] = []
    for number, entries in enumerate((max(sizes.few_entries, 2 * chats), sizes.entries)):
        path = folder / f"{number}.sqlite"
        await write_store(big(entries, chats), path, "sqlite", clock=ManualClock())
        session = await Session.open(await open_sqlite(path, clock=ManualClock(), inline=True, read_only=True), clock=ManualClock())
        whole = await median_ms(lambda session=session: chatting.chats(session), sizes.openings)
        listed.append((whole, await median_ms(lambda session=session: chatting.chats(session, most=1), sizes.openings)))
        await session.close()
    (few, _), (many, newest) = listed
    return [
        Row(name=f"list {chats:,} chats with {sizes.entries:,} entries against those with {sizes.few_entries:,}", value=many / few, limit=1.3),
        Row(name="  list them", value=many, limit=None, unit="ms"),
        Row(name="  find the one that --continue takes", value=newest, limit=None, unit="ms"),
    ]


def _entry(entry_id: int) -> Entry:
    return Entry(id=entry_id, conversation_id=1, kind=USER, at_ms=START_MS, message=UserMessage(content=(Text(text=f"entry {entry_id}"),)))


async def _filled(path: Path, entries: int) -> Path:
    storage = await open_sqlite(path, clock=ManualClock(), inline=True, synchronous="normal")
    await _fill(storage, entries)
    await storage.close()
    return path


async def _fill(storage: Storage, entries: int) -> None:
    await storage.commit(Batch(next_id=2, at_ms=START_MS, conversations=(Conversation(id=1, created_at_ms=START_MS),)))
    for first in range(2, entries + 2, 1_000):
        last = min(first + 1_000, entries + 2)
        await storage.commit(Batch(next_id=last, at_ms=START_MS, entries=tuple(_entry(entry_id) for entry_id in range(first, last))))


async def _commit_ms(path: Path, times: int) -> float:
    copied = path.with_suffix(".copy.sqlite")
    shutil.copy(path, copied)
    clock = ManualClock()
    session = await Session.open(await open_sqlite(copied, clock=clock, inline=True, synchronous="normal"), clock=clock)

    async def write(transaction: Transaction) -> None:
        transaction.insert_entry(_entry(transaction.new_id()))

    took_ms = await median_ms(lambda: session.commit(write), times)
    await session.close()
    return took_ms


async def _open_ms(path: Path, times: int) -> float:
    async def open_and_read() -> None:
        storage: Storage = await open_sqlite(path, clock=ManualClock(), inline=True)
        await storage.entries(1, limit=200, descending=True)
        took.append((time.perf_counter_ns() - start_ns) / 1e6)
        await storage.close()

    took: list[float] = []
    for _ in range(times):
        start_ns = time.perf_counter_ns()
        await open_and_read()
    return statistics.median(took)


async def jsonl_opening(folder: Path, sizes: Sizes) -> list[Row]:
    """A JSONL store is read whole when it is opened and held in memory: what an entry costs, for whoever thinks of a long session in one."""
    clock = ManualClock()
    storage = await open_jsonl(folder / "session.jsonl", clock=clock, inline=True, fsync=False)
    await _fill(storage, sizes.entries)
    await storage.close()
    del storage
    gc.collect()
    tracemalloc.start()
    storage = await open_jsonl(folder / "session.jsonl", clock=clock, inline=True, fsync=False)
    held_bytes, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    await storage.close()
    opened: list[float] = []
    for _ in range(max(1, sizes.openings // 2)):
        start_ns = time.perf_counter_ns()
        storage = await open_jsonl(folder / "session.jsonl", clock=clock, inline=True, fsync=False)
        opened.append((time.perf_counter_ns() - start_ns) / 1e6)
        await storage.close()
    return [
        Row(name=f"open a JSONL store of {sizes.entries:,} small entries", value=statistics.median(opened), limit=None, unit="ms"),
        Row(name="  for each entry, held in memory", value=held_bytes / sizes.entries, limit=None, unit="bytes"),
    ]


# ------------------------------------------------------------------------------------------------------------------ tasks


async def chained_tasks(folder: Path, sizes: Sizes) -> list[Row]:
    """Tasks of which each starts the next one in the commit of its end."""
    del folder
    ended = asyncio.Event()

    async def link(runtime: TaskRuntime) -> None:
        n = int(str(runtime.checkpoint["n"]))

        async def write(transaction: Transaction, task: Task) -> Move:
            if n < sizes.tasks:
                following = Task(
                    id=transaction.new_id(),
                    kind=task.kind,
                    conversation_id=task.conversation_id,
                    input={},
                    state=Pending(checkpoint={"phase": "link", "n": n + 1}),
                    created_at_ms=transaction.now_ms,
                )
                transaction.put_task(following)
            return End(Completed(value=n))

        await runtime.commit(write)
        if n == sizes.tasks:
            ended.set()

    clock = ManualClock()
    harness = await Harness.open(
        MemoryStorage(),
        models=ScriptedModel(clock),
        clock=clock,
        entropy=SeededEntropy(1),
        environment=lambda _conversation_id, agent: Folder(agent.cwd),
        extensions=(Extension(name="chain", tasks=(TaskDefinition(kind="chain", phases={"link": link}),)),),
    )
    conversation = await harness.create_conversation(Agent())

    async def run() -> None:
        await harness.start_task(conversation.id, "chain", {}, {"phase": "link", "n": 1})
        await ended.wait()

    took_ms = await timed_ms(run)
    await harness.close()
    return [Row(name=f"{sizes.tasks} chained tasks on memory", value=sizes.tasks / took_ms * 1_000, limit=300, unit="tasks/s", is_least=True)]


MEASURES: tuple[Callable[[Path, Sizes], Awaitable[list[Row]]], ...] = (partials, sizes_of_stores, lists_of_chats, jsonl_opening, chained_tasks)
