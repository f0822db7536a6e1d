"""One conversation for its users: hand something in, wait, stop, answer, watch (durable.md, sections 6 and 12)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Literal, TypeAlias, TypeVar, get_args

import msgspec

from pi_durable_tui.errors import BadRequest, ConversationBusy, NotFound, RequestConflict
from pi_durable_tui.harness.approval import Rule
from pi_durable_tui.harness.generation.pressure import begin_compaction
from pi_durable_tui.harness.kinds import QUESTION
from pi_durable_tui.harness.live import AGENT, DRAFT, LIVE, Agent, Draft, Live
from pi_durable_tui.harness.observation.events import AgentEvent
from pi_durable_tui.harness.observation.following import follow_view
from pi_durable_tui.harness.observation.frames import Frame, events_in, read_view, watch_view
from pi_durable_tui.harness.runs import Desk, as_object
from pi_durable_tui.harness.services import Services
from pi_durable_tui.harness.tasks.ownership import subtree
from pi_durable_tui.harness.tasks.table import TaskTable
from pi_durable_tui.harness.tool.checkpoint import Answer, QuestionInput
from pi_durable_tui.harness.tool.command import CommandInput, begin_command
from pi_durable_tui.harness.tool.grants import add_grant
from pi_durable_tui.harness.tool.output import slot_of
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.json import clean_text
from pi_durable_tui.records.messages import Content, Text
from pi_durable_tui.records.submission import Mode, Queued, Submission, content_digest
from pi_durable_tui.records.task import Completed, Completing, Sleeping, Terminal, moved
from pi_durable_tui.session.cleaning import cleaned
from pi_durable_tui.session.transaction import Transaction

T = TypeVar("T")

SubmitMode: TypeAlias = Literal["followUp", "steer", "reject", "write"]
Withdrawal: TypeAlias = Literal["withdrawn", "already_placed", "settled"]


class Conversation:
    """A conversation of an open harness; made by `Harness.conversation`. Used on the harness's event loop."""

    def __init__(self, conversation_id: int, services: Services, table: TaskTable, start: Callable[[], None]) -> None:
        self.id = conversation_id
        self._services = services
        self._session = services.session
        self._table = table
        self._start = start

    # ------------------------------------------------------------------------------------------------------- submissions

    async def submit(self, content: str | Sequence[Content], *, mode: SubmitMode = "followUp", request_id: str | None = None) -> Submission:
        """Hand something in; returns once it is stored, and the scheduler runs (rules SU-1 to SU-3, TK-13).

        Args:
            content: Text, or text and images; not blank.
            mode: What to do when a run is going on: wait for its end, join it after the current tool round, refuse, or (write)
                append at the next boundary without asking the model.
            request_id: The same id with the same content gives the same submission, also after a restart (rule SU-2).

        Raises:
            BadRequest: Nothing but blanks, or there is no such mode. Nothing was written.
            ConversationBusy: Mode `reject`, and a run is going on. Nothing was written.
            RequestConflict: The request id was used with other content. Nothing was written.
        """
        parts = tuple(cleaned(part, "content") for part in ((Text(text=content),) if isinstance(content, str) else content))
        if not any(not isinstance(part, Text) or part.text.strip() for part in parts):
            raise BadRequest("An empty message was not sent.")
        if mode not in get_args(SubmitMode):
            raise BadRequest(f"There is no mode {mode!r}; the modes are {', '.join(get_args(SubmitMode))}. Nothing was written.")
        stored_mode: Mode = "followUp" if mode == "reject" else mode
        digest = content_digest(stored_mode, parts)
        request_id = None if request_id is None else clean_text(request_id)

        async def write(transaction: Transaction) -> Submission:
            if request_id is not None:
                earlier = await transaction.submission_by_request(self.id, request_id)
                if earlier is not None:
                    if earlier.digest != digest:
                        raise RequestConflict(self.id, request_id)
                    return earlier
            desk = await Desk.take(transaction, self.id)
            if mode == "reject" and desk.live.run is not None:
                raise ConversationBusy(self.id)
            handed_in = desk.hand_in(stored_mode, parts, self._services.settings, request_id=request_id)
            desk.put_back()
            return handed_in

        submission = await self._session.commit(write)
        self._start()
        return submission

    async def settled(self, submission_id: int) -> Submission:
        """Wait until a submission is done or unanswered, and return it. Cancelling ends only the wait (rule SE-8).

        Raises:
            NotFound: There is no such submission in this conversation.
            SessionClosed, SessionFailed: The session ended first.
        """
        self._start()

        async def look() -> Submission | None:
            submission = await self._session.storage.submission(submission_id)
            if submission is None or submission.conversation_id != self.id:
                raise NotFound(f"submission {submission_id}", where=f"conversation {self.id}")
            return None if submission.is_open else submission

        return await self._session.until(look, what=f"The end of submission {submission_id}")

    async def idle(self) -> None:
        """Wait until no run is going on and nothing of this conversation is at work, background tasks aside (rule TK-16)."""
        self._start()

        async def look() -> bool | None:
            live = from_json(await self._session.snapshot(LIVE, self.id) or {}, Live)
            if self._session.read_only:
                await self._table.look_again(self._session.storage)
            return True if live.run is None and not self._at_work(background=False) else None

        await self._session.until(look, what=f"The rest of conversation {self.id}")

    async def withdraw(self, submission_id: int) -> Withdrawal:
        """Take a queued submission back; what is already placed or settled stays as it is (rule SU-7).

        Raises:
            NotFound: There is no such submission in this conversation.
        """

        async def write(transaction: Transaction) -> Withdrawal:
            submission = await transaction.submission(submission_id)
            if submission is None or submission.conversation_id != self.id:
                raise NotFound(f"submission {submission_id}", where=f"conversation {self.id}")
            if not isinstance(submission.state, Queued):
                return "already_placed" if submission.is_open else "settled"
            desk = await Desk.take(transaction, self.id)
            desk.withdraw([submission_id], "withdrawn")
            desk.put_back()
            return "withdrawn"

        return await self._session.commit(write)

    async def abort(self, *, background: bool = False) -> tuple[Submission, ...]:
        """Stop the work of this conversation, durably, and wait until it has stopped (rules TK-15 to TK-17).

        Queued inputs are withdrawn and returned, oldest first; queued writes and notices stay. Background tasks go on, unless `background`.
        What is handed in while the work is being stopped is no part of it: it is answered as soon as that has stopped.
        """
        stopping: list[int] = []

        async def write(transaction: Transaction) -> tuple[Submission, ...]:
            desk = await Desk.take(transaction, self.id)
            taken = [item.submission_id for item in desk.inbox.items if item.is_typed]
            desk.withdraw(taken, "withdrawn")
            stopping.extend(self._below(background=background))
            for task_id in stopping:
                task = self._table.tasks[task_id]
                if task.abort_at_ms is None:
                    transaction.put_task(msgspec.structs.replace(task, abort_at_ms=transaction.now_ms))
            desk.put_back()
            return tuple(desk.submissions[submission_id] for submission_id in taken)

        async def stopped() -> bool | None:
            return None if self._are_at_work(stopping) else True

        async def go_on(transaction: Transaction) -> None:
            desk = await Desk.take(transaction, self.id)
            if desk.live.run is None and any(item.is_typed for item in desk.inbox.items):
                desk.start_if_due(self._services.settings)
                desk.put_back()

        withdrawn = await self._session.commit(write)
        self._start()
        await self._session.until(stopped, what=f"The rest of conversation {self.id}")
        await self._session.commit(go_on)
        return withdrawn

    async def abort_task(self, task_id: int) -> bool:
        """Stop one task of this conversation and all work below it, durably; the rest goes on (rules TK-15, TU-8).

        Returns:
            True once it has ended; False when there was no such live task.
        """

        async def write(transaction: Transaction) -> bool:
            task = self._table.tasks.get(task_id)
            if task is None or task.conversation_id != self.id:
                return False
            for below in subtree((task_id,), self._table.tasks, self._table.conversation_owners, background=True):
                marked = self._table.tasks[below]
                if marked.abort_at_ms is None:
                    transaction.put_task(msgspec.structs.replace(marked, abort_at_ms=transaction.now_ms))
            return True

        async def look() -> bool | None:
            return None if task_id in self._table.tasks else True

        if not await self._session.commit(write):
            return False
        self._start()
        return await self._session.until(look, what=f"The end of task {task_id}")

    async def answer(self, question_id: int, decision: Literal["allow", "always", "deny"], *, by: str, note: str = "") -> None:
        """Answer an open question; the answer is stored with who and when before anything follows from it (rule TU-19).

        Args:
            decision: `always` allows the call and makes the rule that the question offers, in the same commit.

        Raises:
            BadRequest: `always`, and the question offers no rule. Nothing was written.
            NotFound: There is no open question of that id in this conversation (it may have been answered or stopped).
        """

        async def write(transaction: Transaction) -> None:
            task = self._table.tasks.get(question_id)
            is_open = task is not None and task.kind == QUESTION and task.conversation_id == self.id and isinstance(task.state, Sleeping)
            if task is None or not is_open or task.abort_at_ms is not None:
                raise NotFound(f"open question {question_id}", where=f"conversation {self.id}")
            asked = from_json(task.input, QuestionInput)
            if decision == "always":
                if asked.rule is None:
                    raise BadRequest("This question offers no rule. Allow it once, or not.")
                await add_grant(transaction, from_json(asked.rule, Rule), by=by)
            answer = Answer(decision=decision, by=by, at_ms=transaction.now_ms, note=clean_text(note))
            transaction.put_task(moved(task, Terminal(outcome=Completed(value=as_object(answer))), at_ms=transaction.now_ms))
            slot = slot_of((await transaction.document(LIVE, self.id)).value, asked.tool_task)
            if slot is not None:  # nobody is asked again, not even by a screen that opens right after a kill
                slot["status"] = "pending"
                slot.pop("question", None)

        await self._session.commit(write)
        self._start()

    async def run_command(self, command: str, *, shown: bool) -> int:
        """Run a shell command for the person, beside whatever runs (rule TU-10); returns its task's id once the wish is stored.

        It is carried out by the tool "bash" in the conversation's environment. Its intent and its end are stored like those of a call: after
        a kill it counts as interrupted and is not run again.

        Args:
            shown: The model reads the command and what came of it, with the next request.

        Raises:
            BadRequest: Nothing but blanks. Nothing was written.
        """
        text = clean_text(command).strip()
        if not text:
            raise BadRequest("An empty command was not run.")
        wanted = CommandInput(name="bash", arguments={"command": text}, title=text, shown=shown)

        async def write(transaction: Transaction) -> int:
            return (await begin_command(transaction, self.id, wanted)).id

        task_id = await self._session.commit(write)
        self._start()
        return task_id

    async def compact(self, focus: str = "") -> int:
        """Start summarizing the old part of the context, beside whatever runs (rule CO-2); returns the task's id once it is stored."""

        async def write(transaction: Transaction) -> int:
            desk = await Desk.take(transaction, self.id)
            task = begin_compaction(desk, "manual", focus=clean_text(focus))
            desk.put_back()
            return task.id

        task_id = await self._session.commit(write)
        self._start()
        return task_id

    async def reset(self, text: str = "") -> int:
        """Let the model's context start anew, with `text` if it is not blank; older entries stay stored and visible.

        Returns:
            The id of the entry that marks the new start.

        Raises:
            ConversationBusy: A run is going on. Nothing was written.
        """

        async def write(transaction: Transaction) -> int:
            desk = await Desk.take(transaction, self.id)
            if desk.live.run is not None:
                raise ConversationBusy(self.id)
            return desk.reset(text)

        return await self._session.commit(write)

    # ------------------------------------------------------------------------------------------------- agent and composer

    async def agent(self) -> Agent:
        """Who answers in this conversation."""
        return from_json(await self._session.snapshot(AGENT, self.id) or {}, Agent)

    async def set_agent(self, **changes: object) -> Agent:
        """Change fields of the agent, from the next request on; returns what now holds.

        Raises:
            BadRequest: A field cannot hold that value. Nothing was written.
        """

        async def write(transaction: Transaction) -> Agent:
            draft = await transaction.document(AGENT, self.id)
            agent = msgspec.structs.replace(from_json(draft.value, Agent), **changes)
            draft.value = as_object(agent)
            return agent

        return await self._session.commit(write)

    async def save_draft(self, text: str, cursor: int) -> None:
        """Store what stands in the composer (rule TU-10)."""

        async def write(transaction: Transaction) -> None:
            draft = await transaction.document(DRAFT, self.id)
            draft.value = as_object(Draft(text=clean_text(text), cursor=cursor))

        await self._session.commit(write, priority="partial")

    # -------------------------------------------------------------------------------------------------------- observation

    async def view(self) -> ConversationView:
        """The committed state as of now."""
        if self._session.read_only:  # another process may commit while it is read
            async with contextlib.aclosing(self.watch()) as frames:
                return (await anext(frames)).view
        return await read_view(self._session, self.id)

    def watch(self) -> AsyncGenerator[Frame, None]:
        """The committed state as of now, then after each commit that changes it (rule OB-1); ends with the session.

        In a session that was opened read-only it follows what another process writes (rule OB-6): see `follow_view` for what it raises then.
        """
        if self._session.read_only:
            return follow_view(self._session, self.id, clock=self._services.clock)
        return watch_view(self._session, self.id)

    def watch_events(self) -> AsyncGenerator[AgentEvent, None]:
        """A snapshot, then what happens (rule OB-3), out of what `watch` brings."""
        return events_in(self.watch())

    async def entries(self, *, before: int | None = None, limit: int = 200) -> tuple[StoredEntry, ...]:
        """A page of the transcript, ids growing: the newest `limit` (1 to 1,000) entries with an id below `before` (None: of all)."""
        cursor = before - 1 if before is not None else None
        page = await self._session.storage.entries(self.id, cursor=cursor, limit=limit, descending=True)
        return tuple(reversed(page.items))

    # --------------------------------------------------------------------------------------------------------------- waits

    def _below(self, *, background: bool) -> tuple[int, ...]:
        tasks = self._table.tasks
        roots = [task.id for task in tasks.values() if task.conversation_id == self.id and task.owner is None and (background or not task.background)]
        return subtree(roots, tasks, self._table.conversation_owners, background=background)

    def _at_work(self, *, background: bool) -> bool:
        return self._are_at_work(self._below(background=background))

    def _are_at_work(self, task_ids: Sequence[int]) -> bool:
        """What is completing has done its work; if something holds it up, that is at work itself, or in the background."""
        living = [self._table.tasks[task_id] for task_id in task_ids if task_id in self._table.tasks]
        return any(not isinstance(task.state, Completing) for task in living)
