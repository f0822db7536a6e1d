"""What must hold in the store of the core scenario: after every crash, and once all work has ended (proof.md, "The oracle").

The oracle of the end is the one of `pidurable selftest`, so that a promise is judged in one way. The other one looks at any moment, and
looks at what the scenario has besides: a summary, a fork, and a memo that many race for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pi_durable_tui.harness.live import AGENT, PROVIDER
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import Address
from pi_durable_tui.records.entry import ASSISTANT, COMPACTION, StoredEntry
from pi_durable_tui.records.json import Json
from pi_durable_tui.records.messages import AssistantMessage, ToolResultMessage
from pi_durable_tui.records.task import Completed, Task
from pi_durable_tui.selftest.oracle import Effects, faults
from pi_durable_tui.session.documents import value_of
from pi_durable_tui.storage.port import Storage
from tests.support.crash_world import RACE, UNSAFE, WINNER, World
from tests.support.harness_oracle import Held, Known, held
from tests.support.harness_oracle import faults as faults_of_all

__all__ = ["Effects", "faults", "faults_at_any_moment", "faults_of_whole_work"]


async def faults_at_any_moment(storage: Storage, world: World) -> list[str]:
    """All that is wrong, be the work at its end or cut off."""
    now = await held(storage)
    found = faults_of_all(now, Known(acknowledged=set(world.acknowledged.values()), effects=world.effects, unsafe=set(UNSAFE)))
    found += _gone(now, world)
    for conversation in now.conversations:
        found += [f"conversation {conversation.id}: {fault}" for fault in _torn_rounds(now.seen[conversation.id])]
        if conversation.parent is not None:
            found += [f"fork {conversation.id}: {fault}" for fault in await _fork_faults(storage, now, conversation)]
    for race in now.tasks.values():
        found += _race_faults(race, world) if race.kind == RACE else ()
    return found


async def faults_of_whole_work(storage: Storage) -> list[str]:
    """What is not as it must be once all work has ended and none was given up: one summary that cuts, one fork with an answer, one race that was won."""
    now = await held(storage)
    chat, *forks = now.conversations
    summaries = [entry for entry in now.own(chat.id) if entry.kind == COMPACTION]
    heads = [entry.head for entry in summaries if entry.head is not None and now.seen[chat.id][0].entry.id < entry.head < entry.id]
    answered = [fork for fork in forks if any(entry.kind == ASSISTANT for entry in now.own(fork.id))]
    races = [race.outcome for race in now.tasks.values() if race.kind == RACE]
    found = [] if len(summaries) == len(heads) == 1 else [f"the summaries are {summaries}"]
    found += [] if len(forks) == len(answered) == 1 else [f"the forks are {forks}, those with an answer {answered}"]
    return found + ([] if len(races) == 1 and isinstance(races[0], Completed) and races[0].value else [f"the races ended so: {races}"])


def _gone(now: Held, world: World) -> Iterator[str]:
    there = {*now.tasks, *(conversation.id for conversation in now.conversations)}
    yield from (f"a person was told of the {what}, and it is gone" for what, made in world.made.items() if made not in there)


def _torn_rounds(seen: Sequence[StoredEntry]) -> Iterator[str]:
    """No summary, be it the newest or an older one, has taken a call and left its result, or one that is still to come."""
    entries = [stored.entry for stored in seen]
    asked: dict[str, int] = {}
    for entry in entries:
        if isinstance(entry.message, AssistantMessage) and entry.message.stop_reason == "toolUse":
            asked |= {call.id: entry.id for call in entry.message.tool_calls}
    for head in (entry.head for entry in entries if entry.head is not None):
        for entry in entries:
            message = entry.message
            if isinstance(message, ToolResultMessage) and asked[message.tool_call_id] < head <= entry.id:
                yield f"the context from {head} on has the result of call {message.tool_call_id} without it"


async def _fork_faults(storage: Storage, now: Held, fork: Conversation) -> Iterator[str]:
    """It sees what its parent held at the entry, and nothing of later; the agent is the one of then, and what providers know it by its own."""
    assert fork.parent is not None
    point = fork.parent
    parents = tuple(stored for stored in now.seen[point.conversation_id] if stored.entry.id <= point.entry_id)
    shared = tuple(stored for stored in now.seen[fork.id] if stored.entry.conversation_id != fork.id)
    agent = await _value(storage, AGENT.kind, fork.id)
    names = [await _value(storage, PROVIDER.kind, each) for each in (point.conversation_id, fork.id)]
    found: list[str] = []
    if not parents or (parents[-1].entry.id, parents[-1].seq) != (point.entry_id, point.seq):
        found.append(f"it left its parent at {point}, which is not there")
    if shared != parents:
        found.append(f"it shares the entries {_ids(shared)}, its parent held {_ids(parents)}")
    if agent != (then := await _value(storage, AGENT.kind, point.conversation_id, at_seq=point.seq)):
        found.append(f"its agent is {agent}, its parent's was {then}")
    if names[0] == names[1]:
        found.append(f"providers know it by its parent's name: {names}")
    return iter(found)


def _race_faults(race: Task, world: World) -> Iterator[str]:
    """Whoever has read the memo has read the one that stands, in whatever life."""
    if race.is_live:
        stands = (race.memos or {}).get(WINNER)
    elif isinstance(race.outcome, Completed):
        stands = race.outcome.value
    else:
        return  # it was given up, and a memo ends with its task
    if any(read != stands for read in world.memos_read):
        yield f"the memo is {stands!r}, and {world.memos_read} were read"


def _ids(entries: Sequence[StoredEntry]) -> list[int]:
    return [stored.entry.id for stored in entries]


async def _value(storage: Storage, kind: str, conversation_id: int, *, at_seq: int | None = None) -> Json:
    document = await storage.document(Address(kind=kind, scope="conversation", scope_id=conversation_id))
    revisions = await storage.revisions(document.id, at_seq=at_seq) if document is not None else None
    return value_of(revisions, store=storage.name, document_id=document.id) if document is not None and revisions is not None else None
