"""Random histories of one session against a plain dictionary, with failures, crashes and reopens among the steps."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from pi_durable_tui.errors import SessionFailed, StorageRejected
from pi_durable_tui.records import delta
from pi_durable_tui.records.commit import Commit
from pi_durable_tui.records.document import Definition
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.memory import MemoryStorage
from tests.support.controlled_storage import ControlledStorage
from tests.support.session_builders import conversation, open_session

T = TypeVar("T")

KINDS = {kind: Definition(kind=kind, scope="task", checkpoint_when=lambda _value, _ops, deltas: deltas >= 3) for kind in ("test.a", "test.b")}
ADDRESSES = st.tuples(st.sampled_from(sorted(KINDS)), st.integers(1, 2))
VALUES = st.dictionaries(
    st.sampled_from("xyz"),
    st.recursive(
        st.sampled_from([None, True, 1, 1.0, "", "abc", "abcd" * 20]), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xy"), inner)
    ),
)
Documents = dict[tuple[str, int], Any]


class Histories(RuleBasedStateMachine):
    """`committed` is what must be in the store; `shown` is what an observer has built from commits alone."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.storage = ControlledStorage(MemoryStorage())
        self.committed: Documents = {}
        self.shown: Documents = {}
        self.seqs: list[int] = []
        self.session = self.run(self.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def open(self) -> Session:
        session = await open_session(self.storage)
        session.subscribe(self.hear)
        return session

    def hear(self, commit: Commit) -> None:
        assert commit.seq > (self.seqs[-1] if self.seqs else 0)
        self.seqs.append(commit.seq)
        for step in commit.documents:
            address = (step.address.kind, step.address.scope_id or 0)
            assert step.previous == self.shown.get(address)
            value = delta.apply(step.ops, self.shown.get(address))
            assert value == step.value
            self.shown[address] = value
            if value is None:
                del self.shown[address]

    async def write(self, changes: Documents, retire: int | None = None) -> None:
        async def callback(tx: Transaction) -> None:
            for (kind, scope_id), value in changes.items():
                (await tx.document(KINDS[kind], scope_id)).value = copy.deepcopy(value)
            if retire is not None:
                await tx.retire_documents("task", retire)

        await self.session.commit(callback)

    def expect(self, changes: Documents, retire: int | None = None) -> None:
        self.committed = {address: value for address, value in {**self.committed, **changes}.items() if address[1] != retire}

    @rule(changes=st.dictionaries(ADDRESSES, VALUES, min_size=1, max_size=3))
    def commit(self, changes: Documents) -> None:
        self.run(self.write(changes))
        self.expect(changes)

    @rule(changes=st.dictionaries(ADDRESSES, VALUES, max_size=2), scope_id=st.integers(1, 2))
    def retire(self, changes: Documents, scope_id: int) -> None:
        self.run(self.write(changes, scope_id))
        self.expect(changes, scope_id)

    @rule(changes=st.dictionaries(ADDRESSES, VALUES, min_size=1, max_size=2))
    def rejected(self, changes: Documents) -> None:
        self.storage.fail_next_commit(StorageRejected("Full.", reason="no_space"))

        async def callback(tx: Transaction) -> None:
            tx.insert_conversation(conversation(tx.new_id()))  # so that there is always something to store
            for (kind, scope_id), value in changes.items():
                (await tx.document(KINDS[kind], scope_id)).value = copy.deepcopy(value)

        with pytest.raises(StorageRejected):
            self.run(self.session.commit(callback))

    @rule(changes=st.dictionaries(ADDRESSES, VALUES, min_size=1, max_size=2), stored=st.booleans())
    def unknown_outcome(self, changes: Documents, stored: bool) -> None:
        async def callback(tx: Transaction) -> None:
            tx.insert_conversation(conversation(tx.new_id()))
            for (kind, scope_id), value in changes.items():
                (await tx.document(KINDS[kind], scope_id)).value = copy.deepcopy(value)

        self.storage.fail_next_commit(OSError("?"), stored=stored)
        with pytest.raises(SessionFailed):
            self.run(self.session.commit(callback))
        assert self.shown == self.committed
        if stored:
            self.expect(changes)
        self.reopen()

    @rule()
    def reopen(self) -> None:
        inner: Any = self.storage.inner
        self.run(self.session.close())
        self.storage = self.storage.reopened(MemoryStorage(inner.contents))
        self.session = self.run(self.open())
        self.shown = copy.deepcopy(self.committed)

    @invariant()
    def the_store_and_what_was_shown_are_what_was_committed(self) -> None:
        assert self.shown == self.committed
        for kind, definition in KINDS.items():
            for scope_id in (1, 2):
                assert self.run(self.session.snapshot(definition, scope_id)) == self.committed.get((kind, scope_id))

    def teardown(self) -> None:
        self.run(self.session.close())
        self.runner.close()


@pytest.mark.slow
@pytest.mark.rule("SE-1", "SE-2", "ST-6", "DO-2", "DO-4", "DO-7", "FB-43")
def test_random_histories_show_exactly_what_is_stored() -> None:
    run_state_machine_as_test(Histories, settings=settings(max_examples=30, stateful_step_count=25, deadline=None))
