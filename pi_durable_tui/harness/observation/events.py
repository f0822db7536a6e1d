"""Agent-style events out of two views of a conversation (rule OB-3). PURE.

An event says what a commit changed; an observer who missed some gets the difference as one, so nothing is ever told twice or lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from pi_durable_tui.harness.live import Live, ToolSlot
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.codec import to_json
from pi_durable_tui.records.entry import COMPACTION, Entry
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage
from pi_durable_tui.records.submission import Submission

AgentEvent: TypeAlias = JsonObject
"""`{"type": …, "seq": commit number, …}`.

First a `snapshot` of what goes on and what is open; the transcript before it is read by page. Then: `agent`, `inbox`, `entry`, `message_end`,
`tool_execution_end` (the three kinds of new entries), `submission`, `usage`, `compaction_end`, `run_end`, `run_start`, `turn_start`,
`message_start`, `message_update`, `question`, `question_end` (answered: the call starts, or its result is next), `tool_execution_start`,
`tool_execution_update`, `retry`, `compaction_start`, `beside` (all commands of the person and calls in the background, when one of them has
changed). What stands in the composer is no event.

The end of a compaction names the entry of its summary, or its failure; neither: there was nothing to summarize, or it was stopped or overtaken.
"""


def events_of(before: ConversationView | None, after: ConversationView) -> Iterator[AgentEvent]:
    """What happened between two views: first what has come to an end, then what goes on; `before` None: a snapshot."""
    if before is None:
        yield _snapshot(after)
        return
    if before.agent != after.agent:
        yield _event(after, "agent", agent=to_json(after.agent))
    yield from _inbox(before, after)
    known = {stored.entry.id for stored in before.entries}
    for stored in after.entries:
        if stored.entry.id not in known:
            yield from _entry(after, stored.entry)
    yield from _submissions(before, after)
    if before.usage != after.usage:
        yield _event(after, "usage", usage=to_json(after.usage))
    yield from _compaction_ends(before, after)
    yield from _run_end(before, after)
    yield from _run_start(before, after)
    yield from _message_progress(before, after)
    yield from _tools(before, after)
    yield from _retry(before, after)
    yield from _compaction_starts(before, after)
    if (before.live.commands, before.live.background) != (after.live.commands, after.live.background):
        commands, background = ([to_json(slot) for slot in slots] for slots in (after.live.commands, after.live.background))
        yield _event(after, "beside", commands=commands, background=background)


def _snapshot(view: ConversationView) -> AgentEvent:
    return _event(
        view,
        "snapshot",
        conversationId=view.conversation.id,
        live=to_json(view.live),
        agent=to_json(view.agent),
        inbox=[to_json(item) for item in view.inbox.items],
        usage=to_json(view.usage),
        submissions=[_told(submission) for submission in view.submissions if submission.is_open],
    )


def _event(view: ConversationView, kind: str, **fields: Json) -> AgentEvent:
    return {"type": kind, "seq": view.seq, **fields}


def _run_id(live: Live) -> int | None:
    return live.run.task_id if live.run is not None else None


def _run_start(before: ConversationView, after: ConversationView) -> Iterator[AgentEvent]:
    run = after.live.run
    if run is None:
        return
    if run.task_id != _run_id(before.live):
        yield _event(after, "run_start", taskId=run.task_id, submissions=list(run.submissions))
    if run.task_id != _run_id(before.live) or (before.live.run is not None and run.turn != before.live.run.turn):
        yield _event(after, "turn_start", taskId=run.task_id, turn=run.turn)


def _run_end(before: ConversationView, after: ConversationView) -> Iterator[AgentEvent]:
    ended = _run_id(before.live)
    if ended is not None and ended != _run_id(after.live):
        failure = after.live.run_failure
        yield _event(after, "run_end", taskId=ended, failure=to_json(failure) if failure is not None and failure.task_id == ended else None)


def _message_progress(before: ConversationView, after: ConversationView) -> Iterator[AgentEvent]:
    new = after.live.generation.message if after.live.generation is not None else None
    if new is None:
        return
    known = before.live.generation if _request(before.live) == _request(after.live) else None
    old = known.message if known is not None else None
    if old is None:
        yield _event(after, "message_start", model=new.model)
    if new != old:
        yield _event(after, "message_update", message=to_json(new))


def _request(live: Live) -> tuple[int | None, ...]:
    """Which request of which run is under way: run, turn, attempt."""
    return (_run_id(live), live.run.turn if live.run is not None else None, live.generation.attempt if live.generation is not None else None)


def _tools(before: ConversationView, after: ConversationView) -> Iterator[AgentEvent]:
    """What running calls do, each from its beginning: an observer may have missed that."""
    old = {slot.task_id: slot for slot in before.live.tools}
    for slot in after.live.tools:
        known = old.get(slot.task_id, msgspec.structs.replace(slot, status="pending", output="", output_dropped_chars=0, question=None))
        if known.question is not None and slot.question is None:
            yield _tool_event(after, "question_end", slot, question=known.question)
        if slot.status == "asking" and slot.question != known.question:
            yield _tool_event(after, "question", slot, question=slot.question, details=slot.question_details)
        if slot.status == "running" and known.status != "running":
            yield _tool_event(after, "tool_execution_start", slot, arguments=slot.arguments)
        if (slot.output, slot.output_dropped_chars) != (known.output, known.output_dropped_chars):
            yield _tool_event(after, "tool_execution_update", slot, output=slot.output, outputDroppedChars=slot.output_dropped_chars)


def _tool_event(view: ConversationView, kind: str, slot: ToolSlot, **fields: Json) -> AgentEvent:
    return _event(view, kind, taskId=slot.task_id, callId=slot.call_id, name=slot.name, title=slot.title, **fields)


def _entry(view: ConversationView, entry: Entry) -> Iterator[AgentEvent]:
    message: Json = to_json(entry.message) if entry.message is not None else None
    if isinstance(entry.message, AssistantMessage):
        yield _event(view, "message_end", entryId=entry.id, message=message)
    elif isinstance(entry.message, ToolResultMessage):
        yield _event(view, "tool_execution_end", entryId=entry.id, message=message, data=entry.data)
    else:
        yield _event(view, "entry", entryId=entry.id, entryKind=entry.kind, message=message)


def _retry(before: ConversationView, after: ConversationView) -> Iterator[AgentEvent]:
    new = after.live.generation.retry if after.live.generation is not None else None
    old = before.live.generation.retry if before.live.generation is not None else None
    if new is not None and new != old:
        yield _event(after, "retry", attempt=new.attempt, untilMs=new.until_ms, problem=to_json(new.problem))


def _compaction_starts(before: ConversationView, after: ConversationView) -> Iterator[AgentEvent]:
    known = {each.task_id for each in before.live.compactions}
    for each in after.live.compactions:
        if each.task_id not in known:
            yield _event(after, "compaction_start", taskId=each.task_id, reason=each.reason, isBlocking=each.is_blocking)


def _compaction_ends(before: ConversationView, after: ConversationView) -> Iterator[AgentEvent]:
    going_on = {each.task_id for each in after.live.compactions}
    summaries: dict[Json, int] = {each.entry.data.get("taskId"): each.entry.id for each in after.entries if each.entry.kind == COMPACTION and each.entry.data}
    failure = after.live.compaction_failure
    for each in before.live.compactions:
        if each.task_id not in going_on:
            told = to_json(failure) if failure is not None and failure.task_id == each.task_id else None
            yield _event(after, "compaction_end", taskId=each.task_id, entryId=summaries.get(each.task_id), failure=told)


def _inbox(before: ConversationView, after: ConversationView) -> Iterator[AgentEvent]:
    if before.inbox != after.inbox:
        yield _event(after, "inbox", items=[to_json(item) for item in after.inbox.items])


def _submissions(before: ConversationView, after: ConversationView) -> Iterator[AgentEvent]:
    old = {submission.id: submission for submission in before.submissions}
    for submission in after.submissions:
        if submission != old.get(submission.id):
            yield _event(after, "submission", **_told(submission))


def _told(submission: Submission) -> JsonObject:
    return {"submissionId": submission.id, "requestId": submission.request_id, "state": to_json(submission.state)}
