"""Blocking work on a thread of its own: in order, one at a time, and nobody who stops waiting stops it (storage/runner.py)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from pi_durable_tui.errors import SessionClosed
from pi_durable_tui.storage.runner import InlineRunner, Runner, ThreadRunner
from tests.support.patience import RUN_S


@pytest.fixture(params=[ThreadRunner, InlineRunner])
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    made: Runner = request.param()
    yield made
    made.stop()


async def test_work_is_done_in_the_order_in_which_it_is_handed_in(runner: Runner):
    done: list[int] = []
    await asyncio.gather(*(runner.run(lambda number=number: done.append(number)) for number in range(50)))
    assert done == list(range(50))


async def test_what_the_work_returned_or_raised_comes_back(runner: Runner):
    def fail() -> None:
        raise KeyError("not there")

    assert await runner.run(lambda: 7) == 7
    with pytest.raises(KeyError, match="not there"):
        await runner.run(fail)
    assert await runner.run(lambda: 8) == 8


async def test_the_loop_goes_on_while_the_thread_works_and_all_of_it_is_one_thread():
    runner, gate = ThreadRunner(), threading.Event()
    work = asyncio.ensure_future(runner.run(lambda: (gate.wait(), threading.current_thread())))
    await asyncio.sleep(0)
    assert not work.done()
    gate.set()
    assert (await work)[1] == await runner.run(threading.current_thread) != threading.main_thread()
    runner.stop()


@pytest.mark.rule("SE-8")
async def test_who_stops_waiting_stops_only_the_wait():
    runner, begun, gate = ThreadRunner(), threading.Event(), threading.Event()
    done: list[str] = []

    def first() -> None:
        begun.set()
        gate.wait()
        done.append("begun")

    waits = [asyncio.ensure_future(runner.run(work)) for work in (first, lambda: done.append("not begun"))]
    await asyncio.sleep(0)
    assert await asyncio.get_running_loop().run_in_executor(None, begun.wait, 60)
    for wait in waits:
        wait.cancel()
    await asyncio.wait(waits)
    gate.set()
    await runner.run(lambda: done.append("later"))
    assert done == ["begun", "later"]
    runner.stop()


@pytest.mark.rule("SE-7")
async def test_who_comes_after_the_end_is_told_and_does_not_wait_for_ever():
    runner = ThreadRunner()
    runner.stop()
    with pytest.raises(SessionClosed):
        await runner.run(lambda: 1)


def test_work_whose_loop_has_gone_harms_nobody():
    runner, begun, gate, done = ThreadRunner(), threading.Event(), threading.Event(), threading.Event()

    async def leave() -> None:
        job = asyncio.ensure_future(runner.run(lambda: (begun.set(), gate.wait(), done.set())))
        await asyncio.sleep(0)
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, 60)
        job.cancel()

    asyncio.run(leave())
    gate.set()
    runner.stop()
    assert done.is_set()
    assert asyncio.run(_answer(ThreadRunner())) == 1


async def _answer(runner: ThreadRunner) -> int:
    try:
        return await runner.run(lambda: 1)
    finally:
        runner.stop()


def test_a_process_that_closed_nothing_ends_and_brings_to_its_end_what_was_begun():
    program = """
import asyncio, threading
from pi_durable_tui.storage.runner import ThreadRunner
runner, begun = ThreadRunner(), threading.Event()
async def main():
    job = asyncio.ensure_future(runner.run(lambda: (begun.set(), [n for n in range(10**6)], print("ended", flush=True))))
    await asyncio.sleep(0)
    begun.wait()
    job.cancel()
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=RUN_S)
    assert (done.stdout, done.stderr) == ("ended\n", "")
