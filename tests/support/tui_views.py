"""Views to draw, in few words: a story of entries and what is going on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from pi_durable_tui.harness.live import Agent, Generation, Inbox, InboxItem, Live, Run, ToolSlot, UsageTotals
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.entry import ASSISTANT, TOOL_RESULT, USER, Entry, StoredEntry
from pi_durable_tui.records.messages import AssistantContent, AssistantMessage, Problem, Text, Thinking, ToolResultMessage, Usage, UserMessage
from pi_durable_tui.records.submission import Mode

START_MS = 1_700_000_000_000
MODEL = "playback/story"


def user(entry_id: int, text: str, *, seq: int | None = None) -> StoredEntry:
    """What somebody handed in; with the same `seq` several of them began one run."""
    entry = Entry(
        id=entry_id, conversation_id=1, kind=USER, at_ms=START_MS + entry_id, message=UserMessage(content=(Text(text=text),)), data={"submissionId": entry_id}
    )
    return StoredEntry(seq=entry_id if seq is None else seq, entry=entry)


def answer(entry_id: int, *parts: AssistantContent | str, stop: Any = "stop", problem: Problem | None = None) -> StoredEntry:
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    message = AssistantMessage(content=content, model=MODEL, stop_reason=stop, problem=problem)
    return StoredEntry(seq=entry_id, entry=Entry(id=entry_id, conversation_id=1, kind=ASSISTANT, at_ms=START_MS + entry_id, message=message))


def thinking(text: str) -> Thinking:
    return Thinking(text=text)


def result(entry_id: int, name: str, title: str, *texts: str, is_error: bool = False, took_ms: int = 120, arguments: Any = None, **data: Any) -> StoredEntry:
    message = ToolResultMessage(tool_call_id=f"c{entry_id}", tool_name=name, content=tuple(Text(text=text) for text in texts), is_error=is_error)
    facts = {
        "taskId": 10_000 + entry_id,
        "name": name,
        "title": title,
        "arguments": arguments or {},
        "durationMs": took_ms,
        "startedAtMs": START_MS,
        "diagnostics": [],
        **data,
    }
    return StoredEntry(seq=entry_id, entry=Entry(id=entry_id, conversation_id=1, kind=TOOL_RESULT, at_ms=START_MS + entry_id, message=message, data=facts))


def slot(
    task_id: int, name: str, title: str, *, status: Any = "running", output: str = "", arguments: Any = None, question: int | None = None, details: Any = None
) -> ToolSlot:
    return ToolSlot(
        task_id=task_id,
        call_id=f"call-{task_id}",
        name=name,
        arguments=arguments or {},
        title=title,
        status=status,
        started_at_ms=START_MS,
        output=output,
        question=question,
        question_details=details,
    )


def view(
    *entries: StoredEntry,
    seq: int | None = None,
    streaming: Sequence[AssistantContent | str] | None = None,
    tools: Sequence[ToolSlot] = (),
    queued: Sequence[tuple[Mode, str]] = (),
    busy: bool | None = None,
    agent: Agent | None = None,
    context_tokens: int = 0,
    cost_usd: float | None = None,
    conversation_id: int = 1,
    live_task_id: int = 900,
    **fields: Any,
) -> ConversationView:
    """A view whose run (if anything goes on) began at START_MS.

    Args:
        streaming: Parts of the answer that is being received; () for a request without an answer yet.
        queued: (mode, text) of waiting messages.
    """
    generation = None
    if streaming is not None:
        content = tuple(Text(text=part) if isinstance(part, str) else part for part in streaming)
        message = AssistantMessage(content=content, model=MODEL, stop_reason="stop") if content else None
        generation = Generation(task_id=live_task_id, attempt=1, started_at_ms=START_MS, message=message)
    is_busy = (generation is not None or bool(tools)) if busy is None else busy
    live = Live(run=Run(task_id=900, started_at_ms=START_MS) if is_busy else None, generation=generation, tools=tuple(tools))
    items = tuple(InboxItem(submission_id=500 + index, mode=mode, content=(Text(text=text),), at_ms=START_MS) for index, (mode, text) in enumerate(queued))
    made: dict[str, Any] = {
        "conversation": Conversation(id=conversation_id, created_at_ms=START_MS),
        "seq": seq if seq is not None else max((stored.seq for stored in entries), default=0),
        "committed_at_ms": START_MS,
        "entries": tuple(entries),
        "agent": agent or Agent(model=MODEL),
        "live": live,
        "inbox": Inbox(items=items),
        "usage": UsageTotals(models={MODEL: Usage(input_tokens=context_tokens, cost_usd=cost_usd)} if context_tokens else {}, context_tokens=context_tokens),
    }
    return ConversationView(**{**made, **fields})


def with_live(before: ConversationView, **changes: Any) -> Live:
    return msgspec.structs.replace(before.live, **changes)
