from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_durable_tui.records.codec import decode, decode_json, encode, from_json, merged, to_json
from pi_durable_tui.records.commit import Batch, DocumentBase, DocumentDelta, DocumentRetired
from pi_durable_tui.records.conversation import Conversation, ForkPoint
from pi_durable_tui.records.document import Address, Revisions, StoredDocument
from pi_durable_tui.records.entry import Edit, Entry, StoredEntry
from pi_durable_tui.records.messages import (
    AssistantMessage,
    Image,
    Problem,
    Record,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_durable_tui.records.submission import Done, Placed, Queued, Submission, Unanswered
from pi_durable_tui.records.task import (
    Aborted,
    Completed,
    Completing,
    Failed,
    Faulted,
    Orphaned,
    Pending,
    Running,
    Sleeping,
    Task,
    TaskState,
    Terminal,
    Waiting,
)

AT_MS = 1_700_000_000_000


def task(state: TaskState, **changes: Any) -> Task:
    return Task(id=3, kind="pi.tool", conversation_id=1, input={"callId": "c"}, state=state, created_at_ms=AT_MS, **changes)


def submission(state: Any) -> Submission:
    return Submission(id=4, conversation_id=1, mode="steer", content=(Text(text="hi"),), digest="d", at_ms=AT_MS, state=state, request_id="r")


SYSTEM = SystemMessage(content=(Text(text="be brief"),))
USER = UserMessage(content=(Text(text="look"), Image(mime_type="image/png", data="aGk=")))
ANSWER = AssistantMessage(
    content=(
        Thinking(text="hm", signature="sig"),
        Thinking(text="", redacted=True),
        Text(text="ok"),
        ToolCall(id="c1", name="read", arguments={"path": "a"}),
        ToolCall(id="c2", name="bash", arguments={}, malformed='{"command'),
    ),
    model="p/m",
    stop_reason="toolUse",
    usage=Usage(input_tokens=10, output_tokens=2, cost_usd=0.25),
    problem=Problem(reason="interrupted", message="cut"),
)
RESULT = ToolResultMessage(tool_call_id="c1", tool_name="read", content=(Text(text="1"), Text(text="2")), is_error=True)
ADDRESS = Address(kind="pi.live", scope="conversation", scope_id=1)

RECORDS: list[Record] = [
    Conversation(id=1, created_at_ms=AT_MS),
    Conversation(id=2, created_at_ms=AT_MS, parent=ForkPoint(conversation_id=1, entry_id=9, seq=4), owner=7),
    *(Entry(id=9, conversation_id=1, kind="pi.x", at_ms=AT_MS, message=message) for message in (SYSTEM, USER, ANSWER, RESULT, None)),
    Entry(
        id=9,
        conversation_id=1,
        kind="pi.compaction",
        at_ms=AT_MS,
        data={"taskId": 3},
        head=8,
        edits=(Edit(entry_id=5, action="replace", message=USER), Edit(entry_id=6, action="omit")),
    ),
    StoredEntry(seq=4, entry=Entry(id=9, conversation_id=1, kind="pi.user", at_ms=AT_MS)),
    task(Pending(checkpoint={"phase": "call"}), owner=2, background=True, memos={"a": [1]}, restarts=2, abort_at_ms=AT_MS),
    task(Running(checkpoint={"phase": "execute", "replay": "unsafe"})),
    task(Waiting(checkpoint={"phase": "tools"}, on=(5, 6), policy="failFast")),
    task(Sleeping(checkpoint={"phase": "retry"}, until=AT_MS + 1)),
    task(Sleeping(checkpoint={"phase": "ask"}, until=None)),
    task(Completing(outcome=Completed(value={"n": 5}))),
    *(
        task(Terminal(outcome=outcome))
        for outcome in (Completed(), Failed(problem=Problem(reason="r")), Aborted(value=1), Orphaned(), Faulted(message="m", detail={"a": 1}))
    ),
    *(
        submission(state)
        for state in (Queued(), Placed(entry_id=9), Done(entry_id=9, answer_entry_id=10), Done(entry_id=9), Unanswered(problem=Problem(reason="aborted")))
    ),
    StoredDocument(id=5, address=ADDRESS, version=1, history="latest", retired_seq=8),
    Revisions(base_seq=2, base={"a": 1}, version=1, deltas=([["a", ["t"], "x"]],)),
    Batch(
        next_id=6,
        at_ms=AT_MS,
        priority="partial",
        documents=(
            DocumentBase(document_id=5, address=ADDRESS, version=1, history="latest", value={"a": None}),
            DocumentDelta(document_id=5, ops=[["d", ["a"]]]),
            DocumentRetired(document_id=5),
        ),
    ),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_every_record_comes_back_as_it_was_from_text_and_from_plain_json(record: Record) -> None:
    assert decode(encode(record), type(record)) == record
    assert decode(encode(record).encode(), type(record)) == record
    assert from_json(to_json(record), type(record)) == record


@pytest.mark.rule("FA-43", "FB-15")
def test_a_task_is_stored_in_the_form_that_the_published_queries_read() -> None:
    state = Running(checkpoint={"phase": "execute", "replay": "unsafe"})
    record = task(state, memos={"printed-1": True}, restarts=1, started_at_ms=AT_MS)
    assert json.loads(encode(record)) == {
        "id": 3,
        "kind": "pi.tool",
        "conversationId": 1,
        "input": {"callId": "c"},
        "state": {"status": "running", "checkpoint": {"phase": "execute", "replay": "unsafe"}},
        "createdAtMs": AT_MS,
        "memos": {"printed-1": True},
        "restarts": 1,
        "startedAtMs": AT_MS,
    }


def test_keys_are_camel_case_and_defaults_are_left_out() -> None:
    entry = Entry(id=9, conversation_id=1, kind="pi.tool-result", at_ms=AT_MS, message=RESULT)
    assert json.loads(encode(entry)) == {
        "id": 9,
        "conversationId": 1,
        "kind": "pi.tool-result",
        "atMs": AT_MS,
        "message": {
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": "read",
            "content": [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}],
            "isError": True,
        },
    }
    assert json.loads(encode(submission(Queued())))["state"] == {"status": "queued"}


@pytest.mark.rule("ST-19")
def test_keys_of_a_newer_program_survive_a_rewrite() -> None:
    before = json.loads(encode(task(Pending(checkpoint={"phase": "a"}), restarts=1)))
    previous = json.dumps({**before, "lane": "slow", "extra": {"deep": [1]}})
    after = task(Running(checkpoint={"phase": "a"}))
    assert json.loads(merged(previous, after)) == {**json.loads(encode(after)), "lane": "slow", "extra": {"deep": [1]}}
    assert "restarts" not in json.loads(merged(previous, after))
    assert decode(merged(previous, after), Task) == after


@pytest.mark.rule("ST-19")
@pytest.mark.parametrize("previous", [None, "[1]", encode(task(Pending(checkpoint={"phase": "a"}), restarts=1))])
def test_a_rewrite_without_foreign_keys_is_the_record_alone(previous: str | None) -> None:
    after = task(Running(checkpoint={"phase": "a"}))
    assert merged(previous, after) == encode(after)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_any_json_comes_back_exactly(value: Any) -> None:
    assert json.dumps(decode_json(encode(value))) == json.dumps(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "x"}', r"Expected `int`, got `str` - at `\$\.id`"),
        ('{"id": 3}', "missing required field"),
        (
            '{"id":3,"kind":"k","conversationId":1,"input":{},"createdAtMs":1,"state":{"status":"resting"}}',
            r"Invalid value 'resting' - at `\$\.state\.status`",
        ),
    ],
)
def test_text_that_is_no_such_record_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        decode(text, Task)


@pytest.mark.parametrize("text", ["", "{", '{"a": NaN}', "{'a': 1}"])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_json(text)


@pytest.mark.rule("SE-5")
def test_a_lone_surrogate_that_got_past_the_cleaning_is_refused_and_not_stored() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode({"text": "\ud800"})


def test_messages_tell_their_text_their_calls_and_their_sum() -> None:
    assert [call.id for call in ANSWER.tool_calls] == ["c1", "c2"]
    assert (ANSWER.text, RESULT.text) == ("ok", "1\n2")
    some = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4)
    priced = Usage(input_tokens=10, cost_usd=0.5)
    assert some + priced + priced == Usage(input_tokens=21, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4, cost_usd=1.0)
    assert (some + some).cost_usd is None


def test_a_submission_is_open_until_it_is_done_or_unanswered() -> None:
    states: list[Any] = [Queued(), Placed(entry_id=9), Done(entry_id=9), Unanswered(problem=Problem(reason="withdrawn"))]
    assert [(submission(state).status, submission(state).is_open) for state in states] == [
        ("queued", True),
        ("placed", True),
        ("done", False),
        ("unanswered", False),
    ]


def test_a_batch_is_empty_until_it_holds_a_record_or_a_document_change() -> None:
    empty = Batch(next_id=1, at_ms=AT_MS)
    full = [
        Batch(next_id=1, at_ms=AT_MS, conversations=(Conversation(id=1, created_at_ms=AT_MS),)),
        Batch(next_id=1, at_ms=AT_MS, entries=(Entry(id=9, conversation_id=1, kind="k", at_ms=AT_MS),)),
        Batch(next_id=1, at_ms=AT_MS, tasks=(task(Pending(checkpoint={})),)),
        Batch(next_id=1, at_ms=AT_MS, submissions=(submission(Queued()),)),
        Batch(next_id=1, at_ms=AT_MS, documents=(DocumentRetired(document_id=5),)),
    ]
    assert (empty.is_empty, [batch.is_empty for batch in full]) == (True, [False] * 5)
