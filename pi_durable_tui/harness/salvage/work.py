"""What of conversations and work has to be made up or ended because a record is gone. PURE.

Work is ended, never guessed on: a run whose papers are not whole could do twice what was done, or speak of what is not there. What was
sound of it stays: the answer so far, the output so far, and the words of a person that nobody has answered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import structs

from pi_durable_tui.harness.live import INBOX, LIVE, USAGE, Failure, Inbox, InboxItem, Live, UsageTotals
from pi_durable_tui.harness.salvage.rescue import Rescue
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.entry import ASSISTANT, Entry
from pi_durable_tui.records.messages import Problem, Usage
from pi_durable_tui.records.submission import Placed, Queued, Submission, Unanswered, content_digest
from pi_durable_tui.records.task import Failed, Faulted, Task, Terminal, moved

LOST_TASK = "pidurable.lost"
PROBLEM = Problem(reason="interrupted", message="The session was damaged, and records of this work are lost.")


def make_up_conversations(rescue: Rescue) -> None:
    """Everything that is there is in a conversation that is there."""
    contents = rescue.contents
    named: dict[int, list[int]] = {}
    for record in (*contents.entries.seen.values(), *contents.tasks.seen.values(), *contents.submissions.seen.values()):
        named.setdefault(record.conversation_id, []).append(_at_ms(record))
    for document in contents.documents.seen.values():
        if document.address.scope == "conversation" and document.address.scope_id is not None:
            named.setdefault(document.address.scope_id, [])
    for conversation in contents.conversations.seen.values():
        if conversation.parent is not None:
            named.setdefault(conversation.parent.conversation_id, [])
    for conversation_id in sorted(named.keys() - contents.conversations.seen.keys()):
        rescue.put(Conversation(id=conversation_id, created_at_ms=min(named[conversation_id], default=rescue.now_ms)))
        rescue.note(conversation_id, "what it was forked from, or which call it belonged to, is not known any more")


def _at_ms(record: Entry | Task | Submission) -> int:
    return record.created_at_ms if isinstance(record, Task) else record.at_ms


def make_up_tasks(rescue: Rescue) -> None:
    """A task that is gone, and whose conversation is known, has ended; whatever belonged to one that is not known belongs to nobody."""
    contents = rescue.contents
    wanted = {
        item.id: item.conversation_id
        for item in rescue.lost
        if item.kind == "task" and item.conversation_id is not None and item.conversation_id in contents.conversations.seen
    }
    wanted |= {task.owner: task.conversation_id for task in contents.tasks.seen.values() if task.owner is not None}
    for task_id, conversation_id in sorted(wanted.items()):
        if task_id not in contents.kinds:
            ended = Terminal(outcome=Faulted(message=PROBLEM.message))
            made = Task(id=task_id, kind=LOST_TASK, conversation_id=conversation_id, input={}, state=ended, created_at_ms=rescue.now_ms)
            rescue.put(structs.replace(made, ended_at_ms=rescue.now_ms))
    for conversation in list(contents.conversations.seen.values()):
        if conversation.owner is not None and conversation.owner not in contents.tasks.seen:
            rescue.put(structs.replace(conversation, owner=None))
            rescue.note(conversation.id, "the call that it belonged to is lost: it is a chat of its own now")


def joined(rescue: Rescue, touched: Collection[int]) -> set[int]:
    """The conversations in which work cannot go on: those that were touched, and all that is at work above and below them."""
    pairs: list[tuple[int, int]] = []
    for conversation in rescue.contents.conversations.seen.values():
        owner = rescue.contents.tasks.seen.get(conversation.owner or 0)
        if owner is not None:
            pairs.append((conversation.id, owner.conversation_id))
    found = set(touched)
    while more := {each for pair in pairs if found & set(pair) for each in pair} - found:
        found |= more
    return found


def is_consistent(rescue: Rescue, conversation_id: int) -> bool:
    """True when what `pi.live` shows as at work is at work, what the inbox holds is queued, and nothing else is."""
    live = rescue.read(LIVE, conversation_id, Live) or Live()
    tasks = {task.id: task for task in _live_tasks(rescue, conversation_id)}
    shown = {live.run.task_id} if live.run is not None else set[int]()
    shown |= {each.task_id for each in (*live.tools, *live.commands, *live.compactions)}
    waited = {task_id for task in tasks.values() for task_id in getattr(task.state, "on", ())}
    placed = {item.id for item in rescue.submissions(conversation_id) if isinstance(item.state, Placed)}
    answered = set(live.run.submissions) if live.run is not None else set[int]()
    queued = [item.id for item in rescue.submissions(conversation_id) if isinstance(item.state, Queued)]
    waiting = [item.submission_id for item in (rescue.read(INBOX, conversation_id, Inbox) or Inbox()).items]
    wants_showing = {task.id for task in tasks.values() if task.kind in {"pi.generation", "pi.tool", "pi.compaction"}}
    return wants_showing <= shown <= tasks.keys() and waited <= rescue.contents.tasks.seen.keys() and placed == answered and queued == waiting


def end_work(rescue: Rescue, conversation_id: int) -> None:
    """Nothing is at work in the conversation; what had come is in the transcript, its inputs are unanswered, and its inbox holds what is queued."""
    live = rescue.read(LIVE, conversation_id, Live)
    tasks = list(_live_tasks(rescue, conversation_id))
    for task in tasks:
        rescue.put(moved(task, Terminal(outcome=Failed(problem=PROBLEM)), at_ms=rescue.now_ms))
        _retire(rescue, task.id)
    for submission in rescue.submissions(conversation_id):
        if isinstance(submission.state, Placed):
            rescue.put(structs.replace(submission, state=Unanswered(problem=PROBLEM, entry_id=submission.state.entry_id)))
    if live is not None and (live.run or live.generation or live.tools or live.commands or live.compactions):
        _keep_answer(rescue, conversation_id, live)
        rescue.write(LIVE, conversation_id, Live(run_failure=_failure(rescue, live)))
    elif live is None and tasks:
        rescue.write(LIVE, conversation_id, Live())
    if tasks:
        rescue.ended.add(conversation_id)
        rescue.note(conversation_id, "what was at work was ended")
    _sort_inbox(rescue, conversation_id)


def give_back_words(rescue: Rescue) -> None:
    """What a person handed in is there if it stands anywhere: in the inbox, or in the transcript."""
    contents = rescue.contents
    for conversation_id in list(contents.conversations.seen):
        inbox = rescue.read(INBOX, conversation_id, Inbox) or Inbox()
        for item in inbox.items:
            if item.submission_id not in contents.kinds:
                digest = content_digest(item.mode, item.content)
                rescue.put(
                    Submission(
                        id=item.submission_id,
                        conversation_id=conversation_id,
                        mode=item.mode,
                        content=item.content,
                        digest=digest,
                        at_ms=item.at_ms,
                        state=Queued(),
                    )
                )


def _live_tasks(rescue: Rescue, conversation_id: int) -> Iterator[Task]:
    return (task for task in rescue.tasks(conversation_id) if task.is_live)


def _retire(rescue: Rescue, task_id: int) -> None:
    for document in list(rescue.contents.documents.seen.values()):
        if document.retired_seq is None and (document.address.scope, document.address.scope_id) == ("task", task_id):
            rescue.put(structs.replace(document, retired_seq=rescue.seq))


def _keep_answer(rescue: Rescue, conversation_id: int, live: Live) -> None:
    """The part of an answer that had come is an entry, as after a kill (rule GE-3)."""
    message = live.generation.message if live.generation is not None else None
    if message is not None:
        cut = structs.replace(message, stop_reason="aborted", problem=PROBLEM)
        rescue.put(Entry(id=rescue.new_id(), conversation_id=conversation_id, kind=ASSISTANT, at_ms=rescue.now_ms, message=cut))
        totals = rescue.read(USAGE, conversation_id, UsageTotals)
        if totals is not None and cut.usage is not None:
            models = {**totals.models, cut.model: totals.models.get(cut.model, Usage()) + cut.usage}
            rescue.write(USAGE, conversation_id, structs.replace(totals, models=models))


def _failure(rescue: Rescue, live: Live) -> Failure | None:
    if live.run is None:
        return live.run_failure
    attempt = live.generation.attempt if live.generation is not None else 1
    return Failure(reason=PROBLEM.reason, task_id=live.run.task_id, attempt=attempt, at_ms=rescue.now_ms, message=PROBLEM.message)


def _sort_inbox(rescue: Rescue, conversation_id: int) -> None:
    queued = [each for each in rescue.submissions(conversation_id) if isinstance(each.state, Queued)]
    items = tuple(InboxItem(submission_id=each.id, mode=each.mode, content=each.content, at_ms=each.at_ms) for each in queued)
    if (rescue.read(INBOX, conversation_id, Inbox) or Inbox()).items != items:
        rescue.write(INBOX, conversation_id, Inbox(items=items))
