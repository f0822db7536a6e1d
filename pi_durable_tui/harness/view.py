"""A conversation as a screen needs it, derived from commits alone (rules OB-1, OB-2). PURE: no I/O, no clock, no await."""

from __future__ import annotations

from dataclasses import dataclass

from pi_durable_tui.harness.live import Agent, Draft, Inbox, Live, Provider, UsageTotals
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """The committed state of one conversation as of commit `seq`.

    Attributes:
        seq: The newest commit that is contained.
        committed_at_ms: When that commit was made.
        entries: The newest entries, ids growing: at least those since the view was opened and up to a page before.
        has_older: True when the store holds entries before the first of `entries`.
        submissions: Those not yet done or unanswered, plus what settled since the view was opened, by id.
        tasks: The live tasks of the conversation, by id.
    """

    conversation: Conversation
    seq: int
    committed_at_ms: int
    entries: tuple[StoredEntry, ...] = ()
    has_older: bool = False
    agent: Agent = Agent()
    live: Live = Live()
    inbox: Inbox = Inbox()
    provider: Provider = Provider()
    usage: UsageTotals = UsageTotals()
    draft: Draft = Draft()
    submissions: tuple[Submission, ...] = ()
    tasks: tuple[Task, ...] = ()

    @property
    def is_busy(self) -> bool:
        """True while a run is going on."""
        return self.live.run is not None
