"""The chats of a session, for a list, a tree and for `--continue` (rules CL-2, TU-16)."""

from __future__ import annotations

from dataclasses import dataclass

from pi_durable_tui.errors import NotFound, StoreCorrupt
from pi_durable_tui.harness.live import AGENT, DRAFT, Agent, Draft
from pi_durable_tui.harness.tasks.table import LIVE_STATUSES
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.document import Address
from pi_durable_tui.records.entry import USER, StoredEntry
from pi_durable_tui.records.messages import Text, UserMessage
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction

TITLE_CHARS = 80


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


async def chats(session: Session) -> tuple[Chat, ...]:
    """All ownerless conversations: unfinished first, then newest work first, then empty ones, and last those that are damaged."""
    found = [await _chat(session, conversation) for conversation in await _conversations(session) if conversation.owner is None]
    return tuple(sorted(found, key=_rank))


async def prompts(session: Session, *, limit: int) -> tuple[str, ...]:
    """What people asked in ownerless conversations, oldest first; of the newest chats, at most `limit`."""
    newest = sorted(await chats(session), key=lambda chat: -chat.last_seq)
    found: list[StoredEntry] = []
    for chat in newest:
        if chat.damage:
            continue
        cursor: int | None = None
        while len(found) < limit:
            page = await session.storage.entries(chat.conversation_id, cursor=cursor, limit=1_000, descending=True)
            found += [stored for stored in page.items if stored.entry.kind == USER]
            if page.next is None:
                break
            cursor = page.next
    ordered = sorted(found[:limit], key=lambda stored: stored.seq)
    return tuple(text for stored in ordered if (text := _text(stored)).strip())


async def branches(session: Session) -> tuple[Branch, ...]:
    """All conversations by id: chats, their forks, and the subagents below them."""
    return tuple([await _branch(session, conversation) for conversation in await _conversations(session)])


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


async def _branch(session: Session, conversation: Conversation) -> Branch:
    parent = conversation.parent.conversation_id if conversation.parent is not None else None
    if conversation.owner is not None:
        caller = await session.storage.task(conversation.owner)
        parent = caller.conversation_id if caller is not None else None
    return Branch(chat=await _chat(session, conversation), parent=parent, is_subagent=conversation.owner is not None)


def _rank(chat: Chat) -> tuple[bool, bool, bool, int]:
    return (bool(chat.damage), not chat.unfinished, chat.is_empty, -chat.last_seq)


async def _chat(session: Session, conversation: Conversation) -> Chat:
    try:
        return await _sound_chat(session, conversation)
    except StoreCorrupt as error:
        return Chat(
            conversation_id=conversation.id,
            title="(damaged)",
            first_text="",
            last_at_ms=conversation.created_at_ms,
            last_seq=0,
            unfinished=False,
            is_empty=False,
            model=None,
            damage=error.message,
        )


async def _sound_chat(session: Session, conversation: Conversation) -> Chat:
    storage = session.storage
    agent = from_json(await session.snapshot(AGENT, conversation.id) or {}, Agent)
    newest = (await storage.entries(conversation.id, limit=1, descending=True)).items
    first = next((each for each in (await storage.entries(conversation.id, limit=20)).items if each.entry.kind == USER), None)
    queued = await storage.submissions(conversation_id=conversation.id, statuses=("queued", "placed"), limit=1)
    live = await storage.tasks(conversation_id=conversation.id, statuses=LIVE_STATUSES, limit=1)
    draft = from_json(await session.snapshot(DRAFT, conversation.id) or {}, Draft).text.strip() if not newest else ""
    text = _text(first) or draft
    return Chat(
        conversation_id=conversation.id,
        title=agent.title or text.strip().split("\n")[0][:TITLE_CHARS],
        first_text=text,
        last_at_ms=newest[0].entry.at_ms if newest else conversation.created_at_ms,
        last_seq=newest[0].seq if newest else await _base_seq(session, DRAFT.address(conversation.id)) if draft else 0,
        unfinished=bool(queued.items or live.items),
        is_empty=not newest and not draft,
        model=agent.model,
    )


async def _base_seq(session: Session, address: Address) -> int:
    """A commit that wrote the document; later ones may have changed it."""
    document = await session.storage.document(address)
    revisions = await session.storage.revisions(document.id) if document is not None else None
    return revisions.base_seq if revisions is not None else 0


def _text(stored: StoredEntry | None) -> str:
    message = stored.entry.message if stored is not None else None
    return "".join(part.text for part in message.content if isinstance(part, Text)) if isinstance(message, UserMessage) else ""
