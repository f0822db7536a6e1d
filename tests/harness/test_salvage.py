"""A session of which records are gone is made whole again: valid for every provider, nothing done twice, and it says what is missing (PR-15, CX-1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.harness.live import AGENT, INBOX, LIVE, PROVIDER, USAGE, Agent, Inbox, Live, Provider, UsageTotals
from pi_durable_tui.harness.salvage.mending import Mended, mended
from pi_durable_tui.records.codec import decode, from_json
from pi_durable_tui.records.document import Definition, StoredDocument
from pi_durable_tui.records.entry import LOST, Entry
from pi_durable_tui.records.messages import AssistantMessage, Text, ToolResultMessage, UserMessage
from pi_durable_tui.records.submission import Queued, Submission, Unanswered
from pi_durable_tui.records.task import Task
from pi_durable_tui.session.documents import value_of
from pi_durable_tui.storage.contents import Contents
from pi_durable_tui.storage.dump import Dump, contents_of, dump_of
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.salvage.findings import Found, Lost
from tests.support.damaged_stores import NOW_MS
from tests.support.harness_oracle import Known, faults, held
from tests.support.harness_rig import Rig
from tests.support.old_stores import PHASES, SETTINGS, OldRig, tools
from tests.support.scripted_model import call, say
from tests.support.strict_provider import violations

PROVIDER_ID = "0190163d-8694-739b-aea5-966c26f8ad91"


class InMemory(OldRig):
    """The same over contents that can be looked at."""

    async def _inner(self) -> Storage:
        return await Rig._inner(self)


async def left(path: Path, phase: str) -> Dump:
    """What a session holds that was killed in a phase."""
    rig = InMemory(path, settings=SETTINGS, tools=tools([]))
    await PHASES[phase](rig)
    await rig.kill()
    return dump_of(rig.contents)


async def worked(path: Path) -> Dump:
    """A session in which a call was made, and all is over."""
    rig = Rig(path, tools=tools([]))
    chat = await rig.start(call(("act", {"what": "now"}), text="I act."), say("All is done."))
    await chat.submit("act once")
    await rig.run_out(chat)
    await rig.close()
    return dump_of(rig.contents)


def without(whole: Dump, *gone: Lost, is_unsure: bool = False) -> Mended:
    """What is made of a store without some records."""
    named = {(item.kind, item.id) for item in gone}
    found = Found(
        counters=whole.counters,
        records=tuple(record for record in whole.records if (record.kind, record.id) not in named),
        revisions=tuple(revision for revision in whole.revisions if ("document", revision.document_id) not in named),
        lost=gone,
        places=("a page",),
        is_unsure=is_unsure,
    )
    return mended(found, now_ms=NOW_MS, new_provider_id=lambda: PROVIDER_ID)


def entries(dump: Dump) -> list[Entry]:
    return [decode(record.text, Entry) for record in dump.records if record.kind == "entry"]


def only(dump: Dump, kind: type[AssistantMessage | ToolResultMessage | UserMessage], number: int = 0) -> Entry:
    return [entry for entry in entries(dump) if isinstance(entry.message, kind)][number]


def document(dump: Dump, definition: Definition) -> Lost:
    """The document of a kind, as lost."""
    found = [decode(record.text, StoredDocument) for record in dump.records if record.kind == "document"]
    return Lost("document", next(each.id for each in found if each.address.kind == definition.kind))


async def value(contents: Contents, definition: Definition) -> Any:
    storage = MemoryStorage(contents)
    stored = await storage.document(definition.address(1))
    assert stored is not None
    revisions = await storage.revisions(stored.id)
    assert revisions is not None
    return value_of(revisions, store="", document_id=stored.id)


async def sound(result: Mended, *, costs: bool = True) -> Contents:
    """The contents that were made, which must be whole."""
    contents = contents_of(result.dump)
    found = faults(await held(MemoryStorage(contents)), Known())
    assert [fault for fault in found if "is told as done" not in fault and (costs or "usage" not in fault)] == []
    return contents


@pytest.mark.rule("PR-15", "CX-1", "CASE-A1")
async def test_a_result_that_is_gone_is_stood_in_for_where_it_stood_and_says_that_the_call_had_finished(tmp_path: Path) -> None:
    whole = await worked(tmp_path)
    result = only(whole, ToolResultMessage)
    made = without(whole, Lost("entry", result.id, 1))
    await sound(made)
    stands = next(entry for entry in entries(made.dump) if entry.id == result.id)
    assert isinstance(stands.message, ToolResultMessage)
    assert (stands.message.tool_call_id, stands.message.is_error) == (result.message.tool_call_id, True)  # type: ignore[union-attr]
    assert stands.message.text == "<harness>\n[error] Tool act had finished; its result is lost, because the session was damaged\n</harness>"
    assert made.notes == {1: "This chat was rescued from a damaged session. 1 entry could not be read any more."}


@pytest.mark.rule("PR-15", "CX-1")
async def test_an_answer_that_is_gone_still_makes_the_calls_whose_results_are_there(tmp_path: Path) -> None:
    whole = await worked(tmp_path)
    answer = only(whole, AssistantMessage)
    made = without(whole, Lost("entry", answer.id, 1))
    await sound(made, costs=False)
    stands = next(entry for entry in entries(made.dump) if entry.id == answer.id)
    assert isinstance(stands.message, AssistantMessage)
    assert isinstance(answer.message, AssistantMessage)
    assert stands.message.tool_calls == answer.message.tool_calls
    assert stands.message.text == "[What was said here is lost: the session was damaged.]"


@pytest.mark.rule("PR-15")
async def test_a_message_of_a_person_that_is_gone_is_written_again_from_what_was_handed_in(tmp_path: Path) -> None:
    whole = await worked(tmp_path)
    asked = only(whole, UserMessage)
    made = without(whole, Lost("entry", asked.id, 1))
    await sound(made)
    assert next(entry for entry in entries(made.dump) if entry.id == asked.id) == asked


@pytest.mark.rule("PR-15")
async def test_an_entry_of_which_nothing_speaks_leaves_a_mark_where_it_stood(tmp_path: Path) -> None:
    whole = await worked(tmp_path)
    final = only(whole, AssistantMessage, 1)
    made = without(whole, Lost("entry", final.id, 1))
    await sound(made, costs=False)
    stands = next(entry for entry in entries(made.dump) if entry.id == final.id)
    assert (stands.kind, stands.message, stands.data) == (LOST, None, {"message": "What stood here is lost: the session was damaged"})
    last = entries(made.dump)[-1]
    assert (last.kind, last.data) == (LOST, {"message": made.notes[1]})
    assert last.message == UserMessage(content=(Text(text=f"<harness>\n[warn] {made.notes[1]}\n</harness>"),))


@pytest.mark.rule("PR-15", "PR-6", "TO-2")
async def test_work_whose_papers_are_gone_is_ended_with_a_reason_and_what_it_had_said_is_kept(tmp_path: Path) -> None:
    whole = await left(tmp_path, "tool")
    running = next(task for record in whole.records if record.kind == "task" and (task := decode(record.text, Task)).kind == "pi.tool" and task.is_live)
    made = without(whole, Lost("task", running.id, 1))
    contents = await sound(made)
    assert [task.id for task in contents.tasks.seen.values() if task.is_live] == []
    assert made.ended == (1,)
    stand_in = contents.tasks.seen[running.id]
    assert (stand_in.kind, str(stand_in.outcome)) == (
        "pidurable.lost",
        "Faulted(message='The session was damaged, and records of this work are lost.', detail=None)",
    )
    texts = [entry.message.text for entry in entries(made.dump) if isinstance(entry.message, ToolResultMessage)]
    assert texts[-1] == "<harness>\n[error] Tool act was interrupted and may have partially run\n</harness>"
    states = [type(decode(record.text, Submission).state) for record in made.dump.records if record.kind == "submission"]
    assert states[-1] is Unanswered
    live = from_json(await value(contents, LIVE), Live)
    assert live.run is None
    assert live.run_failure is not None
    assert live.run_failure.reason == "interrupted"


@pytest.mark.rule("PR-15", "GE-3")
async def test_the_part_of_an_answer_that_had_come_stays_when_its_run_is_ended(tmp_path: Path) -> None:
    whole = await left(tmp_path, "stream")
    made = without(whole, document(whole, USAGE))
    await sound(made)
    said = [entry.message for entry in entries(made.dump) if isinstance(entry.message, AssistantMessage)]
    assert (said[-1].text, said[-1].stop_reason) == ("Half of an answer", "aborted")


@pytest.mark.rule("PR-15", "TU-10")
@pytest.mark.parametrize("gone", ["inbox", "submissions"])
async def test_what_waits_in_the_queue_outlives_the_loss_of_the_queue_and_of_what_was_handed_in(tmp_path: Path, gone: str) -> None:
    whole = await left(tmp_path, "queue")
    queued = [item.id for record in whole.records if record.kind == "submission" and isinstance((item := decode(record.text, Submission)).state, Queued)]
    lost = [document(whole, INBOX)] if gone == "inbox" else [Lost("submission", each, 1) for each in queued]
    made = without(whole, *lost)
    contents = await sound(made)
    inbox = from_json(await value(contents, INBOX), Inbox)
    assert [(item.submission_id, item.mode, item.content) for item in inbox.items] == [
        (queued[0], "followUp", (Text(text="then this"),)),
        (queued[1], "steer", (Text(text="mind that"),)),
    ]


@pytest.mark.rule("PR-15", "GE-9")
async def test_documents_that_are_gone_are_told_again_by_the_entries_or_are_as_in_a_new_chat(tmp_path: Path) -> None:
    whole = await worked(tmp_path)
    made = without(whole, *(document(whole, each) for each in (AGENT, PROVIDER, USAGE, LIVE)))
    contents = await sound(made)
    assert from_json(await value(contents, AGENT), Agent) == Agent(model="test/model", approval="ask")
    assert from_json(await value(contents, PROVIDER), Provider) == Provider(session_id=PROVIDER_ID)
    assert set(from_json(await value(contents, USAGE), UsageTotals).models) == {"test/model"}


@pytest.mark.rule("PR-15")
async def test_a_chat_whose_own_record_is_gone_is_a_chat_again_and_says_so(tmp_path: Path) -> None:
    whole = await worked(tmp_path)
    made = without(whole, Lost("conversation", 1))
    await sound(made)
    assert made.notes[1].startswith("This chat was rescued from a damaged session. 1 conversation could not be read any more. What it was forked from")
    assert [entry.id for entry in entries(made.dump)][:-1] == [entry.id for entry in entries(whole)]


@pytest.mark.rule("PR-15")
async def test_work_of_a_chat_that_lost_nothing_goes_on_beside_one_that_did(tmp_path: Path) -> None:
    rig = Rig(tmp_path, tools=tools([]))
    first = await rig.start(say("The first answer."), call(("act", {"what": "wait"})))
    await first.submit("the first question")
    await rig.run_out(first)
    second = await rig.harness.create_conversation(Agent(model="test/model", approval="all", cwd="work"))
    await second.submit("act and wait")
    await rig.settle()
    await rig.kill()
    whole = dump_of(rig.contents)
    answer = next(entry for entry in entries(whole) if isinstance(entry.message, AssistantMessage))
    made = without(whole, Lost("entry", answer.id, first.id))
    contents = await sound(made, costs=False)
    assert set(made.notes) == {first.id}
    assert {task.conversation_id for task in contents.tasks.seen.values() if task.is_live} == {second.id}
    unsure = without(whole, Lost("entry", answer.id, first.id), is_unsure=True)
    assert [task for task in contents_of(unsure.dump).tasks.seen.values() if task.is_live] == []


@pytest.mark.rule("PR-15", "CX-1")
@pytest.mark.parametrize("phase", PHASES)
async def test_every_single_record_may_be_gone_and_a_chat_answers_again(tmp_path: Path, phase: str) -> None:
    whole = await left(tmp_path, phase)
    for record in whole.records:
        where = None if record.kind in {"conversation", "document"} else 1
        made = without(whole, Lost(record.kind, record.id, where))
        contents = await sound(made, costs=False)
        rig = Rig(tmp_path, tools=tools([]), contents=contents)
        harness = await rig.open(say("It goes on."), say("It goes on."), say("It goes on."), say("It goes on."))
        await harness.resume()
        for chat in await harness.chats():
            conversation = await harness.conversation(chat.conversation_id)
            agent = from_json(await harness.session.snapshot(AGENT, chat.conversation_id) or {}, Agent)
            if agent.model is None:
                continue  # nothing tells which one it was; a person chooses
            await conversation.submit("and now?")
            await rig.run_out(conversation)
        assert [violations(request.messages) for request in rig.model.requests if violations(request.messages)] == [], record
        await rig.close()


@pytest.mark.rule("PR-15", "ST-3")
async def test_no_id_is_given_twice_when_the_counter_is_older_than_what_the_queue_names(tmp_path: Path) -> None:
    """Found by a lost page of a folder of lines: the queue spoke of a submission that was handed in after the newest marker."""
    whole = await left(tmp_path, "queue")
    queued = max(record.id for record in whole.records if record.kind == "submission")
    older = replace(whole, counters=replace(whole.counters, next_id=queued))
    made = without(older, Lost("submission", queued, 1), is_unsure=True)
    await sound(made)
    assert made.dump.counters.next_id > max(record.id for record in made.dump.records)
