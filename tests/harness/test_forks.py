"""Forks, resets and the documents they take along: rules DO-7, DO-8, GE-9, FB-38, and CASE-F4."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.errors import ConversationBusy, NotFound
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.live import Agent, UsageTotals
from pi_durable_tui.records.conversation import ForkPoint
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.messages import Usage
from pi_durable_tui.session.transaction import Transaction
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import Hold, call, say, texts

NOTES = Definition(kind="my.notes", scope="conversation", history="rewindable", fork="asOf")
TALLY = Definition(kind="my.tally", scope="conversation", fork="current")
SCRATCH = Definition(kind="my.scratch", scope="conversation", fork="initial")


async def write(rig: Rig, conversation_id: int, text: str) -> None:
    """Put the same text into all three documents."""

    async def callback(transaction: Transaction) -> None:
        for definition in (NOTES, TALLY, SCRATCH):
            (await transaction.document(definition, conversation_id)).value = {"text": text}

    await rig.harness.session.commit(callback)


@pytest.mark.rule("CASE-F4", "FB-38", "GE-9", "DO-7")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_fork_shares_the_past_and_leaves_the_old_conversation_alone(tmp_path: Path, backend: Backend) -> None:
    rig = Rig(tmp_path, backend)
    hold = Hold()
    chat = await rig.start(say("1"), say("2"), (hold, *say("3")), say("in the fork"), say("queued"))
    for text in ("one", "two"):
        await chat.submit(text)
        await rig.run_out(chat)
    await chat.set_agent(thinking="high")
    await chat.submit("three")
    await rig.settle()
    await chat.submit("queued")
    before = await chat.view()
    first_answer = before.entries[1]

    fork = await rig.harness.fork(chat.id, first_answer.entry.id)
    forked = await fork.view()

    assert forked.conversation.parent == ForkPoint(conversation_id=chat.id, entry_id=first_answer.entry.id, seq=first_answer.seq)
    assert forked.entries == before.entries[:2]
    assert forked.agent.thinking == "off"  # as of that entry
    assert (forked.live.run, forked.inbox.items, forked.usage, forked.submissions) == (None, (), UsageTotals(), ())
    assert forked.provider.session_id != before.provider.session_id
    await fork.submit("elsewhere")
    await rig.run_out(fork)
    assert texts(rig.model.requests[3]) == [("user", "one"), ("assistant", "1"), ("user", "elsewhere")]
    after = await chat.view()
    assert (after.entries, after.live, after.inbox) == (before.entries, before.live, before.inbox)
    hold.event.set()
    await rig.run_out(chat)
    assert [entry.kind for entry in await rig.entries(chat.id)].count("pi.user") == 4
    await rig.close()


@pytest.mark.rule("CASE-F4", "CX-1")
async def test_fork_in_the_middle_of_a_tool_round_is_valid_for_the_model(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(call(("nope", {})), (Hold(),), say("ok"))
    await chat.submit("one")
    await rig.settle()
    calls = (await rig.entries(chat.id))[1]

    fork = await rig.harness.fork(chat.id, calls.id)
    await fork.submit("go on")
    await rig.until(lambda: len(rig.model.requests) == 3)

    assert [role for role, _ in texts(rig.model.requests[2])] == ["user", "assistant", "toolResult", "user"]


@pytest.mark.rule("CASE-F4")
async def test_fork_of_a_fork_at_the_first_message_and_at_unknown_entries(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(say("1"), say("2"))
    empty = await rig.harness.create_conversation(Agent())
    await chat.submit("one")
    await rig.run_out(chat)
    first, last = await rig.entries(chat.id)

    fork = await rig.harness.fork(chat.id)
    again = await rig.harness.fork(fork.id, first.id)

    assert await rig.entries(fork.id) == [first, last]
    assert await rig.entries(again.id) == [first]
    with pytest.raises(NotFound):
        await rig.harness.fork(again.id, last.id)
    with pytest.raises(NotFound):
        await rig.harness.fork(empty.id)


@pytest.mark.rule("DO-7", "DO-8", "FB-6")
@pytest.mark.parametrize("installed", [True, False])
async def test_documents_come_along_as_their_policy_says_also_when_their_code_is_gone(tmp_path: Path, installed: bool) -> None:
    rig = Rig(tmp_path, extensions=(Extension(name="mine", documents=(NOTES, TALLY, SCRATCH)),) if installed else ())
    chat = await rig.start(say("1"), say("2"))
    await write(rig, chat.id, "before")
    await chat.submit("one")
    await rig.run_out(chat)
    point = (await rig.entries(chat.id))[-1]
    await write(rig, chat.id, "after")

    fork = await rig.harness.fork(chat.id, point.id)

    snapshot = rig.harness.session.snapshot
    found = [await snapshot(definition, fork.id) for definition in (NOTES, TALLY, SCRATCH)]
    scratch = None if installed else {"text": "after"}  # without its code nobody knows that it starts anew
    assert found == [{"text": "before"}, {"text": "after"}, scratch]
    assert await rig.harness.session.snapshot_as_of(NOTES, chat.id, point.id) == {"text": "before"}


@pytest.mark.rule("FB-38", "GE-9")
async def test_reset_starts_the_context_anew_and_keeps_the_transcript_and_the_identity(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(say("1"), say("2"))
    await chat.submit("one")
    await rig.run_out(chat)

    await chat.reset("You know nothing.")
    await chat.submit("two")
    await rig.run_out(chat)

    assert texts(rig.model.requests[1]) == [("user", "You know nothing.two")]
    assert len(await rig.entries(chat.id)) == 5
    assert len({request.session_id for request in rig.model.requests}) == 1


@pytest.mark.rule("FB-38")
async def test_reset_is_refused_while_a_run_goes_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start((Hold(),))
    await chat.submit("one")
    await rig.settle()
    before = await rig.entries(chat.id)

    with pytest.raises(ConversationBusy):
        await chat.reset()

    assert await rig.entries(chat.id) == before


@pytest.mark.rule("OB-4")
async def test_usage_of_the_session_adds_up_its_conversations(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start(say("1"), say("2"))
    await chat.submit("one")
    await rig.run_out(chat)
    fork = await rig.harness.fork(chat.id)
    await fork.submit("two")
    await rig.run_out(fork)

    assert (await rig.harness.usage()).models == {"test/model": Usage(input_tokens=200, output_tokens=20)}


@pytest.mark.rule("OB-4")
async def test_task_graph_shows_who_waits_for_whom(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start((Hold(),))
    await chat.submit("one")
    await rig.settle()

    (node,) = rig.harness.task_graph()

    assert (node.kind, node.status, node.phase, node.owner, node.waits_for) == ("pi.generation", "running", "request", None, ())
