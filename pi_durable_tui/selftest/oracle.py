"""What must hold in a store after all work has come to its end, whatever crashes there were on the way (proof.md, "The oracle").

It returns faults as sentences; none is what a test wants.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pi_durable_tui.harness import kinds
from pi_durable_tui.harness.live import INBOX, LIVE, USAGE, Inbox, Live, UsageTotals
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.document import Address
from pi_durable_tui.records.entry import COMPACTION, StoredEntry
from pi_durable_tui.records.json import Json
from pi_durable_tui.records.messages import AssistantMessage, ToolCall, ToolResultMessage, Usage
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.session.documents import value_of
from pi_durable_tui.storage.port import Storage

Effects = Sequence[tuple[str, str]]
"""What tools did to the world, in order: (call id, "start" or "end")."""


async def faults(storage: Storage, *, effects: Effects = (), unsafe: Iterable[str] = (), acknowledged: Iterable[int] = ()) -> list[str]:
    """Everything that is wrong with a store in which nothing is going on any more.

    Args:
        storage: Open for reading.
        effects: The log of effects outside of the store.
        unsafe: The ids of the calls that may have an effect at most once, and that fail only by a kill.
        acknowledged: The submissions that somebody was told of.
    """
    tasks = (await storage.tasks(limit=1_000)).items
    found = [f"task {task.id} lives: {task.state}" for task in tasks if task.is_live]
    submissions = (await storage.submissions(limit=1_000)).items
    found += _submission_faults(submissions, acknowledged)
    for conversation in (await storage.conversations(limit=1_000)).items:
        seen = (await storage.entries(conversation.id, limit=1_000)).items
        entries = [stored for stored in seen if stored.entry.conversation_id == conversation.id]  # a fork sees those of its parent, too
        found += [*_order_faults(seen), *_call_faults(entries), *_effect_faults(entries, effects, set(unsafe))]
        live = from_json(await _value(storage, LIVE.kind, conversation.id), Live)
        inbox = from_json(await _value(storage, INBOX.kind, conversation.id), Inbox)
        used = from_json(await _value(storage, USAGE.kind, conversation.id), UsageTotals)
        if live.run or live.generation or live.tools or live.compactions:
            found.append(f"work is shown that is none: {live}")
        if inbox.items:
            found.append(f"the inbox holds {[item.submission_id for item in inbox.items]}")
        counted, told = sum(used.models.values(), Usage()), _used(entries)
        is_summarized = any(task.kind == kinds.COMPACTION and task.conversation_id == conversation.id for task in tasks)
        if counted != told and not (is_summarized and counted.input_tokens > told.input_tokens):  # no entry tells of a summary that was cut off
            found.append(f"usage is {used.models}, the entries say {told}")
    return found


def _submission_faults(submissions: Sequence[Submission], acknowledged: Iterable[int]) -> list[str]:
    missing = set(acknowledged) - {one.id for one in submissions}
    open_ones = [one.id for one in submissions if one.is_open]
    requests = Counter(one.request_id for one in submissions if one.request_id is not None)
    return [
        *([f"acknowledged submissions are gone: {missing}"] if missing else []),
        *([f"submissions did not settle: {open_ones}"] if open_ones else []),
        *(f"request {request!r} became {count} submissions" for request, count in requests.items() if count > 1),
    ]


def _order_faults(entries: Sequence[StoredEntry]) -> list[str]:
    pairs = list(itertools.pairwise(entries))
    return [
        *(f"entry {right.entry.id} follows {left.entry.id}" for left, right in pairs if right.entry.id <= left.entry.id),
        *(f"commit {right.seq} follows {left.seq}" for left, right in pairs if right.seq < left.seq),
    ]


def _call_faults(entries: Sequence[StoredEntry]) -> list[str]:
    """Each call of a whole answer has exactly one result, behind it; no result is without a call."""
    asked = [call.id for call in _calls(entries)]
    given = Counter(message.tool_call_id for message in _messages(entries) if isinstance(message, ToolResultMessage))
    return [
        *(f"call {call_id} has {given[call_id]} results" for call_id in asked if given[call_id] != asked.count(call_id)),
        *(f"a result of no call: {call_id}" for call_id in given if call_id not in asked),
    ]


def _effect_faults(entries: Sequence[StoredEntry], effects: Effects, unsafe: set[str]) -> list[str]:
    """The side-effect law: an unsafe call starts at most once, what is told as done was done, an unknown end says so."""
    starts, ends = (Counter(call_id for call_id, what in effects if what == wanted) for wanted in ("start", "end"))
    results: Mapping[str, ToolResultMessage] = {message.tool_call_id: message for message in _messages(entries) if isinstance(message, ToolResultMessage)}
    found = [f"call {call_id} started {starts[call_id]} times" for call_id in unsafe if starts[call_id] > 1]
    for call_id, result in results.items():
        if not result.is_error and not ends[call_id] and effects:
            found.append(f"call {call_id} is told as done and was not")
        if result.is_error and call_id in unsafe and "interrupted" not in result.text:
            found.append(f"call {call_id} cannot fail but by a kill, and its result does not say so: {result.text!r}")
    return found


def _calls(entries: Sequence[StoredEntry]) -> list[ToolCall]:
    return [call for message in _messages(entries) if isinstance(message, AssistantMessage) and message.stop_reason == "toolUse" for call in message.tool_calls]


def _messages(entries: Sequence[StoredEntry]) -> list[object]:
    return [stored.entry.message for stored in entries]


def _used(entries: Sequence[StoredEntry]) -> Usage:
    """What answers and summaries cost, each as its entry says."""
    answers = [message.usage for message in _messages(entries) if isinstance(message, AssistantMessage) and message.usage is not None]
    summaries = [from_json(usage, Usage) for each in entries if each.entry.kind == COMPACTION and (usage := (each.entry.data or {}).get("usage"))]
    return sum([*answers, *summaries], Usage())


async def _value(storage: Storage, kind: str, conversation_id: int) -> Json:
    document = await storage.document(Address(kind=kind, scope="conversation", scope_id=conversation_id))
    revisions = await storage.revisions(document.id) if document is not None else None
    return value_of(revisions, store=storage.name, document_id=document.id) if document is not None and revisions is not None else {}
