"""The process ring: real processes, killed with SIGKILL at random moments, and then continued (proof.md, rig 4).

`pidurable -p` with a command, a file and another command; killed up to three times a session, or twenty times; then `-c -p` ends the run. The number
of kills is PIDURABLE_TEST_KILLS (200 unless set), the one of chains of twenty PIDURABLE_TEST_CHAINS (1 unless set).
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage
from pi_durable_tui.storage.port import Storage
from tests.support.cli_runs import Desk, new_desk
from tests.support.crash_oracle import faults
from tests.support.crash_processes import Forks, lines, looked, newest, wait_for_few_commits, wait_for_moment, warmed
from tests.support.journey_forks import ANSWER, COMMANDS, MODEL

KILLS = int(os.environ.get("PIDURABLE_TEST_KILLS", "200"))
SHARDS = 4
CHAINS = int(os.environ.get("PIDURABLE_TEST_CHAINS", "1"))
CHAIN_KILLS = 20
PROMPT = "do the work"
FIRST = ("-p", "--model", MODEL, "--approve", "all")
AGAIN = ("-c", *FIRST)


@pytest.fixture
def forks() -> Iterator[Forks]:
    with warmed() as parent:
        yield parent


@dataclass(slots=True)
class Tally:
    """What happened, and what was wrong."""

    sessions: int = 0
    kills: int = 0
    ends: int = 0  # runs that came to their end before the kill
    moments: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)


def newest_acknowledged(desk: Desk) -> int:
    """The highest commit that anybody was told of."""
    return max((int(line) for line in lines(desk, "acknowledged")), default=0)


def newest_shown(desk: Desk) -> int:
    """The highest commit that `--mode json` has shown."""
    shown = [json.loads(line) for line in lines(desk, "stdout") if line.startswith("{")]
    return max((event["seq"] for event in shown), default=0)


async def has_input(storage: Storage) -> bool:
    """Whether an input is in the store."""
    return bool((await storage.submissions(limit=1)).items)


async def has_work(storage: Storage) -> bool:
    """Whether an input in the store is not settled yet."""
    return any(one.is_open for one in (await storage.submissions(limit=100)).items)


async def has_answer(storage: Storage) -> bool:
    """Whether the answer is in the store."""
    entries = [stored.entry.message for chat in (await storage.conversations()).items for stored in (await storage.entries(chat.id)).items]
    return any(isinstance(message, AssistantMessage) and message.text == ANSWER for message in entries)


async def traces(storage: Storage) -> Counter[str]:
    """What kills have left in the transcript."""
    entries = [stored.entry.message for chat in (await storage.conversations()).items for stored in (await storage.entries(chat.id)).items]
    return Counter(
        "answers cut off" if isinstance(message, AssistantMessage) else "calls in doubt"
        for message in entries
        if (isinstance(message, AssistantMessage) and message.stop_reason == "aborted") or (isinstance(message, ToolResultMessage) and message.is_error)
    )


def judged(desk: Desk) -> list[str]:
    """What the oracle says of the finished session."""
    effects = [(call, what) for call, what in (line.split() for line in lines(desk, "effects"))]
    found = looked(desk, lambda storage: faults(storage, effects=[*effects, ("c2", "end")], unsafe=COMMANDS))
    return ["there is no store"] if found is None else found


Wait = Callable[[random.Random, Desk, int], str]


def kill_once(forks: Forks, desk: Desk, chance: random.Random, tally: Tally, arguments: tuple[str, ...], *, wait: Wait = wait_for_moment) -> None:
    """Start a run, kill it, and look at what is left."""
    pid = forks.start(desk, *arguments)
    moment = wait(chance, desk, pid)
    os.kill(pid, signal.SIGKILL)
    code = forks.wait(pid)
    if (code == 0 or ANSWER in lines(desk, "stdout")) and not looked(desk, has_answer):
        tally.found.append(f"session {tally.sessions}: the answer was told, by stdout or an exit status of {code}, and is not stored")
    if code != -signal.SIGKILL:
        tally.ends += 1
        if code != 0:
            tally.found.append(f"session {tally.sessions}: a run that was not killed ended with {code}: {lines(desk, 'stderr')}")
        return
    tally.kills += 1
    tally.moments[moment] += 1
    stored = looked(desk, newest) or 0
    if newest_acknowledged(desk) > stored:
        tally.found.append(f"session {tally.sessions}: commit {newest_acknowledged(desk)} was acknowledged, {stored} are stored")
    if newest_shown(desk) > stored:
        tally.found.append(f"session {tally.sessions}: commit {newest_shown(desk)} was shown, {stored} are stored")


def finish(forks: Forks, desk: Desk, tally: Tally) -> None:
    """End the run as a person would, and judge it."""
    code = forks.wait(forks.start(desk, *AGAIN))
    if code == 2 and not looked(desk, has_input):  # nothing was acknowledged before the kill: there is nothing to continue
        code = forks.wait(forks.start(desk, *FIRST, PROMPT))
    name = f"session {tally.sessions}"
    if (code, lines(desk, "stdout")) != (0, [ANSWER]):
        tally.found.append(f"{name}: it ended with {code}, {lines(desk, 'stdout')}, {lines(desk, 'stderr')}")
        return
    tally.found += [f"{name}: {fault}" for fault in judged(desk)]
    tally.moments += looked(desk, traces) or Counter()
    tally.found += [f"{name}: the model was asked what a provider refuses: {line}" for line in lines(desk, "requests") if line != "valid"]
    if lines(desk, "work/notes.txt") != ["written by c2"]:
        tally.found.append(f"{name}: the file was not written")


def patient_desk(root: Path, *, retries: int = 10, restart_limit: int | str = 5) -> Desk:
    """A desk whose runs try again soon and often."""
    root.mkdir()
    desk = new_desk(root)
    (root / "config").mkdir()
    retry = {"base_delay_ms": 20, "max_delay_ms": 20, "max_retries": retries}
    (root / "config/settings.json").write_text(json.dumps({"retry": retry, "restart_limit": restart_limit}))
    return desk


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.rule("PR-1", "PR-2", "PR-5", "PR-6", "PR-10", "CASE-A1", "CASE-A5", "FB-4", "FB-43")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_runs_that_are_killed_at_random_moments_lose_nothing_do_nothing_twice_and_end(
    tmp_path: Path, forks: Forks, seed: int, shard: int, tell: Callable[[str], None]
) -> None:
    chance = random.Random(seed * SHARDS + shard)
    tally = Tally()
    while tally.kills < KILLS / SHARDS and len(tally.found) < 5:
        root = tmp_path / f"{tally.sessions}"
        desk = patient_desk(root)
        as_json = ("--mode", "json") if chance.random() < 0.5 else ()
        kill_once(forks, desk, chance, tally, (*FIRST, *as_json, PROMPT))
        for _ in range(chance.randint(0, 2)):
            if looked(desk, has_input):
                kill_once(forks, desk, chance, tally, (*AGAIN, *as_json))
        finish(forks, desk, tally)
        tally.sessions += 1
    tell(f"shard {shard} of {SHARDS}, seed {seed}: {tally.kills} kills {dict(tally.moments)} in {tally.sessions} sessions, {tally.ends} runs ended before")
    assert tally.found == []
    if KILLS >= 200:  # of fewer kills none may have come between an intent and its result
        assert tally.moments["calls in doubt"] > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.rule("PR-1", "PR-6", "PR-10", "CASE-A1", "CASE-A5", "FB-43")
def test_one_session_that_is_killed_twenty_times_ends_like_any_other(tmp_path: Path, forks: Forks, seed: int, tell: Callable[[str], None]) -> None:
    tally = Tally()
    for number in range(CHAINS):
        chance = random.Random(seed + number)
        desk = patient_desk(tmp_path / f"{number}", retries=2 * CHAIN_KILLS, restart_limit="unlimited")
        inputs = 0
        while tally.kills < CHAIN_KILLS * (number + 1) and len(tally.found) < 5:
            if looked(desk, has_work):
                arguments = AGAIN
            else:  # the first one, or more of it, where a run came to its end before its kill
                arguments = (*(AGAIN if looked(desk, has_input) else FIRST), PROMPT)
                inputs += 1
            kill_once(forks, desk, chance, tally, arguments, wait=wait_for_few_commits)
        finish(forks, desk, tally)
        tally.sessions += 1
        tell(f"a chain of {CHAIN_KILLS} kills in one session with {inputs} inputs, seed {seed + number}")
    tell(f"what the kills left in {tally.sessions} chains: {dict(tally.moments)}")
    assert tally.found == []
