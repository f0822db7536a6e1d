from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from pi_durable_tui.errors import BadRequest, NotFound, Refused, StoreCorrupt, TransactionSettled
from pi_durable_tui.records.commit import Batch, Commit, DocumentBase, DocumentChange, DocumentDelta, DocumentRetired
from pi_durable_tui.records.conversation import ForkPoint
from pi_durable_tui.records.document import Address, Definition, Revisions, StoredDocument
from pi_durable_tui.records.task import Completed, Terminal
from pi_durable_tui.session import documents as documents_module
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.memory import MemoryStorage
from tests.support.controlled_storage import ControlledStorage
from tests.support.session_builders import AGENT, NOTES, SCRATCH, START_MS, change, conversation, entry, new_conversation, new_entry, note, open_session, task

NOTES_ADDRESS = Address(kind="test.notes", scope="session")


def writes(storage: ControlledStorage) -> list[Any]:
    """The document writes of every batch, in order."""
    return [write for batch in storage.batches for write in batch.documents]


async def access(tx: Transaction) -> None:
    """A typed access that changes nothing."""
    await tx.document(NOTES)


# ----------------------------------------------------------------------------------------------------- bases and deltas


@pytest.mark.rule("DO-4", "FB-16")
async def test_creation_stores_a_base_and_later_changes_store_deltas() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    for line in ("a", "b"):
        await note(session, line)
    assert writes(storage) == [
        DocumentBase(document_id=1, address=NOTES_ADDRESS, version=1, history="latest", value={"lines": ["a"]}),
        DocumentDelta(document_id=1, ops=[["l", ["lines"], 1, 0, ["b"]]]),
    ]
    assert await session.storage.revisions(1) == Revisions(base_seq=1, base={"lines": ["a"]}, version=1, deltas=([["l", ["lines"], 1, 0, ["b"]]],))


@pytest.mark.rule("DO-4", "FB-16")
async def test_checkpoint_when_decides_between_base_and_delta_by_value_steps_and_chain_length() -> None:
    asked: list[tuple[Any, Any, int]] = []

    def every_third(value: Any, ops: Any, deltas: int) -> bool:
        asked.append((value, ops, deltas))
        return deltas >= 2

    definition = replace(NOTES, checkpoint_when=every_third)
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    for number in range(6):
        await note(session, number, definition)
    assert [type(write) for write in writes(storage)] == [DocumentBase, DocumentDelta, DocumentDelta, DocumentBase, DocumentDelta, DocumentDelta]
    assert asked == [
        ({"lines": list(range(number + 1))}, [["l", ["lines"], number, 0, [number]]], deltas) for number, deltas in [(1, 0), (2, 1), (3, 2), (4, 0), (5, 1)]
    ]


@pytest.mark.rule("DO-4", "DO-5")
async def test_the_chain_length_and_the_value_are_known_again_after_a_reopen() -> None:
    lengths: list[int] = []
    definition = replace(NOTES, checkpoint_when=lambda _value, _ops, deltas: bool(lengths.append(deltas)))
    storage = MemoryStorage()
    session = await open_session(storage)
    for number in range(4):
        await note(session, number, definition)
    again = await open_session(MemoryStorage(storage.contents))
    assert await again.snapshot(definition) == {"lines": [0, 1, 2, 3]}
    await note(again, 4, definition)
    assert lengths == [0, 1, 2, 3]
    assert await again.snapshot(definition) == {"lines": [0, 1, 2, 3, 4]}


@pytest.mark.rule("DO-1", "DO-3")
async def test_a_partial_answer_stores_only_what_was_added_and_shares_the_rest() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    heard: list[Commit] = []
    session.subscribe(heard.append)
    text = "answer " * 15_000
    await change(session, NOTES, None, lambda value: value.update(generation={"text": text}, tools=[{"taskId": 1}]))
    await change(session, NOTES, None, lambda value: value["generation"].update(text=text + "twenty more letters."))
    assert writes(storage)[1] == DocumentDelta(document_id=1, ops=[["a", ["generation", "text"], "twenty more letters."]])
    step: Any = heard[1].documents[0]
    assert step.ops == [["a", ["generation", "text"], "twenty more letters."]]
    assert step.previous is heard[0].documents[0].value
    assert step.value["tools"] is step.previous["tools"]
    assert step.value["generation"]["text"] == text + "twenty more letters."


async def test_an_access_that_changes_nothing_stores_nothing_once_the_document_exists() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    await session.commit(access)
    await session.commit(access)
    await change(session, NOTES, None, lambda value: value.update(lines=()))
    assert len(storage.batches) == 1


async def test_a_draft_may_be_assigned_whole_and_is_the_same_draft_within_a_transaction() -> None:
    session = await open_session()
    await note(session, "old")

    async def replace_all(tx: Transaction) -> None:
        first, second = await asyncio.gather(tx.document(NOTES), tx.document(NOTES))
        first.value = {"other": 1}
        third = await tx.document(NOTES)
        third.value["more"] = 2
        assert first is second is third

    await session.commit(replace_all)
    assert await session.snapshot(NOTES) == {"other": 1, "more": 2}


async def test_two_drafts_asked_for_at_once_are_one() -> None:
    class Slow(MemoryStorage):
        async def document(self, address: Address) -> Any:
            await asyncio.sleep(0)
            return await super().document(address)

    session = await open_session(Slow())

    async def both(tx: Transaction) -> None:
        first, second = await asyncio.gather(tx.document(NOTES), tx.document(NOTES))
        first.value["a"] = 1
        second.value["b"] = 2

    await session.commit(both)
    assert await session.snapshot(NOTES) == {"lines": [], "a": 1, "b": 2}


@pytest.mark.rule("SE-5")
@pytest.mark.parametrize("exists", [True, False])
async def test_a_document_value_that_is_no_object_is_refused(exists: bool) -> None:
    session = await open_session()
    if exists:
        await session.commit(access)

    async def assign(tx: Transaction) -> None:
        draft: Any = await tx.document(NOTES)
        draft.value = ["no object"]

    with pytest.raises(BadRequest, match=r"^The value of test\.notes is a list; a document is an object\."):
        await session.commit(assign)


@pytest.mark.parametrize(("definition", "scope_id"), [(NOTES, 1), (AGENT, None), (SCRATCH, None)])
async def test_a_scope_id_that_does_not_fit_the_definition_is_refused(definition: Definition, scope_id: int | None) -> None:
    session = await open_session()
    with pytest.raises(BadRequest, match=f"^The document {definition.kind} belongs to a {definition.scope}, so the scope id cannot be {scope_id}"):
        await session.snapshot(definition, scope_id)
    with pytest.raises(BadRequest):
        await note(session, "x", definition, scope_id)


async def test_a_snapshot_is_the_callers_own() -> None:
    session = await open_session()
    await note(session, {"deep": 1})
    mine: Any = await session.snapshot(NOTES)
    mine["lines"][0]["deep"] = 2
    mine["lines"].append("x")
    assert await session.snapshot(NOTES) == {"lines": [{"deep": 1}]}


# ------------------------------------------------------------------------------------------------- creation and migration


@pytest.mark.rule("DO-5")
async def test_a_snapshot_never_creates_and_a_typed_access_does_even_without_a_change() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    assert await session.snapshot(NOTES) is None
    assert storage.batches == []
    await session.commit(access)
    assert storage.batches == [
        Batch(
            next_id=2,
            at_ms=START_MS,
            documents=(DocumentBase(document_id=1, address=NOTES_ADDRESS, version=1, history="latest", value={"lines": []}),),
        )
    ]
    assert await session.snapshot(NOTES) == {"lines": []}


@pytest.mark.rule("DO-5", "DO-6", "DO-4")
async def test_an_older_version_is_migrated_for_reading_and_stored_by_a_typed_access_only() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    await note(session, "a")
    heard: list[Commit] = []
    session.subscribe(heard.append)
    second = replace(NOTES, version=2, migrate=lambda value, version: {"items": value["lines"], "from": version})
    assert await session.snapshot(second) == {"items": ["a"], "from": 1}
    assert len(storage.batches) == 1

    async def touch(tx: Transaction) -> None:
        await tx.document(second)

    await session.commit(touch)
    assert writes(storage)[1:] == [DocumentBase(document_id=1, address=NOTES_ADDRESS, version=2, history="latest", value={"items": ["a"], "from": 1})]
    assert heard[0].documents == (
        DocumentChange(
            address=NOTES_ADDRESS,
            previous={"lines": ["a"]},
            value={"items": ["a"], "from": 1},
            ops=[["r", {"items": ["a"], "from": 1}]],
        ),
    )
    again = await open_session(MemoryStorage(session.storage.inner.contents))  # type: ignore[attr-defined]
    assert await again.snapshot(second) == {"items": ["a"], "from": 1}
    await change(again, second, None, lambda value: value.update(more=1))
    assert await again.snapshot(second) == {"items": ["a"], "from": 1, "more": 1}


@pytest.mark.rule("DO-6")
@pytest.mark.parametrize(
    ("stored", "known", "why"),
    [(2, 1, "newer than the version 1"), (1, 2, "older, and cannot be migrated to, the version 2")],
)
async def test_a_version_that_cannot_be_used_is_refused_for_that_access_only(stored: int, known: int, why: str) -> None:
    session = await open_session()
    other = replace(NOTES, kind="test.other")
    await note(session, "kept", replace(NOTES, version=stored))
    unfit = replace(NOTES, version=known)

    async def both(tx: Transaction) -> str:
        (await tx.document(other)).value["lines"] = ["written all the same"]
        try:
            await tx.document(unfit)
        except Refused as error:
            return error.message
        return "allowed"

    message = await session.commit(both)
    assert message == f"The document test.notes was stored with version {stored}, which is {why} of this program. It was not touched."
    with pytest.raises(Refused, match="It was not touched"):
        await session.snapshot(unfit)
    assert await session.snapshot(other) == {"lines": ["written all the same"]}
    assert await session.snapshot(replace(NOTES, version=stored)) == {"lines": ["kept"]}


@pytest.mark.rule("DO-6", "SE-2")
async def test_a_migration_that_raises_or_makes_no_object_changes_nothing() -> None:
    session = await open_session()
    await note(session, "kept")

    def broken(_value: Any, _version: int) -> Any:
        raise KeyError("lines2")

    with pytest.raises(KeyError):
        await note(session, "x", replace(NOTES, version=2, migrate=broken))
    nonsense: Any = lambda _value, _version: None  # noqa: E731 - stands where a function of the right type should
    with pytest.raises(BadRequest, match="a document is an object"):
        await note(session, "x", replace(NOTES, version=2, migrate=nonsense))
    assert await session.snapshot(NOTES) == {"lines": ["kept"]}


@pytest.mark.rule("DO-6")
async def test_migrating_does_not_touch_the_committed_value() -> None:
    session = await open_session()
    await note(session, "a")

    def in_place(value: Any, _version: int) -> Any:
        value["lines"].append("migrated")
        return value

    assert await session.snapshot(replace(NOTES, version=2, migrate=in_place)) == {"lines": ["a", "migrated"]}
    assert await session.snapshot(NOTES) == {"lines": ["a"]}


# ------------------------------------------------------------------------------------------------------------- retirement


@pytest.mark.rule("DO-7")
async def test_the_documents_of_a_task_retire_in_the_commit_that_ends_it() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    conversation_id = await new_conversation(session)
    running = task(2, conversation_id)

    async def start(tx: Transaction) -> None:
        tx.new_id()
        tx.put_task(running)
        (await tx.document(SCRATCH, 2)).value["n"] = 1

    ended = task(2, conversation_id, state=Terminal(outcome=Completed()))

    async def end(tx: Transaction) -> None:
        tx.put_task(ended)

    heard: list[Commit] = []
    await session.commit(start)
    session.subscribe(heard.append)
    await session.commit(end)
    address = Address(kind="test.scratch", scope="task", scope_id=2)
    assert storage.batches[-1] == Batch(next_id=4, at_ms=START_MS, tasks=(ended,), documents=(DocumentRetired(document_id=3),))
    assert heard == [
        Commit(seq=3, at_ms=START_MS, tasks=(ended,), documents=(DocumentChange(address=address, previous={"n": 1}, value=None, ops=[["r", None]]),))
    ]
    assert await session.snapshot(SCRATCH, 2) is None
    assert await session.storage.documents("task", 2) == ()


@pytest.mark.rule("DO-7", "SE-4")
async def test_retiring_drops_drafts_of_the_same_transaction_and_refuses_new_ones() -> None:
    session = await open_session()
    await change(session, SCRATCH, 5, lambda value: value.update(n=1))

    async def retire(tx: Transaction) -> str:
        stored, fresh = await tx.document(SCRATCH, 5), await tx.document(replace(SCRATCH, kind="test.fresh"), 5)
        stored.value["n"] = 2
        await tx.retire_documents("task", 5)
        await tx.retire_documents("task", 5)
        for draft in (stored, fresh):
            with pytest.raises(TransactionSettled):
                _ = draft.value
        with pytest.raises(BadRequest) as caught:
            await tx.document(SCRATCH, 5)
        return caught.value.message

    assert await session.commit(retire) == "The document test.scratch(5) was retired in this transaction."
    assert await session.snapshot(SCRATCH, 5) is None
    assert await session.snapshot(replace(SCRATCH, kind="test.fresh"), 5) is None
    await change(session, SCRATCH, 5, lambda value: value.update(again=True))
    assert await session.snapshot(SCRATCH, 5) == {"again": True}


async def test_retiring_an_owner_without_documents_writes_nothing() -> None:
    session = await open_session()

    async def retire(tx: Transaction) -> None:
        await tx.retire_documents("conversation", 7)

    await session.commit(retire)
    assert session.next_seq == 1


async def test_a_document_the_store_lists_and_cannot_give_is_damage_and_nothing_changes() -> None:
    class Confused(MemoryStorage):
        async def documents(self, scope: Any, scope_id: int | None) -> tuple[StoredDocument, ...]:
            return (StoredDocument(id=9, address=SCRATCH.address(5), version=1, history="latest"),)

    session = await open_session(Confused())

    async def retire(tx: Transaction) -> None:
        await tx.retire_documents("task", 5)

    with pytest.raises(StoreCorrupt, match=r"document 9: test\.scratch\(5\) is listed and has no value"):
        await session.commit(retire)
    assert (session.failed, session.next_seq) == (None, 1)


# ----------------------------------------------------------------------------------------------------------------- cache


async def test_documents_are_read_from_the_store_once_and_the_longest_unused_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents_module, "_CACHED_DOCUMENTS", 2)
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    for scope_id in (1, 2, 3):
        await change(session, AGENT, scope_id, lambda value, scope_id=scope_id: value.update(n=scope_id))
    storage.calls.clear()
    assert [await session.snapshot(AGENT, scope_id) for scope_id in (3, 2, 3)] == [{"n": 3}, {"n": 2}, {"n": 3}]
    assert storage.calls == []
    assert await session.snapshot(AGENT, 1) == {"n": 1}
    assert await session.snapshot(AGENT, 3) == {"n": 3}
    assert storage.calls == ["document", "revisions"]
    assert await session.snapshot(AGENT, 2) == {"n": 2}
    assert storage.calls == ["document", "revisions", "document", "revisions"]


@pytest.mark.rule("OB-6")
async def test_a_read_only_session_sees_what_another_writes_meanwhile() -> None:
    class Following(MemoryStorage):
        @property
        def read_only(self) -> bool:
            return True

    writer_storage = MemoryStorage()
    writer = await open_session(writer_storage)
    reader = await open_session(Following(writer_storage.contents))
    writer_storage.contents.owner = writer_storage
    assert await reader.snapshot(NOTES) is None
    await note(writer, "a")
    assert await reader.snapshot(NOTES) == {"lines": ["a"]}
    await note(writer, "b")
    assert await reader.snapshot(NOTES) == {"lines": ["a", "b"]}


async def test_a_slow_read_does_not_put_an_old_value_over_a_newer_one() -> None:
    gate, asked = asyncio.Event(), asyncio.Event()

    class Slow(MemoryStorage):
        slow = True

        async def revisions(self, document_id: int, *, at_seq: int | None = None) -> Revisions | None:
            found = await super().revisions(document_id, at_seq=at_seq)
            if self.slow:
                self.slow = False
                asked.set()
                await gate.wait()
            return found

    storage = MemoryStorage()
    await note(await open_session(storage), "old")
    session = await open_session(Slow(storage.contents))
    reading = asyncio.ensure_future(session.snapshot(NOTES))
    await asked.wait()
    await note(session, "new")
    gate.set()
    assert await reading == {"lines": ["old"]}
    assert await session.snapshot(NOTES) == {"lines": ["old", "new"]}


@pytest.mark.rule("ST-15")
async def test_revisions_that_do_not_fit_together_are_named_as_damage() -> None:
    class Damaged(MemoryStorage):
        async def revisions(self, document_id: int, *, at_seq: int | None = None) -> Revisions | None:
            return Revisions(base_seq=1, base={}, version=1, deltas=([["a", ["missing"], "x"]],))

    storage = MemoryStorage()
    await note(await open_session(storage), "a")
    session = await open_session(Damaged(storage.contents))
    with pytest.raises(StoreCorrupt, match=r"^The session memory is damaged: document 1: Step 0 of a delta does not fit"):
        await session.snapshot(NOTES)
    with pytest.raises(StoreCorrupt):
        await note(session, "b")
    assert session.failed is None


async def test_a_document_that_retires_between_two_reads_is_gone() -> None:
    class Vanishing(MemoryStorage):
        async def revisions(self, document_id: int, *, at_seq: int | None = None) -> Revisions | None:
            return None

    storage = MemoryStorage()
    await note(await open_session(storage), "a")
    assert await (await open_session(Vanishing(storage.contents))).snapshot(NOTES) is None


# ---------------------------------------------------------------------------------------------------------- point in time


@pytest.mark.rule("DO-8", "ST-9", "FB-6")
async def test_a_value_as_of_an_entry_is_that_of_its_commit() -> None:
    session = await open_session()
    conversation_id = await new_conversation(session)
    bare = await new_entry(session, conversation_id)
    found: list[int] = []
    for line in ("a", "b", "c"):
        await note(session, line, AGENT, conversation_id)
        found.append(await new_entry(session, conversation_id))
    assert await session.snapshot_as_of(AGENT, conversation_id, bare) is None
    assert [await session.snapshot_as_of(AGENT, conversation_id, entry_id) for entry_id in found] == [
        {"lines": ["a"]},
        {"lines": ["a", "b"]},
        {"lines": ["a", "b", "c"]},
    ]


@pytest.mark.rule("DO-8")
async def test_a_value_as_of_an_entry_of_the_same_commit_holds_that_commits_change() -> None:
    session = await open_session()
    conversation_id = await new_conversation(session)
    await note(session, "a", AGENT, conversation_id)

    async def both(tx: Transaction) -> int:
        draft: Any = await tx.document(AGENT, conversation_id)
        draft.value["lines"].append("b")
        created = tx.new_id()
        tx.insert_entry(entry(created, conversation_id))
        return created

    entry_id = await session.commit(both)
    await note(session, "c", AGENT, conversation_id)
    assert await session.snapshot_as_of(AGENT, conversation_id, entry_id) == {"lines": ["a", "b"]}


@pytest.mark.rule("DO-8", "ST-7")
async def test_a_value_as_of_an_entry_before_a_fork_is_read_through_the_parents() -> None:
    session = await open_session()
    grand = await new_conversation(session)
    await note(session, "a", AGENT, grand)
    first = await new_entry(session, grand)
    await note(session, "b", AGENT, grand)
    after_fork = await new_entry(session, grand)

    async def fork(tx: Transaction, parent_id: int, entry_id: int) -> int:
        stored = await tx.entry(entry_id)
        assert stored is not None
        created = tx.new_id()
        tx.insert_conversation(conversation(created, parent=ForkPoint(conversation_id=parent_id, entry_id=entry_id, seq=stored.seq)))
        return created

    parent = await session.commit(lambda tx: fork(tx, grand, first))
    own = await new_entry(session, parent)
    child = await session.commit(lambda tx: fork(tx, parent, own))
    await note(session, "child's", AGENT, child)
    childs = await new_entry(session, child)
    assert await session.snapshot_as_of(AGENT, child, first) == {"lines": ["a"]}
    assert await session.snapshot_as_of(AGENT, child, own) is None
    assert await session.snapshot_as_of(AGENT, child, childs) == {"lines": ["child's"]}
    for conversation_id, entry_id in [(child, after_fork), (parent, after_fork), (grand, own), (parent, childs), (grand, 999), (999, first)]:
        with pytest.raises(NotFound, match=f"^There is no entry {entry_id} in conversation {conversation_id}"):
            await session.snapshot_as_of(AGENT, conversation_id, entry_id)


@pytest.mark.rule("DO-8")
@pytest.mark.parametrize("definition", [NOTES, SCRATCH, replace(AGENT, history="latest"), replace(NOTES, history="rewindable")])
async def test_a_document_without_a_history_of_the_conversation_has_no_value_of_then(definition: Definition) -> None:
    session = await open_session()
    with pytest.raises(BadRequest, match="keeps no history of a conversation"):
        await session.snapshot_as_of(definition, 1, 1)


@pytest.mark.rule("DO-5", "DO-6", "DO-8")
async def test_a_value_as_of_then_is_migrated_from_the_version_of_then_and_writes_nothing() -> None:
    storage = ControlledStorage(MemoryStorage())
    session = await open_session(storage)
    conversation_id = await new_conversation(session)
    await note(session, "a", AGENT, conversation_id)
    then = await new_entry(session, conversation_id)
    second = replace(AGENT, version=2, migrate=lambda value, version: {**value, "from": version})
    await note(session, "b", second, conversation_id)
    now = await new_entry(session, conversation_id)
    stored = len(storage.batches)
    assert await session.snapshot_as_of(second, conversation_id, then) == {"lines": ["a"], "from": 1}
    assert await session.snapshot_as_of(second, conversation_id, now) == {"lines": ["a", "b"], "from": 1}
    assert await session.snapshot_as_of(AGENT, conversation_id, then) == {"lines": ["a"]}
    with pytest.raises(Refused):
        await session.snapshot_as_of(AGENT, conversation_id, now)
    assert len(storage.batches) == stored
