"""Events out of views (harness/events.py)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.harness.live import Agent, CompactionRun, Draft, Failure, Inbox, InboxItem, Live, RetryWait, UsageTotals
from pi_durable_tui.harness.observation.events import events_of
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.codec import decode_json, encode, to_json
from pi_durable_tui.records.messages import Problem, Usage
from pi_durable_tui.records.submission import Done, Placed
from tests.support.event_listener import shown
from tests.support.harness_builders import MODEL, START_MS, answered, call, entry, gave, generation, run, said, slot, stored, submission, text_of, told, view

ITEM = InboxItem(submission_id=6, mode="steer", content=text_of("hurry"), at_ms=START_MS)
BROKE = Problem(reason="server", message="it broke")
USED = UsageTotals(models={MODEL: Usage(input_tokens=3)}, context_tokens=3)


def events(before: ConversationView | None, after: ConversationView) -> list[dict[str, Any]]:
    """All events, each without what every one of them has: they must be JSON, and of the commit of the later view."""
    found: list[Any] = list(events_of(before, after))
    assert decode_json(encode(found)) == found
    assert all(each["seq"] == after.seq for each in found)
    return [{key: item for key, item in each.items() if key != "seq"} for each in found]


# ---------------------------------------------------------------------------------------------------------- one after another


@pytest.mark.rule("OB-3")
def test_at_first_there_is_a_snapshot_of_what_goes_on_and_what_is_open():
    live, agent, inbox = Live(run=run(10)), Agent(model=MODEL), Inbox(items=(ITEM,))
    at = view(7, live=live, agent=agent, inbox=inbox, usage=USED, submissions=(submission(6, request_id="r"),), entries=stored(entry(3, said("a"))))
    assert events(None, at) == [
        {
            "type": "snapshot",
            "conversationId": 1,
            "live": to_json(live),
            "agent": to_json(agent),
            "inbox": [to_json(ITEM)],
            "usage": to_json(USED),
            "submissions": [{"submissionId": 6, "requestId": "r", "state": {"status": "queued"}}],
        }
    ]


def test_nothing_new_is_no_event():
    at = view(1, live=Live(run=run(), generation=generation(answered("a")), tools=(slot(11),)), submissions=(submission(5),))
    assert events(at, replace(at, seq=2, draft=Draft(text="typing"))) == []


@pytest.mark.rule("OB-3")
def test_another_agent_and_what_goes_on_beside_the_run_are_told_whole_when_they_change():
    at, agent, command, call_on = view(1), Agent(model="x"), slot(11, output="a"), slot(12)
    assert events(at, replace(at, seq=2, agent=agent)) == [{"type": "agent", "agent": to_json(agent)}]
    working = replace(at, seq=2, live=Live(commands=(command,), background=(call_on,)))
    assert events(at, working) == [{"type": "beside", "commands": [to_json(command)], "background": [to_json(call_on)]}]
    assert events(working, replace(working, seq=3)) == []
    assert events(working, at) == [{"type": "beside", "commands": [], "background": []}]


@pytest.mark.rule("OB-3")
def test_an_input_that_begins_a_run_is_told_before_the_run_and_its_turn():
    after = view(
        2,
        entries=stored(entry(6, said("hi")), entry(7, told("be kind"))),
        submissions=(submission(5, Placed(entry_id=6), request_id="r1"),),
        live=Live(run=run(10, submissions=(5,))),
    )
    assert events(view(1), after) == [
        {"type": "entry", "entryId": 6, "entryKind": "pi.user", "message": to_json(said("hi"))},
        {"type": "entry", "entryId": 7, "entryKind": "pi.system", "message": to_json(told("be kind"))},
        {"type": "submission", "submissionId": 5, "requestId": "r1", "state": {"status": "placed", "entryId": 6}},
        {"type": "run_start", "taskId": 10, "submissions": [5]},
        {"type": "turn_start", "taskId": 10, "turn": 1},
    ]


@pytest.mark.rule("OB-3")
def test_an_answer_starts_grows_and_ends():
    start = view(1, live=Live(run=run(), generation=generation()))
    first = replace(start, seq=2, live=Live(run=run(), generation=generation(answered("a"))))
    more = replace(start, seq=3, live=Live(run=run(), generation=generation(answered("ab"))))
    end = view(4, entries=stored(entry(8, answered("abc"))), usage=USED)
    assert events(start, first) == [
        {"type": "message_start", "model": MODEL},
        {"type": "message_update", "message": to_json(answered("a"))},
    ]
    assert events(first, more) == [{"type": "message_update", "message": to_json(answered("ab"))}]
    assert events(more, end) == [
        {"type": "message_end", "entryId": 8, "message": to_json(answered("abc"))},
        {"type": "usage", "usage": to_json(USED)},
        {"type": "run_end", "taskId": 10, "failure": None},
    ]


@pytest.mark.rule("OB-3")
def test_when_one_run_follows_another_in_one_commit_the_old_one_ends_before_the_new_one_starts():
    before = view(1, live=Live(run=run(10)), inbox=Inbox(items=(ITEM,)), submissions=(submission(6),))
    after = view(
        2,
        live=Live(run=run(20, submissions=(6,))),
        entries=stored(entry(8, answered("done")), entry(9, said("next"))),
        submissions=(submission(6, Placed(entry_id=9)),),
    )
    assert [each["type"] for each in events(before, after)] == [
        "inbox",
        "message_end",
        "entry",
        "submission",
        "run_end",
        "run_start",
        "turn_start",
    ]


@pytest.mark.rule("OB-3", "CO-5")
def test_a_compaction_starts_and_ends_with_its_summary_or_its_failure_or_with_neither():
    idle = view(1)
    going = view(2, live=Live(compactions=(CompactionRun(task_id=10, started_at_ms=START_MS, reason="manual"),)))
    assert events(idle, going) == [{"type": "compaction_start", "taskId": 10, "reason": "manual", "isBlocking": False}]
    assert events(going, replace(going, seq=3)) == []

    summary = entry(20, said("so far"), kind="pi.compaction", head=1, data={"taskId": 10})
    assert events(going, view(3, entries=stored(entry(19, said("a")), summary)))[-1] == {
        "type": "compaction_end",
        "taskId": 10,
        "entryId": 20,
        "failure": None,
    }
    failure = Failure(reason="server", task_id=10, attempt=1, at_ms=START_MS, message="it broke")
    assert events(going, view(3, live=Live(compaction_failure=failure))) == [
        {"type": "compaction_end", "taskId": 10, "entryId": None, "failure": to_json(failure)}
    ]
    older = msgspec.structs.replace(failure, task_id=9)  # of another one; it stays until the next starts
    assert events(going, view(3, live=Live(compaction_failure=older))) == [{"type": "compaction_end", "taskId": 10, "entryId": None, "failure": None}]


@pytest.mark.rule("OB-3")
def test_a_run_that_failed_ends_with_its_failure_and_not_with_that_of_another():
    failure = Failure(reason="model_error", task_id=10, attempt=4, at_ms=START_MS, message="it broke")
    before = view(1, live=Live(run=run(10)))
    assert events(before, view(2, live=Live(run_failure=failure))) == [{"type": "run_end", "taskId": 10, "failure": to_json(failure)}]
    other = msgspec.structs.replace(failure, task_id=9)
    assert events(before, view(2, live=Live(run_failure=other))) == [{"type": "run_end", "taskId": 10, "failure": None}]


@pytest.mark.rule("OB-3")
def test_a_failed_attempt_ends_its_message_and_says_when_the_next_one_starts():
    wait = RetryWait(attempt=1, until_ms=START_MS + 2_000, problem=BROKE)
    before = view(1, live=Live(run=run(), generation=generation(answered("a"))))
    after = view(2, live=Live(run=run(), generation=generation(retry=wait)), entries=stored(entry(8, answered("a", stop="error"))))
    assert events(before, after) == [
        {"type": "message_end", "entryId": 8, "message": to_json(answered("a", stop="error"))},
        {"type": "retry", "attempt": 1, "untilMs": START_MS + 2_000, "problem": to_json(BROKE)},
    ]
    assert events(after, replace(after, seq=3)) == []


@pytest.mark.rule("OB-3")
def test_a_call_starts_says_something_and_ends():
    quiet = view(1, live=Live(run=run(), tools=(slot(11, "pending"), slot(12, "pending"))))
    started = replace(quiet, seq=2, live=Live(run=run(), tools=(slot(11), slot(12, "pending"))))
    saying = replace(quiet, seq=3, live=Live(run=run(), tools=(slot(11, output="out", output_dropped_chars=2), slot(12, "pending"))))
    ended = view(4, live=Live(run=run(), tools=(slot(12, "pending"),)), entries=stored(entry(8, gave("c11", "out"), data={"taskId": 11})))
    about = {"taskId": 11, "callId": "c11", "name": "bash", "title": "ls"}
    assert events(view(0, live=Live(run=run())), quiet) == []
    assert events(quiet, started) == [{"type": "tool_execution_start", **about, "arguments": {"command": "ls"}}]
    assert events(started, saying) == [{"type": "tool_execution_update", **about, "output": "out", "outputDroppedChars": 2}]
    assert events(saying, ended) == [{"type": "tool_execution_end", "entryId": 8, "message": to_json(gave("c11", "out")), "data": {"taskId": 11}}]


@pytest.mark.rule("OB-3", "TU-19")
def test_a_question_is_told_once_and_a_second_one_again():
    about = {"taskId": 11, "callId": "c11", "name": "bash", "title": "ls"}
    asking = view(1, live=Live(run=run(), tools=(slot(11, "asking", question=13, question_details={"diff": "-a"}),)))
    assert events(view(0, live=Live(run=run())), asking) == [{"type": "question", **about, "question": 13, "details": {"diff": "-a"}}]
    assert events(asking, replace(asking, seq=2)) == []
    answered_ = view(2, live=Live(run=run(), tools=(slot(11, "pending"),)))
    assert events(asking, answered_) == [{"type": "question_end", **about, "question": 13}]
    started = {"type": "tool_execution_start", **about, "arguments": {"command": "ls"}}
    assert events(asking, view(3, live=Live(run=run(), tools=(slot(11),)))) == [{"type": "question_end", **about, "question": 13}, started]
    again = view(2, live=Live(run=run(), tools=(slot(11, "asking", question=14),)))
    assert events(asking, again) == [{"type": "question", **about, "question": 14, "details": None}]


@pytest.mark.rule("OB-3")
def test_what_joins_a_run_and_its_next_turn_are_told():
    before = view(1, live=Live(run=run(turn=1)))
    after = view(2, live=Live(run=run(turn=2, submissions=(5, 6))), entries=stored(entry(8, said("hurry"))))
    assert [(each["type"], each.get("turn")) for each in events(before, after)] == [("entry", None), ("turn_start", 2)]


def test_an_entry_without_a_message_is_told_too():
    assert events(view(1), view(2, entries=stored(entry(4, kind="pi.reset", head=4)))) == [
        {"type": "entry", "entryId": 4, "entryKind": "pi.reset", "message": None}
    ]


@pytest.mark.rule("OB-2", "OB-3")
def test_who_missed_frames_is_told_the_beginnings_too():
    before = view(1, live=Live(run=run(), generation=generation(answered("a"))))
    second = view(
        9,
        live=Live(run=run(turn=2), generation=generation(answered("b")), tools=(slot(11, output="out"),)),
        entries=stored(entry(8, answered("ab", call("c1"), stop="toolUse")), entry(9, gave("c1", "x"))),
    )
    assert [each["type"] for each in events(before, second)] == [
        "message_end",
        "tool_execution_end",
        "turn_start",
        "message_start",
        "message_update",
        "tool_execution_start",
        "tool_execution_update",
    ]
    attempt = view(9, live=Live(run=run(), generation=generation(answered("b"), attempt=2)), entries=stored(entry(8, answered("a", stop="error"))))
    assert [each["type"] for each in events(before, attempt)] == ["message_end", "message_start", "message_update"]


# ------------------------------------------------------------------------------------------- what events tell is the view


class Acting:
    """A conversation that does what the harness does to its view, one commit at a time."""

    def __init__(self) -> None:
        self.view = view(1)
        self._ids = iter(range(100, 10_000))

    def _commit(self, *messages: Any, **changes: Any) -> None:
        live = msgspec.structs.replace(
            self.view.live,
            **{key: changes.pop(key) for key in ("run", "generation", "tools", "run_failure", "compactions", "commands", "background") if key in changes},
        )
        entries = (*self.view.entries, *stored(*(entry(next(self._ids), message) for message in messages), seq=self.view.seq + 1))
        self.view = replace(self.view, seq=self.view.seq + 1, live=live, entries=entries, **changes)

    def submit(self) -> None:
        if self.view.live.run is None:
            new = next(self._ids)
            self._commit(said("go"), run=run(next(self._ids), submissions=(new,)), submissions=(*self.view.submissions, submission(new, Placed(entry_id=1))))
        else:
            item = msgspec.structs.replace(ITEM, submission_id=next(self._ids))
            self._commit(inbox=Inbox(items=(*self.view.inbox.items, item)), submissions=(*self.view.submissions, submission(item.submission_id)))

    def prepare(self) -> None:
        going = self.view.live.run
        before = self.view.live.generation
        if going is not None and not self.view.live.tools and (before is None or before.retry is not None):
            attempt = before.attempt + 1 if before is not None else 1
            self._commit(generation=generation(task_id=going.task_id, attempt=attempt))

    def say(self) -> None:
        at = self.view.live.generation
        if at is not None and at.retry is None:
            text = (at.message.text if at.message is not None else "") + "word "
            self._commit(generation=msgspec.structs.replace(at, message=answered(text)))

    def fail(self) -> None:
        at = self.view.live.generation
        if at is not None and at.retry is None:
            wait = RetryWait(attempt=at.attempt, until_ms=START_MS, problem=BROKE)
            partial = [at.message] if at.message is not None else []
            self._commit(*partial, generation=msgspec.structs.replace(at, message=None, retry=wait))

    def call(self) -> None:
        at = self.view.live.generation
        if at is not None and at.retry is None:
            slots = tuple(slot(next(self._ids), "pending") for _ in range(2))
            self._commit(answered(call("c")), generation=None, tools=slots, usage=UsageTotals(context_tokens=self.view.seq))

    def _change(self, status: str, *, to: Any = None, **changes: Any) -> None:
        for each in self.view.live.tools:
            if each.status == status:
                changed = msgspec.structs.replace(each, status=to or status, **changes)
                self._commit(tools=tuple(changed if other is each else other for other in self.view.live.tools))
                return

    def ask(self) -> None:
        self._change("pending", to="asking", question=next(self._ids))

    def decide(self) -> None:
        self._change("asking", to="pending", question=None)

    def switch(self) -> None:
        self._commit(agent=Agent(model=f"m{self.view.seq}"))

    def command(self) -> None:
        self._commit(commands=(slot(next(self._ids), output="a"), *self.view.live.commands)[:2], background=self.view.live.commands[:1])

    def start(self) -> None:
        self._change("asking", to="running", question=None)
        self._change("pending", to="running")

    def output(self) -> None:
        self._change("running", output=f"line {self.view.seq}", output_dropped_chars=self.view.seq)

    def result(self) -> None:
        for each in self.view.live.tools[:1]:
            self._commit(gave(each.call_id, "done"), tools=self.view.live.tools[1:])

    def join(self) -> None:
        going = self.view.live.run
        if going is not None and not self.view.live.tools and self.view.live.generation is None:
            steering = [said("hurry")] if self.view.inbox.items else []
            self._commit(*steering, run=msgspec.structs.replace(going, turn=going.turn + 1), inbox=Inbox(items=self.view.inbox.items[1:]))

    def answer(self) -> None:
        at = self.view.live.generation
        if at is not None and at.retry is None:
            settled = tuple(submission(each.id, Done(entry_id=1)) for each in self.view.submissions)
            following = [said("next")] if self.view.inbox.items else []
            going = run(next(self._ids)) if following else None
            self._commit(answered("done"), *following, run=going, generation=None, submissions=settled, inbox=Inbox(items=self.view.inbox.items[1:]))

    def compact(self) -> None:
        new = CompactionRun(task_id=next(self._ids), started_at_ms=START_MS, reason="threshold")
        self._commit(compactions=(*self.view.live.compactions, new))

    def summarize(self) -> None:
        if self.view.live.compactions:
            self._commit(said("so far"), compactions=self.view.live.compactions[1:])

    def abort(self) -> None:
        going, at = self.view.live.run, self.view.live.generation
        if going is not None:
            partial = [at.message] if at is not None and at.message is not None else []
            results = [gave(each.call_id, "stopped") for each in self.view.live.tools]
            failure = Failure(reason="aborted", task_id=going.task_id, attempt=1, at_ms=START_MS)
            self._commit(*partial, *results, run=None, generation=None, tools=(), run_failure=failure)


ACTS = st.sampled_from(
    [
        "submit",
        "submit",
        "prepare",
        "prepare",
        "say",
        "say",
        "fail",
        "call",
        "ask",
        "decide",
        "switch",
        "command",
        "start",
        "output",
        "result",
        "join",
        "answer",
        "abort",
        "compact",
        "summarize",
    ]
)


@pytest.mark.rule("OB-2", "OB-3", "FB-39")
@given(st.lists(st.tuples(ACTS, st.booleans()), max_size=60))
def test_what_events_tell_is_what_the_view_shows_also_to_an_observer_who_misses_frames(acts):
    acting = Acting()
    seen, heard = acting.view, shown(acting.view)
    for act, is_missed in acts:
        getattr(acting, act)()
        if is_missed:
            continue
        for event in events_of(seen, acting.view):
            heard.hear(event)
        seen = acting.view
        assert heard == shown(seen)
