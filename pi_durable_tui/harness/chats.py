"""The chats of a session, for a list, a tree and for `--continue` (rules CL-2, TU-16)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pi_durable_tui.errors import NotFound, StoreCorrupt
from pi_durable_tui.harness.live import AGENT, DRAFT, Agent, Draft
from pi_durable_tui.harness.tasks.table import LIVE_STATUSES
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import Address
from pi_durable_tui.records.entry import USER, StoredEntry
from pi_durable_tui.records.messages import Content, Text, UserMessage
from pi_durable_tui.records.submission import Submission, Unanswered
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction

TITLE_CHARS = 80
FIRST_ENTRIES = 20
"""Among so many the words are looked for that a chat began with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """One chat in a list. `last_seq` orders by newest work, whatever the clock said; `last_at_ms` is for people.

    A draft that nobody has sent yet is work too: a chat with nothing else is not empty, so that `--continue` finds it (rule TU-10).
    Damage in one chat hides no other: it is listed with what is known, `damage` says why it cannot be read.
    """

    conversation_id: int
    title: str
    first_text: str
    last_at_ms: int
    last_seq: int
    unfinished: bool
    is_empty: bool
    model: str | None
    damage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One conversation in the tree of a session.

    Attributes:
        parent: The conversation it was forked from, or the one that called it; None: it stands at the top.
        is_subagent: It belongs to a call.
    """

    chat: Chat
    parent: int | None
    is_subagent: bool


async def chats(session: Session, *, most: int | None = None) -> tuple[Chat, ...]:
    """The ownerless conversations: unfinished first, then newest work first, then empty ones, and last those that are damaged.

    What it reads grows with the number of chats, never with their length.

    Args:
        most: So many of the first ones; None: all.
    """
    busy = await _busy(session)
    found = [await _standing(session, each, busy) for each in await _conversations(session) if each.owner is None]
    first = sorted(found, key=_rank)[:most]
    return tuple([await _chat(session, standing) for standing in first])


async def prompts(session: Session, *, limit: int) -> tuple[str, ...]:
    """What people asked in ownerless conversations, oldest first; the newest `limit` of what was handed in to any."""
    chats = {conversation.id for conversation in await _conversations(session) if conversation.owner is None}
    found: list[str] = []
    cursor: int | None = None
    while len(found) < limit:
        page = await session.storage.submissions(cursor=cursor, limit=min(limit, 1_000), descending=True)
        found += [text for each in page.items if each.conversation_id in chats and _was_asked(each) and (text := _words(each.content)).strip()]
        if page.next is None:
            break
        cursor = page.next
    return tuple(reversed(found[:limit]))


def _was_asked(submission: Submission) -> bool:
    """True for what became a message of a person, or waits for that; what was taken back never did."""
    return submission.kind == USER and not (isinstance(submission.state, Unanswered) and submission.state.entry_id is None)


async def branches(session: Session) -> tuple[Branch, ...]:
    """All conversations by id: chats, their forks, and the subagents below them."""
    busy = await _busy(session)
    return tuple([await _branch(session, conversation, busy) for conversation in await _conversations(session)])


async def counts(session: Session) -> tuple[int, int, int]:
    """How many chats there are, forks included; how many forks; how many subagents' conversations."""
    found = await _conversations(session)
    chats = sum(each.owner is None for each in found)
    return chats, sum(each.owner is None and each.parent is not None for each in found), len(found) - chats


async def rename(session: Session, conversation_id: int, title: str) -> None:
    """The chat is listed under `title`; "": under the words it began with.

    Raises:
        NotFound: There is no such conversation. Nothing was written.
    """

    async def write(transaction: Transaction) -> None:
        if await transaction.conversation(conversation_id) is None:
            raise NotFound(f"conversation {conversation_id}", where=session.storage.name)
        draft = await transaction.document(AGENT, conversation_id)
        draft.value["title"] = title

    await session.commit(write)


async def _conversations(session: Session) -> list[Conversation]:
    found: list[Conversation] = []
    cursor: int | None = None
    while True:
        page = await session.storage.conversations(cursor=cursor, limit=1_000)
        found += page.items
        if page.next is None:
            return found
        cursor = page.next


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """What decides where a chat stands in the list. `seq`: the commit of its newest work."""

    conversation: Conversation
    unfinished: bool
    newest: StoredEntry | None = None
    draft: str = ""
    seq: int = 0
    damage: str = ""


async def _busy(session: Session) -> set[int]:
    """The conversations with unfinished work: few, however many there are."""
    found: set[int] = set()
    tasks: int | None = 0
    while tasks is not None:
        page = await session.storage.tasks(statuses=LIVE_STATUSES, cursor=tasks, limit=1_000)
        found |= {task.conversation_id for task in page.items}
        tasks = page.next
    handed_in: int | None = 0
    while handed_in is not None:
        waiting = await session.storage.submissions(statuses=("queued", "placed"), cursor=handed_in, limit=1_000)
        found |= {submission.conversation_id for submission in waiting.items}
        handed_in = waiting.next
    return found


async def _standing(session: Session, conversation: Conversation, busy: set[int]) -> _Standing:
    unfinished = conversation.id in busy
    try:
        newest = (await session.storage.entries(conversation.id, limit=1, descending=True)).items
        if newest:
            return _Standing(conversation=conversation, unfinished=unfinished, newest=newest[0], seq=newest[0].seq)
        draft = from_json(await session.snapshot(DRAFT, conversation.id) or {}, Draft).text.strip()
        seq = await _base_seq(session, DRAFT.address(conversation.id)) if draft else 0
        return _Standing(conversation=conversation, unfinished=unfinished, draft=draft, seq=seq)
    except StoreCorrupt as error:
        return _Standing(conversation=conversation, unfinished=unfinished, damage=error.message)


def _rank(standing: _Standing) -> tuple[bool, bool, bool, int]:
    return (bool(standing.damage), not standing.unfinished, standing.newest is None and not standing.draft, -standing.seq)


async def _branch(session: Session, conversation: Conversation, busy: set[int]) -> Branch:
    parent = conversation.parent.conversation_id if conversation.parent is not None else None
    if conversation.owner is not None:
        caller = await session.storage.task(conversation.owner)
        parent = caller.conversation_id if caller is not None else None
    chat = await _chat(session, await _standing(session, conversation, busy))
    return Branch(chat=chat, parent=parent, is_subagent=conversation.owner is not None)


async def _chat(session: Session, standing: _Standing) -> Chat:
    try:
        agent = from_json(await session.snapshot(AGENT, standing.conversation.id) or {}, Agent)
        text = await _first_text(session, standing.conversation.id) or standing.draft
    except StoreCorrupt as error:
        standing = replace(standing, damage=standing.damage or error.message)
        agent, text = Agent(), ""
    newest = standing.newest
    return Chat(
        conversation_id=standing.conversation.id,
        title="(damaged)" if standing.damage else agent.title or text.strip().split("\n")[0][:TITLE_CHARS],
        first_text=text,
        last_at_ms=newest.entry.at_ms if newest is not None else standing.conversation.created_at_ms,
        last_seq=standing.seq,
        unfinished=standing.unfinished,
        is_empty=newest is None and not standing.draft and not standing.damage,
        model=agent.model,
        damage=standing.damage,
    )


async def _first_text(session: Session, conversation_id: int) -> str:
    """What a chat began with: nearly always its very first entry."""
    for limit in (1, FIRST_ENTRIES):
        for stored in (await session.storage.entries(conversation_id, limit=limit)).items:
            if stored.entry.kind == USER and isinstance(stored.entry.message, UserMessage):
                return _words(stored.entry.message.content)
    return ""


async def _base_seq(session: Session, address: Address) -> int:
    """A commit that wrote the document; later ones may have changed it."""
    document = await session.storage.document(address)
    revisions = await session.storage.revisions(document.id) if document is not None else None
    return revisions.base_seq if revisions is not None else 0


def _words(content: Sequence[Content]) -> str:
    return "".join(part.text for part in content if isinstance(part, Text))
