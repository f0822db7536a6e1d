"""A session that another program writes, as the app of `pidurable watch` reads it (rule OB-6). Nothing here can write."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from pi_durable_tui.cli import paths
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.clock import Clock
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.observation.following import follow_view
from pi_durable_tui.harness.observation.frames import Frame
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.session.session import Session
from pi_durable_tui.storage.lock import Holder, holder


@dataclass(frozen=True, slots=True)
class FollowedConversation:
    """One of its conversations."""

    _conversation: Conversation
    _session: Session
    _clock: Clock

    @property
    def id(self) -> int:
        """As everywhere."""
        return self._conversation.id

    def watch(self) -> AsyncGenerator[Frame, None]:
        """See `follow_view`."""
        return follow_view(self._session, self.id, clock=self._clock)

    async def entries(self, *, before: int | None = None, limit: int = 200) -> tuple[StoredEntry, ...]:
        """See `Conversation.entries`."""
        return await self._conversation.entries(before=before, limit=limit)


async def followed(harness: Harness, conversation_id: int, clock: Clock) -> FollowedConversation:
    """A conversation of a session that was opened for reading.

    Raises:
        NotFound: There is none of that id.
    """
    return FollowedConversation(await harness.conversation(conversation_id), harness.session, clock)


def owner_of(setup: Setup, session: int) -> Holder | None:
    """The program that runs a session now; None: no living one does."""
    kinds = paths.session_kinds(setup.place, session)
    return holder(paths.session_path(setup.place, session, kinds[0])) if kinds else None
