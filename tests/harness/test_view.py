"""A view kept up to date by commits (harness/view.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.harness.live import AGENT, BUILT_IN, INBOX, LIVE, PROVIDER, Agent, Draft, Inbox, Live, Provider, Run, UsageTotals
from pi_durable_tui.harness.observation.frames import read_view
from pi_durable_tui.harness.view import KEPT_ENTRIES, KEPT_SETTLED, ConversationView, apply
from pi_durable_tui.records.codec import to_json
from pi_durable_tui.records.commit import Commit, DocumentChange
from pi_durable_tui.records.document import Address, Definition
from pi_durable_tui.records.messages import Problem, Usage
from pi_durable_tui.records.submission import Done, Placed, Unanswered
from pi_durable_tui.records.task import Pending, Running, Terminal, moved
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from tests.support.harness_builders import CONVERSATION, DONE, HERE, START_MS, entry, run, said, stored, submission, task, view
from tests.support.harness_rig import Rig
from tests.support.session_builders import new_conversation, open_session

OTHER = 2
FIELDS = [each.name for each in fields(ConversationView)]
NOTES = Definition(kind="test.notes", scope="conversation")


def changed_fields(before: ConversationView, after: ConversationView) -> set[str]:
    """Those whose value is another object."""
    return {name for name in FIELDS if getattr(before, name) is not getattr(after, name)}


def change(definition: Definition, value: Any, *, conversation_id: int = CONVERSATION) -> DocumentChange:
    return DocumentChange(address=definition.address(conversation_id), previous={}, value=value, ops=[])


def commit(seq: int = 2, **parts: Any) -> Commit:
    return Commit(seq=seq, at_ms=START_MS + seq, **parts)


FULL = view(
    entries=stored(entry(3, said("a"))),
    has_older=True,
    agent=Agent(model="test/one"),
    live=Live(run=run(10)),
    inbox=Inbox(),
    provider=Provider(session_id="s"),
    usage=UsageTotals(context_tokens=5),
    draft=Draft(text="x"),
    submissions=(submission(4, Placed(entry_id=3)), submission(8)),
    tasks=(task(10, "waiting"), task(12)),
)


@pytest.mark.rule("OB-1")
def test_a_commit_adds_entries_behind_those_that_are_there():
    after = apply(FULL, commit(entries=stored(entry(20, said("b")), entry(21, said("c"), conversation_id=OTHER), seq=2)))
    assert after == replace(FULL, seq=2, committed_at_ms=START_MS + 2, entries=(*FULL.entries, *stored(entry(20, said("b")), seq=2)))
    assert changed_fields(FULL, after) == {"seq", "committed_at_ms", "entries"}


@pytest.mark.rule("OB-1")
def test_a_commit_replaces_tasks_in_order_of_ids_and_drops_those_that_have_ended():
    after = apply(FULL, commit(tasks=(task(12, "terminal"), task(11, "running"), task(10, "running"), task(9, conversation_id=OTHER))))
    assert after == replace(FULL, seq=2, committed_at_ms=START_MS + 2, tasks=(task(10, "running"), task(11, "running")))


@pytest.mark.rule("OB-1")
def test_a_commit_replaces_submissions_in_order_of_ids_and_keeps_those_that_have_settled():
    done = submission(4, Done(entry_id=3, answer_entry_id=7))
    after = apply(FULL, commit(submissions=(submission(9), done, submission(6), submission(5, conversation_id=OTHER))))
    assert after == replace(FULL, seq=2, committed_at_ms=START_MS + 2, submissions=(done, submission(6), submission(8), submission(9)))


@pytest.mark.rule("OB-1", "TU-1")
def test_a_view_keeps_the_newest_entries_and_does_not_grow_with_what_is_said():
    after, longest = FULL, 0
    for number in range(4, 4 + 5 * KEPT_ENTRIES):
        after = apply(after, commit(number, entries=stored(entry(number, said("b")), seq=number)))
        longest = max(longest, len(after.entries))
    ids = [each.entry.id for each in after.entries]
    assert ids == list(range(4 + 5 * KEPT_ENTRIES - len(ids), 4 + 5 * KEPT_ENTRIES))
    assert KEPT_ENTRIES <= len(ids) <= longest == 2 * KEPT_ENTRIES
    assert after.has_older


@pytest.mark.rule("OB-1")
def test_all_entries_of_one_commit_are_there_however_many_they_are():
    new = tuple(entry(number, said("b")) for number in range(10, 11 + 2 * KEPT_ENTRIES))
    after = apply(replace(FULL, has_older=False), commit(entries=stored(*new)))
    assert (len(after.entries), after.entries[0].entry.id, after.has_older) == (len(new), 10, True)


@pytest.mark.rule("OB-1", "TU-1")
def test_a_view_keeps_open_submissions_and_the_newest_of_those_that_have_settled():
    many = tuple(submission(number, Done(entry_id=3, answer_entry_id=7)) for number in range(20, 20 + 2 * KEPT_SETTLED))
    after = apply(FULL, commit(submissions=many))
    assert after.submissions == (*FULL.submissions, *many), "what one commit settled is all there to be told"
    later = apply(after, commit(3, submissions=(submission(900),)))
    assert later.submissions == (*FULL.submissions, *many[-KEPT_SETTLED:], submission(900))


@pytest.mark.rule("OB-1", "TU-8")
async def test_a_view_that_is_read_tells_how_the_run_of_the_newest_input_ended():
    session = await open_session()
    here, there = await new_conversation(session), await new_conversation(session)
    ended = Unanswered(problem=Problem(reason="aborted"), entry_id=3)

    async def write(tx: Transaction) -> None:
        for conversation_id in (here, there):
            asked = submission(tx.new_id(), ended, conversation_id=here)
            tx.put_submission(asked)
            tx.insert_entry(entry(tx.new_id(), said("go"), conversation_id=conversation_id, data={"submissionId": asked.id}))

    await session.commit(write)
    assert [each.state for each in (await read_view(session, here)).submissions] == [ended, ended], "that of its newest input, and the newest of all"
    assert (await read_view(session, there)).submissions == (), "an input that came with a fork was somebody else's"
    await session.close()


DOCUMENTS: dict[str, Any] = {
    "agent": Agent(model="test/two", approval="all"),
    "live": Live(run=run(30, turn=2)),
    "inbox": Inbox(),
    "provider": Provider(session_id="t"),
    "usage": UsageTotals(models={"test/one": Usage(input_tokens=4)}),
    "draft": Draft(text="xy", cursor=2),
}


@pytest.mark.rule("OB-1")
@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_each_built_in_document_has_its_field(name):
    definition = next(each for each in BUILT_IN if each.kind.endswith(f".{name}"))
    value = to_json(DOCUMENTS[name])
    after = apply(FULL, commit(documents=(change(definition, value), change(definition, {}, conversation_id=OTHER))))
    assert after == replace(FULL, seq=2, committed_at_ms=START_MS + 2, **{name: DOCUMENTS[name]})
    assert changed_fields(FULL, after) == {"seq", "committed_at_ms", name}


def test_a_document_that_is_gone_reads_like_one_that_nobody_has_written():
    assert apply(FULL, commit(documents=(change(AGENT, None),))).agent == Agent()


def test_the_last_change_of_a_document_in_a_commit_counts():
    assert apply(FULL, commit(documents=(change(AGENT, {"model": "a/b"}), change(AGENT, {"model": "c/d"})))).agent == Agent(model="c/d")


@pytest.mark.rule("OB-2")
def test_a_commit_of_other_conversations_or_documents_leaves_the_view_the_same_object():
    elsewhere = commit(
        entries=stored(entry(20, said("b"), conversation_id=OTHER)),
        tasks=(task(9, conversation_id=OTHER),),
        submissions=(submission(9, conversation_id=OTHER),),
        documents=(
            change(AGENT, {}, conversation_id=OTHER),
            change(NOTES, {"a": 1}),
            DocumentChange(address=Address(kind=AGENT.kind, scope="task", scope_id=CONVERSATION), previous=None, value={}, ops=[]),
            DocumentChange(address=Address(kind=AGENT.kind, scope="session"), previous=None, value={}, ops=[]),
        ),
    )
    assert apply(FULL, elsewhere) is FULL
    assert apply(FULL, commit()) is FULL


def test_a_conversation_is_busy_while_a_run_goes_on():
    assert view(live=Live(run=Run(task_id=1, started_at_ms=START_MS))).is_busy
    assert not view().is_busy


# --------------------------------------------------------------------------------- applying commits equals reading the store


class Story:
    """A session with two conversations that commits pieces of work, and the view of the first one kept by commits."""

    def __init__(self, session: Session, first: int, second: int, start: ConversationView) -> None:
        self.session = session
        self.conversations = (first, second)
        self.view = start
        self.tasks: list[Any] = []
        self.submissions: list[Any] = []
        self.entries: list[int] = []

    async def work(self, steps: list[tuple[str, int]]) -> None:
        """All steps in one commit."""

        async def write(tx: Transaction) -> None:
            for name, which in steps:
                await getattr(self, name)(tx, self.conversations[which])

        await self.session.commit(write)

    async def say(self, tx: Transaction, conversation_id: int) -> None:
        created = tx.new_id()
        self.entries.append(created)
        tx.insert_entry(entry(created, said("hi"), conversation_id=conversation_id))

    async def begin(self, tx: Transaction, conversation_id: int) -> None:
        self.tasks.append(task(tx.new_id(), conversation_id=conversation_id))
        tx.put_task(self.tasks[-1])

    async def run(self, tx: Transaction, _conversation_id: int) -> None:
        await self._move(tx, lambda old: moved(old, Running(checkpoint=HERE), at_ms=tx.now_ms))

    async def hand_back(self, tx: Transaction, _conversation_id: int) -> None:
        await self._move(tx, lambda old: moved(old, Pending(checkpoint=HERE) if old.status == "running" else Running(checkpoint=HERE), at_ms=tx.now_ms))

    async def end(self, tx: Transaction, _conversation_id: int) -> None:
        await self._move(tx, lambda old: moved(old, Terminal(outcome=DONE), at_ms=tx.now_ms))

    async def _move(self, tx: Transaction, step: Callable[[Any], Any]) -> None:
        if self.tasks:
            changed = step(self.tasks.pop(0))
            tx.put_task(changed)
            if changed.is_live:
                self.tasks.append(changed)

    async def submit(self, tx: Transaction, conversation_id: int) -> None:
        self.submissions.append(submission(tx.new_id(), conversation_id=conversation_id))
        tx.put_submission(self.submissions[-1])

    async def settle(self, tx: Transaction, _conversation_id: int) -> None:
        if self.submissions and self.entries:
            old = self.submissions.pop(0)
            tx.put_submission(submission(old.id, Done(entry_id=self.entries[-1]), conversation_id=old.conversation_id))

    async def speak(self, tx: Transaction, conversation_id: int) -> None:
        draft: Any = await tx.document(LIVE, conversation_id)
        draft.value = to_json(Live(run=run(tx.new_id())))

    async def fall_silent(self, tx: Transaction, conversation_id: int) -> None:
        (await tx.document(LIVE, conversation_id)).value.pop("run", None)

    async def choose(self, tx: Transaction, conversation_id: int) -> None:
        (await tx.document(AGENT, conversation_id)).value["model"] = f"test/{tx.new_id()}"

    async def note(self, tx: Transaction, conversation_id: int) -> None:
        (await tx.document(NOTES, conversation_id)).value["n"] = tx.new_id()

    async def queue(self, tx: Transaction, conversation_id: int) -> None:
        (await tx.document(INBOX, conversation_id)).value.setdefault("items", [])
        (await tx.document(PROVIDER, conversation_id)).value["sessionId"] = str(tx.new_id())


async def tell(commits: list[list[tuple[str, int]]]) -> None:
    session = await open_session()
    first, second = await new_conversation(session), await new_conversation(session)
    story = Story(session, first, second, await read_view(session, first))
    published: list[Commit] = []
    session.subscribe(published.append)
    for steps in commits:
        before = story.view
        # Documents and new records first: nothing may be read after the first write to a table.
        await story.work(sorted(steps, key=lambda step: step[0] not in {"speak", "fall_silent", "choose", "note", "queue"}))
        for each in published:
            story.view = apply(story.view, each)
        published.clear()
        whole = await read_view(session, first)
        known = story.view.submissions
        kept = replace(story.view, submissions=tuple(each for each in known if each.is_open or each is known[-1]))
        assert replace(kept, seq=whole.seq, committed_at_ms=whole.committed_at_ms) == whole
        for name in ("entries", "usage", "draft"):
            old, new = getattr(before, name), getattr(story.view, name)
            assert old is new or old != new, f"{name} did not change and yet is another object"
    await session.close()


STEPS = st.sampled_from(["say", "begin", "run", "hand_back", "end", "submit", "settle", "speak", "fall_silent", "choose", "note", "queue"])


@pytest.mark.rule("OB-1", "OB-2")
@given(st.lists(st.lists(st.tuples(STEPS, st.integers(0, 1)), max_size=3, unique_by=lambda step: step[0]), max_size=12))
def test_applying_commits_one_by_one_gives_what_reading_the_store_gives(commits):
    asyncio.run(tell(commits))


@pytest.mark.rule("OB-1", "OB-5", "SU-6")
async def test_however_many_wait_each_of_them_is_in_the_view_and_in_the_inspection(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    chat = await rig.start()
    ids: list[int] = []

    async def hand_in(tx: Transaction) -> None:
        for _ in range(1_100):
            ids.append(tx.new_id())
            tx.put_submission(submission(ids[-1], conversation_id=chat.id))

    await rig.harness.session.commit(hand_in)
    assert [each.id for each in (await chat.view()).submissions] == ids
    assert [each.id for each in (await rig.harness.inspect()).submissions] == ids
    await rig.close()
