"""Old context becomes a summary: rules CO-1 to CO-5, GE-1, GE-6, and CASE-B5, CASE-F1, CASE-F2."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.ports import Finished, ModelEvent, ModelFailed, ModelInfo, ModelRequest, TextDelta, Tool, ToolContext, ToolResult, UsageReport
from pi_durable_tui.harness.settings import Compaction, Retry, Settings
from pi_durable_tui.records.codec import to_json
from pi_durable_tui.records.messages import AssistantMessage, Text, Usage, UserMessage
from pi_durable_tui.records.submission import Done, Unanswered
from pi_durable_tui.records.task import Completed
from tests.support.harness_rig import Rig
from tests.support.scripted_model import Hold, Pause, call, fail, say, texts
from tests.support.sometimes import happened

SMALL = Compaction(reserve_tokens=500, keep_tokens=200, background_tokens=500)
OVERFLOW = fail("context_overflow", retryable=False, message="prompt is too long")


class Path_(msgspec.Struct):  # noqa: N801 - `Path` is taken
    """Arguments of the reading tool."""

    path: str = "a.py"


def reader(text: str) -> Tool:
    async def execute(_arguments: Path_, _context: ToolContext) -> ToolResult:
        return ToolResult(content=(Text(text=text),))

    return Tool(name="read", description="", arguments=Path_, execute=execute, title=lambda _: "read", access="read", replay="safe")


async def long_chat(rig: Rig, turns: int = 4) -> int:
    """A chat with some turns of about 250 tokens each; returns its id."""
    chat = await rig.start(*[say(f"answer {n} " + "a" * 500, usage=None) for n in range(turns)])
    for n in range(turns):
        await chat.submit(f"question {n} " + "q" * 500)
        await rig.run_out(chat)
    return chat.id


@pytest.mark.rule("GE-6", "CO-1", "CO-2", "CO-3", "CASE-B5")
async def test_overflow_compacts_once_and_sends_the_same_turn_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(compaction=SMALL))
    chat_id = await long_chat(rig)
    rig.model.then(OVERFLOW, say("the gist"), say("done"))
    chat = await rig.harness.conversation(chat_id)
    before = await rig.entries(chat_id)

    placed = await chat.submit("the last question")
    await rig.run_out(chat)

    sent = texts(rig.model.requests[-1])
    assert sent[0] == ("user", "<summary>\nthe gist\n</summary>")
    assert sent[-1][1].endswith("the last question")
    assert [role for role, _ in sent] in (["user", "assistant", "user"], ["user", "user"], ["user", "assistant", "user", "assistant", "user"])
    assert isinstance((await chat.settled(placed.id)).state, Done)
    assert (await rig.entries(chat_id))[: len(before)] == before  # nothing of the past is gone
    (compaction,) = await rig.tasks("pi.compaction")
    assert isinstance(compaction.outcome, Completed)
    assert (await rig.live(chat_id)).compactions == ()


@pytest.mark.rule("CASE-F2", "GE-6")
async def test_context_that_stays_too_long_ends_the_run_with_the_providers_words(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(compaction=SMALL))
    chat_id = await long_chat(rig)
    rig.model.then(OVERFLOW, say("the gist"), OVERFLOW, OVERFLOW)  # the second time nothing is left to compact
    chat = await rig.harness.conversation(chat_id)
    requests = len(rig.model.requests)

    placed = await chat.submit("x")
    await rig.run_out(chat)

    state = (await chat.settled(placed.id)).state
    assert isinstance(state, Unanswered)
    assert state.problem.message == "prompt is too long"
    assert len(rig.model.requests) - requests == 4


@pytest.mark.rule("CO-2", "GE-1")
async def test_context_near_the_window_is_compacted_before_the_request(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(compaction=Compaction(reserve_tokens=20_000, keep_tokens=200, background_tokens=0)))
    full = Usage(input_tokens=95_000, output_tokens=10)
    chat = await rig.start(say("big " + "a" * 2_000, usage=full), say("the gist"), say("small again"))
    await chat.submit("one " + "q" * 2_000)
    await rig.run_out(chat)

    await chat.submit("two")
    await rig.run_out(chat)

    assert len(rig.model.requests) == 3
    assert "Summarize" not in texts(rig.model.requests[2])[0][1]
    assert texts(rig.model.requests[2])[0][1].startswith("<summary>\nthe gist")


@pytest.mark.rule("CO-2", "CO-5")
async def test_background_compaction_lets_the_run_go_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(compaction=Compaction(reserve_tokens=1_000, keep_tokens=200, background_tokens=25_000)))
    hold = Hold()
    chat = await rig.start(
        say("big " + "a" * 2_000, usage=Usage(input_tokens=80_000, output_tokens=10)),
        say("answered meanwhile", usage=None),
        (hold, TextDelta("the gist"), Finished("stop")),
        say("third", usage=None),
    )
    await chat.submit("one " + "q" * 2_000)
    await rig.run_out(chat)
    placed = await chat.submit("two")
    await rig.run_out(chat)
    assert isinstance((await chat.settled(placed.id)).state, Done)
    assert len((await rig.live(chat.id)).compactions) == 1

    hold.event.set()
    await rig.until(lambda: any(batch.entries and batch.entries[0].kind == "pi.compaction" for batch in rig.storage.batches))
    await chat.submit("three")
    await rig.run_out(chat)

    assert texts(rig.model.requests[-1])[0][1].startswith("<summary>\nthe gist")


@pytest.mark.rule("CO-2", "CASE-F2")
async def test_where_instructions_fill_half_of_a_small_window_a_summary_is_not_made_in_every_turn(tmp_path: Path) -> None:
    instructions = Extension(name="long", sections=lambda _agent: {"base": "be good " * 1_500})  # 3,000 tokens
    rig = Rig(tmp_path, extensions=[instructions])
    answers = [say(f"answer {n} " + "a" * 800, usage=None) for n in range(30)]
    chat = await rig.start()
    summaries = 0

    async def info(_model: str) -> ModelInfo:
        return ModelInfo(context_window_tokens=8_000)

    async def stream(request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        nonlocal summaries
        is_summary = "Below is the older part" in texts(request)[0][1]
        summaries += is_summary
        for step in say("gist " * 200, usage=None) if is_summary else answers.pop(0):
            assert not isinstance(step, Hold | Pause)
            yield step

    rig.model.info, rig.model.stream = info, stream
    for n in range(30):
        await chat.submit(f"question {n} " + "q" * 400)
        await rig.run_out(chat)
        await rig.settle()
    assert 0 < summaries < 10


@pytest.mark.rule("CO-2", "CASE-F2")
async def test_a_chat_in_a_script_of_which_each_letter_is_a_token_goes_on_in_a_small_window(tmp_path: Path) -> None:
    """What was kept beside the summary was too long for the window again, in nearly every run."""
    rig = Rig(tmp_path)
    chat = await rig.start()
    window_tokens, refused = 8_000, 0

    async def info(_model: str) -> ModelInfo:
        return ModelInfo(context_window_tokens=window_tokens)

    async def stream(request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        nonlocal refused
        size = sum(len(text) for _, text in texts(request))
        if size > window_tokens - 600:
            refused += 1
            yield ModelFailed(reason="context_overflow", message="prompt is too long", retryable=False)
            return
        yield TextDelta("字" * 500)
        yield UsageReport(Usage(input_tokens=size, output_tokens=500))
        yield Finished("stop")

    rig.model.info, rig.model.stream = info, stream
    for n in range(25):
        asked = await chat.submit(f"{n} " + "字" * 700)
        await rig.run_out(chat)
        assert isinstance((await chat.settled(asked.id)).state, Done), f"question {n}"
        await rig.settle()
    assert refused == 0


@pytest.mark.rule("CO-3", "CASE-F1", "CASE-F2")
async def test_giant_result_is_shortened_and_its_pair_is_kept_whole(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(reader("x" * 400_000),), settings=Settings(compaction=SMALL))
    chat = await rig.start(call(("read", {"path": "big.log"})), OVERFLOW, say("they want big.log read"), say("done"))

    placed = await chat.submit("read it")
    await rig.run_out(chat)

    sent = texts(rig.model.requests[-1])
    assert [role for role, _ in sent] == ["user", "assistant", "toolResult"]
    assert len(sent[2][1]) < 1_000
    assert "characters left out" in sent[2][1]
    assert isinstance((await chat.settled(placed.id)).state, Done)


@pytest.mark.rule("CO-1", "CO-2")
async def test_manual_compaction_lists_the_files_and_hears_the_focus(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=(reader("text"),))
    chat = await rig.start(call(("read", {"path": "src/a.py"})), say("it is fine " + "a" * 400), say("gist"))
    await chat.submit("look at src/a.py " + "q" * 400)
    await rig.run_out(chat)

    await chat.compact("the file names")
    await rig.until(lambda: any(entry.kind == "pi.compaction" for batch in rig.storage.batches for entry in batch.entries))

    marker = (await rig.entries(chat.id))[-1]
    assert isinstance(marker.message, UserMessage)
    assert texts(rig.model.requests[-1])[0][1].count("Pay attention above all to: the file names") == 1
    assert "Files touched so far: src/a.py" in "".join(part.text for part in marker.message.content if isinstance(part, Text))


@pytest.mark.rule("CO-3")
async def test_nothing_to_compact_is_not_an_error(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start()

    task_id = await chat.compact()
    await rig.settle()

    task = await rig.harness.session.storage.task(task_id)
    assert task is not None
    assert task.outcome == Completed(value="nothing")
    assert rig.model.requests == []


@pytest.mark.rule("CO-5", "PR-21", "TK-12")
async def test_killed_compaction_counts_the_attempt_and_goes_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(compaction=SMALL))
    chat_id = await long_chat(rig)
    chat = await rig.harness.conversation(chat_id)
    rig.model.then((TextDelta("half a gi"), Hold()))
    asked = len(rig.model.requests)
    await chat.compact()
    await rig.until(lambda: len(rig.model.requests) == asked + 1)
    await rig.settle()
    await rig.kill()

    harness = await rig.open(say("the gist"))
    await harness.resume()
    await rig.settle()
    assert len(rig.model.requests) == asked + 1  # not at once
    await rig.until(lambda: any(entry.kind == "pi.compaction" for batch in rig.storage.batches for entry in batch.entries), jump=True)

    assert len(rig.model.requests) == asked + 2


@pytest.mark.rule("CO-5")
async def test_failed_summary_leaves_the_context_alone_and_counts_its_spend(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(compaction=SMALL, retry=Retry(max_retries=0)))
    chat_id = await long_chat(rig)
    chat = await rig.harness.conversation(chat_id)
    spent = Usage(input_tokens=7, output_tokens=1)
    rig.model.then((UsageReport(spent), *fail("server", message="no")))

    await chat.compact()
    await rig.until(lambda: len(rig.model.requests) == 5)
    await rig.settle()
    live = await rig.live(chat_id)

    assert live.compaction_failure is not None
    assert (live.compaction_failure.reason, live.compaction_failure.message) == ("server", "no")
    assert not any(entry.kind == "pi.compaction" for entry in await rig.entries(chat_id))
    assert (await chat.view()).usage.models == {"test/model": spent}


@pytest.mark.rule("CO-5", "PR-21")
@pytest.mark.parametrize("end", ["stopped", "killed", "closed"])
async def test_what_a_summary_had_used_when_it_was_cut_off_is_counted_once(tmp_path: Path, end: str) -> None:
    rig = Rig(tmp_path, settings=Settings(compaction=SMALL))
    chat_id = await long_chat(rig)
    chat = await rig.harness.conversation(chat_id)
    spent, again = Usage(input_tokens=5_000, output_tokens=1), Usage(input_tokens=6_000, output_tokens=9)
    rig.model.then((UsageReport(Usage(input_tokens=4_000)), TextDelta("half a gist"), UsageReport(spent), Hold()))
    task_id = await chat.compact()
    await rig.until(lambda: len(rig.model.requests) == 5)
    await rig.settle()
    rig.clock.advance(100)
    await rig.settle()
    if end == "stopped":
        stopping = asyncio.ensure_future(chat.abort_task(task_id))
        await rig.settle()
        assert await stopping
        assert (await chat.view()).usage.models == {"test/model": spent}
        return

    await (rig.kill() if end == "killed" else rig.close())
    harness = await rig.open(say("the gist", usage=again))
    await harness.resume()
    await rig.until(lambda: any(entry.kind == "pi.compaction" for batch in rig.storage.batches for entry in batch.entries), jump=True)
    assert (await harness.usage()).models == {"test/model": spent + again}
    (summary,) = [entry for entry in await rig.entries(chat.id) if entry.kind == "pi.compaction"]
    assert (summary.data or {})["usage"] == to_json(again)


@pytest.mark.rule("CO-1", "CASE-B1")
async def test_a_summary_that_was_cut_at_the_output_limit_says_so_to_the_model(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(compaction=SMALL, retry=Retry(max_retries=0)))
    chat_id = await long_chat(rig)
    chat = await rig.harness.conversation(chat_id)
    rig.model.then((Finished("length"),), (TextDelta("the gist is th"), Finished("length")))
    for _ in range(2):
        await chat.compact()
        await rig.settle()

    (summary,) = [entry for entry in await rig.entries(chat_id) if entry.kind == "pi.compaction"]
    assert isinstance(summary.message, UserMessage)
    assert summary.message.content == (Text(text="<summary>\nthe gist is th\n[This summary was cut at the output limit.]\n</summary>"),)


@pytest.mark.rule("CO-4")
async def test_summary_overtaken_by_a_newer_one_is_stale(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(compaction=SMALL))
    chat_id = await long_chat(rig)
    chat = await rig.harness.conversation(chat_id)
    hold = Hold()
    rig.model.then((hold, TextDelta("slow"), Finished("stop")), say("fast"))
    first = await chat.compact()
    await rig.settle()
    await chat.compact()
    await rig.settle()
    hold.event.set()
    await rig.settle()

    task = await rig.harness.session.storage.task(first)
    assert task is not None
    assert task.outcome == Completed(value="stale")
    happened("a stale compaction")
    summaries = [entry for entry in await rig.entries(chat_id) if entry.kind == "pi.compaction"]
    assert len(summaries) == 1


@pytest.mark.rule("CO-1", "CO-3", "CX-1")
async def test_a_summary_of_a_summary_is_all_that_is_read_of_both(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat_id = await long_chat(rig, turns=8)
    chat = await rig.harness.conversation(chat_id)
    rig.model.then(say("the first gist"), say("the second gist"), say("done"))
    for _ in range(2):
        await chat.compact()
        await rig.settle()
    first, second = [entry for entry in await rig.entries(chat_id) if entry.kind == "pi.compaction"]
    assert second.head is not None
    assert first.head is not None
    assert first.head < second.head < first.id  # the older one was written while more was kept
    assert "the first gist" in str(rig.model.requests[-1].messages)

    await chat.submit("and now?")
    await rig.run_out(chat)
    sent = texts(rig.model.requests[-1])
    assert sent[0] == ("user", "<summary>\nthe second gist\n</summary>")
    assert "the first gist" not in str(sent)
    assert [role for role, _ in sent] == ["user", "assistant", "user"], sent


@pytest.mark.rule("CO-2", "TK-16")
async def test_stopping_the_run_leaves_a_background_compaction_alone(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(compaction=SMALL))
    chat_id = await long_chat(rig)
    chat = await rig.harness.conversation(chat_id)
    hold = Hold()
    rig.model.then((hold, TextDelta("gist"), Finished("stop")))
    await chat.compact()
    await rig.settle()

    await chat.abort()
    hold.event.set()
    await rig.settle()

    assert [entry.kind for entry in await rig.entries(chat_id)][-1] == "pi.compaction"
    assert isinstance((await rig.entries(chat_id))[1].message, AssistantMessage)


@pytest.mark.rule("GE-1", "CO-5", "AG-1")
async def test_a_summary_that_comes_while_a_request_is_prepared_takes_no_instructions_away(tmp_path: Path) -> None:
    sections = {"base": "Be a good agent.", "rules": "first rules"}
    rig = Rig(tmp_path, settings=Settings(compaction=SMALL), extensions=[Extension(name="sections", sections=lambda _agent: sections)])
    chat_id = await long_chat(rig)
    chat = await rig.harness.conversation(chat_id)
    made, known = Hold(), asyncio.Event()
    rig.model.then((TextDelta("the gist"), made, Finished("stop")), say("done"))
    await chat.compact()
    await rig.settle()
    look_up = rig.model.info

    async def info(model: str) -> ModelInfo:
        await known.wait()  # the request is being prepared meanwhile
        return await look_up(model)

    rig.model.info = info
    sections["rules"] = "other rules"
    await chat.submit("and now?")
    await rig.settle()
    made.event.set()
    await rig.settle()
    assert any(entry.kind == "pi.compaction" for entry in await rig.entries(chat_id))
    known.set()
    await rig.run_out(chat)

    (role, instructions), *others = texts(rig.model.requests[-1])
    assert (role, instructions) == ("system", "Be a good agent.\n\nother rules")
    assert others[0] == ("user", "<summary>\nthe gist\n</summary>")
