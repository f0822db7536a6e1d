"""`pidurable selftest --kill N`: kills the program N times on this machine and says what was checked, and what was found.

Works in a temporary folder, with nothing of the user's; needs no key and no network. The shards are processes, so that a machine of
several processors is used; a seed gives the same draws again, though not the same instants.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pi_durable_tui.clock import Clock, SystemClock
from pi_durable_tui.entropy import SystemEntropy
from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.selftest import forks
from pi_durable_tui.selftest.ring import Told, read_told, run_shard, total
from pi_durable_tui.storage.kind import STORE_KINDS, StoreKind
from pi_durable_tui.tui.safe_text import safe_text

VIOLATED = 1
SEEDS = 2**31
MOST_SHARDS = 2
PROGRESS_MS = 200
_STORES: dict[StoreKind, str] = {"sqlite": "an SQLite file", "jsonl": "a folder of JSON lines"}
_MOMENTS = {"time": "at any time", "commit": "beside a commit", "effect": "inside a command"}


def run_selftest(kills: int, *, seed: int | None, store: StoreKind | None) -> int:
    """Kill, look, and print what came of it; 0 when nothing was wrong, else 1.

    Args:
        store: The only kind of store to be tried; None: both, one run after the other.

    Raises:
        EnvironmentFailure: There is no room or right for temporary files. Nothing was started.
    """
    clock = SystemClock()
    started_ms = clock.monotonic_ms()
    told, drawn = measured(kills, seed=seed, store=store)
    print(safe_text(report(told, kills=kills, seed=drawn, took_ms=clock.monotonic_ms() - started_ms, store=store)))
    return VIOLATED if told.faults else 0


def measured(kills: int, *, seed: int | None, store: StoreKind | None = None) -> tuple[Told, int]:
    """What so many kills showed, of runs over that kind of store or of both, and the seed of their draws.

    Raises:
        EnvironmentFailure: There is no room or right for temporary files. Nothing was started.
    """
    drawn = int(SystemEntropy().fraction() * SEEDS) if seed is None else seed
    try:
        root = Path(os.path.realpath(tempfile.mkdtemp(prefix="pidurable-selftest-")))
    except OSError as error:
        raise EnvironmentFailure(f"No temporary folder can be made: {error}. Nothing was started.", hint="Make room, or set TMPDIR.") from error
    told = Told()
    try:
        told = _kill(root, kills, drawn, STORE_KINDS if store is None else (store,))
    finally:
        if not told.faults:
            shutil.rmtree(root, ignore_errors=True)
    return told, drawn


def _kill(root: Path, kills: int, seed: int, kinds: Sequence[StoreKind]) -> Told:
    """Start the shards, show how far they are, and add up what they tell."""
    clock = SystemClock()
    shares = shared_out(kills, min(MOST_SHARDS, os.cpu_count() or 1))
    places = [root / f"shard-{number}.jsonl" for number in range(len(shares))]
    errors = root / "errors"
    children: list[forks.Child] = []
    try:
        for number, (share, place) in enumerate(zip(shares, places, strict=True)):
            shard = partial(run_shard, root / f"shard-{number}", seed=seed + number, kills=share, clock=clock, tell=place, kinds=kinds)
            children.append(forks.start(shard, errors=errors))
        asyncio.run(_until_ended(children, places, kills, clock))
    finally:
        codes = [child.kill() for child in children]
        _show("")
    told = total([one for place in places for one in read_told(place)])
    failed = tuple(f"shard {number} ended with {code}: see {errors}" for number, code in enumerate(codes) if code != 0)
    return total([told, Told(faults=failed, kept=str(root) if failed else "")])


async def _until_ended(children: Sequence[forks.Child], places: Sequence[Path], kills: int, clock: Clock) -> None:
    while any(child.ended() is None for child in children):
        told = total([one for place in places for one in read_told(place)])
        _show(progress(told, kills))
        await clock.sleep_ms(PROGRESS_MS)


def shared_out(kills: int, shards: int) -> list[int]:
    """How many kills each shard does; no shard without one. PURE."""
    return [share for number in range(shards) if (share := kills // shards + (number < kills % shards))]


def progress(told: Told, kills: int) -> str:
    """One line while it runs. PURE."""
    done = sum(told.kills.values())
    return f"killed {done} of {kills} times · {told.runs} runs ended and judged · {len(told.faults)} violations"


def report(told: Told, *, kills: int, seed: int, took_ms: float, store: StoreKind | None = None) -> str:
    """What was done, what was checked, what was found. PURE."""
    done = sum(told.kills.values())
    aimed = " · ".join(f"{told.kills.get(moment, 0)} {words}" for moment, words in _MOMENTS.items())
    over = " and ".join(f"{told.stores[kind]} over {_STORES[kind]}" for kind in STORE_KINDS if kind in told.stores)
    left = " · ".join(f"{count} {what}" for what, count in told.traces.items())
    lines = [
        f"{done} kills by SIGKILL in {told.runs} runs, {took_ms / 1000:.1f} s, seed {seed}",
        f"  {aimed}",
        f"  they left: {left}",
        f"  runs: {over}",
        "",
        "checked after every kill",
        f"  every acknowledged commit is in the store    {told.commits} looked for",
        "  every record of the store is sound",
        "checked at the end of every run",
        f"  no command ran twice                         {told.effects} ran",
        "  what is told as done was done, and what may have been done says so",
        "  every call has one result, every input an answer, nothing is left over",
        "  usage is the sum of the entries, the file is written, the answer is there",
        "",
    ]
    if told.faults:
        lines += [f"{len(told.faults)} violations", *(f"  {fault}" for fault in told.faults), f"What was left is kept: {told.kept}"]
        lines.append("This must not happen. Please report it, with that folder.")
    else:
        lines.append("found: 0 violations")
    lines.append(f"again: pidurable selftest --kill {kills} --seed {seed}{f' --store {store}' if store else ''}")
    return "\n".join(lines)


def _show(line: str) -> None:
    """The line stands alone at the bottom of the terminal; without one, nothing is shown."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
