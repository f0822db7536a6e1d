"""What went wrong in programs of this kind around crashes, with the inputs of those reports where no other test has them (kind a of the open cases)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import Text, ToolResultMessage, UserMessage
from pi_durable_tui.records.submission import Done, Unanswered
from pi_durable_tui.storage.sqlite import open_sqlite
from pi_durable_tui.tools.subagent import subagent_tools
from tests.support.harness_rig import Backend, Rig
from tests.support.old_stores import SETTINGS, tools
from tests.support.scripted_model import Hold, call, fail, say
from tests.support.storage_records import batch, entry, first_chat
from tests.support.strict_provider import violations

THREE = call(("act", {"what": "now"}), ("act", {"what": "wait"}), ("act", {"what": "wait"}), text="I act three times.")


def said_by_people(rig: Rig, number: int) -> list[str]:
    """The messages of people in a request."""
    parts = [part for message in rig.model.requests[number].messages if isinstance(message, UserMessage) for part in message.content]
    return [part.text for part in parts if isinstance(part, Text)]


@pytest.mark.rule("CASE-A1", "CX-1", "TO-2")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
async def test_of_three_calls_that_a_kill_cut_off_the_finished_one_keeps_its_result_and_the_repair_is_made_once(tmp_path: Path, backend: Backend) -> None:
    rig = Rig(tmp_path, backend, settings=SETTINGS, tools=tools([]))
    chat = await rig.start(THREE)
    await chat.submit("do it")
    await rig.settle()
    await rig.kill()

    harness = await rig.open(say("I see what is in doubt."), say("And on."), say("What happened so far."))
    await harness.resume()
    chat = await harness.conversation(chat.id)
    await rig.run_out(chat)
    results = [each.message for each in await rig.entries(chat.id) if isinstance(each.message, ToolResultMessage)]
    assert [(each.tool_call_id, each.is_error) for each in results] == [("c1", False), ("c2", True), ("c3", True)]
    assert all("was interrupted and may have partially run" in each.text for each in results[1:])
    await chat.submit("go on")
    await rig.run_out(chat)
    await rig.close()

    harness = await rig.open()
    before = harness.session.next_seq
    await harness.resume()
    await rig.settle()
    assert harness.session.next_seq == before  # a second --continue has nothing to repair
    chat = await harness.conversation(chat.id)
    await chat.compact()
    await rig.run_out(chat)
    assert [violations(request.messages) for request in rig.model.requests if violations(request.messages)] == []
    await rig.close()


@pytest.mark.rule("CASE-A2", "SU-5", "SU-6")
@pytest.mark.parametrize("end", ["a provider's error", "leaving"])
async def test_what_waited_behind_a_run_that_failed_or_was_left_is_answered_in_order_and_once(tmp_path: Path, end: str) -> None:
    rig = Rig(tmp_path, "sqlite", settings=SETTINGS)
    chat = await rig.start((Hold(),))
    await chat.submit("zero")
    await rig.settle()
    first, second = await chat.submit("first"), await chat.submit("second")
    if end == "leaving":
        await rig.close()
        harness = await rig.open(say("0"), say("1"), say("2"))
        await harness.resume()
        chat = await harness.conversation(chat.id)
        await rig.run_out(chat)
        asked = [["zero"], ["zero", "first"], ["zero", "first", "second"]]
    else:
        await rig.kill()
        harness = await rig.open(fail("invalid_request", message="no", retryable=False), say("1"), say("2"), say("3"))
        await harness.resume()
        chat = await harness.conversation(chat.id)
        await rig.until(lambda: not rig.harness.task_graph(), jump=True)
        assert [item.submission_id for item in (await chat.view()).inbox.items] == [first.id, second.id]  # visibly there, with a way to send them
        third = await chat.submit("third")
        await rig.run_out(chat)
        assert isinstance((await chat.settled(third.id)).state, Done)
        asked = [["zero", "first"], ["zero", "first", "second"], ["zero", "first", "second", "third"]]
    assert [said_by_people(rig, -number) for number in (3, 2, 1)] == asked
    assert [type((await chat.settled(each.id)).state) for each in (first, second)] == [Done, Done]
    users = [each for each in await rig.entries(chat.id) if each.kind == "pi.user"]
    assert len(users) == len(asked[-1])
    await rig.close()


@pytest.mark.rule("CASE-A3", "OB-6")
async def test_a_reader_that_keeps_its_transaction_open_neither_stops_the_writer_nor_sees_half_of_it(tmp_path: Path) -> None:
    path = tmp_path / "session.sqlite"
    storage = await open_sqlite(path, clock=Rig(tmp_path).clock, inline=True)
    await storage.commit(first_chat())
    reader = await open_sqlite(path, clock=Rig(tmp_path).clock, inline=True, read_only=True)
    reading = reader._source._sql  # type: ignore[attr-defined]
    reading.run("BEGIN")
    assert len(reading.rows("SELECT id FROM entries")) == 1
    for number in range(3, 203):
        await storage.commit(batch(number + 1, entries=[entry(number)]))
    assert len(reading.rows("SELECT id FROM entries")) == 1
    reading.run("ROLLBACK")
    counts = [len((await reader.entries(1, limit=1_000)).items), len((await storage.entries(1, limit=1_000)).items)]
    assert counts == [201, 201]
    await reader.close()
    await storage.close()


@pytest.mark.rule("CASE-A7", "TO-7")
async def test_of_two_subagents_the_one_that_had_ended_is_not_asked_again_after_a_kill(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "sqlite", tools=subagent_tools())
    work: JsonObject = {"name": "reader", "prompt": "look into it"}
    chat = await rig.start(call(("subagent", work), ("subagent", work)), say("found at once"), (Hold(),))
    await chat.submit("look twice")
    await rig.until(lambda: len(rig.model.requests) == 3)
    await rig.settle()
    await rig.kill()
    harness = await rig.open(say("found later"), say("Both looked."))
    await harness.resume()
    chat = await harness.conversation(chat.id)
    await rig.run_out(chat)
    results = [each.message.text for each in await rig.entries(chat.id) if isinstance(each.message, ToolResultMessage)]
    assert sorted(results) == ["found at once", "found later"]
    assert len(rig.model.requests) == 5
    assert not [one for one in (await harness.session.storage.submissions()).items if isinstance(one.state, Unanswered)]
    await rig.close()
