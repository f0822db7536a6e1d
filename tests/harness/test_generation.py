"""Runs of a conversation, from an input to its final answer: facts FB-16 to FB-21 and rules GE, SU."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.errors import BadRequest, ConversationBusy, RequestConflict
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.live import LIVE, Agent, Failure, Generation, RetryWait
from pi_durable_tui.harness.ports import Deferred, Finished, ModelRequest, TextDelta, ThinkingDelta, Tool, ToolContext, ToolResult, UsageReport
from pi_durable_tui.harness.settings import Retry, Settings
from pi_durable_tui.records.entry import THOUGHTS_REFUSED
from pi_durable_tui.records.messages import AssistantMessage, Problem, Text, Thinking, Usage
from pi_durable_tui.records.submission import Done, Placed, Queued, Unanswered
from pi_durable_tui.records.task import Failed
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import USED, Hold, Pause, call, fail, say, texts


class Word(msgspec.Struct):
    """Arguments of the test tools."""

    text: str = ""


async def echo(arguments: Word, _context: ToolContext) -> ToolResult:
    return ToolResult(content=(Text(text=f"echo {arguments.text}"),))


ECHO = Tool(name="echo", description="Says it again.", arguments=Word, execute=echo, title=lambda word: f"echo {word.text}", access="read", replay="safe")


@pytest.mark.rule("FB-1", "FB-12", "FB-17", "SU-1", "GE-1", "GE-2", "OB-1")
async def test_input_is_stored_answered_and_done(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    hold = Hold()
    chat = await rig.start((TextDelta("hel"), hold, TextDelta("lo"), Finished("stop")))

    placed = await chat.submit("hi")
    await rig.until(lambda: len(rig.model.sent) == 1 and bool(rig.model.sent[0]))
    hold.event.set()
    await rig.run_out(chat)
    done = await chat.settled(placed.id)

    user, answer = await rig.entries(chat.id)
    assert placed.state == Placed(entry_id=user.id)
    assert done.state == Done(entry_id=user.id, answer_entry_id=answer.id)
    assert answer.message == AssistantMessage(content=(Text(text="hello"),), model="test/model", stop_reason="stop")
    assert texts(rig.model.requests[0]) == [("user", "hi")]


@pytest.mark.rule("FB-16", "FB-28", "GE-2")
async def test_partial_answer_is_stored_at_once_then_every_hundred_milliseconds(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    pieces = [step for n in range(100) for step in (TextDelta(f"{n:03} "), Pause(20))]
    chat = await rig.start((*pieces, Finished("stop")))
    seen: list[tuple[float, int]] = []

    def look(_commit: object) -> None:
        seen.append((rig.clock.monotonic_ms(), 0))

    await chat.submit("count")
    await rig.settle()
    rig.harness.session.subscribe(look)
    while rig.clock.next_wake_ms() is not None and rig.clock.monotonic_ms() < 1_900:
        rig.clock.advance(rig.clock.next_wake_ms() or 0)
        await rig.settle()

    live = await rig.live(chat.id)
    assert live.generation is not None
    assert live.generation.message is not None
    times = [at for at, _ in seen]
    assert times == [100.0 * n for n in range(1, 20)]
    assert live.generation.message.text == "".join(f"{n:03} " for n in range(96))  # 1,900 ms of pieces, the newest included

    await rig.run_out(chat)
    document = await rig.harness.session.storage.document(LIVE.address(chat.id))
    assert document is not None
    revisions = await rig.harness.session.storage.revisions(document.id)
    assert revisions is not None
    assert revisions.deltas == ()  # idle again: one base, the chain of the stream is gone


@pytest.mark.rule("FB-28", "GE-2")
async def test_last_partial_is_not_left_behind_when_the_stream_stalls(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start((TextDelta("a"), Pause(10), TextDelta("b"), Hold()))

    await chat.submit("x")
    await rig.settle()
    rig.clock.advance(10)
    await rig.settle()
    early = (await rig.live(chat.id)).generation
    rig.clock.advance(90)
    await rig.settle()
    late = (await rig.live(chat.id)).generation

    assert early is not None
    assert late is not None
    assert [message.text for message in (early.message, late.message) if message is not None] == ["a", "ab"]


@pytest.mark.rule("FB-19", "FB-20", "GE-1")
async def test_request_checkpoint_holds_model_thinking_options_and_cutoff(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(stream={"timeout_ms": 5}))
    chat = await rig.start((Hold(),), agent=Agent(model="test/deep", thinking="high", approval="all"))

    await chat.submit("x")
    await rig.until(lambda: len(rig.model.requests) == 1)
    (task,) = await rig.tasks("pi.generation")
    (user,) = await rig.entries(chat.id)

    assert task.checkpoint == {
        "phase": "request",
        "attempt": 1,
        "model": "test/deep",
        "cutoff": user.id,
        "thinkingLevel": "high",
        "streamOptions": {"timeout_ms": 5},
    }


@pytest.mark.rule("FB-19", "FB-20", "FB-21", "GE-5", "GE-7")
async def test_every_phase_of_a_run_is_stored(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(ECHO,))
    chat = await rig.start(
        fail(),
        (Deferred(handle={"ticket": 7}, poll_after_ms=500),),
        call(("echo", {"text": "a"})),
        say("done"),
    )

    await chat.submit("x")
    await rig.run_out(chat)

    (generation,) = await rig.tasks("pi.generation")
    stored = [task.checkpoint for batch in rig.storage.batches for task in batch.tasks if task.id == generation.id and task.checkpoint is not None]
    phases = [checkpoint["phase"] for checkpoint in stored]
    assert list(dict.fromkeys(phases)) == ["prepare", "request", "retry", "poll", "tools"]
    retry = next(checkpoint for checkpoint in stored if checkpoint["phase"] == "retry")
    poll = next(checkpoint for checkpoint in stored if checkpoint["phase"] == "poll")
    tools = next(checkpoint for checkpoint in stored if checkpoint["phase"] == "tools")
    assert isinstance(retry["until"], int)
    assert (poll["handle"], poll["pollAt"]) == ({"ticket": 7}, rig.model._clock.now_ms())  # the clock stood still since
    assert set(tools) == {"phase", "assistant", "tools"}
    assert [request.deferred for request in rig.model.requests] == [None, None, {"ticket": 7}, None]


@pytest.mark.rule("GE-6", "FB-21")
async def test_retryable_failure_waits_durably_and_shows_when(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(fail("overloaded", message="busy"), say("at last"))
    start_ms = rig.clock.now_ms()

    await chat.submit("x")
    await rig.settle()
    generation = (await rig.live(chat.id)).generation
    (task,) = await rig.tasks("pi.generation")

    assert generation is not None
    assert generation.retry is not None
    wait_ms = generation.retry.until_ms - start_ms
    assert 2_000 <= wait_ms <= 2_200
    problem = Problem(reason="overloaded", message="busy")
    assert generation == Generation(
        task_id=task.id, attempt=1, started_at_ms=start_ms, retry=RetryWait(attempt=1, until_ms=start_ms + wait_ms, problem=problem)
    )
    assert task.status == "sleeping"
    await rig.run_out(chat)
    assert [entry.message.text for entry in await rig.entries(chat.id) if isinstance(entry.message, AssistantMessage)] == ["at last"]


@pytest.mark.rule("GE-6", "CASE-B3")
async def test_retries_end_after_the_set_number_of_requests(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(*[fail("server", message="500")] * 4)

    placed = await chat.submit("x")
    await rig.run_out(chat)
    settled = await chat.settled(placed.id)

    assert len(rig.model.requests) == 4
    assert isinstance(settled.state, Unanswered)
    assert settled.state.problem == Problem(reason="model_error", message="500")


@pytest.mark.rule("GE-6", "CASE-B3")
async def test_wait_is_at_least_what_the_provider_asks_for(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(fail("rate_limit", retry_after_ms=30_000), say("ok"))
    start_ms = rig.clock.now_ms()

    await chat.submit("x")
    await rig.run_out(chat)

    assert rig.clock.now_ms() - start_ms >= 30_000


@pytest.mark.rule("GE-6", "FB-17")
async def test_failure_that_cannot_be_retried_ends_the_run_with_the_providers_words(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(fail("auth", retryable=False, message="bad key"))

    placed = await chat.submit("x")
    await rig.run_out(chat)
    settled = await chat.settled(placed.id)
    live = await rig.live(chat.id)
    (task,) = await rig.tasks("pi.generation")

    problem = Problem(reason="model_error", message="bad key")
    (user,) = await rig.entries(chat.id)
    assert settled.state == Unanswered(problem=problem, entry_id=user.id)
    assert live.run_failure == Failure(reason="model_error", task_id=task.id, attempt=1, at_ms=rig.clock.now_ms(), message="bad key")
    assert task.outcome == Failed(problem=problem)


@pytest.mark.rule("GE-6")
async def test_without_a_model_the_run_ends_with_no_model(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(agent=Agent())

    placed = await chat.submit("x")
    await rig.run_out(chat)
    settled = await chat.settled(placed.id)

    assert isinstance(settled.state, Unanswered)
    assert settled.state.problem.reason == "no_model"
    assert rig.model.requests == []


@pytest.mark.rule("GE-6", "CASE-B4")
async def test_text_before_a_broken_stream_stays_and_is_not_sent_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start((TextDelta("half a sen"), *fail("connection")), say("whole"))

    await chat.submit("x")
    await rig.run_out(chat)

    answers = [entry.message for entry in await rig.entries(chat.id) if isinstance(entry.message, AssistantMessage)]
    assert [(answer.text, answer.stop_reason) for answer in answers] == [("half a sen", "error"), ("whole", "stop")]
    assert texts(rig.model.requests[1]) == [("user", "x")]


SIGNED = (ThinkingDelta("hm", signature="s1"), *call(("echo", {"text": "hi"})))
REFUSED = fail("thinking_refused", retryable=False, message="`thinking` blocks cannot be modified")


def thoughts(request: ModelRequest) -> list[str]:
    answers = [message for message in request.messages if isinstance(message, AssistantMessage)]
    return [part.text for answer in answers for part in answer.content if isinstance(part, Thinking)]


@pytest.mark.rule("CASE-B9")
async def test_refused_thoughts_are_left_out_once_and_for_all_and_the_person_is_told(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(ECHO,))
    later = (ThinkingDelta("new", signature="s2"), *say("fine"))
    chat = await rig.start(SIGNED, REFUSED, later, say("more"), agent=Agent(model="test/model", thinking="high", approval="all"))

    await chat.submit("x")
    await rig.run_out(chat)
    await chat.submit("y")
    await rig.run_out(chat)

    asked = [(request.thinking, thoughts(request)) for request in rig.model.requests]
    assert asked == [("high", []), ("high", ["hm"]), ("off", []), ("high", ["new"])]
    told = [entry.data for entry in await rig.entries(chat.id) if entry.kind == THOUGHTS_REFUSED]
    assert told == [{"message": "`thinking` blocks cannot be modified"}]


@pytest.mark.parametrize("end", ["kill", "close"])
@pytest.mark.rule("CASE-B9", "GE-3", "GE-4")
async def test_the_one_recovery_without_thoughts_survives_the_end_of_the_process(tmp_path: Path, end: str) -> None:
    rig = Rig(tmp_path, tools=(ECHO,))
    chat = await rig.start(SIGNED, REFUSED, (Hold(),), REFUSED, agent=Agent(model="test/model", thinking="high", approval="all"))

    placed = await chat.submit("x")
    await rig.until(lambda: len(rig.model.requests) == 3, jump=True)
    await (rig.kill() if end == "kill" else rig.close())
    chat = await (await rig.open()).conversation(chat.id)
    await rig.run_out(chat)
    settled = await chat.settled(placed.id)

    assert [(request.thinking, thoughts(request)) for request in rig.model.requests[2:]] == [("off", []), ("off", [])]
    assert isinstance(settled.state, Unanswered)
    assert settled.state.problem == Problem(reason="model_error", message="`thinking` blocks cannot be modified")


@pytest.mark.rule("GE-6")
async def test_usage_of_a_failed_attempt_counts_also_when_nothing_came(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start((UsageReport(USED), *fail("server")), (TextDelta("half"), UsageReport(USED), *fail("server")), say("whole"))
    await chat.submit("x")
    await rig.run_out(chat)

    assert (await chat.view()).usage.models == {"test/model": Usage(input_tokens=300, output_tokens=30)}


@pytest.mark.rule("CASE-B6")
async def test_empty_answer_is_said_and_left_out_of_the_next_request(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(say("  \n"), say("now"))

    placed = await chat.submit("x")
    await rig.run_out(chat)
    settled = await chat.settled(placed.id)
    await chat.submit("again")
    await rig.run_out(chat)

    assert isinstance(settled.state, Unanswered)
    assert settled.state.problem == Problem(reason="model_error", message="The model returned nothing.")
    assert texts(rig.model.requests[1]) == [("user", "xagain")]


@pytest.mark.rule("GE-5", "FB-21")
async def test_tool_round_is_one_commit_and_its_results_reach_the_model_in_call_order(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(ECHO,))
    chat = await rig.start(call(("echo", {"text": "a"}), ("echo", {"text": "b"}), text="look"), say("done"))

    await chat.submit("x")
    await rig.run_out(chat)

    batch = next(batch for batch in rig.storage.batches if any(isinstance(entry.message, AssistantMessage) for entry in batch.entries))
    (answer,) = batch.entries
    tools = [task for task in batch.tasks if task.kind == "pi.tool"]
    (generation,) = [task for task in batch.tasks if task.kind == "pi.generation"]
    assert [task.status for task in tools] == ["pending", "pending"]
    assert (generation.status, generation.checkpoint) == (
        "waiting",
        {"phase": "tools", "assistant": answer.id, "tools": [task.id for task in tools]},
    )
    assert texts(rig.model.requests[1]) == [("user", "x"), ("assistant", "look<ToolCall><ToolCall>"), ("toolResult", "echo a"), ("toolResult", "echo b")]


@pytest.mark.rule("GE-8", "CASE-B2")
async def test_unknown_tools_and_unfit_arguments_get_error_results_and_the_run_goes_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(ECHO,))
    chat = await rig.start(call(("nope", {}), ("echo", {"text": 5})), say("done"))

    placed = await chat.submit("x")
    await rig.run_out(chat)

    results = [entry for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result"]
    assert [remark["code"] for entry in results for remark in (entry.data or {})["diagnostics"]] == ["tool_unavailable", "invalid_arguments"]  # type: ignore[index,union-attr]
    assert isinstance((await chat.settled(placed.id)).state, Done)


@pytest.mark.rule("GE-1")
async def test_only_changed_prompt_sections_are_sent_again(tmp_path: Path) -> None:
    sections = {"role": "You help.", "place": "Here."}
    rig = Rig(tmp_path, extensions=(Extension(name="prompt", sections=lambda _agent: sections),))
    chat = await rig.start(say("1"), say("2"), say("3"))

    for n in range(3):
        await chat.submit(str(n))
        await rig.run_out(chat)
        if n == 1:
            sections["place"] = "There."

    system = [entry for entry in await rig.entries(chat.id) if entry.kind == "pi.system"]
    assert [entry.message.content[0].text for entry in system if entry.message is not None] == [  # type: ignore[union-attr]
        "You help.\n\nHere.",
        'The section "place" now reads:\nThere.',
    ]
    assert [texts(request)[0] for request in rig.model.requests] == [("system", "You help.\n\nHere.")] * 3


@pytest.mark.rule("SU-2", "FB-31")
@pytest.mark.parametrize("end", ["stay", "close", "kill"])
async def test_same_request_id_is_the_same_submission_also_after_a_restart(tmp_path: Path, end: str) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(say("ok"))
    first = await chat.submit("x", request_id="r1")
    await rig.run_out(chat)
    if end != "stay":
        await (rig.close() if end == "close" else rig.kill())
        chat = await (await rig.open()).conversation(chat.id)

    again = await chat.submit("x", request_id="r1")
    with pytest.raises(RequestConflict):
        await chat.submit("y", request_id="r1")

    assert again.id == first.id
    assert len(await rig.entries(chat.id)) == 2


@pytest.mark.rule("SU-2", "CASE-B10")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_half_surrogate_pairs_in_a_request_id_and_in_its_content_still_give_one_submission(tmp_path: Path, backend: Backend) -> None:
    rig = Rig(tmp_path, backend=backend)
    chat = await rig.start(say("ok"))
    first, again = [await chat.submit([Text(text="x\ud83d")], request_id="r\ude00") for _ in range(2)]
    assert (first.request_id, first.content) == ("r\ufffd", (Text(text="x\ufffd"),))
    assert again.id == first.id


@pytest.mark.rule("SU-3", "SU-4", "FB-17")
async def test_follow_ups_wait_for_the_end_of_the_run_one_at_a_time(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    hold = Hold()
    chat = await rig.start((hold, TextDelta("1"), Finished("stop")), say("2"), say("3"))

    await chat.submit("one")
    second = await chat.submit("two")
    third = await chat.submit("three")
    assert (second.state, third.state) == (Queued(), Queued())
    hold.event.set()
    await rig.run_out(chat)

    assert [texts(request)[-1] for request in rig.model.requests] == [("user", "one"), ("user", "two"), ("user", "three")]
    statuses = [submission.status for batch in rig.storage.batches for submission in batch.submissions if submission.id == second.id]
    assert statuses == ["queued", "placed", "done"]


@pytest.mark.rule("SU-3", "SU-4")
async def test_steering_joins_after_the_tool_round_and_the_same_answer_settles_it(tmp_path: Path) -> None:
    hold = Hold()

    async def slow(_arguments: Word, _context: ToolContext) -> ToolResult:
        await hold.event.wait()
        return ToolResult(content=(Text(text="slow"),))

    rig = Rig(tmp_path, tools=(Tool(name="slow", description="", arguments=Word, execute=slow, title=lambda _: "slow", access="read"),))
    chat = await rig.start(call(("slow", {})), say("both"))

    first = await chat.submit("go")
    await rig.until(lambda: len(rig.model.requests) == 1)
    steer = await chat.submit("also this", mode="steer")
    hold.event.set()
    await rig.run_out(chat)

    assert texts(rig.model.requests[1]) == [("user", "go"), ("assistant", "<ToolCall>"), ("toolResult", "slow"), ("user", "also this")]
    done = [(await chat.settled(submission.id)).state for submission in (first, steer)]
    assert [state.answer_entry_id for state in done if isinstance(state, Done)] == [(await rig.entries(chat.id))[-1].id] * 2


@pytest.mark.rule("SU-3")
async def test_reject_in_a_busy_conversation_writes_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start((Hold(),))
    await chat.submit("x")
    await rig.settle()
    before = len(rig.storage.batches)

    with pytest.raises(ConversationBusy):
        await chat.submit("y", mode="reject")

    assert len(rig.storage.batches) == before


@pytest.mark.rule("SU-3")
async def test_write_appends_an_entry_without_asking_the_model(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start()

    written = await chat.submit("a note", mode="write")
    await rig.settle()

    (entry,) = await rig.entries(chat.id)
    assert written.state == Done(entry_id=entry.id)
    assert rig.model.requests == []


@pytest.mark.rule("SU-5")
async def test_after_a_failed_run_the_queue_stays_and_the_next_input_places_the_oldest_first(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(retry=Retry(max_retries=0)))
    hold = Hold()
    chat = await rig.start((hold, *fail(retryable=False)), say("two"), say("three"))

    await chat.submit("one")
    queued = await chat.submit("two")
    hold.event.set()
    await rig.run_out(chat)
    assert (await rig.harness.session.storage.submission(queued.id)) == queued
    await chat.submit("three")
    await rig.run_out(chat)

    assert [texts(request)[-1] for request in rig.model.requests[1:]] == [("user", "onetwo"), ("user", "three")]


@pytest.mark.rule("SU-7")
async def test_queued_input_can_be_withdrawn_and_a_placed_one_says_so(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    hold = Hold()
    chat = await rig.start((hold, TextDelta("1"), Finished("stop")))
    placed = await chat.submit("one")
    queued = await chat.submit("two")

    answers = [await chat.withdraw(queued.id), await chat.withdraw(queued.id), await chat.withdraw(placed.id)]
    hold.event.set()
    await rig.run_out(chat)
    answers.append(await chat.withdraw(placed.id))

    assert answers == ["withdrawn", "settled", "already_placed", "settled"]
    assert len(rig.model.requests) == 1


@pytest.mark.rule("CASE-B6")
async def test_blank_input_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start()
    before = len(rig.storage.batches)

    with pytest.raises(BadRequest):
        await chat.submit(" \n ")

    assert len(rig.storage.batches) == before


@pytest.mark.rule("FB-30", "GE-6", "TK-15", "TK-17")
async def test_abort_keeps_the_partial_counts_its_usage_and_gives_queued_inputs_back(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start((TextDelta("half"), Pause(1), UsageReport(USED), Hold()), say("next"))
    placed = await chat.submit("one")
    await rig.settle()
    rig.clock.advance(1)
    await rig.settle()
    queued = await chat.submit("two")
    rig.clock.advance(100)
    await rig.settle()

    withdrawn = await chat.abort()

    assert [submission.id for submission in withdrawn] == [queued.id]
    answer = (await rig.entries(chat.id))[-1].message
    assert isinstance(answer, AssistantMessage)
    assert (answer.text, answer.stop_reason, answer.problem and answer.problem.reason) == ("half", "aborted", "aborted")
    assert isinstance((await chat.settled(placed.id)).state, Unanswered)
    assert (await chat.view()).usage.models == {"test/model": USED}
    assert not (await chat.view()).is_busy
    await chat.submit("three")
    await rig.run_out(chat)
    assert texts(rig.model.requests[1]) == [("user", "onethree")]


@pytest.mark.rule("FB-18")
async def test_view_holds_the_built_in_documents(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(say("ok"))
    await chat.submit("x")
    await rig.run_out(chat)

    view = await chat.view()

    assert view.agent.model == "test/model"
    assert view.provider.session_id == "00000000-0000-7000-8000-000000000001"
    assert view.usage.models == {"test/model": Usage(input_tokens=100, output_tokens=10)}
    assert (view.live.run, view.inbox.items) == (None, ())


@pytest.mark.rule("SE-6")
async def test_commits_go_through_while_a_model_a_tool_and_a_person_are_waited_for(tmp_path: Path) -> None:
    async def hang(_arguments: Word, _context: ToolContext) -> ToolResult:
        await Hold().event.wait()
        return ToolResult()

    reading = Tool(name="hang", description="", arguments=Word, execute=hang, title=lambda _: "hang", access="read")
    asking = Tool(name="ask", description="", arguments=Word, execute=hang, title=lambda _: "ask", access="command")
    rig = Rig(tmp_path, tools=(reading, asking))
    chat = await rig.start((Hold(),), agent=Agent(model="test/model"))
    other = await rig.harness.create_conversation(Agent(model="test/model"))
    rig.model.then(call(("hang", {}), ("ask", {})))
    await chat.submit("blocks in the stream")
    await rig.settle()
    await other.submit("blocks in a tool and at a question")
    await rig.settle()

    await chat.save_draft("typed meanwhile", 5)

    assert [slot.status for slot in (await rig.live(other.id)).tools] == ["running", "asking"]
    assert (await chat.view()).draft.text == "typed meanwhile"


@pytest.mark.rule("FB-14", "ST-4")
@pytest.mark.parametrize("end", ["close", "kill"])
async def test_transcript_is_whole_after_a_restart_and_the_context_starts_at_the_head(tmp_path: Path, end: str) -> None:
    rig = Rig(tmp_path, "sqlite")
    chat = await rig.start(say("1"), say("2"))
    await chat.submit("one")
    await rig.run_out(chat)
    head = await chat.reset("anew")
    before = await rig.entries(chat.id)
    await (rig.close() if end == "close" else rig.kill())

    again = await (await rig.open()).conversation(chat.id)
    assert await rig.entries(chat.id) == before
    marker = await rig.harness.session.storage.newest_head(chat.id)
    assert marker is not None
    assert marker.entry.head == head
    await again.submit("two")
    await rig.run_out(again)
    assert (await rig.entries(chat.id))[: len(before)] == before
    assert texts(rig.model.requests[1]) == [("user", "anewtwo")]
    await rig.close()
