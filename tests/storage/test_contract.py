"""What every backend promises (pi_durable_tui/storage/port.py): one body per promise, each backend a parameter."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pi_durable_tui.errors import BadRequest, StorageRejected
from pi_durable_tui.records.commit import Batch, DocumentDelta, DocumentRetired
from pi_durable_tui.records.conversation import Conversation, ForkPoint
from pi_durable_tui.records.document import Revisions, StoredDocument
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.messages import Problem
from pi_durable_tui.records.submission import Done, Placed, Unanswered
from pi_durable_tui.records.task import Completed, Running, Terminal, Waiting
from pi_durable_tui.storage.port import Metadata, Page
from tests.support.storage_backends import ReopenableStorage
from tests.support.storage_records import AT_MS, address, base, batch, conversation, dump, entry, first_chat, submission, task

SET = [["s", ["a"], 2]]


async def refusal(storage: ReopenableStorage, refused: Batch) -> str:
    """The reason of a refusal, after which the store must be as before."""
    before = await dump(storage)
    with pytest.raises(StorageRejected) as caught:
        await storage.commit(refused)
    assert await dump(storage) == before
    return caught.value.reason


# -------------------------------------------------------------------------------------------------------------- counters


@pytest.mark.rule("ST-2", "FB-5")
async def test_a_new_store_counts_from_one(storage: ReopenableStorage):
    assert await storage.metadata() == Metadata(next_id=1, next_seq=1, schema_version=1, last_at_ms=None)


@pytest.mark.rule("ST-2", "FB-5")
async def test_each_commit_takes_the_next_number_and_the_counters_survive_a_reopen(storage: ReopenableStorage):
    seqs = [await storage.commit(first_chat()), await storage.commit(batch(9, entries=[entry(3)])), await storage.commit(batch(9, at_ms=AT_MS + 7))]
    await storage.reopen()
    assert (seqs, await storage.metadata()) == ([1, 2, 3], Metadata(next_id=9, next_seq=4, schema_version=1, last_at_ms=AT_MS + 7))


@pytest.mark.rule("ST-2")
async def test_the_id_counter_never_goes_back(storage: ReopenableStorage):
    await storage.commit(first_chat())
    assert await refusal(storage, batch(2)) == "invalid"


@pytest.mark.rule("ST-3")
@pytest.mark.parametrize("record_id", [0, -1, 5, 6])
async def test_a_new_id_lies_below_the_counter_of_its_batch(storage: ReopenableStorage, record_id: int):
    await storage.commit(first_chat())
    assert await refusal(storage, batch(5, entries=[entry(record_id)])) == "invalid"


# ------------------------------------------------------------------------------------------------------------------- ids


@pytest.mark.rule("ST-3", "ST-4", "FB-7")
@pytest.mark.parametrize(
    ("writes", "reason"),
    [
        ({"conversations": [conversation(2)]}, "id_used"),
        ({"entries": [entry(2)]}, "id_used"),
        ({"entries": [entry(1)]}, "id_used"),
        ({"entries": [entry(3), entry(3)]}, "id_used"),
        ({"entries": [entry(3)], "tasks": [task(3)]}, "id_used"),
        ({"tasks": [task(2)]}, "not_found"),
        ({"submissions": [submission(2)]}, "not_found"),
        ({"documents": [base(2, {})]}, "not_found"),
        ({"tasks": [task(3), task(3)]}, "invalid"),
        ({"tasks": [task(3)], "submissions": [submission(3)]}, "invalid"),
    ],
)
async def test_an_id_is_used_once_across_all_kinds(storage: ReopenableStorage, writes: dict[str, Any], reason: str):
    await storage.commit(first_chat())
    assert await refusal(storage, batch(4, **writes)) == reason


@pytest.mark.rule("ST-3")
async def test_the_id_of_a_retired_document_stays_used(storage: ReopenableStorage):
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {})]))
    await storage.commit(batch(3, documents=[DocumentRetired(document_id=2)]))
    assert await refusal(storage, batch(3, entries=[entry(2)])) == "id_used"


@pytest.mark.rule("ST-1", "ST-6")
async def test_a_refused_batch_leaves_nothing_of_itself_and_the_next_one_is_stored(storage: ReopenableStorage):
    await storage.commit(first_chat())
    good = {"entries": [entry(3)], "tasks": [task(4)], "submissions": [submission(5)], "documents": [base(6, {})]}
    assert await refusal(storage, batch(8, **good | {"entries": [entry(3), entry(2)]})) == "id_used"
    assert await refusal(storage, batch(8, **good | {"documents": [base(6, {}), DocumentDelta(document_id=7, ops=[])]})) == "not_found"
    assert await storage.commit(batch(8, **good)) == 2


@pytest.mark.rule("SE-5", "ST-6")
@pytest.mark.parametrize(
    "writes",
    [
        {"tasks": [task(3, version="one")]},
        {"entries": [entry(3, head="2")]},
        {"submissions": [submission(3, mode="later")]},
        {"conversations": [Conversation(id=3, created_at_ms=None)]},  # type: ignore[arg-type]
    ],
    ids=lambda writes: next(iter(writes)),
)
async def test_a_record_that_could_not_be_read_again_is_refused_with_nothing_written(storage: ReopenableStorage, writes: dict[str, Any]):
    await storage.commit(first_chat())
    assert await refusal(storage, batch(4, **writes)) == "invalid"
    assert await storage.commit(batch(4, tasks=[task(3)])) == 2
    assert await refusal(storage, batch(4, tasks=[task(3, version="two")])) == "invalid"


@pytest.mark.rule("ST-6")
async def test_a_record_that_is_no_json_is_refused_with_nothing_written(storage: ReopenableStorage):
    await storage.commit(first_chat())
    assert await refusal(storage, batch(4, tasks=[task(3, input={"text": "\ud800"})])) == "invalid"


@pytest.mark.rule("ST-6")
@pytest.mark.parametrize(
    "writes",
    [
        {"entries": [entry(3, 9)]},
        {"entries": [entry(3, 2)]},
        {"tasks": [task(3, 9)]},
        {"tasks": [task(3, owner=9)]},
        {"submissions": [submission(3, 9)]},
        {"conversations": [conversation(3, owner=9)]},
        {"conversations": [conversation(3, parent=ForkPoint(conversation_id=9, entry_id=2, seq=1))]},
        {"conversations": [conversation(3, parent=ForkPoint(conversation_id=1, entry_id=9, seq=1))]},
    ],
)
async def test_what_a_record_refers_to_must_be_there(storage: ReopenableStorage, writes: dict[str, Any]):
    await storage.commit(first_chat())
    assert await refusal(storage, batch(10, **writes)) == "not_found"


async def test_records_of_one_batch_may_refer_to_each_other(storage: ReopenableStorage):
    writes = {"conversations": [conversation(1), conversation(3, owner=2)], "tasks": [task(2)], "entries": [entry(4, 3)]}
    assert await storage.commit(batch(5, **writes)) == 1


# ---------------------------------------------------------------------------------------------------------------- values


@pytest.mark.rule("ST-4", "FB-8")
async def test_tasks_and_submissions_are_replaced_whole(storage: ReopenableStorage):
    await storage.commit(first_chat())
    await storage.commit(batch(5, tasks=[task(3, memos={"printed-1": True}, restarts=2)], submissions=[submission(4, request_id="r")]))
    ended, placed = task(3, state=Terminal(outcome=Completed(value="counted to 5"))), submission(4, state=Placed(entry_id=2))
    await storage.commit(batch(5, tasks=[ended], submissions=[placed]))
    await storage.reopen()
    assert (await storage.tasks()).items == (ended,)
    assert (await storage.submissions()).items == (placed,)


@pytest.mark.rule("ST-5")
async def test_what_was_given_or_returned_is_never_shared_with_the_store(storage: ReopenableStorage):
    value, written = {"list": [1]}, {"deep": {"n": [1]}}
    await storage.commit(batch(4, conversations=[conversation(1)], tasks=[task(2, input=written)], documents=[base(3, value)]))
    written["deep"]["n"].append(2)
    value["list"].append(2)
    found, revisions = await storage.task(2), await storage.revisions(3)
    found.input["deep"]["n"].append(3)
    revisions.base["list"].append(3)
    (await storage.tasks()).items[0].input.clear()
    assert await storage.task(2) == task(2, input={"deep": {"n": [1]}})
    assert await storage.revisions(3) == Revisions(base_seq=1, base={"list": [1]}, version=1)


async def test_text_of_every_kind_comes_back_unchanged(storage: ReopenableStorage):
    text = "tab\t nul\0 quote' \" back\\ line\n\r\x1b[31m é \u2028 \U0001f600 " + "x" * 100_000
    await storage.commit(batch(3, conversations=[conversation(1)], entries=[entry(2, text=text)]))
    await storage.reopen()
    assert await storage.entry(2) == StoredEntry(seq=1, entry=entry(2, text=text))


@pytest.mark.rule("FB-6")
async def test_an_entry_carries_the_number_of_its_commit(storage: ReopenableStorage):
    await storage.commit(first_chat())
    await storage.commit(batch(4, entries=[entry(3, text="second")]))
    expected = (StoredEntry(seq=1, entry=entry(2)), StoredEntry(seq=2, entry=entry(3, text="second")))
    assert (await storage.entries(1)).items == expected
    assert (await storage.entry(2), await storage.entry(3)) == expected


async def test_what_is_not_there_is_none_or_an_empty_page(storage: ReopenableStorage):
    nothing: Page[Any] = Page((), None)
    assert await asyncio.gather(storage.conversation(1), storage.entry(1), storage.task(1), storage.submission(1), storage.revisions(1)) == [None] * 5
    assert await asyncio.gather(storage.document(address()), storage.submission_by_request(1, "r"), storage.newest_head(1)) == [None] * 3
    assert await asyncio.gather(storage.conversations(), storage.entries(1), storage.tasks(), storage.submissions()) == [nothing] * 4
    assert await storage.documents("session", None) == ()


# ------------------------------------------------------------------------------------------------------------------ scans


@pytest.mark.rule("ST-7")
async def test_scans_are_paged_by_id_in_both_directions(storage: ReopenableStorage):
    await storage.commit(batch(8, conversations=[conversation(1)], entries=[entry(n) for n in (2, 3, 5, 6, 7)]))

    async def pages(*, descending: bool) -> list[tuple[list[int], int | None]]:
        found, cursor = [], None
        while not found or cursor is not None:
            page = await storage.entries(1, cursor=cursor, limit=2, descending=descending)
            cursor = page.next
            found.append(([item.entry.id for item in page.items], cursor))
        return found

    assert await pages(descending=False) == [([2, 3], 5), ([5, 6], 7), ([7], None)]
    assert await pages(descending=True) == [([7, 6], 5), ([5, 3], 2), ([2], None)]
    assert [item.entry.id for item in (await storage.entries(1, cursor=4)).items] == [5, 6, 7]
    assert [item.entry.id for item in (await storage.entries(1, cursor=4, descending=True)).items] == [3, 2]


@pytest.mark.rule("ST-7")
@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_a_page_has_one_to_a_thousand_items(storage: ReopenableStorage, limit: int):
    for scan in (storage.conversations, storage.tasks, storage.submissions):
        with pytest.raises(BadRequest):
            await scan(limit=limit)
    with pytest.raises(BadRequest):
        await storage.entries(1, limit=limit)


async def forks(storage: ReopenableStorage) -> None:
    """1 has 2, 3, 4; 5 forks it at 3 and has 6; 7 forks 5 at 6 and has 8; 9 forks 5 at the inherited 2 and has 10."""
    await storage.commit(batch(5, conversations=[conversation(1)], entries=[entry(2, head=2), entry(3), entry(4, head=4)]))
    await storage.commit(batch(7, conversations=[conversation(5, parent=ForkPoint(conversation_id=1, entry_id=3, seq=1))], entries=[entry(6, 5)]))
    await storage.commit(batch(9, conversations=[conversation(7, parent=ForkPoint(conversation_id=5, entry_id=6, seq=2))], entries=[entry(8, 7, head=6)]))
    await storage.commit(batch(11, conversations=[conversation(9, parent=ForkPoint(conversation_id=5, entry_id=2, seq=1))], entries=[entry(10, 9)]))
    await storage.commit(batch(12, entries=[entry(11, 1)]))


@pytest.mark.rule("ST-7")
@pytest.mark.parametrize(("conversation_id", "seen"), [(1, [2, 3, 4, 11]), (5, [2, 3, 6]), (7, [2, 3, 6, 8]), (9, [2, 10])])
async def test_a_fork_reads_its_parents_up_to_where_it_left_them(storage: ReopenableStorage, conversation_id: int, seen: list[int]):
    await forks(storage)
    found = await storage.entries(conversation_id)
    assert [item.entry.id for item in found.items] == seen
    for limit in (1, 2, 3):
        for descending in (False, True):
            ids: list[int] = []
            cursor: int | None = None
            while not ids or cursor is not None:
                page = await storage.entries(conversation_id, cursor=cursor, limit=limit, descending=descending)
                ids += [item.entry.id for item in page.items]
                cursor = page.next
            assert ids == sorted(seen, reverse=descending)


@pytest.mark.rule("ST-7")
@pytest.mark.parametrize(
    ("conversation_id", "at", "head"),
    [(1, None, 4), (1, 3, 2), (1, 1, None), (5, None, 2), (7, None, 8), (7, 7, 2), (9, None, 2), (12, None, None)],
)
async def test_the_newest_head_is_found_through_parents(storage: ReopenableStorage, conversation_id: int, at: int | None, head: int | None):
    await forks(storage)
    assert await storage.newest_head(conversation_id, at=at) == (None if head is None else await storage.entry(head))


@pytest.mark.rule("ST-7")
async def test_conversations_are_found_by_owner_and_by_parent(storage: ReopenableStorage):
    fork = conversation(4, parent=ForkPoint(conversation_id=1, entry_id=2, seq=1))
    await storage.commit(first_chat())
    await storage.commit(batch(7, tasks=[task(3)], conversations=[fork, conversation(5, owner=3), conversation(6)]))
    assert await storage.conversations() == Page((conversation(1), fork, conversation(5, owner=3), conversation(6)), None)
    assert await storage.conversations(owner=3) == Page((conversation(5, owner=3),), None)
    assert await storage.conversations(parent=1) == Page((fork,), None)
    assert await storage.conversations(limit=1, descending=True) == Page((conversation(6),), 5)
    assert await storage.conversation(4) == fork


@pytest.mark.rule("ST-7")
async def test_tasks_are_found_by_kind_status_conversation_and_owner(storage: ReopenableStorage):
    tasks = [
        task(3),
        task(4, kind="pi.tool", owner=3, state=Running(checkpoint={"phase": "execute"})),
        task(5, 2, state=Waiting(checkpoint={"phase": "tools"}, on=(3, 4), policy="failFast")),
        task(6, 2, owner=5, state=Terminal(outcome=Completed())),
    ]
    await storage.commit(batch(7, conversations=[conversation(1), conversation(2)], tasks=tasks))

    async def ids(**conditions: Any) -> list[int]:
        return [item.id for item in (await storage.tasks(**conditions)).items]

    assert (await storage.tasks()).items == tuple(tasks)
    assert await ids(kind="pi.tool") == [4]
    assert await ids(statuses=["running", "waiting"]) == [4, 5]
    assert await ids(statuses=[]) == []
    assert await ids(conversation_id=2) == [5, 6]
    assert await ids(owner=3) == [4]
    assert await ids(conversation_id=2, statuses=["terminal"], kind="test.count", owner=5) == [6]
    assert await storage.tasks(statuses=["pending", "running"], limit=1) == Page((tasks[0],), 4)
    assert await storage.tasks(conversation_id=2, limit=1, descending=True) == Page((tasks[3],), 5)


@pytest.mark.rule("ST-7", "ST-8")
async def test_submissions_are_found_by_conversation_status_and_request(storage: ReopenableStorage):
    found = [
        submission(3, request_id="a"),
        submission(4, 2, request_id="a", state=Done(entry_id=2)),
        submission(5),
        submission(6, state=Unanswered(problem=Problem(reason="aborted"))),
    ]
    await storage.commit(batch(7, conversations=[conversation(1), conversation(2)], submissions=found))
    await storage.reopen()
    assert (await storage.submissions(conversation_id=1)).items == (found[0], found[2], found[3])
    assert (await storage.submissions(statuses=["queued", "done"])).items == (found[0], found[1], found[2])
    assert await storage.submission_by_request(2, "a") == found[1]
    assert await storage.submission_by_request(2, "b") is None
    assert await storage.submission(6) == found[3]


@pytest.mark.rule("ST-8", "FB-31")
async def test_a_request_id_is_used_once_in_a_conversation(storage: ReopenableStorage):
    await storage.commit(batch(4, conversations=[conversation(1), conversation(2)], submissions=[submission(3, request_id="r")]))
    await storage.reopen()
    assert await refusal(storage, batch(5, submissions=[submission(4, request_id="r")])) == "request_used"
    assert await refusal(storage, batch(6, submissions=[submission(4, request_id="s"), submission(5, request_id="s")])) == "request_used"
    await storage.commit(batch(7, submissions=[submission(3, request_id="r", state=Done(entry_id=1)), submission(4, 2, request_id="r"), submission(5)]))
    assert (await storage.submission_by_request(1, "r")).id == 3


@pytest.mark.rule("ST-4", "ST-8")
async def test_a_replaced_submission_gives_its_request_id_free(storage: ReopenableStorage):
    await storage.commit(batch(3, conversations=[conversation(1)], submissions=[submission(2, request_id="r")]))
    await storage.commit(batch(3, submissions=[submission(2)]))
    await storage.commit(batch(4, submissions=[submission(3, request_id="r")]))
    assert await storage.submission_by_request(1, "r") == submission(3, request_id="r")


# -------------------------------------------------------------------------------------------------------------- documents


async def history(storage: ReopenableStorage, kind: Any) -> None:
    """Commits 1 to 5: base, delta, an entry, base, delta."""
    fields = {"address": address(), "version": 1, "history": kind}
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"a": 1}, **fields)]))
    await storage.commit(batch(3, documents=[DocumentDelta(document_id=2, ops=SET)]))
    await storage.commit(batch(4, entries=[entry(3)]))
    await storage.commit(batch(4, documents=[base(2, {"a": 3}, **fields | {"version": 2})]))
    await storage.commit(batch(4, documents=[DocumentDelta(document_id=2, ops=SET)]))


@pytest.mark.rule("ST-9", "ST-10", "FB-6", "FB-16")
async def test_a_rewindable_document_is_known_as_of_every_commit(storage: ReopenableStorage):
    await history(storage, "rewindable")
    first, second = Revisions(base_seq=1, base={"a": 1}, version=1), Revisions(base_seq=4, base={"a": 3}, version=2)
    changed_first = Revisions(base_seq=1, base={"a": 1}, version=1, deltas=(SET,))
    changed_second = Revisions(base_seq=4, base={"a": 3}, version=2, deltas=(SET,))
    expected = [None, first, changed_first, changed_first, second, changed_second, changed_second]
    assert [await storage.revisions(2, at_seq=seq) for seq in (0, 1, 2, 3, 4, 5, 99)] == expected
    assert await storage.revisions(2) == changed_second
    assert await storage.document(address()) == StoredDocument(id=2, address=address(), version=2, history="rewindable")


@pytest.mark.rule("ST-10", "FB-16")
async def test_a_new_base_of_a_document_without_history_drops_what_was_before(storage: ReopenableStorage):
    await history(storage, "latest")
    second, changed = Revisions(base_seq=4, base={"a": 3}, version=2), Revisions(base_seq=4, base={"a": 3}, version=2, deltas=(SET,))
    assert [await storage.revisions(2, at_seq=seq) for seq in (1, 2, 3, 4, 5)] == [None, None, None, second, changed]
    assert await storage.revisions(2) == changed


@pytest.mark.rule("ST-10")
async def test_what_was_rewindable_stays_so_when_a_later_base_is_not(storage: ReopenableStorage):
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"a": 1}, history="rewindable")]))
    await storage.commit(batch(3, documents=[base(2, {"a": 2})]))
    assert await storage.revisions(2, at_seq=1) == Revisions(base_seq=1, base={"a": 1}, version=1)


@pytest.mark.rule("DO-7", "ST-10")
@pytest.mark.parametrize(("kind", "before"), [("rewindable", Revisions(base_seq=1, base={"a": 1}, version=1, deltas=(SET,))), ("latest", None)])
async def test_a_retired_document_is_gone_from_its_commit_on(storage: ReopenableStorage, kind: str, before: Revisions | None):
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"a": 1}, history=kind)]))
    await storage.commit(batch(3, documents=[DocumentDelta(document_id=2, ops=SET)]))
    await storage.commit(batch(3, documents=[DocumentRetired(document_id=2)]))
    await storage.reopen()
    assert (await storage.document(address()), await storage.documents("conversation", 1)) == (None, ())
    assert (await storage.revisions(2), await storage.revisions(2, at_seq=3), await storage.revisions(2, at_seq=2)) == (None, None, before)
    for write in (base(2, {}), DocumentDelta(document_id=2, ops=SET), DocumentRetired(document_id=2)):
        assert await refusal(storage, batch(3, documents=[write])) == "not_found"


async def test_an_address_may_be_used_again_after_retirement_even_in_the_same_commit(storage: ReopenableStorage):
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {"old": True})]))
    await storage.commit(batch(4, documents=[base(3, {"new": True}), DocumentRetired(document_id=2)]))
    assert await storage.document(address()) == StoredDocument(id=3, address=address(), version=1, history="latest")


async def test_a_document_may_be_changed_and_retired_in_one_commit(storage: ReopenableStorage):
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {}, history="rewindable")]))
    await storage.commit(
        batch(4, documents=[DocumentDelta(document_id=2, ops=SET), DocumentRetired(document_id=2), base(3, {}), DocumentRetired(document_id=3)])
    )
    assert (await storage.document(address()), await storage.revisions(2, at_seq=1)) == (None, Revisions(base_seq=1, base={}, version=1))


@pytest.mark.parametrize(
    ("writes", "reason"),
    [
        ([DocumentDelta(document_id=3, ops=SET)], "not_found"),
        ([DocumentRetired(document_id=3)], "not_found"),
        ([DocumentDelta(document_id=1, ops=SET)], "not_found"),
        ([base(3, {})], "invalid"),
        ([base(2, {}, address=address(kind="test.other"))], "invalid"),
        ([DocumentDelta(document_id=2, ops=SET), base(2, {})], "invalid"),
        ([DocumentRetired(document_id=2), DocumentRetired(document_id=2)], "invalid"),
        ([DocumentRetired(document_id=2), DocumentDelta(document_id=2, ops=SET)], "invalid"),
        ([base(3, {}, address=address(kind="test.other")), base(4, {}, address=address(kind="test.other"))], "invalid"),
    ],
)
async def test_a_document_write_must_fit_what_is_stored(storage: ReopenableStorage, writes: list[Any], reason: str):
    await storage.commit(batch(3, conversations=[conversation(1)], documents=[base(2, {})]))
    assert await refusal(storage, batch(5, documents=writes)) == reason


async def test_documents_are_kept_apart_by_owner_and_kind(storage: ReopenableStorage):
    places = [address(None, scope="session"), address(1), address(1, kind="test.other"), address(2, scope="task"), address(1, scope="task")]
    writes = [base(10 + index, {"n": index}, address=place) for index, place in enumerate(places)]
    await storage.commit(batch(20, conversations=[conversation(1)], tasks=[task(2)], documents=writes))
    stored = [StoredDocument(id=10 + index, address=place, version=1, history="latest") for index, place in enumerate(places)]
    assert [await storage.document(place) for place in places] == stored
    assert await storage.documents("conversation", 1) == (stored[1], stored[2])
    assert await storage.documents("session", None) == (stored[0],)
    assert await storage.documents("task", 2) == (stored[3],)


@pytest.mark.rule("ST-7", "ST-17")
@pytest.mark.parametrize("huge", [2**63, 2**64, 10**30, -(2**63) - 1])
async def test_numbers_and_text_that_no_record_can_have_are_not_found_and_bound_a_scan_like_others(storage: ReopenableStorage, huge: int):
    await storage.commit(first_chat())
    assert [await read(huge) for read in (storage.conversation, storage.entry, storage.task, storage.submission, storage.revisions)] == [None] * 5
    assert await storage.submission_by_request(huge, "r") is await storage.submission_by_request(1, "r\ud800") is None
    assert await storage.document(address(huge)) is await storage.document(address(kind="\ud800")) is None
    assert (await storage.tasks(kind="\ud800", statuses=["pending"])).items == (await storage.tasks(owner=huge)).items == ()
    everything = (await storage.entries(1)).items
    assert everything
    for descending in (False, True):
        found = (await storage.entries(1, cursor=huge, descending=descending)).items
        assert found == (everything if (huge > 0) == descending else ())


# ---------------------------------------------------------------------------------------------------------------- closing


async def test_closing_twice_is_allowed(storage: ReopenableStorage):
    await storage.close()
    await storage.close()
    await storage.open()
    assert await storage.commit(first_chat()) == 1


async def test_an_open_store_has_room_and_is_writable(storage: ReopenableStorage):
    assert (await storage.has_room(), storage.read_only) == (True, False)
