"""The parts of a commit that begin a run, join inputs to it, and end it (rules SU-1 to SU-6, GE-3, GE-6).

These functions work inside a transaction: what they need to read they are given, or read before the first write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from pi_durable_tui.errors import BadRequest
from pi_durable_tui.harness.inbox import Boundary, take, with_item
from pi_durable_tui.harness.kinds import GENERATION
from pi_durable_tui.harness.live import INBOX, LIVE, Failure, Inbox, InboxItem, Live, Run
from pi_durable_tui.harness.settings import Settings
from pi_durable_tui.records.codec import from_json, to_json
from pi_durable_tui.records.entry import NOTICE, RESET, USER, Entry
from pi_durable_tui.records.json import JsonObject, clean_text
from pi_durable_tui.records.messages import Content, Problem, Record, Text, UserMessage
from pi_durable_tui.records.submission import Done, Mode, Placed, Queued, Submission, Unanswered, content_digest, moved
from pi_durable_tui.records.task import Pending, Task
from pi_durable_tui.session.documents import Draft
from pi_durable_tui.session.transaction import Transaction


def as_object(record: Record) -> JsonObject:
    """A record as the plain value of a document.

    Raises:
        BadRequest: A field holds what its type does not allow; stored like this it could never be read again.
    """
    value = to_json(record)
    try:
        from_json(value, type(record))
    except msgspec.ValidationError as error:
        raise BadRequest(f"The {type(record).__name__} is not one: {error}. Nothing was written.") from error
    assert isinstance(value, dict)  # every record is an object
    return value


@dataclass(slots=True)
class Desk:
    """The papers of one conversation on the table of one transaction: `pi.live`, `pi.inbox`, and the submissions they name.

    Take it before the first write; `put_back` stores what was changed.
    """

    conversation_id: int
    transaction: Transaction
    live: Live
    inbox: Inbox
    submissions: dict[int, Submission]
    _live_draft: Draft
    _inbox_draft: Draft

    @classmethod
    async def take(cls, transaction: Transaction, conversation_id: int) -> Desk:
        """Read everything that beginning, joining or ending a run can need."""
        live_draft = await transaction.document(LIVE, conversation_id)
        inbox_draft = await transaction.document(INBOX, conversation_id)
        live = from_json(live_draft.value, Live)
        inbox = from_json(inbox_draft.value, Inbox)
        named = [*(live.run.submissions if live.run is not None else ()), *(item.submission_id for item in inbox.items)]
        found = [await transaction.submission(submission_id) for submission_id in named]
        submissions = {submission.id: submission for submission in found if submission is not None}
        return cls(conversation_id, transaction, live, inbox, submissions, live_draft, inbox_draft)

    def put_back(self) -> None:
        """Let the commit store the changed documents."""
        self._live_draft.value = as_object(self.live)
        self._inbox_draft.value = as_object(self.inbox)

    def change_live(self, **changes: object) -> None:
        """Replace fields of `pi.live`."""
        self.live = msgspec.structs.replace(self.live, **changes)

    def settle(self, submission_id: int, state: Done | Placed | Unanswered) -> None:
        """Move a submission to another state."""
        submission = moved(self.submissions[submission_id], state)
        self.submissions[submission_id] = submission
        self.transaction.put_submission(submission)

    # --------------------------------------------------------------------------------------------------------- placing

    def notify(self, text: str, settings: Settings, *, request_id: str, data: JsonObject) -> Submission:
        """Let the program tell the model something: now when nothing runs, which begins a run, else after the current tool round.

        Args:
            request_id: New in the conversation, so that nothing is told twice: where it is known, the commit ends in StorageRejected.
            data: Goes into the data of the entry, for people and programs.
        """
        return self.hand_in("steer", (Text(text=clean_text(text)),), settings, request_id=request_id, kind=NOTICE, data=data)

    def hand_in(
        self,
        mode: Mode,
        content: tuple[Content, ...],
        settings: Settings,
        *,
        request_id: str | None = None,
        kind: str = USER,
        data: JsonObject | None = None,
    ) -> Submission:
        """Queue a new submission; in an idle conversation place what is due and begin a run. Returns the submission as it is then."""
        submission = Submission(
            id=self.transaction.new_id(),
            conversation_id=self.conversation_id,
            mode=mode,
            content=content,
            digest=content_digest(mode, content),
            at_ms=self.transaction.now_ms,
            state=Queued(),
            request_id=request_id,
            kind=kind,
            data=data,
        )
        self.submissions[submission.id] = submission
        self.transaction.put_submission(submission)
        item = InboxItem(submission_id=submission.id, mode=submission.mode, content=submission.content, at_ms=submission.at_ms, kind=kind)
        self.inbox = with_item(self.inbox, item)
        if self.live.run is None:
            self.start_if_due(settings)
        return self.submissions[submission.id]

    def place(self, boundary: Boundary, settings: Settings) -> tuple[int, ...]:
        """Put what is due from the inbox into the transcript; returns the ids of the inputs that now want an answer."""
        taken = take(self.inbox, boundary, settings)
        self.inbox = taken.rest
        for item in taken.writes:
            self.settle(item.submission_id, Done(entry_id=self._enter(item.submission_id)))
        for item in taken.inputs:
            self.settle(item.submission_id, Placed(entry_id=self._enter(item.submission_id)))
        return tuple(item.submission_id for item in taken.inputs)

    def _enter(self, submission_id: int) -> int:
        submission = self.submissions[submission_id]
        entry = Entry(
            id=self.transaction.new_id(),
            conversation_id=self.conversation_id,
            kind=submission.kind,
            at_ms=self.transaction.now_ms,
            message=UserMessage(content=submission.content),
            data={"submissionId": submission_id, **(submission.data or {})},
        )
        self.transaction.insert_entry(entry)
        return entry.id

    def say(self, text: str) -> int:
        """Put a text of an extension into the transcript, for the model to read as the user's; returns the entry's id."""
        return self._append(USER, text, {"hook": True}).id

    def reset(self, text: str) -> int:
        """Let the model's context start anew, with `text` if it is not blank; older entries stay stored. Returns the entry's id."""
        return self._append(RESET, text, None, is_head=True).id

    def _append(self, kind: str, text: str, data: JsonObject | None, *, is_head: bool = False) -> Entry:
        entry_id = self.transaction.new_id()
        entry = Entry(
            id=entry_id,
            conversation_id=self.conversation_id,
            kind=kind,
            at_ms=self.transaction.now_ms,
            message=UserMessage(content=(Text(text=clean_text(text)),)) if text.strip() else None,
            data=data,
            head=entry_id if is_head else None,
        )
        self.transaction.insert_entry(entry)
        return entry

    # ------------------------------------------------------------------------------------------------------------- runs

    def begin_run(self, submission_ids: Sequence[int]) -> Task:
        """Start a run that answers those inputs: a generation task, and `pi.live.run` that names it."""
        task = Task(
            id=self.transaction.new_id(),
            kind=GENERATION,
            conversation_id=self.conversation_id,
            input={"submissions": list(submission_ids)},
            state=Pending(checkpoint={"phase": "prepare", "attempt": 1}),
            created_at_ms=self.transaction.now_ms,
        )
        self.transaction.put_task(task)
        run = Run(task_id=task.id, started_at_ms=self.transaction.now_ms, submissions=tuple(submission_ids))
        self.change_live(run=run, generation=None, tools=(), run_failure=None)
        return task

    def start_if_due(self, settings: Settings) -> None:
        """In an idle conversation: place what is due, and begin a run when an input was placed."""
        inputs = self.place("start", settings)
        if inputs:
            self.begin_run(inputs)

    def join(self, settings: Settings) -> None:
        """After a tool round: let steering inputs join the run, and count the turn."""
        joined = self.place("turn", settings)
        if self.live.run is not None:
            run = msgspec.structs.replace(self.live.run, submissions=(*self.live.run.submissions, *joined), turn=self.live.run.turn + 1)
            self.change_live(run=run, generation=None, tools=())

    def end_run(self, *, answer_entry_id: int, settings: Settings) -> None:
        """The final answer has come: its inputs are done, and the next queued ones begin a run."""
        for submission_id in self._answering():
            placed = self.submissions[submission_id].state
            assert isinstance(placed, Placed)  # only placed inputs are in a run
            self.settle(submission_id, Done(entry_id=placed.entry_id, answer_entry_id=answer_entry_id))
        self.change_live(run=None, generation=None, tools=())
        inputs = self.place("end", settings)
        if inputs:
            self.begin_run(inputs)

    def fail_run(self, problem: Problem, failure: Failure | None) -> None:
        """The run ends without an answer: its inputs are unanswered, what is queued stays (rule SU-5)."""
        for submission_id in self._answering():
            placed = self.submissions[submission_id].state
            assert isinstance(placed, Placed)  # only placed inputs are in a run
            self.settle(submission_id, Unanswered(problem=problem, entry_id=placed.entry_id))
        self.change_live(run=None, generation=None, tools=(), run_failure=failure)

    def withdraw(self, submission_ids: Sequence[int], reason: str) -> None:
        """Take queued inputs back."""
        for submission_id in submission_ids:
            self.settle(submission_id, Unanswered(problem=Problem(reason=reason)))
        gone = frozenset(submission_ids)
        self.inbox = msgspec.structs.replace(self.inbox, items=tuple(item for item in self.inbox.items if item.submission_id not in gone))

    def _answering(self) -> tuple[int, ...]:
        run = self.live.run
        return tuple(submission_id for submission_id in run.submissions if submission_id in self.submissions) if run is not None else ()
