from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.errors import BadRequest, InternalError, ReadAfterWrite, ReadOnlySession, SessionClosed, StorageRejected, TransactionSettled
from pi_durable_tui.records.commit import Batch, Commit, DocumentChange
from pi_durable_tui.records.document import Address, Definition
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.messages import AssistantMessage, Text, ToolCall
from pi_durable_tui.records.submission import Placed
from pi_durable_tui.records.task import Completed, Running, Terminal
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Page
from tests.support.controlled_storage import ControlledStorage
from tests.support.session_builders import NOTES, START_MS, change, conversation, entry, new_conversation, new_entry, note, open_session, submission, task


def foreign(value: object) -> Any:
    """Something that no checker would let into a record."""
    return value


class ReadOnlyMemory(MemoryStorage):
    """A memory store that was opened read-only."""

    @property
    def read_only(self) -> bool:
        return True

    async def commit(self, batch: Batch) -> int:
        raise ReadOnlySession("A commit")


@pytest.mark.rule("SE-1", "FB-1", "FB-5")
async def test_one_commit_stores_everything_and_tells_observers_exactly_that() -> None:
    session = await open_session()
    heard: list[Commit] = []
    session.subscribe(heard.append)

    async def write(tx: Transaction) -> tuple[int, int, int, int]:
        ids = (tx.new_id(), tx.new_id(), tx.new_id(), tx.new_id())
        tx.insert_conversation(conversation(ids[0]))
        tx.insert_entry(entry(ids[1], ids[0]))
        tx.put_task(task(ids[2], ids[0]))
        tx.put_submission(submission(ids[3], ids[0], request_id="r"))
        (await tx.document(NOTES)).value["lines"] = ["first"]
        return ids

    assert await session.commit(write) == (1, 2, 3, 4)
    assert heard == [
        Commit(
            seq=1,
            at_ms=START_MS,
            conversations=(conversation(1),),
            entries=(StoredEntry(seq=1, entry=entry(2, 1)),),
            tasks=(task(3, 1),),
            submissions=(submission(4, 1, request_id="r"),),
            documents=(
                DocumentChange(
                    address=Address(kind="test.notes", scope="session"), previous=None, value={"lines": ["first"]}, ops=[["r", {"lines": ["first"]}]]
                ),
            ),
        )
    ]
    storage = session.storage
    assert await storage.conversation(1) == conversation(1)
    assert await storage.entry(2) == StoredEntry(seq=1, entry=entry(2, 1))
    assert await storage.task(3) == task(3, 1)
    assert await storage.submission(4) == submission(4, 1, request_id="r")
    assert await session.snapshot(NOTES) == {"lines": ["first"]}
    assert session.next_seq == 2
    assert (await storage.metadata()).next_id == 6


@pytest.mark.rule("FB-5", "ST-2")
async def test_each_commit_gets_the_next_number_and_fresh_ids() -> None:
    session = await open_session()
    seqs: list[int] = []
    session.subscribe(lambda commit: seqs.append(commit.seq))
    conversation_id = await new_conversation(session)
    assert [await new_entry(session, conversation_id) for _ in range(3)] == [2, 3, 4]
    assert seqs == [1, 2, 3, 4]


@pytest.mark.rule("FB-11", "SE-1", "FB-1")
async def test_the_steps_of_a_commit_come_in_order_callback_prepare_store_adopt_publish() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    story: list[str] = []
    traced = Definition(kind="test.notes", scope="session", checkpoint_when=lambda _value, _ops, _deltas: story.append("prepare") is not None)
    await note(session, "before", traced)

    def published(commit: Commit) -> None:
        story.append(f"published {commit.seq}, next is {session.next_seq}")

    session.subscribe(published)
    storage.hold_commits()

    async def write(tx: Transaction) -> None:
        story.append("callback")
        (await tx.document(traced)).value["lines"] = ["x"]

    committing = asyncio.ensure_future(session.commit(write))
    await storage.commit_held()
    story.append(f"storing, next is {session.next_seq}, committed is {await session.snapshot(NOTES)}")
    storage.release_commits()
    await committing
    assert story == ["callback", "prepare", "storing, next is 2, committed is {'lines': ['before']}", "published 2, next is 3"]


@pytest.mark.rule("SE-1", "FB-1")
async def test_observers_hear_of_a_commit_only_after_a_second_reader_finds_it_in_the_store() -> None:
    storage = MemoryStorage()
    session = await open_session(storage)
    found: list[bool] = []
    session.subscribe(lambda commit: found.append(commit.seq in storage.contents.conversations.seqs.values()))
    await new_conversation(session)
    await new_conversation(session)
    assert found == [True, True]


@pytest.mark.rule("SE-1")
async def test_commits_asked_for_at_once_are_carried_out_in_that_order() -> None:
    session = await open_session()
    await asyncio.gather(*(note(session, number) for number in range(20)))
    assert await session.snapshot(NOTES) == {"lines": list(range(20))}


async def test_a_callback_that_wrote_nothing_stores_nothing_and_publishes_nothing() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    heard: list[Commit] = []
    session.subscribe(heard.append)

    async def look(tx: Transaction) -> tuple[int, int]:
        return tx.seq, tx.now_ms

    assert await session.commit(look) == (1, START_MS)
    assert (heard, storage.calls, session.next_seq) == ([], ["metadata"], 1)


async def test_an_id_given_to_a_callback_that_wrote_nothing_is_not_given_out_again() -> None:
    session = await open_session()

    async def take(tx: Transaction) -> int:
        return tx.new_id()

    assert [await session.commit(take), await session.commit(take)] == [1, 2]


async def test_a_commit_carries_the_time_when_its_callback_started_and_its_priority() -> None:
    clock = ManualClock(START_MS)
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage, clock=clock)

    async def write(tx: Transaction) -> int:
        clock.advance(50)
        tx.insert_conversation(conversation(tx.new_id()))
        return tx.now_ms

    assert await session.commit(write, priority="outcome") == START_MS
    assert storage.batches == [Batch(next_id=2, at_ms=START_MS, priority="outcome", conversations=(conversation(1),))]


# ------------------------------------------------------------------------------------------------------- nothing changed


@pytest.mark.rule("SE-2", "FB-12")
async def test_a_raising_callback_changes_and_publishes_nothing() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    await note(session, "kept")
    heard: list[Commit] = []
    session.subscribe(heard.append)

    async def bad(tx: Transaction) -> None:
        tx.insert_conversation(conversation(tx.new_id()))
        (await tx.document(NOTES)).value["lines"] = []
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        await session.commit(bad)
    assert (heard, len(storage.batches), session.failed) == ([], 1, None)
    assert await session.snapshot(NOTES) == {"lines": ["kept"]}
    assert await new_conversation(session) == 2


@pytest.mark.rule("SE-2", "SE-5", "FB-12")
async def test_a_draft_that_is_not_json_fails_the_commit_and_names_the_place() -> None:
    session = await open_session()
    await note(session, "kept")
    with pytest.raises(BadRequest) as caught:
        await change(session, NOTES, None, lambda value: value["lines"].append({"ratio": math.nan}))
    assert caught.value.message == "The value at test.notes.lines[1].ratio is nan, which is not JSON."
    assert await session.snapshot(NOTES) == {"lines": ["kept"]}
    await note(session, "next")
    assert await session.snapshot(NOTES) == {"lines": ["kept", "next"]}


@pytest.mark.rule("SE-2", "ST-6")
async def test_a_rejected_batch_changes_and_publishes_nothing_and_the_session_goes_on() -> None:
    session = await open_session()
    first = await new_conversation(session)
    await note(session, "kept")
    heard: list[Commit] = []
    session.subscribe(heard.append)

    async def again(tx: Transaction) -> None:
        tx.insert_conversation(conversation(first))
        (await tx.document(NOTES)).value["lines"] = []

    with pytest.raises(StorageRejected) as caught:
        await session.commit(again)
    assert (caught.value.reason, heard, session.failed) == ("id_used", [], None)
    assert await session.snapshot(NOTES) == {"lines": ["kept"]}
    await note(session, "next")
    assert [commit.seq for commit in heard] == [3]


@pytest.mark.rule("ST-11", "FA-14")
async def test_a_read_only_session_refuses_commits_that_write_and_carries_out_the_others() -> None:
    storage = MemoryStorage()
    await note(await open_session(storage), "kept")
    session = await open_session(ReadOnlyMemory(storage.contents))
    assert session.read_only

    async def look(tx: Transaction) -> Any:
        return (await tx.document(NOTES)).value

    assert await session.commit(look) == {"lines": ["kept"]}
    with pytest.raises(ReadOnlySession, match="A commit needs a writable session"):
        await note(session, "more")
    assert await session.snapshot(NOTES) == {"lines": ["kept"]}
    assert session.failed is None


# --------------------------------------------------------------------------------------------------------- transactions


@pytest.mark.rule("SE-3", "FB-13")
@pytest.mark.parametrize(
    ("table", "read"),
    [
        ("conversations", lambda tx: tx.conversation(1)),
        ("conversations", lambda tx: tx.conversations()),
        ("entries", lambda tx: tx.entry(1)),
        ("entries", lambda tx: tx.entries(1)),
        ("entries", lambda tx: tx.newest_head(1)),
        ("tasks", lambda tx: tx.task(1)),
        ("tasks", lambda tx: tx.tasks()),
        ("submissions", lambda tx: tx.submission(1)),
        ("submissions", lambda tx: tx.submission_by_request(1, "r")),
        ("submissions", lambda tx: tx.submissions()),
    ],
)
@pytest.mark.parametrize("write", ["conversation", "entry", "task", "submission"])
async def test_reading_a_table_after_a_record_was_written_gives_up_the_commit(table: str, read: Any, write: str) -> None:
    session = await open_session()
    await new_conversation(session)
    swallowed: list[str] = []

    async def careless(tx: Transaction) -> None:
        await read(tx)
        match write:
            case "conversation":
                tx.insert_conversation(conversation(tx.new_id()))
            case "entry":
                tx.insert_entry(entry(tx.new_id(), 1))
            case "task":
                tx.put_task(task(tx.new_id(), 1))
            case _:
                tx.put_submission(submission(tx.new_id(), 1))
        (await tx.document(NOTES)).value["lines"] = ["documents stay readable"]
        try:
            await read(tx)
        except ReadAfterWrite as error:
            swallowed.append(error.message)

    with pytest.raises(ReadAfterWrite) as caught:
        await session.commit(careless)
    assert swallowed == [caught.value.message] == [f"A transaction read {table} after it had written a record. Nothing was written."]
    assert (await session.storage.metadata()).next_seq == 2
    assert await session.snapshot(NOTES) is None


async def test_reads_of_a_transaction_are_those_of_the_store() -> None:
    session = await open_session()

    async def write(tx: Transaction) -> None:
        ids = [tx.new_id() for _ in range(4)]
        tx.insert_conversation(conversation(ids[0]))
        tx.insert_entry(entry(ids[1], 1, head=2))
        tx.put_task(task(ids[2], 1))
        tx.put_submission(submission(ids[3], 1, request_id="r"))

    async def read(tx: Transaction) -> list[object]:
        return [
            await tx.conversation(1),
            await tx.conversations(limit=5),
            await tx.conversations(owner=9),
            await tx.entry(2),
            await tx.entries(1, descending=True),
            await tx.newest_head(1, at=2),
            await tx.newest_head(1, at=1),
            await tx.task(3),
            await tx.tasks(kind="test.count", statuses=["pending"], conversation_id=1),
            await tx.tasks(owner=7),
            await tx.submission(4),
            await tx.submission_by_request(1, "r"),
            await tx.submissions(conversation_id=1, statuses=["queued"]),
            await tx.submissions(cursor=5),
        ]

    await session.commit(write)
    stored, sent, empty = StoredEntry(seq=1, entry=entry(2, 1, head=2)), submission(4, 1, request_id="r"), Page((), None)
    assert await session.commit(read) == [
        conversation(1),
        Page((conversation(1),), None),
        empty,
        stored,
        Page((stored,), None),
        stored,
        None,
        task(3, 1),
        Page((task(3, 1),), None),
        empty,
        sent,
        sent,
        Page((sent,), None),
        empty,
    ]


@pytest.mark.rule("SE-4")
async def test_a_transaction_or_draft_used_after_its_callback_writes_nothing_and_raises() -> None:
    session = await open_session()
    kept: list[Any] = []

    async def keep(tx: Transaction) -> None:
        kept.extend([tx, await tx.document(NOTES)])

    await session.commit(keep)
    tx, draft = kept
    uses = [
        tx.new_id,
        lambda: tx.insert_conversation(conversation(9)),
        lambda: tx.insert_entry(entry(9, 1)),
        lambda: tx.put_task(task(9, 1)),
        lambda: tx.put_submission(submission(9, 1)),
        lambda: draft.value,
        lambda: setattr(draft, "value", {}),
    ]
    waits = [lambda: tx.conversation(1), lambda: tx.document(NOTES), lambda: tx.retire_documents("session", 1)]
    for use in uses:
        with pytest.raises(TransactionSettled):
            use()
    for wait in waits:
        with pytest.raises(TransactionSettled):
            await wait()
    with pytest.raises(TransactionSettled, match=r"^The draft of test\.notes was used after"):
        draft.value["lines"].append("late")
    assert await session.snapshot(NOTES) == {"lines": []}


@pytest.mark.rule("SE-4")
async def test_a_document_that_arrives_after_the_callback_ended_is_refused() -> None:
    session = await open_session()
    late: list[asyncio.Future[Any]] = []

    async def leave(tx: Transaction) -> None:
        late.append(asyncio.ensure_future(tx.document(NOTES)))
        await asyncio.sleep(0)

    class Slow(MemoryStorage):
        async def document(self, address: Address) -> Any:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return await super().document(address)

    session = await open_session(Slow())
    await session.commit(leave)
    with pytest.raises(TransactionSettled):
        await late[0]


@pytest.mark.rule("SE-4", "FB-42", "ST-5")
async def test_changing_a_draft_or_record_after_the_commit_changes_nothing_stored_or_published() -> None:
    session = await open_session()
    heard: list[Commit] = []
    session.subscribe(heard.append)
    partial: Any = {"content": [{"type": "text", "text": "so far"}]}
    arguments: Any = {"path": "a"}

    async def write(tx: Transaction) -> None:
        created = tx.new_id()
        tx.insert_conversation(conversation(created))
        call = ToolCall(id="c", name="read", arguments=arguments)
        tx.insert_entry(entry(tx.new_id(), created, message=AssistantMessage(content=(call,), model="m", stop_reason="toolUse")))
        (await tx.document(NOTES)).value["partial"] = partial

    await session.commit(write)
    partial["content"].append("more")
    partial["content"][0]["text"] = "other"
    arguments["path"] = "b"
    expected = {"lines": [], "partial": {"content": [{"type": "text", "text": "so far"}]}}
    assert await session.snapshot(NOTES) == expected
    assert heard[0].documents[0].value == expected
    message: Any = heard[0].entries[0].entry.message
    assert message.content[0].arguments == {"path": "a"}


@pytest.mark.rule("SE-5")
@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda tx: tx.insert_entry(entry(9, 1, data={"when": [math.inf]})), "The value at entry 9.data.when[0] is inf, which is not JSON."),
        (lambda tx: tx.put_task(task(9, 1, memos={"seen": {1: 2}})), "The key 1 at task 9.memos.seen is not a string, which is not JSON."),
        (lambda tx: tx.put_task(task(9, 1, input={"at": object()})), "The value at task 9.input.at is a object, which is not JSON."),
        (
            lambda tx: tx.put_task(task(9, 1, state=Terminal(outcome=Completed(value=foreign({2}))))),
            "The value at task 9.state.outcome.value is a set, which is not JSON.",
        ),
        (
            lambda tx: tx.insert_entry(
                entry(
                    9,
                    1,
                    message=AssistantMessage(
                        content=(Text(text="a"), ToolCall(id="c", name="n", arguments={"x": foreign(b"")})), model="m", stop_reason="stop"
                    ),
                )
            ),
            "The value at entry 9.message.content[1].arguments.x is a bytes, which is not JSON.",
        ),
    ],
)
async def test_a_record_that_is_not_strict_json_is_refused_with_its_place(write: Any, message: str) -> None:
    session = await open_session()

    async def bad(tx: Transaction) -> None:
        write(tx)

    with pytest.raises(BadRequest) as caught:
        await session.commit(bad)
    assert caught.value.message == message


@pytest.mark.rule("SE-5")
async def test_lone_surrogates_in_records_and_documents_are_replaced_and_never_stored() -> None:
    session = await open_session()
    conversation_id = await new_conversation(session)

    async def write(tx: Transaction) -> int:
        created = tx.new_id()
        tx.insert_entry(entry(created, conversation_id, "a\ud83db", data={"k\udc00": ["x\ud83d\ude00"]}))
        (await tx.document(NOTES)).value["lines"] = ["\ud800"]
        return created

    stored = await session.storage.entry(await session.commit(write))
    assert stored is not None
    assert stored.entry == entry(2, conversation_id, "a\ufffdb", data={"k\ufffd": ["x\U0001f600"]})
    assert await session.snapshot(NOTES) == {"lines": ["\ufffd"]}


async def test_the_last_record_written_under_an_id_is_the_one_that_counts() -> None:
    session = await open_session()
    conversation_id = await new_conversation(session)
    running = Running(checkpoint={"phase": "go"})

    async def write(tx: Transaction) -> None:
        first, second = tx.new_id(), tx.new_id()
        tx.put_task(task(first, conversation_id))
        tx.put_task(task(first, conversation_id, state=running))
        tx.put_submission(submission(second, conversation_id))
        tx.put_submission(submission(second, conversation_id, state=Placed(entry_id=1)))

    heard: list[Commit] = []
    session.subscribe(heard.append)
    await session.commit(write)
    assert heard[0].tasks == (task(2, conversation_id, state=running),)
    assert heard[0].submissions == (submission(3, conversation_id, state=Placed(entry_id=1)),)
    assert await session.storage.task(2) == task(2, conversation_id, state=running)


# ------------------------------------------------------------------------------------------------- waits, close, reentrance


@pytest.mark.rule("SE-8")
async def test_cancelling_the_caller_does_not_cancel_the_commit_that_was_admitted() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    heard: list[int] = []
    session.subscribe(lambda commit: heard.append(commit.seq))
    storage.hold_commits()
    running = asyncio.ensure_future(note(session, "running"))
    queued = asyncio.ensure_future(note(session, "queued"))
    await storage.commit_held()
    running.cancel()
    queued.cancel()
    await asyncio.wait([running, queued])
    assert (running.cancelled(), queued.cancelled(), heard) == (True, True, [])
    storage.release_commits()
    await note(session, "last")
    assert heard == [1, 2, 3]
    assert await session.snapshot(NOTES) == {"lines": ["running", "queued", "last"]}


async def test_a_commit_inside_a_callback_is_told_instead_of_waiting_for_itself() -> None:
    session = await open_session()

    async def nested(_tx: Transaction) -> None:
        await note(session, "never")

    async def closing(_tx: Transaction) -> None:
        await session.close()

    with pytest.raises(InternalError, match="inside a commit callback"):
        await session.commit(nested)
    with pytest.raises(InternalError, match="inside a commit callback"):
        await session.commit(closing)
    await note(session, "works")
    assert await session.snapshot(NOTES) == {"lines": ["works"]}


async def test_a_snapshot_inside_a_callback_shows_what_is_committed() -> None:
    session = await open_session()
    await note(session, "old")

    async def look(tx: Transaction) -> object:
        (await tx.document(NOTES)).value["lines"] = ["new"]
        return await session.snapshot(NOTES)

    assert await session.commit(look) == {"lines": ["old"]}


@pytest.mark.rule("SE-7")
async def test_closing_lets_admitted_commits_finish_ends_the_storage_and_refuses_the_rest() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    storage.hold_commits()
    commits = [asyncio.ensure_future(note(session, line)) for line in ("running", "queued")]
    await storage.commit_held()
    closes = [asyncio.ensure_future(session.close()) for _ in range(2)]
    await asyncio.sleep(0)
    closes[0].cancel()
    assert "close" not in storage.calls
    storage.release_commits()
    await asyncio.gather(*commits, closes[1])
    await session.close()
    assert [batch.documents != () for batch in storage.batches] == [True, True]
    assert (storage.calls[-1], storage.calls.count("close")) == ("close", 1)
    for use in (lambda: note(session, "late"), lambda: session.snapshot(NOTES), lambda: session.snapshot_as_of(NOTES, 1, 1)):
        with pytest.raises(SessionClosed, match="after the session was closed"):
            await use()
    for call in (lambda: session.subscribe(print), session.watch):
        with pytest.raises(SessionClosed):
            call()


async def test_two_sessions_on_the_same_contents_show_that_the_counters_are_stored() -> None:
    storage = MemoryStorage()
    first = await open_session(storage)
    await new_conversation(first)
    await first.close()
    second = await Session.open(MemoryStorage(storage.contents), clock=ManualClock(START_MS))
    assert second.next_seq == 2
    assert await new_conversation(second) == 2
