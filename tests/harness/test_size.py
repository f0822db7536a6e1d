"""What a session costs does not grow with its length, and a list of chats grows with their number only (PR-19, CASE-E2).

Counted, not timed: the steps that SQLite's machine takes, and for a folder of lines, which is held in memory, the records that are looked at.
PIDURABLE_TEST_ENTRIES says how many entries the large store has, 10,000 unless set; it has a hundredth as many chats.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.records.codec import decode
from pi_durable_tui.storage.contents import Table
from pi_durable_tui.storage.conversion import write_store
from pi_durable_tui.storage.dump import contents_of
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.big_stores import big
from tests.support.harness_rig import Folder
from tests.support.scripted_model import ScriptedModel, say

LARGE = int(os.environ.get("PIDURABLE_TEST_ENTRIES", "10000"))
SMALL = LARGE // 10
MANY_CHATS, FEW_CHATS = LARGE // 100, 2

Work = Callable[[Harness], Awaitable[object]]


async def newest_chat(harness: Harness) -> Any:
    (chat,) = await harness.chats(most=1)
    return await harness.conversation(chat.conversation_id)


async def look(harness: Harness) -> object:
    return await (await newest_chat(harness)).view()


async def scroll(harness: Harness) -> object:
    conversation = await newest_chat(harness)
    page = await conversation.entries(limit=50)
    return await conversation.entries(before=page[0].entry.id, limit=50)


async def ask(harness: Harness) -> object:
    conversation = await newest_chat(harness)
    return await conversation.submit("what waits", mode="write")


BY_LENGTH: dict[str, Work] = {
    "list the chats": lambda harness: harness.chats(),
    "find the newest one": lambda harness: harness.chats(most=1),
    "draw the tree": lambda harness: harness.overview.branches(),
    "say what there is": lambda harness: harness.overview.facts(),
    "collect what was asked": lambda harness: harness.overview.prompts(),
    "sum up what was used": lambda harness: harness.usage(),
    "inspect": lambda harness: harness.inspect(),
    "open the newest chat": look,
    "scroll": scroll,
    "hand something in": ask,
}
"""What people do all day."""


class Steps:
    """Counts the steps of SQLite's machine on a connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.count = 0
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._add)

    def _add(self, event: dict[str, Any]) -> None:
        self.count += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]


async def costs(folder: Path, entries: int, chats: int) -> dict[str, int]:
    """The steps of each work on a store of that size, beginning with its opening."""
    folder.mkdir()
    await write_store(big(entries, chats), folder / "session.sqlite", "sqlite", clock=ManualClock())
    storage = await open_sqlite(folder / "session.sqlite", clock=ManualClock(), inline=True, synchronous="normal")
    steps = Steps(storage._source.sql._connection)  # type: ignore[attr-defined]
    model = ScriptedModel(ManualClock())
    model.then(say("fine"))
    harness = await Harness.open(storage, models=model, clock=ManualClock(), entropy=SeededEntropy(1), environment=lambda _id, agent: Folder(agent.cwd))
    found = {"open": steps.count}
    for name, work in BY_LENGTH.items():
        before = steps.count
        await work(harness)
        found[name] = steps.count - before
    await harness.close()
    return found


@pytest.mark.slow
@pytest.mark.rule("PR-19", "CASE-E2")
async def test_nothing_that_people_do_takes_more_steps_in_a_long_session_and_only_lists_take_more_with_more_chats(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    short = await costs(tmp_path / "short", SMALL, FEW_CHATS)
    long = await costs(tmp_path / "long", LARGE, FEW_CHATS)
    ratios = {name: long[name] / short[name] for name in short}
    record_property("told", f"steps with {LARGE:,} entries to those with {SMALL:,}: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()))
    assert {name: ratio for name, ratio in ratios.items() if ratio > 1.3 and name != "collect what was asked"} == {}
    assert long["collect what was asked"] <= 60 * 500 + short["list the chats"]  # 500 questions at most, however many there are

    many = await costs(tmp_path / "many", LARGE, MANY_CHATS)
    lists = {"list the chats", "find the newest one", "draw the tree", "say what there is", "collect what was asked", "sum up what was used"}
    more = MANY_CHATS / FEW_CHATS
    assert {name: many[name] / long[name] for name in lists if many[name] > 1.3 * more * long[name]} == {}
    through_list = {"open the newest chat", "scroll", "hand something in"}  # the newest one is found first
    assert {name: many[name] for name in through_list if many[name] > many["find the newest one"] + 1.3 * long[name]} == {}
    assert {name: many[name] / long[name] for name in ("open", "inspect") if many[name] > 1.3 * long[name]} == {}


@pytest.mark.rule("PR-19")
async def test_in_memory_a_list_of_chats_looks_at_every_record_a_few_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    scanned = Table[Any].scan

    def scan(self: Table[Any], keep: Callable[[Any], bool], **where: Any) -> list[int]:
        def counting(record: Any) -> bool:
            nonlocal looked
            looked += 1
            return keep(record)

        return scanned(self, counting, **where)

    monkeypatch.setattr(Table, "scan", scan)
    whole = big(2_000, 100)
    model = ScriptedModel(ManualClock())
    storage = MemoryStorage(contents_of(whole))
    harness = await Harness.open(storage, models=model, clock=ManualClock(), entropy=SeededEntropy(1), environment=lambda _id, agent: Folder(agent.cwd))
    looked = 0
    assert len(await harness.chats()) == 100
    assert looked <= 2 * len(whole.records)
    await harness.close()
    assert decode(whole.records[0].text, type((await storage.conversations(limit=1)).items[0])).id == 1
