from __future__ import annotations

import asyncio

import pytest

from pi_durable_tui.errors import InternalError, SessionClosed
from pi_durable_tui.session.line import Line


@pytest.mark.rule("SE-1", "FB-11")
async def test_work_runs_one_piece_after_another_in_the_order_of_admission() -> None:
    line, story = Line(), []

    async def piece(name: str, turns: int) -> str:
        story.append(f"{name} starts")
        for _ in range(turns):
            await asyncio.sleep(0)
        story.append(f"{name} ends")
        return name

    results = await asyncio.gather(
        *(line.run(lambda name=name, turns=turns: piece(name, turns), what="Work") for name, turns in [("a", 3), ("b", 0), ("c", 1)])
    )
    assert results == ["a", "b", "c"]
    assert story == ["a starts", "a ends", "b starts", "b ends", "c starts", "c ends"]


@pytest.mark.rule("SE-2")
async def test_a_failing_piece_tells_its_caller_and_the_next_one_runs() -> None:
    line = Line()

    async def bad() -> None:
        raise ValueError("bad")

    async def good() -> str:
        return "good"

    failed, worked = await asyncio.gather(line.run(bad, what="Work"), line.run(good, what="Work"), return_exceptions=True)
    assert (repr(failed), worked) == ("ValueError('bad')", "good")


@pytest.mark.rule("SE-8")
@pytest.mark.parametrize("error", [None, ValueError("nobody listens")])
async def test_a_cancelled_wait_leaves_queued_and_running_work_alone(error: Exception | None) -> None:
    line, story, gate = Line(), [], asyncio.Event()

    async def piece(name: str) -> None:
        story.append(name)
        await gate.wait()
        story.append(f"{name} ended")
        if error is not None:
            raise error

    waits = [asyncio.ensure_future(line.run(lambda name=name: piece(name), what="Work")) for name in ("running", "queued")]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for wait in waits:
        wait.cancel()
    await asyncio.wait(waits)
    assert [wait.cancelled() for wait in waits] == [True, True]
    assert story == ["running"]
    gate.set()
    await line.drained()
    assert story == ["running", "running ended", "queued", "queued ended"]


@pytest.mark.rule("SE-7")
async def test_a_sealed_line_refuses_new_work_and_drains_what_it_had() -> None:
    line, story, gate = Line(), [], asyncio.Event()

    async def piece(name: str) -> None:
        await gate.wait()
        story.append(name)

    waits = [asyncio.ensure_future(line.run(lambda name=name: piece(name), what="Work")) for name in ("a", "b")]
    await asyncio.sleep(0)
    line.seal()
    assert line.is_sealed
    with pytest.raises(SessionClosed, match=r"^Work came after the session was closed\."):
        await line.run(lambda: piece("late"), what="Work")
    with pytest.raises(SessionClosed, match=r"^A read came after"):
        await line.beside(lambda: piece("late"), what="A read")
    draining = asyncio.ensure_future(line.drained())
    await asyncio.sleep(0)
    assert not draining.done()
    gate.set()
    await draining
    assert (story, [wait.done() for wait in waits]) == (["a", "b"], [True, True])


async def test_work_that_asks_the_line_for_more_work_is_told_instead_of_waiting_for_ever() -> None:
    line = Line()

    async def inner() -> None: ...

    async def outer() -> None:
        await line.run(inner, what="A commit")

    with pytest.raises(InternalError, match="A commit was asked for inside a commit callback"):
        await line.run(outer, what="A commit")


async def test_reading_work_runs_beside_a_piece_that_is_held() -> None:
    line, gate = Line(), asyncio.Event()

    async def read() -> str:
        return "read"

    held = asyncio.ensure_future(line.run(gate.wait, what="Work"))
    await asyncio.sleep(0)
    assert await line.beside(read, what="A read") == "read"
    gate.set()
    assert await held is True


async def test_a_piece_that_is_itself_cancelled_cancels_its_caller_and_frees_the_line() -> None:
    line = Line()

    async def stopped() -> None:
        raise asyncio.CancelledError

    async def next_piece() -> str:
        return "next"

    with pytest.raises(asyncio.CancelledError):
        await line.run(stopped, what="Work")
    assert await line.run(next_piece, what="Work") == "next"
