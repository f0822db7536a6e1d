"""A run whose process ends while a request is in flight: facts FA-15 to FA-18, FB-29, and rules GE-3, GE-4, SU-6."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.harness.live import Failure
from pi_durable_tui.harness.ports import Finished, TextDelta, UsageReport
from pi_durable_tui.harness.services import Report
from pi_durable_tui.harness.settings import Retry, Settings
from pi_durable_tui.records.messages import AssistantMessage, Problem, Text, Usage
from pi_durable_tui.records.submission import Done, Unanswered
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import Hold, Pause, say, texts

CUT_OFF = Problem(reason="interrupted", message="The process ended while the answer was coming in.")


async def killed_in_mid_answer(tmp_path: Path, backend: Backend = "memory", settings: Settings | None = None) -> tuple[Rig, int, int]:
    """A rig whose process died after "half an ans" was stored; with the ids of the chat and of its submission."""
    rig = Rig(tmp_path, backend, settings=settings or Settings())
    chat = await rig.start((TextDelta("half an ans"), Hold()))
    placed = await chat.submit("question")
    await rig.until(lambda: any(batch.priority == "partial" for batch in rig.storage.batches))
    await rig.kill()
    return rig, chat.id, placed.id


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
@pytest.mark.rule("FA-15", "FA-16", "GE-3", "TK-13", "PR-21")
async def test_after_a_kill_the_request_is_not_sent_again_at_once(tmp_path: Path, backend: Backend) -> None:
    rig, chat_id, submission_id = await killed_in_mid_answer(tmp_path, backend)

    harness = await rig.open(say("whole answer"))
    await rig.settle()
    assert len(rig.model.requests) == 1  # opening runs nothing
    await harness.resume()
    await rig.settle()
    live = await rig.live(chat_id)
    entries = await rig.entries(chat_id)

    assert len(rig.model.requests) == 1  # resuming waits for the backoff
    assert entries[-1].message == AssistantMessage(content=(Text(text="half an ans"),), model="test/model", stop_reason="aborted", problem=CUT_OFF)
    assert live.generation is not None
    assert live.generation.message is None
    assert live.generation.retry is not None
    assert (live.generation.retry.attempt, live.generation.retry.problem) == (1, CUT_OFF)
    assert live.generation.retry.until_ms - rig.clock.now_ms() == 2_000

    chat = await harness.conversation(chat_id)
    await rig.run_out(chat)
    assert len(rig.model.requests) == 2
    assert texts(rig.model.requests[1]) == [("user", "question")]
    assert isinstance((await chat.settled(submission_id)).state, Done)
    await rig.close()


@pytest.mark.rule("FA-17", "GE-3", "SU-5")
async def test_retries_used_up_by_a_kill_end_the_run_as_interrupted(tmp_path: Path) -> None:
    rig, chat_id, submission_id = await killed_in_mid_answer(tmp_path, settings=Settings(retry=Retry(max_retries=0)))

    harness = await rig.open()
    chat = await harness.conversation(chat_id)
    await harness.resume()
    await rig.run_out(chat)
    (task,) = await rig.tasks("pi.generation")
    at_ms = rig.clock.now_ms()

    assert (await rig.live(chat_id)).run_failure == Failure(reason="interrupted", task_id=task.id, attempt=1, at_ms=at_ms, message=CUT_OFF.message)
    state = (await chat.settled(submission_id)).state
    assert isinstance(state, Unanswered)
    assert state.problem == CUT_OFF
    assert rig.reports == [
        Report(
            kind="task_interrupted",
            reason="interrupted",
            message="The run ended: the process was killed while the answer was coming in, and no retry is left.",
            at_ms=at_ms,
            task_id=task.id,
            conversation_id=chat_id,
        )
    ]


@pytest.mark.rule("FA-18", "GE-4", "SE-7")
async def test_after_a_clean_close_the_request_is_sent_again_with_no_failed_attempt(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start((TextDelta("half"), Hold()))
    placed = await chat.submit("question")
    await rig.until(lambda: any(batch.priority == "partial" for batch in rig.storage.batches))
    await rig.close()

    harness = await rig.open(say("whole"))
    again = await harness.conversation(chat.id)
    await harness.resume()
    await rig.until(lambda: len(rig.model.requests) == 2)  # at once: no clock has moved
    await rig.run_out(again)

    assert rig.model.requests[0] == rig.model.requests[1]
    assert [entry.message.text for entry in await rig.entries(chat.id) if isinstance(entry.message, AssistantMessage)] == ["whole"]
    assert isinstance((await again.settled(placed.id)).state, Done)


@pytest.mark.rule("GE-4", "PR-21", "AG-5")
async def test_what_a_request_had_used_before_a_clean_close_counts_beside_what_it_uses_again(tmp_path: Path) -> None:
    spent, again = Usage(input_tokens=5_000, output_tokens=1), Usage(input_tokens=5_000, output_tokens=70)
    rig = Rig(tmp_path)
    chat = await rig.start((UsageReport(spent), TextDelta("half"), Hold()))
    await chat.submit("question")
    await rig.until(lambda: any(batch.priority == "partial" for batch in rig.storage.batches))
    await rig.close()

    for number in range(2):  # the second time before anything has come again
        harness = await rig.open(*([say("whole", usage=again)] if number else [(Hold(),)]))
        await harness.resume()
        await rig.settle()
        if not number:
            await rig.close()
    await rig.run_out(await harness.conversation(chat.id))
    assert (await harness.usage()).models == {"test/model": spent + again}


@pytest.mark.rule("FB-29", "PR-3")
async def test_kill_loses_at_most_a_tenth_of_a_second_of_received_text(tmp_path: Path) -> None:
    pieces = [step for n in range(200) for step in (TextDelta(f"{n:03} "), Pause(7))]
    for kill_at_ms in (0, 1, 99, 100, 101, 350, 777, 1_234):
        rig = Rig(tmp_path)
        chat = await rig.start((*pieces, Finished("stop")))
        await chat.submit("count")
        await rig.settle()
        while rig.clock.monotonic_ms() < kill_at_ms:
            rig.clock.advance(min(7, kill_at_ms - rig.clock.monotonic_ms()))
            await rig.settle()
        sent = "".join(step.text for step in rig.model.sent[0] if isinstance(step, TextDelta))
        await rig.kill()

        await rig.open()
        generation = (await rig.live(chat.id)).generation
        assert generation is not None
        stored = generation.message.text if generation.message is not None else ""

        assert sent.startswith(stored)
        assert len(sent) - len(stored) <= 4 * (100 // 7 + 1)


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
@pytest.mark.rule("SU-6", "CASE-A2")
async def test_queued_inputs_survive_a_kill_and_are_placed_once_in_order(tmp_path: Path, backend: Backend) -> None:
    rig = Rig(tmp_path, backend)
    chat = await rig.start((Hold(),))
    await chat.submit("zero")
    await rig.settle()
    first, second = await chat.submit("first"), await chat.submit("second")
    await rig.kill()

    harness = await rig.open(say("0"), say("1"), say("2"))
    assert harness.recovery.queued == 2
    again = await harness.conversation(chat.id)
    await harness.resume()
    await rig.run_out(again)

    users = [entry for entry in await rig.entries(chat.id) if entry.kind == "pi.user"]
    assert [(entry.data or {})["submissionId"] for entry in users][1:] == [first.id, second.id]
    assert [texts(request)[-1] for request in rig.model.requests[1:]] == [("user", "zero"), ("user", "first"), ("user", "second")]
    await rig.close()


@pytest.mark.rule("GE-3", "TK-11")
async def test_each_kill_counts_one_attempt_until_the_retries_are_used_up(tmp_path: Path) -> None:
    rig, chat_id, submission_id = await killed_in_mid_answer(tmp_path)
    for attempt in (1, 2, 3):
        harness = await rig.open((TextDelta(f"attempt {attempt + 1}"), Hold()))
        await harness.resume()
        await rig.until(lambda attempt=attempt: len(rig.model.requests) == attempt + 1, jump=True)
        await rig.settle()
        (task,) = await rig.tasks("pi.generation")
        assert (task.checkpoint or {})["attempt"] == attempt + 1
        await rig.kill()

    harness = await rig.open()
    await harness.resume()
    chat = await harness.conversation(chat_id)
    await rig.run_out(chat)

    answers = [entry.message for entry in await rig.entries(chat_id) if isinstance(entry.message, AssistantMessage)]
    assert [(answer.text, answer.stop_reason) for answer in answers] == [
        ("half an ans", "aborted"),
        ("attempt 2", "aborted"),
        ("attempt 3", "aborted"),
        ("attempt 4", "aborted"),
    ]
    assert isinstance((await chat.settled(submission_id)).state, Unanswered)


@pytest.mark.rule("TK-10", "FA-12", "FB-23")
async def test_recovery_says_what_was_found(tmp_path: Path) -> None:
    rig, _chat_id, _submission_id = await killed_in_mid_answer(tmp_path)
    last_at_ms = rig.clock.now_ms()
    rig.clock.advance(60_000)

    harness = await rig.open()
    (task,) = await rig.tasks("pi.generation")

    assert harness.recovery.was_killed
    assert harness.recovery.last_commit_at_ms == last_at_ms
    assert harness.recovery.interrupted == (task,)
    assert (task.status, task.restarts, (task.checkpoint or {})["phase"]) == ("pending", 1, "request")
    assert harness.recovery.in_doubt == ()
