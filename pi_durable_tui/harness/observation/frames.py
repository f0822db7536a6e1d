"""Following a conversation: a whole view first, then one frame for each commit that touches it (rules OB-1 to OB-3)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from pi_durable_tui.errors import NotFound, SessionClosed
from pi_durable_tui.harness.live import AGENT, DRAFT, INBOX, LIVE, PROVIDER, USAGE, Agent, Draft, Inbox, Live, Provider, UsageTotals
from pi_durable_tui.harness.observation.events import AgentEvent, events_of
from pi_durable_tui.harness.tasks.table import LIVE_STATUSES
from pi_durable_tui.harness.view import ConversationView, apply, kept_entries, kept_submissions, newest_input
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.commit import Commit
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.session.watch import Overflowed
from pi_durable_tui.storage.port import Storage

FIRST_ENTRIES = 200
"""How many of the newest entries a fresh view holds; older ones are read by page."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The view after a commit; `commit` is None when the view was read whole (at the start, or after an observer was too slow)."""

    view: ConversationView
    commit: Commit | None


async def read_view(session: Session, conversation_id: int, *, limit: int = FIRST_ENTRIES, since: ConversationView | None = None) -> ConversationView:
    """The committed state of a conversation, all of it as of one commit. Writes nothing and creates nothing.

    Args:
        since: An earlier view to bring up to date: what came since is all there, and of what it held the newest, as when commits are applied.

    Raises:
        NotFound: There is no such conversation.
    """

    async def read(transaction: Transaction) -> ConversationView:
        view = await _read(session, conversation_id, limit, seq=transaction.seq - 1)
        return view if since is None else await _joined(session.storage, since, view)

    return await session.commit(read)  # on the line, where nothing changes meanwhile; it writes nothing, so nothing is stored


async def _read(session: Session, conversation_id: int, limit: int, *, seq: int) -> ConversationView:
    storage = session.storage
    conversation = await storage.conversation(conversation_id)
    if conversation is None:
        raise NotFound(f"conversation {conversation_id}", where=storage.name)
    newest = await storage.entries(conversation_id, limit=limit, descending=True)
    tasks = await storage.tasks(conversation_id=conversation_id, statuses=LIVE_STATUSES, limit=1_000)
    entries = tuple(reversed(newest.items))
    return ConversationView(
        conversation=conversation,
        seq=seq,
        committed_at_ms=(await storage.metadata()).last_at_ms or conversation.created_at_ms,
        entries=entries,
        has_older=newest.next is not None,
        agent=from_json(await session.snapshot(AGENT, conversation_id) or {}, Agent),
        live=from_json(await session.snapshot(LIVE, conversation_id) or {}, Live),
        inbox=from_json(await session.snapshot(INBOX, conversation_id) or {}, Inbox),
        provider=from_json(await session.snapshot(PROVIDER, conversation_id) or {}, Provider),
        usage=from_json(await session.snapshot(USAGE, conversation_id) or {}, UsageTotals),
        draft=from_json(await session.snapshot(DRAFT, conversation_id) or {}, Draft),
        submissions=await _submissions(storage, conversation_id, entries),
        tasks=tasks.items,
    )


async def _submissions(storage: Storage, conversation_id: int, entries: tuple[StoredEntry, ...]) -> tuple[Submission, ...]:
    """Those that are open, that of the newest input, which tells how its run ended, and the newest of all, which tells what is handed in later."""
    newest = await storage.submissions(conversation_id=conversation_id, limit=1, descending=True)
    found = {submission.id: submission for submission in (*await open_submissions(storage, conversation_id), *newest.items)}
    submission_id = newest_input(entries)
    asked = await storage.submission(submission_id) if submission_id is not None and submission_id not in found else None
    if asked is not None and asked.conversation_id == conversation_id:  # one that came with a fork is none of ours
        found[asked.id] = asked
    return tuple(found[each] for each in sorted(found))


async def open_submissions(storage: Storage, conversation_id: int | None = None) -> list[Submission]:
    """All that are neither done nor unanswered, by id, of one conversation or of the session."""
    found: list[Submission] = []
    cursor: int | None = None
    while True:
        page = await storage.submissions(conversation_id=conversation_id, statuses=("queued", "placed"), cursor=cursor, limit=1_000)
        found += page.items
        if page.next is None:
            return found
        cursor = page.next


async def _handed_in_after(storage: Storage, conversation_id: int, last_id: int) -> list[Submission]:
    found: list[Submission] = []
    cursor: int | None = None
    while True:
        page = await storage.submissions(conversation_id=conversation_id, cursor=cursor, limit=1_000, descending=True)
        newer = [submission for submission in page.items if submission.id > last_id]
        found += newer
        if page.next is None or len(newer) < len(page.items):
            return found
        cursor = page.next


async def _joined(storage: Storage, before: ConversationView, now: ConversationView) -> ConversationView:
    """The view of now with everything that the view before held, or would hold had it followed every commit."""
    last_id = before.entries[-1].entry.id if before.entries else 0
    entries = [stored for stored in now.entries if stored.entry.id > last_id]
    while entries and now.has_older and entries[0].entry.id <= now.entries[0].entry.id:  # more has come than a fresh view holds
        page = await storage.entries(now.conversation.id, cursor=entries[0].entry.id - 1, limit=1_000, descending=True)
        newer = [stored for stored in reversed(page.items) if stored.entry.id > last_id]
        entries = [*newer, *entries]
        if len(newer) < len(page.items) or page.next is None:
            break
    known = {submission.id for submission in now.submissions}
    ended = [await storage.submission(submission.id) for submission in before.submissions if submission.is_open and submission.id not in known]
    newer = await _handed_in_after(storage, now.conversation.id, before.submissions[-1].id if before.submissions else 0)
    submissions = kept_submissions(before.submissions, (*now.submissions, *newer, *(found for found in ended if found is not None)))
    kept = kept_entries(before.entries, tuple(entries))
    has_older = before.has_older or len(kept) < len(before.entries) + len(entries)
    return replace(now, entries=kept, has_older=has_older, submissions=submissions)


async def watch_view(session: Session, conversation_id: int) -> AsyncGenerator[Frame, None]:
    """Frames of a conversation, the first at once; ends when the session closes. Never slows a commit (rule OB-2).

    Raises:
        NotFound: There is no such conversation.
        SessionFailed: The session failed while it was watched.
    """
    with contextlib.closing(session.watch()) as watch:
        view = await read_view(session, conversation_id)
        yield Frame(view, None)
        async for commit in watch:
            if isinstance(commit, Overflowed):
                try:
                    view = await read_view(session, conversation_id, since=view)
                except SessionClosed:
                    return  # it closed before the observer came to read what it had missed
                yield Frame(view, None)
            elif commit.seq > view.seq:
                after = apply(view, commit)
                if after is not view:
                    view = after
                    yield Frame(view, commit)


async def events_in(frames: AsyncGenerator[Frame, None]) -> AsyncGenerator[AgentEvent, None]:
    """Agent events, derived from what frames bring: first the state as a `snapshot`, then what happens (rule OB-3)."""
    view: ConversationView | None = None
    async with contextlib.aclosing(frames):
        async for frame in frames:
            for event in events_of(view, frame.view):
                yield event
            view = frame.view
