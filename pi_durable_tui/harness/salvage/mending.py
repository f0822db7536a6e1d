"""From what is left of a damaged store to one that is whole: every rule that the oracle knows holds in it (rules PR-15, CX-1). PURE.

A conversation of which nothing is gone is left as it is, work included. In all others, and where it cannot be told whose records are gone,
work is ended; and each of them says at its end what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pi_durable_tui.harness.live import AGENT, PROVIDER, USAGE, Agent, Provider, UsageTotals
from pi_durable_tui.harness.salvage import transcript, work
from pi_durable_tui.harness.salvage.rescue import Rescue, scope_of
from pi_durable_tui.records.messages import AssistantMessage, Usage
from pi_durable_tui.storage.dump import Dump, dump_of
from pi_durable_tui.storage.salvage.findings import Found, Lost

_WORDS = {
    "conversation": ("conversation", "conversations"),
    "entry": ("entry", "entries"),
    "task": ("task", "tasks"),
    "submission": ("message handed in", "messages handed in"),
    "document": ("document", "documents"),
    "record": ("record of a kind that cannot be told", "records of kinds that cannot be told"),
    "revision": ("change of a document", "changes of documents"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """A store that is whole.

    Attributes:
        dump: All of it.
        lost: What is gone, each with its conversation where that is known.
        notes: What each touched conversation says at its end, by its id.
        ended: The conversations in which something was at work, and is not any more.
    """

    dump: Dump
    lost: tuple[Lost, ...]
    notes: dict[int, str]
    ended: tuple[int, ...]


def mended(found: Found, *, now_ms: int, new_provider_id: Callable[[], str]) -> Mended:
    """The store that can be made of what was found.

    Args:
        now_ms: When the rescue happens, milliseconds since 1970 UTC.
        new_provider_id: Makes the UUIDv7 that a conversation shows to providers, where its own is gone (rule GE-9).
    """
    rescue = Rescue.begun(found, now_ms=now_ms)
    work.give_back_words(rescue)
    transcript.write_again(rescue)
    work.make_up_conversations(rescue)
    work.make_up_tasks(rescue)
    lost = sorted({_placed(item, rescue) for item in rescue.lost}, key=lambda item: (item.kind, item.id, item.seq or 0))
    everywhere = set(rescue.contents.conversations.seen)
    touched = {item.conversation_id for item in lost if item.conversation_id is not None and item.conversation_id in everywhere} | rescue.notes.keys()
    if found.is_unsure or any(item.conversation_id is None for item in lost):
        touched |= everywhere
    else:
        touched |= {each for each in everywhere if not work.is_consistent(rescue, each)}
    for conversation_id in sorted(work.joined(rescue, touched)):
        transcript.mend(rescue, conversation_id)
        work.end_work(rescue, conversation_id)
        _mend_papers(rescue, conversation_id, new_provider_id)
    notes = {each: _note(each, lost, rescue.notes.get(each, [])) for each in sorted(everywhere)}
    for conversation_id, text in notes.items():
        if text:
            transcript.say(rescue, conversation_id, text)
    rescue.contents.count(rescue.seq, next_id=rescue.contents.next_id, at_ms=max(now_ms, rescue.contents.last_at_ms or 0))
    said = {each: text for each, text in notes.items() if text}
    return Mended(dump=dump_of(rescue.contents), lost=tuple(lost), notes=said, ended=tuple(sorted(rescue.ended)))


def _placed(item: Lost, rescue: Rescue) -> Lost:
    """The same, with the conversation that is known of it."""
    contents = rescue.contents
    if item.conversation_id is not None and item.kind != "conversation":
        return item
    document = contents.documents.seen.get(item.id)
    task = contents.tasks.seen.get(item.id)
    match item.kind:
        case "conversation":
            return Lost(item.kind, item.id, item.id)
        case "document" | "revision" if document is not None:
            return Lost(item.kind, item.id, scope_of(document, contents), item.seq)
        case "task" if task is not None:
            return Lost(item.kind, item.id, task.conversation_id)
        case _:
            return item


def _mend_papers(rescue: Rescue, conversation_id: int, new_provider_id: Callable[[], str]) -> None:
    """The documents that every conversation has are there: what can be told from its entries is, the rest is as in a new one."""
    messages = [entry.message for entry in rescue.entries(conversation_id)]
    answers = [message for message in messages if isinstance(message, AssistantMessage)]
    if rescue.read(AGENT, conversation_id, Agent) is None:
        rescue.write(AGENT, conversation_id, Agent(model=answers[-1].model if answers else None))
    if rescue.read(PROVIDER, conversation_id, Provider) is None:
        rescue.write(PROVIDER, conversation_id, Provider(session_id=new_provider_id()))
    if rescue.read(USAGE, conversation_id, UsageTotals) is None and answers:
        used: dict[str, Usage] = {}
        for answer in answers:
            used[answer.model] = used.get(answer.model, Usage()) + (answer.usage or Usage())
        rescue.write(USAGE, conversation_id, UsageTotals(models=used))


def _note(conversation_id: int, lost: list[Lost], done: list[str]) -> str:
    """What a conversation says of its losses; "" when it has none."""
    counts = Counter(item.kind for item in lost if item.conversation_id == conversation_id)
    gone = [f"{count} {_WORDS[kind][count > 1]}" for kind, count in counts.items()]
    listed = [*gone[:-2], " and ".join(gone[-2:])] if gone else []
    said = [f"{', '.join(listed)} could not be read any more", *dict.fromkeys(done)] if listed else [*dict.fromkeys(done)]
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in ["this chat was rescued from a damaged session", *said]) if said else ""
