"""Races for one store between processes that start at the same moment: a warmed process forks the starters of each round.

    python -m tests.support.lock_races

A JSON line on stdin is a round, `{"ways": [[folder to stand in, path], …], "end": "close" or "kill"}`: as many starters as ways, all let go at
once. Each opens the store to write; whoever owns it commits once, and ends as told when all others have been turned away. The answer is
`{"owners": n, "refused": [texts], "commits": newest commit, "open_ms": how long the owner took}`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.errors import StoreLocked
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.storage_records import batch, entry, first_chat


async def _starter(path: str, told: int, release: int) -> None:
    opener = open_jsonl if path.endswith(".jsonl") else open_sqlite
    began_s = time.monotonic()
    try:
        storage = await opener(Path(path), clock=SystemClock(), inline=True)
    except StoreLocked as refusal:
        _say(told, refused=refusal.message)
        return
    opened_ms = (time.monotonic() - began_s) * 1000
    next_id = (await storage.metadata()).next_id
    seq = await storage.commit(first_chat() if next_id == 1 else batch(next_id + 1, entries=[entry(next_id)]))
    _say(told, owner=os.getpid(), commit=seq, open_ms=opened_ms)
    os.read(release, 1)
    await storage.close()


def _say(told: int, **what: Any) -> None:
    os.write(told, json.dumps(what).encode() + b"\n")  # shorter than a pipe writes at once


def _child(way: list[str], start: int, told: int, release: int) -> int:
    os.chdir(way[0])
    os.read(start, 1)  # all are let go at once
    asyncio.run(_starter(way[1], told, release))
    return 0


def play(job: dict[str, Any]) -> dict[str, Any]:
    start, go = os.pipe()
    heard, told = os.pipe()
    release, end = os.pipe()
    pids: list[int] = []
    for way in job["ways"]:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(go)
                os.close(end)
                code = _child(way, start, told, release)
            finally:
                os._exit(code)
        pids.append(pid)
    for handle in (start, told, release):
        os.close(handle)
    os.close(go)  # the end of the pipe is the signal
    with os.fdopen(heard, "rb") as lines:
        said = [json.loads(lines.readline() or b"{}") for _ in pids]
    owners = [one for one in said if "owner" in one]
    if job["end"] == "kill":
        for one in owners:
            os.kill(one["owner"], signal.SIGKILL)
    os.close(end)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    return {
        "owners": len(owners),
        "refused": [one["refused"] for one in said if "refused" in one],
        "commits": max((one["commit"] for one in owners), default=0),
        "open_ms": max((one["open_ms"] for one in owners), default=0),
        "codes": sorted(codes),
    }


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(play(json.loads(line))) + "\n")
        sys.stdout.flush()
