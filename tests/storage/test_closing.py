"""How a store ends: also when nobody waits for its end any more, and what every later call is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import SessionClosed
from pi_durable_tui.records.document import Address
from pi_durable_tui.storage.dump import Convertible, dump_of
from pi_durable_tui.storage.files import RealFiles
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.memory import Contents
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.storage_records import batch, first_chat

STORES: dict[str, Callable[..., Awaitable[Any]]] = {"jsonl": open_jsonl, "sqlite": open_sqlite}


class SlowFiles(RealFiles):
    """A disk that does not answer while `gate` is closed; `asked` says that somebody waits for it."""

    def __init__(self) -> None:
        self.asked, self.gate = threading.Event(), threading.Event()
        self.gate.set()

    def free_bytes(self, folder: Path) -> int:
        self.asked.set()
        self.gate.wait()
        return super().free_bytes(folder)


@pytest.mark.rule("SE-8", "ST-12")
@pytest.mark.parametrize("kind", sorted(STORES))
async def test_who_gives_up_waiting_for_the_end_leaves_no_store_locked_behind(kind: str, tmp_path: Path):
    files = SlowFiles()
    storage = await STORES[kind](tmp_path / "store", clock=ManualClock(), files=files)
    files.asked.clear()
    files.gate.clear()
    commit = asyncio.ensure_future(storage.commit(first_chat()))
    await asyncio.get_running_loop().run_in_executor(None, files.asked.wait, 60)
    close = asyncio.ensure_future(storage.close())
    await asyncio.sleep(0)
    close.cancel()
    with pytest.raises(asyncio.CancelledError):
        await close
    files.gate.set()
    assert await commit == 1
    await storage.close()
    again = await STORES[kind](tmp_path / "store", clock=ManualClock())
    assert (await again.metadata()).next_seq == 2
    await again.close()


CALLS: dict[str, Callable[[Convertible], Awaitable[object]]] = {
    "metadata": lambda store: store.metadata(),
    "commit": lambda store: store.commit(batch(1)),
    "has_room": lambda store: store.has_room(),
    "put_aside": lambda store: store.put_aside(),
    "conversation": lambda store: store.conversation(1),
    "conversations": lambda store: store.conversations(),
    "entry": lambda store: store.entry(1),
    "entries": lambda store: store.entries(1),
    "newest_head": lambda store: store.newest_head(1),
    "task": lambda store: store.task(1),
    "tasks": lambda store: store.tasks(),
    "submission": lambda store: store.submission(1),
    "submission_by_request": lambda store: store.submission_by_request(1, "r"),
    "submissions": lambda store: store.submissions(),
    "document": lambda store: store.document(Address(kind="test.notes", scope="session")),
    "documents": lambda store: store.documents("session", None),
    "revisions": lambda store: store.revisions(1),
    "export": lambda store: store.export(),
    "restore": lambda store: store.restore(dump_of(Contents())),
    "verify": lambda store: store.verify(),
}


@pytest.mark.rule("SE-7")
@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("kind", sorted(STORES))
async def test_every_call_that_comes_after_the_end_is_told_so(kind: str, read_only: bool, tmp_path: Path):
    storage = await STORES[kind](tmp_path / "store", clock=ManualClock())
    await storage.commit(first_chat())
    await storage.close()
    storage = await STORES[kind](tmp_path / "store", clock=ManualClock(), read_only=read_only)
    await storage.close()
    assert CALLS.keys() == {name for name in dir(Convertible) if not name.startswith("_")} - {"name", "read_only", "close"}
    for call in CALLS.values():
        with pytest.raises(SessionClosed, match="came after the session was closed"):
            await call(storage)
