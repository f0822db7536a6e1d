"""However many start at once, one owns the store (PR-14, ST-12, CASE-A3): races, killed owners, many paths to one store, readers that stay.

PIDURABLE_TEST_RACES says how many rounds are raced, 60 unless set.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.kind import STORE_KINDS, StoreKind
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.cli_runs import ROOT
from tests.support.storage_records import batch, entry, first_chat

ROUNDS = int(os.environ.get("PIDURABLE_TEST_RACES", "60"))
READER = """
import apsw, sys
connection = apsw.Connection(sys.argv[1], flags=apsw.SQLITE_OPEN_READONLY)
connection.execute("BEGIN").fetchall()
print(connection.execute("SELECT count(*) FROM entries").fetchone()[0], flush=True)
sys.stdin.readline()
print(connection.execute("SELECT count(*) FROM entries").fetchone()[0], flush=True)
"""


@pytest.mark.slow
@pytest.mark.rule("PR-14", "ST-12", "CASE-A3", "FB-34")
@pytest.mark.parametrize("kind", STORE_KINDS)
def test_of_all_that_start_at_once_by_any_path_one_owns_the_store_and_a_killed_owner_is_no_obstacle(
    tmp_path: Path, kind: StoreKind, seed: int, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(seed)
    store = tmp_path / "data" / f"s.{kind}"
    store.parent.mkdir()
    (tmp_path / "link").symlink_to(store.parent)
    (tmp_path / f"file.{kind}").symlink_to(store)
    ways = [
        [str(tmp_path), str(store)],
        [str(store.parent), store.name],
        [str(tmp_path), f"data/../data/{store.name}"],
        [str(tmp_path), f"link/{store.name}"],
        [str(tmp_path), f"file.{kind}"],
        ["/", str(tmp_path / "link" / store.name)],
    ]
    starters = kills = 0
    slowest_ms = 0.0
    process = subprocess.Popen([sys.executable, "-m", "tests.support.lock_races"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        for turn in range(ROUNDS):
            chosen = [chance.choice(ways) for _ in range(chance.randint(2, 16))]
            end = chance.choice(["kill", "close"])
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"ways": chosen, "end": end}) + "\n")
            process.stdin.flush()
            told = json.loads(process.stdout.readline())
            assert (told["owners"], len(told["refused"])) == (1, len(chosen) - 1), told
            assert told["commits"] == turn + 1, "a commit of the owner before is missing"
            assert all("open in another process" in text for text in told["refused"]), told["refused"]
            assert told["codes"] == sorted([*[0] * (len(chosen) - 1), -9 if end == "kill" else 0])
            starters, kills, slowest_ms = starters + len(chosen), kills + (end == "kill"), max(slowest_ms, told["open_ms"])
    finally:
        process.kill()
        process.communicate()
    record_property(
        "told", f"{ROUNDS} races of {starters} starters for one {kind} store, {kills} owners killed, seed {seed}; slowest opening {slowest_ms:.0f} ms"
    )
    assert kills > ROUNDS // 5


@pytest.mark.slow
@pytest.mark.rule("PR-14", "OB-6", "CASE-A3")
async def test_a_reader_that_keeps_a_transaction_open_holds_no_commit_up_and_sees_one_moment(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    storage = await open_sqlite(path, clock=ManualClock(), inline=True)
    await storage.commit(first_chat())
    with subprocess.Popen(  # noqa: ASYNC220 - it is there to be waited for
        [sys.executable, "-c", READER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "1\n"
        for number in range(3, 300):  # enough for the log to be moved into the file several times, if nobody were reading
            assert await storage.commit(batch(number + 1, entries=[entry(number, text="x" * 20_000)])) == number - 1
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == "1\n"
    for number in range(300, 304):
        await storage.commit(batch(number + 1, entries=[entry(number)]))
    await storage.verify()
    await storage.close()
    assert not path.with_name("s.sqlite-wal").exists()  # what piled up while somebody read went into the file


@pytest.mark.rule("PR-14", "ST-12")
@pytest.mark.parametrize("kind", STORE_KINDS)
async def test_a_lock_file_without_an_owner_blocks_nobody_and_is_used_again(tmp_path: Path, kind: StoreKind) -> None:
    path = tmp_path / f"s.{kind}"
    opener = open_jsonl if kind == "jsonl" else open_sqlite
    for _ in range(3):
        storage = await opener(path, clock=ManualClock(), inline=True)
        await storage.close()
    assert sorted(item.name for item in tmp_path.iterdir() if item.suffix == ".lock") == [f"s.{kind}.lock"]
