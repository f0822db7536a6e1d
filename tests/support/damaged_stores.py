"""Stores to be damaged, the ways to damage them, and what must hold of what is rescued (rule PR-15).

The stores: those of the shelf, left in each phase of work; a session of several chats, forks and tools that was killed; and one of many pages,
with long entries, whose newest commits are still in the log.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.salvage.mending import Mended, mended
from pi_durable_tui.records.entry import ASSISTANT, TOOL_RESULT, USER, Entry
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import AssistantMessage, Message, Text, ToolCall, ToolResultMessage, UserMessage
from pi_durable_tui.records.submission import Done
from pi_durable_tui.records.task import Completed, Terminal
from pi_durable_tui.storage.conversion import open_store
from pi_durable_tui.storage.dump import Dump, contents_of
from pi_durable_tui.storage.files import RealFiles
from pi_durable_tui.storage.kind import StoreKind
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.salvage.findings import Found
from pi_durable_tui.storage.salvage.reading import read_damaged
from tests.support.harness_oracle import Known, faults, held
from tests.support.harness_world import World
from tests.support.old_stores import PHASES, SHELF
from tests.support.storage_records import AT_MS, batch, conversation, submission, task

PAGE_BYTES = 4096
NOW_MS = 2_000_000_000_000
LONG_ROUNDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A sound store, and all that it holds."""

    name: str
    kind: StoreKind
    path: Path
    truth: Dump

    def copy(self, folder: Path) -> Path:
        """Another one like it, with its log."""
        folder.mkdir(parents=True)
        target = folder / self.path.name
        if self.path.is_dir():
            shutil.copytree(self.path, target, ignore=shutil.ignore_patterns("*.lock"))
            return target
        for path in self.path.parent.glob(f"{self.path.name}*"):
            if path.name.endswith((".sqlite", "-wal")):
                shutil.copyfile(path, folder / path.name)
        return target


async def all_stores(folder: Path, kind: StoreKind) -> tuple[Whole, ...]:
    """One of each."""
    made = [(phase, shelved(folder / phase, kind, phase)) for phase in PHASES]
    made.append(("session", await asyncio.to_thread(session, folder / "session", kind)))
    made.append(("long", await long(folder / "long", kind)))
    return tuple([Whole(name=name, kind=kind, path=path, truth=await exported(kind, path)) for name, path in made])


async def exported(kind: StoreKind, path: Path) -> Dump:
    """All that a store holds; it is copied first, so that nothing comes to lie beside it."""
    aside = path.parent / "read"
    Whole(name="", kind=kind, path=path, truth=Dump(counters=None, records=(), revisions=())).copy(aside)  # type: ignore[arg-type]
    storage = await open_store(kind, aside / path.name, clock=ManualClock())
    try:
        return await storage.export()
    finally:
        await storage.close()
        shutil.rmtree(aside)


def shelved(folder: Path, kind: StoreKind, phase: str) -> Path:
    """A store of the shelf."""
    folder.mkdir(parents=True)
    source, target = SHELF / f"v1-{phase}" / f"session.{kind}", folder / f"session.{kind}"
    (shutil.copytree if kind == "jsonl" else shutil.copyfile)(source, target)
    return target


def session(folder: Path, kind: StoreKind) -> Path:
    """Two chats, a fork of each kind of place, tools that ended, one that was asked about and one that ran when the process was killed."""
    folder.mkdir(parents=True)
    world = World(folder, kind)
    world.open()

    async def chat(approval: Any = "all") -> int:
        return (await world.harness.create_conversation(Agent(model="test/model", approval=approval))).id

    async def ask(conversation_id: int, text: str) -> None:
        await (await world.harness.conversation(conversation_id)).submit(text)

    async def fork(conversation_id: int) -> int:
        return (await world.harness.fork(conversation_id)).id

    first, second = world.do(chat()), world.do(chat("ask"))
    for answers, text in ((["three", "text"], "look, touch and put"), (["look", "two", "text"], "twice"), (["malformed", "text"], "badly")):
        world.answers += answers  # type: ignore[arg-type]
        world.do(ask(first, text))
        world.release()
    branch = world.do(fork(first))
    world.answers += ["look", "text", "touch"]
    world.do(ask(branch, "on another way"))
    world.release()
    world.do(ask(second, "may you?"))
    world.answers += ["touch"]
    world.do(ask(first, "and once more"))
    world.do(ask(first, "this waits"))
    world.kill()
    return folder / f"session.{kind}"


async def long(folder: Path, kind: StoreKind) -> Path:
    """Many rounds in two chats, some with texts longer than a page; the newest ones stand in the log."""
    folder.mkdir(parents=True)
    path, aside = folder / f"session.{kind}", folder / "made"
    storage = await open_store(kind, aside / path.name, clock=ManualClock())
    await storage.commit(batch(3, conversations=[conversation(1), conversation(2)]))
    chance, next_id = random.Random(1), 3
    for number in range(LONG_ROUNDS):
        chat, asked, said, called, given, final, handed = 1 + number % 2, next_id, next_id + 1, next_id + 2, next_id + 3, next_id + 4, next_id + 5
        next_id += 6
        words = (Text(text=f"question {number}"),)
        call = ToolCall(id=f"c{number}", name="look", arguments={"call": f"c{number}"})
        output = "x" * chance.choice([10, 200, 3_000, 9_000, 30_000])
        entries = [
            spoken(asked, chat, USER, UserMessage(content=words), {"submissionId": handed}),
            spoken(said, chat, ASSISTANT, AssistantMessage(content=(Text(text="I look."), call), model="test/model", stop_reason="toolUse")),
            spoken(given, chat, TOOL_RESULT, ToolResultMessage(tool_call_id=call.id, tool_name="look", content=(Text(text=output),))),
            spoken(final, chat, ASSISTANT, AssistantMessage(content=(Text(text=f"answer {number}"),), model="test/model", stop_reason="stop")),
        ]
        ended = task(
            called,
            chat,
            kind="pi.tool",
            input={"assistant": said, "callId": call.id, "name": "look", "arguments": call.arguments},
            state=Terminal(outcome=Completed(value=given)),
            ended_at_ms=1,
        )
        stored = submission(handed, chat, content=words, state=Done(entry_id=asked, answer_entry_id=final))
        await storage.commit(batch(next_id, entries=entries, tasks=[ended], submissions=[stored]))
    whole = Whole(name="", kind=kind, path=aside / path.name, truth=await storage.export())
    whole.copy(folder / "copied")
    await storage.close()
    for item in (folder / "copied").iterdir():
        item.rename(folder / item.name)
    return path


def spoken(record_id: int, conversation_id: int, kind: str, message: Message, data: JsonObject | None = None) -> Entry:
    return Entry(id=record_id, conversation_id=conversation_id, kind=kind, at_ms=AT_MS, message=message, data=data)


def bytes_of(store: Path) -> dict[str, bytes]:
    """Every file of a store and beside it."""
    return {str(path): path.read_bytes() for path in sorted(store.parent.rglob("*")) if path.is_file()}


def flip(store: Path, chance: random.Random) -> str:
    """Flip one bit somewhere in a store."""
    path, data = _drawn(store, chance)
    at = chance.randrange(len(data))
    data[at] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    return f"bit in {path.name} at {at}"


def lose_page(store: Path, chance: random.Random) -> str:
    """Zeros, or anything, in the place of a page."""
    path, data = _drawn(store, chance)
    at = PAGE_BYTES * chance.randrange(-(-len(data) // PAGE_BYTES))
    size_bytes = len(data[at : at + PAGE_BYTES])
    data[at : at + size_bytes] = chance.choice([bytes(size_bytes), chance.randbytes(size_bytes)])
    path.write_bytes(data)
    return f"page of {path.name} at {at}"


def _drawn(store: Path, chance: random.Random) -> tuple[Path, bytearray]:
    files = [path for path in sorted(store.parent.rglob("*")) if path.is_file() and path.stat().st_size]
    (path,) = chance.choices(files, weights=[item.stat().st_size for item in files])
    return path, bytearray(path.read_bytes())


def rescued(store: Path, kind: StoreKind) -> tuple[Found, Mended]:
    """What was found in a damaged store, and what was made of it."""
    found = read_damaged(store, kind, RealFiles())
    return found, mended(found, now_ms=NOW_MS, new_provider_id=lambda: "0190163d-8694-739b-aea5-966c26f8ad91")


async def wrong(truth: Dump, found: Found, result: Mended) -> list[str]:
    """Everything that must not be so of a rescue."""
    return [*_untrue(truth, found), *_untold(truth, found, result), *await _broken(found, result)]


def _untrue(truth: Dump, found: Found) -> Iterator[str]:
    """What is found was stored: nothing is made up, and nothing is older than it must be without its being told."""
    texts = {(record.kind, record.id): record.text for record in truth.records}
    lost = {(item.kind, item.id) for item in found.lost}
    for record in found.records:
        key = (record.kind, record.id)
        if texts.get(key) != record.text and key not in lost and not found.is_unsure and record.kind != "document":
            yield f"{record.kind} {record.id} is {record.text}, it was {texts.get(key)}"


def _untold(truth: Dump, found: Found, result: Mended) -> Iterator[str]:
    """What is not found is told, if only by its id, unless the damage was at the very end of a file of lines."""
    there = {(record.kind, record.id) for record in found.records}
    told = {(item.kind, item.id) for item in result.lost}
    for record in truth.records:
        if (record.kind, record.id) not in there | told and ("record", record.id) not in told and not found.is_unsure:
            yield f"{record.kind} {record.id} is gone, and nothing says so"


async def _broken(found: Found, result: Mended) -> list[str]:
    """The oracle's findings. Where an answer is gone, what it cost is still counted, so that the sum of the answers that are left is less."""
    storage = MemoryStorage(contents_of(result.dump))
    less = found.is_unsure or bool(result.lost)
    return [fault for fault in faults(await held(storage), Known()) if "is told as done" not in fault and not (": usage is" in fault and less)]
