"""An answer that the provider has later, asked for until it is there, through failures, closes and kills: rules GE-6, GE-7, PR-21."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.harness.live import USAGE, UsageTotals
from pi_durable_tui.harness.ports import Deferred
from pi_durable_tui.harness.settings import Retry, Settings
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.messages import Usage
from pi_durable_tui.records.submission import Done, Unanswered
from pi_durable_tui.records.task import Sleeping
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import Hold, Step, fail, say

LATER: tuple[Step, ...] = (Deferred(handle={"ticket": 1}, poll_after_ms=5_000),)
MOVED: tuple[Step, ...] = (Deferred(handle={"ticket": 2}, poll_after_ms=5_000),)
BROKEN = fail("connection", message="it broke off")


async def asked(rig: Rig, *scripts: Any) -> tuple[Any, list[Any]]:
    """One input, run to its end; how it ended, and the handles that were asked for."""
    chat = await rig.start(*scripts)
    submission = await chat.submit("go")
    await rig.run_out(chat)
    state = (await chat.settled(submission.id)).state
    return state, [request.deferred for request in rig.model.requests]


@pytest.mark.rule("GE-6", "GE-7", "PR-21")
async def test_a_poll_that_fails_asks_for_the_same_answer_again_and_sends_no_new_request(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    state, handles = await asked(rig, LATER, BROKEN, BROKEN, MOVED, BROKEN, BROKEN, BROKEN, say("The answer."))
    assert isinstance(state, Done)
    assert handles == [None, *[{"ticket": 1}] * 3, *[{"ticket": 2}] * 4]
    used = from_json(await rig.harness.session.snapshot(USAGE, 1) or {}, UsageTotals)
    assert used.models == {"test/model": Usage(input_tokens=100, output_tokens=10)}
    await rig.close()


@pytest.mark.rule("GE-6", "GE-7")
async def test_a_wait_after_a_failed_poll_is_shown_until_it_is_over(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(retry=Retry(base_delay_ms=60_000)))
    chat = await rig.start(LATER, BROKEN, (Hold(),))
    await chat.submit("go")
    await rig.settle()
    rig.clock.advance(5_000)
    await rig.settle()
    waiting = (await rig.live(chat.id)).generation
    assert waiting is not None
    assert waiting.retry is not None
    assert waiting.retry.problem.message == "it broke off"
    (run,) = await rig.tasks("pi.generation")
    assert isinstance(run.state, Sleeping)
    assert run.state.until == waiting.retry.until_ms
    await rig.until(lambda: len(rig.model.requests) == 3, jump=True)
    polling = (await rig.live(chat.id)).generation
    assert polling is not None
    assert (polling.attempt, polling.retry) == (2, None)
    await rig.close()


@pytest.mark.rule("GE-6", "GE-7")
async def test_polls_that_fail_too_often_in_a_row_end_the_run_with_the_words_of_the_provider(tmp_path: Path) -> None:
    state, handles = await asked(Rig(tmp_path), LATER, *[BROKEN] * 4)
    assert isinstance(state, Unanswered)
    assert state.problem.message == "it broke off"
    assert handles == [None, *[{"ticket": 1}] * 4]


@pytest.mark.rule("GE-7", "PR-21")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
@pytest.mark.parametrize("end", ["close", "kill"])
async def test_a_poll_that_is_cut_off_asks_again_with_the_newest_handle(tmp_path: Path, backend: Backend, end: str) -> None:
    rig = Rig(tmp_path, backend)
    chat = await rig.start(LATER, MOVED, BROKEN, (Hold(),), say("The answer."))
    submission = await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 4, jump=True)
    await (rig.close() if end == "close" else rig.kill())
    await rig.open()
    chat = await rig.harness.conversation(chat.id)
    await rig.run_out(chat)
    assert isinstance((await chat.settled(submission.id)).state, Done)
    assert [request.deferred for request in rig.model.requests] == [None, {"ticket": 1}, *[{"ticket": 2}] * 3]
    await rig.close()
