"""What must hold in a session at any moment at which nothing is under way, and what must hold once all work has ended (proof.md, "The oracle").

It looks at the store alone, through its port, and returns faults as sentences; none is what a test wants. `crash_oracle` judges one
conversation at its end; this one judges forks, queues and work that is still going on, too.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pi_durable_tui.harness import kinds
from pi_durable_tui.harness.live import INBOX, LIVE, USAGE, Inbox, Live, UsageTotals
from pi_durable_tui.harness.requests.context import derive, in_order
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import Address
from pi_durable_tui.records.entry import COMPACTION, Entry, StoredEntry
from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage, Usage, UserMessage
from pi_durable_tui.records.submission import Placed, Queued, Submission
from pi_durable_tui.records.task import Task, Waiting
from pi_durable_tui.session.documents import value_of
from pi_durable_tui.storage.port import Storage
from tests.support.strict_provider import violations


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """All records of a session, and the built-in documents by conversation."""

    conversations: tuple[Conversation, ...]
    seen: Mapping[int, tuple[StoredEntry, ...]]  # what each conversation sees, through its parents
    tasks: Mapping[int, Task]
    submissions: tuple[Submission, ...]
    live: Mapping[int, Live]
    inbox: Mapping[int, Inbox]
    usage: Mapping[int, UsageTotals]
    next_id: int
    next_seq: int

    def own(self, conversation_id: int) -> list[Entry]:
        """The entries written in a conversation itself."""
        return [stored.entry for stored in self.seen[conversation_id] if stored.entry.conversation_id == conversation_id]


@dataclass(slots=True, kw_only=True)
class Known:
    """What the outside world knows, which the store must agree with.

    Attributes:
        acknowledged: Submissions that somebody was told of.
        effects: What tools did, in order: (call id, "start" or "end").
        unsafe: The ids of the calls that may start at most once.
    """

    acknowledged: set[int] = field(default_factory=set[int])
    effects: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    unsafe: set[str] = field(default_factory=set[str])


async def held(storage: Storage) -> Held:
    """Read all of a session of at most 1,000 records of a kind."""
    conversations = (await storage.conversations(limit=1_000)).items
    counters = await storage.metadata()
    ids = [conversation.id for conversation in conversations]
    return Held(
        conversations=conversations,
        seen={each: (await storage.entries(each, limit=1_000)).items for each in ids},
        tasks={task.id: task for task in (await storage.tasks(limit=1_000)).items},
        submissions=(await storage.submissions(limit=1_000)).items,
        live={each: from_json(await _value(storage, LIVE.kind, each), Live) for each in ids},
        inbox={each: from_json(await _value(storage, INBOX.kind, each), Inbox) for each in ids},
        usage={each: from_json(await _value(storage, USAGE.kind, each), UsageTotals) for each in ids},
        next_id=counters.next_id,
        next_seq=counters.next_seq,
    )


def faults(now: Held, known: Known) -> list[str]:
    """Everything that is wrong at this moment."""
    found = [*_numbers(now), *_tasks(now), *_submissions(now, known), *_effects(now, known)]
    for conversation in now.conversations:
        for part in (_runs(now, conversation.id), _calls(now, conversation.id), _context(now, conversation.id), _usage(now, conversation.id)):
            found += [f"conversation {conversation.id}: {fault}" for fault in part]
    return found


def rest_faults(now: Held) -> list[str]:
    """What is wrong besides when nothing shall be going on any more (PR-10)."""
    found = [f"task {task.id} ({task.kind}) lives: {task.state}" for task in now.tasks.values() if task.is_live]
    found += [f"submission {one.id} did not settle: {one.state}" for one in now.submissions if one.is_open]
    found += [f"the inbox of {each} holds {len(inbox.items)} items" for each, inbox in now.inbox.items() if inbox.items]
    for each, live in now.live.items():
        if live.run or live.generation or live.tools or live.compactions:
            found.append(f"conversation {each} shows work that is none: {live}")
    return found


def _numbers(now: Held) -> Iterator[str]:
    """Ids are used once and grow along a transcript, as the commits do."""
    own = [stored.entry for each in now.conversations for stored in now.seen[each.id] if stored.entry.conversation_id == each.id]
    records: Iterable[Any] = (*now.conversations, *own, *now.tasks.values(), *now.submissions)
    ids = Counter(record.id for record in records)
    yield from (f"id {record_id} is used {count} times" for record_id, count in ids.items() if count > 1)
    if ids and max(ids) >= now.next_id:
        yield f"id {max(ids)} is used and {now.next_id} is next"
    for stored in now.seen.values():
        for left, right in itertools.pairwise(stored):
            if right.entry.id <= left.entry.id or right.seq < left.seq or right.seq >= now.next_seq:
                yield f"entry {right.entry.id} of commit {right.seq} follows entry {left.entry.id} of commit {left.seq}"


def _tasks(now: Held) -> Iterator[str]:
    owners = {conversation.id: conversation.owner for conversation in now.conversations}
    for task in now.tasks.values():
        owner = now.tasks.get(task.owner or owners[task.conversation_id] or 0)
        if task.is_live and owner is not None and not owner.is_live:
            yield f"task {task.id} lives below task {owner.id}, which has ended"
        if not task.is_live and (task.memos is not None or task.restarts is not None or task.abort_at_ms is not None or task.ended_at_ms is None):
            yield f"task {task.id} has ended and keeps what only live tasks have: {task}"
        if isinstance(task.state, Waiting) and not set(task.state.on) <= set(now.tasks):
            yield f"task {task.id} waits for tasks that there are not: {task.state.on}"


def _submissions(now: Held, known: Known) -> Iterator[str]:
    """Inbox, placed and settled ones together are all submissions, and each is in one of them."""
    by_id = {one.id: one for one in now.submissions}
    yield from (f"submission {one} was acknowledged and is gone" for one in sorted(known.acknowledged - set(by_id)))
    requests = Counter((one.conversation_id, one.request_id) for one in now.submissions if one.request_id is not None)
    yield from (f"request {request} became {count} submissions" for request, count in requests.items() if count > 1)
    queued = [item.submission_id for inbox in now.inbox.values() for item in inbox.items]
    if sorted(queued) != [one.id for one in now.submissions if isinstance(one.state, Queued)]:
        yield f"the inboxes hold {queued}, and others are queued"
    placed = sorted(submission_id for live in now.live.values() if live.run is not None for submission_id in live.run.submissions)
    if placed != [one.id for one in now.submissions if isinstance(one.state, Placed)]:
        yield f"the runs answer {placed}, and others are placed"
    entries = {stored.entry.id: stored.entry for seen in now.seen.values() for stored in seen}
    for one in now.submissions:
        entry = entries.get(getattr(one.state, "entry_id", None) or 0)
        if entry is not None and (not isinstance(entry.message, UserMessage) or entry.message.content != one.content):
            yield f"submission {one.id} says {one.content}, its entry {entry.message}"


def _runs(now: Held, conversation_id: int) -> Iterator[str]:
    """At most one run, which names the only live generation; what is shown as at work is at work, and nothing else is."""
    live = now.live[conversation_id]
    mine = [task for task in now.tasks.values() if task.conversation_id == conversation_id and task.is_live]
    generations = [task.id for task in mine if task.kind == "pi.generation"]
    if generations != ([live.run.task_id] if live.run is not None else []):
        yield f"the run is {live.run}, the live generations are {generations}"
    shown = sorted(slot.task_id for slot in live.tools)
    if shown != [task.id for task in mine if task.kind == "pi.tool"]:
        yield f"the calls {shown} are shown, others live"
    summaries = sorted(each.task_id for each in live.compactions)
    if summaries != [task.id for task in mine if task.kind == "pi.compaction"]:
        yield f"the compactions {summaries} are shown, others live"


def _calls(now: Held, conversation_id: int) -> Iterator[str]:
    """Each call of a whole answer has one result, or none yet while its task lives; no result is without a call."""
    entries = now.own(conversation_id)
    given = Counter(entry.message.tool_call_id for entry in entries if isinstance(entry.message, ToolResultMessage))
    due = {slot.call_id for slot in now.live[conversation_id].tools}
    run = now.live[conversation_id].run
    waiting = now.tasks[run.task_id].checkpoint if run is not None and run.task_id in now.tasks else None
    due |= {str(call_id) for call_id in _listed((waiting or {}).get("pending"))}
    asked: list[str] = []
    for entry in entries:
        if isinstance(entry.message, AssistantMessage) and entry.message.stop_reason not in {"aborted", "error"}:
            asked += [call.id for call in entry.message.tool_calls]
    for call_id in asked:
        if given[call_id] != (call_id not in due):
            yield f"call {call_id} has {given[call_id]} results, {'and is at work' if call_id in due else 'and is over'}"
    yield from (f"the result of call {call_id} has no call" for call_id in given if call_id not in asked)


def _context(now: Held, conversation_id: int) -> Iterator[str]:
    """What would be sent now, with another question behind it, is what every provider takes."""
    seen = [stored.entry for stored in now.seen[conversation_id]]
    marker = next((entry for entry in reversed(seen) if entry.head is not None), None)
    entries = [entry for entry in seen if marker is None or entry.id >= (marker.head or 0)]
    question = Entry(id=now.next_id, conversation_id=conversation_id, kind="pi.user", at_ms=0, message=_QUESTION)
    yield from violations(derive((*in_order(entries, marker), question)))


_QUESTION = msgspec.convert({"role": "user", "content": [{"type": "text", "text": "and now?"}]}, UserMessage)


def _usage(now: Held, conversation_id: int) -> Iterator[str]:
    """What is counted is what the entries say; of what summaries cost that were cut off or came to nothing, none does."""
    counted = sum(now.usage[conversation_id].models.values(), Usage())
    entries = now.own(conversation_id)
    used = sum((usage for entry in entries if (usage := getattr(entry.message, "usage", None)) is not None), Usage())
    summaries = [entry.data or {} for entry in entries if entry.kind == COMPACTION]
    used = sum((from_json(data["usage"], Usage) for data in summaries if "usage" in data), used)
    is_summarized = any(task.kind == kinds.COMPACTION and task.conversation_id == conversation_id for task in now.tasks.values())
    if counted != used and not (is_summarized and counted.input_tokens > used.input_tokens):
        yield f"usage is {counted}, the entries say {used}"


def _effects(now: Held, known: Known) -> Iterator[str]:
    """The side-effect law: an unsafe call starts at most once, what is told as done was done, an unknown end is told as unknown."""
    starts, ends = (Counter(call_id for call_id, what in known.effects if what == wanted) for wanted in ("start", "end"))
    yield from (f"call {call_id} started {starts[call_id]} times" for call_id in sorted(known.unsafe) if starts[call_id] > 1)
    for each in now.conversations:
        for entry in now.own(each.id):
            message = entry.message
            if not isinstance(message, ToolResultMessage):
                continue
            if not message.is_error and not ends[message.tool_call_id]:
                yield f"call {message.tool_call_id} is told as done and was not"
            if message.is_error and starts[message.tool_call_id] and "may have partially run" not in message.text:
                yield f"call {message.tool_call_id} was begun, and its result does not say so: {message.text!r}"


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else []


async def _value(storage: Storage, kind: str, conversation_id: int) -> object:
    document = await storage.document(Address(kind=kind, scope="conversation", scope_id=conversation_id))
    revisions = await storage.revisions(document.id) if document is not None else None
    return value_of(revisions, store=storage.name, document_id=document.id) if document is not None and revisions is not None else {}
