"""A conversation as a screen needs it, derived from commits alone (rules OB-1, OB-2). PURE: no I/O, no clock, no await."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

from pi_durable_tui.harness.live import AGENT, DRAFT, INBOX, LIVE, PROVIDER, USAGE, Agent, Draft, Inbox, Live, Provider, UsageTotals
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.commit import Commit, DocumentChange
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.records.task import Task

KEPT_ENTRIES = 1_000
KEPT_SETTLED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """The committed state of one conversation as of commit `seq`.

    Attributes:
        seq: The newest commit that is contained.
        committed_at_ms: When that commit was made.
        entries: The newest entries, ids growing: at least those since the view was opened and up to a page before, as far as they are
            among the newest KEPT_ENTRIES. Older ones are read by page.
        has_older: True when the store holds entries before the first of `entries`.
        submissions: Those not yet done or unanswered, that of the newest input in `entries`, the newest of all, and of what settled since
            the view was opened at least the newest KEPT_SETTLED, by id.
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


class Documents(TypedDict, total=False):
    """The built-in documents by the view's field names."""

    agent: Agent
    live: Live
    inbox: Inbox
    provider: Provider
    usage: UsageTotals
    draft: Draft


def apply(view: ConversationView, commit: Commit) -> ConversationView:
    """The view after one more commit; the same object when the commit is of other conversations only.

    What a commit leaves alone keeps its identity, so that a screen can skip it.
    """
    conversation_id = view.conversation.id
    entries = tuple(stored for stored in commit.entries if stored.entry.conversation_id == conversation_id)
    tasks = tuple(task for task in commit.tasks if task.conversation_id == conversation_id)
    submissions = tuple(submission for submission in commit.submissions if submission.conversation_id == conversation_id)
    changes = [change for change in commit.documents if change.address.scope == "conversation" and change.address.scope_id == conversation_id]
    documents = _documents(changes)
    if not (entries or tasks or submissions or documents):
        return view
    kept = kept_entries(view.entries, entries)
    return replace(
        view,
        seq=commit.seq,
        committed_at_ms=commit.at_ms,
        entries=kept,
        has_older=view.has_older or len(kept) < len(view.entries) + len(entries),
        tasks=_replaced_tasks(view.tasks, tasks) if tasks else view.tasks,
        submissions=kept_submissions(view.submissions, submissions) if submissions else view.submissions,
        **documents,
    )


def kept_entries(old: tuple[StoredEntry, ...], new: tuple[StoredEntry, ...]) -> tuple[StoredEntry, ...]:
    """What a view holds of its entries once new ones have come: all of the new ones; `old` itself when there are none.

    Old ones are let go many at a time, so that a view that has grown long costs a new entry no more than a short one.
    """
    if not new:
        return old
    both = (*old, *new)
    return both if len(both) <= 2 * KEPT_ENTRIES else both[-max(KEPT_ENTRIES, len(new)) :]


def newest_input(entries: tuple[StoredEntry, ...]) -> int | None:
    """The id of the submission that became the newest input of these entries; None: there is none."""
    for stored in reversed(entries):
        submission_id = (stored.entry.data or {}).get("submissionId")
        if isinstance(submission_id, int):
            return submission_id
    return None


def _documents(changes: list[DocumentChange]) -> Documents:
    documents: Documents = {}
    for change in changes:
        value = change.value if change.value is not None else {}
        match change.address.kind:
            case AGENT.kind:
                documents["agent"] = from_json(value, Agent)
            case LIVE.kind:
                documents["live"] = from_json(value, Live)
            case INBOX.kind:
                documents["inbox"] = from_json(value, Inbox)
            case PROVIDER.kind:
                documents["provider"] = from_json(value, Provider)
            case USAGE.kind:
                documents["usage"] = from_json(value, UsageTotals)
            case DRAFT.kind:
                documents["draft"] = from_json(value, Draft)
            case _:
                pass  # a document of an extension: nothing a screen knows how to show
    return documents


def _replaced_tasks(old: tuple[Task, ...], changed: tuple[Task, ...]) -> tuple[Task, ...]:
    by_id = {task.id: task for task in (*old, *changed)}
    return tuple(by_id[task_id] for task_id in sorted(by_id) if by_id[task_id].is_live)


def kept_submissions(old: tuple[Submission, ...], changed: tuple[Submission, ...]) -> tuple[Submission, ...]:
    """What a view holds of its submissions once some have changed, by id."""
    by_id = {submission.id: submission for submission in (*old, *changed)}
    settled = {submission.id for submission in old if not by_id[submission.id].is_open} - {submission.id for submission in changed}
    for submission_id in sorted(settled)[:-KEPT_SETTLED]:
        del by_id[submission_id]
    return tuple(by_id[submission_id] for submission_id in sorted(by_id))
