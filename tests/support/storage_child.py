"""A process of its own that owns a store: `python -m tests.support.storage_child PATH VERB`. It says on stdout what it has done.

A path that ends in .jsonl is a JSONL store, any other a SQLite file.

hold: open, print "open", keep the store until stdin ends, close, print "closed".
try: open and close; print "owner" or the refusal's words.
follow: open read-only; at each line on stdin print all that is stored; at its end close.
commit: commit entries for ever, printing each seq once it was acknowledged; every fifth commit is a partial.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.errors import StoreLocked
from pi_durable_tui.records.commit import DocumentDelta
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.storage_records import base, batch, conversation, dump, entry


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def opened(path: Path, *, read_only: bool = False) -> Storage:
    if path.suffix == ".jsonl":
        return await open_jsonl(path, clock=SystemClock(), read_only=read_only)
    return await open_sqlite(path, clock=SystemClock(), read_only=read_only)


async def commit_for_ever(storage: Storage) -> None:
    next_id = (await storage.metadata()).next_id
    if next_id == 1:
        say(await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"text": ""})])))
        next_id = 3
    for record_id in range(next_id, next_id + 100_000):
        delta = DocumentDelta(document_id=2, ops=[["s", ["text"], "x" * (record_id % 50)]])
        if record_id % 5 == 0:
            say(await storage.commit(batch(record_id, documents=[delta], priority="partial")))
        writes = [entry(record_id, text="y" * (record_id * 37 % 9000))]
        say(await storage.commit(batch(record_id + 1, entries=writes, documents=[base(2, {"text": ""}) if record_id % 40 == 0 else delta])))


async def follow(path: Path) -> None:
    storage = await opened(path, read_only=True)
    while sys.stdin.readline():
        say(repr(await dump(storage)))
    await storage.close()


async def main(path: Path, verb: str) -> None:
    if verb == "follow":
        await follow(path)
        return
    try:
        storage = await opened(path)
    except StoreLocked as refusal:
        say(refusal.message)
        return
    match verb:
        case "hold":
            say("open")
            await asyncio.to_thread(sys.stdin.read)
            await storage.close()
            say("closed")
        case "try":
            await storage.close()
            say("owner")
        case _:
            await commit_for_ever(storage)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
