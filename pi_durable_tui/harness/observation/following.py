"""Following a conversation that another process is writing: looks for new commits and reads the view again (rule OB-6).

It works on a session that was opened read-only, and so writes nothing and leaves nothing behind. A view is told only when no commit
came while it was read: the parts of a view that two commits made would contradict each other.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import EnvironmentFailure, SessionClosed
from pi_durable_tui.harness.observation.frames import Frame, read_view
from pi_durable_tui.harness.observation.inspection import TaskNode, task_nodes
from pi_durable_tui.harness.tasks.rules import World
from pi_durable_tui.harness.tasks.table import TaskTable
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.session.session import Session

POLL_MS = 100
"""How often it looks."""
PATIENCE_MS = 2_000
"""How long a store may be unreadable: its owner may just be opening, closing or recovering it."""
_ATTEMPTS = 5
"""So often a view is read at once when commits come between; after that at the next look."""


async def follow_view(session: Session, conversation_id: int, *, clock: Clock) -> AsyncGenerator[Frame, None]:
    """Frames of a conversation, the first at once, then one at most every POLL_MS while commits come. Ends with the session.

    Args:
        session: Opened read-only; others may write the store meanwhile.

    Raises:
        NotFound: There is no such conversation.
        EnvironmentFailure: The store could not be read for PATIENCE_MS.
        StoreCorrupt, SchemaTooNew: It cannot be read any more.
        SessionClosed: The session was closed before the first frame.
    """
    view: ConversationView | None = None
    readable_ms = clock.monotonic_ms()
    while True:
        try:
            newer = await _newer(session, conversation_id, view)
        except SessionClosed:
            if view is None:
                raise
            return
        except EnvironmentFailure:
            if clock.monotonic_ms() - readable_ms > PATIENCE_MS:
                raise
            newer = None
        else:
            readable_ms = clock.monotonic_ms()
        if newer is not None:
            view = newer
            yield Frame(view, None)
        await clock.sleep_ms(POLL_MS)


async def _newer(session: Session, conversation_id: int, known: ConversationView | None) -> ConversationView | None:
    """The view as of the newest commit; None when that is known, or when commits kept coming while it was read."""
    before = (await session.storage.metadata()).next_seq
    for _ in range(_ATTEMPTS):
        if known is not None and known.seq == before - 1:
            return None
        view = await read_view(session, conversation_id, since=known)
        after = (await session.storage.metadata()).next_seq
        if after == before:
            return replace(view, seq=before - 1)
        before = after
    return None


async def follow_tasks(session: Session, *, clock: Clock) -> tuple[TaskNode, ...]:
    """All live tasks as the store has them now, by id (rule OB-4). Two commits may have made two of them; the next look tells.

    Args:
        session: Opened read-only; others may write the store meanwhile.
    """
    table = TaskTable()
    await table.load(session.storage)
    return task_nodes(
        World(
            tasks=table.tasks,
            outcomes=table.outcomes,
            conversation_owners=table.conversation_owners,
            invoked=(),
            fits=lambda _task: True,
            now_ms=clock.now_ms(),
            restart_limit=float("inf"),
        )
    )
