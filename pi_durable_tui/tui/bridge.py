"""The one way between the screen and the harness, which runs on a thread and event loop of its own (rules OB-2, TU-10).

Towards the screen: what watching/sights.py delivers. Towards the harness: commands run on its loop; what goes wrong comes back as
a problem to show. Nothing is drawn here, and nothing is shown that did not come out of a commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import PidurableError
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.messages import Content
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.tui.actions.doubt import Answer, Doubt, instruction
from pi_durable_tui.tui.following import Sight
from pi_durable_tui.tui.house import HousePort
from pi_durable_tui.tui.keys.bindings import Keymap, keymap
from pi_durable_tui.tui.palette import Palette, ThemeName, palette_of
from pi_durable_tui.tui.ports import ConversationPort, DeskPort, FilesPort, HarnessPort, WorkspacePort
from pi_durable_tui.tui.rows import Notice
from pi_durable_tui.tui.watching.sights import Sights

T = TypeVar("T")

DRAFT_MS = 100
OLDER_ENTRIES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A harness that is open and a conversation to show.

    Attributes:
        loop: The harness's event loop, running on a thread of its own.
        harness: It; used on `loop`.
        conversation: The one to show first.
        workspace: What the working directory brings; used on `loop`, but for its offers.
        resume: Starts the work that is waiting; called once the first view is on the screen; runs on `loop`.
        seam: What happened before this opening, for the line at the place of resumption (rule TU-9); "" when there is nothing to tell.
        notices: What else to say at the start.
        waits: The work that is waiting goes on only when the person says so.
        files: Files as of an entry; used on `loop`; None: they are not kept.
        desk: File names and an editor; None: neither.
        read_keys: The keys as the person's file says them now; called on a thread of its own.
        palette_of: The palette of a theme in this terminal.
        house: The program around the app; None: there is none.
    """

    loop: asyncio.AbstractEventLoop
    harness: HarnessPort
    conversation: ConversationPort
    workspace: WorkspacePort
    resume: Callable[[], Coroutine[Any, Any, None]]
    seam: str = ""
    notices: tuple[Notice, ...] = ()
    palette_of: Callable[[ThemeName], Palette] = palette_of
    house: HousePort | None = None
    read_keys: Callable[[], Keymap] = keymap
    desk: DeskPort | None = None
    waits: bool = False
    files: FilesPort | None = None


class Bridge:
    """See the module. All methods are called on the screen's loop.

    Args:
        on_sight: Gets what is to be shown, in the order of commits.
        on_switch: Called at the moment from which on another conversation is shown: what comes next is of that one.
        on_problem: Gets what a command or the watch met.
    """

    def __init__(
        self,
        opened: Opened,
        *,
        clock: Clock,
        on_sight: Callable[[Sight], None],
        on_switch: Callable[[], None],
        on_problem: Callable[[PidurableError], None],
    ) -> None:
        self._opened = opened
        self._conversation = opened.conversation
        self._clock = clock
        self._on_sight, self._on_switch = on_sight, on_switch
        self._on_problem = on_problem
        self._draft: tuple[str, int] | None = None  # what shall be stored
        self._stored_draft: tuple[str, int] | None = None  # what is
        self._submits: set[asyncio.Task[bool]] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._drafting: asyncio.Task[bool] | None = None
        self._is_resumed = False
        self._sights = Sights(opened.loop, opened.harness.conversation, clock=clock, on_sight=self._show, on_problem=on_problem)
        self._sights.follow(opened.conversation)

    @property
    def files(self) -> FilesPort | None:
        """Files as of an entry, for `ask`."""
        return self._opened.files

    @property
    def desk(self) -> DeskPort | None:
        """File names, an editor and a browser."""
        return self._opened.desk

    @property
    def house(self) -> HousePort | None:
        """The program around the app, for `ask`."""
        return self._opened.house

    @property
    def conversation_id(self) -> int:
        """The conversation that is shown, or will be once its first view is there."""
        return self._conversation.id

    def submit(self, content: str | Sequence[Content], *, mode: Literal["followUp", "steer"]) -> asyncio.Task[bool]:
        """Hand in a message and empty the draft. The task's result is True once it is stored."""
        self._draft = self._stored_draft = ("", 0)
        task = self._run(self._submit(content, mode))
        self._submits.add(task)
        task.add_done_callback(self._submits.discard)
        return task

    def run_command(self, command: str, *, shown: bool) -> asyncio.Task[bool]:
        """Run a shell command for the person. The task's result is True once the wish is stored."""
        self._draft = self._stored_draft = ("", 0)
        task = self._run(self._run_command(command, shown=shown))
        self._submits.add(task)
        task.add_done_callback(self._submits.discard)
        return task

    def resume(self) -> None:
        """Let the work that is waiting go on; the first time only."""
        if not self._is_resumed:
            self._is_resumed = True
            self._run(self._call(self._opened.resume()))

    def settle_doubt(self, doubt: Doubt, answer: Answer) -> None:
        """Tell the model what a person says of a call in doubt: a message of theirs, ahead of its next request (rule TU-9)."""
        text = instruction(doubt, answer)
        if text:
            self._run(self._call(self._conversation.submit(text, mode="steer")))

    async def prompts(self) -> tuple[str, ...]:
        """What was asked before in the chats of the session, oldest first."""
        return await self.ask(lambda harness: harness.overview.prompts()) or ()

    async def abort(self) -> tuple[Submission, ...]:
        """Stop the run; returns, once nothing runs any more, the queued messages that were withdrawn, oldest first."""
        try:
            return await self._call(self._conversation.abort())
        except PidurableError as problem:
            self._on_problem(problem)
            return ()

    def take_back(self, submission_id: int) -> asyncio.Task[bool]:
        """Withdraw a queued message; False when it was too late."""
        return self._run(self._take_back(submission_id))

    def abort_task(self, task_id: int, conversation_id: int | None = None) -> asyncio.Task[bool]:
        """Stop one task, of the shown conversation or another one. The task's result is False when it had ended before."""
        return self._run(self._call(self._abort_task(task_id, conversation_id)))

    def answer(self, question_id: int, decision: Literal["allow", "always", "deny"]) -> asyncio.Task[bool]:
        """Answer an open question, also of a subagent, in the name of the person at the terminal."""
        return self._run(self._call(self._answer(question_id, decision)))

    def compact(self, focus: str) -> asyncio.Task[bool]:
        """Start a summary of the old part of the context."""
        return self._run(self._call(self._conversation.compact(focus)))

    async def ask(self, question: Callable[[HarnessPort], Awaitable[T]]) -> T | None:
        """What the harness answers; None on a problem, which is told. `question` runs on the harness's loop."""

        async def run() -> T:
            return await question(self._opened.harness)

        try:
            return await self._call(run())
        except PidurableError as problem:
            self._on_problem(problem)
            return None

    def set_agent(self, **changes: object) -> asyncio.Task[bool]:
        """Change the conversation's agent."""
        return self._run(self._call(self._conversation.set_agent(**changes)))

    def save_draft(self, text: str, cursor: int) -> None:
        """Store what stands in the composer: at once, then at most every DRAFT_MS (rule TU-10). The newest text always gets stored."""
        self._draft = (text, cursor)
        if self._drafting is None or self._drafting.done():
            self._drafting = self._run(self._save_drafts())

    async def older(self, before: int) -> tuple[StoredEntry, ...]:
        """Up to OLDER_ENTRIES entries before `before`, ids growing; none on a problem, which is told."""
        try:
            return await self._call(self._conversation.entries(before=before, limit=OLDER_ENTRIES))
        except PidurableError as problem:
            self._on_problem(problem)
            return ()

    async def show(self, conversation_id: int) -> bool:
        """Show another conversation from now on; on a problem, which is told, the old one stays. The work of neither is touched."""
        conversation = await self.ask(lambda harness: harness.conversation(conversation_id))
        if conversation is None:
            return False
        await self._flush_draft()
        self._conversation = conversation
        self._sights.follow(conversation)
        self._on_switch()
        return True

    async def close(self) -> None:
        """Wait for what was sent, store the draft, then stop listening. The harness stays open: whoever opened it closes it."""
        await asyncio.gather(*self._submits)
        await self._flush_draft()
        await self._sights.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ------------------------------------------------------------------------------------------- on the harness's thread

    async def _abort_task(self, task_id: int, conversation_id: int | None) -> bool:
        conversation = self._conversation if conversation_id is None else await self._opened.harness.conversation(conversation_id)
        return await conversation.abort_task(task_id)

    async def _answer(self, question_id: int, decision: Literal["allow", "always", "deny"]) -> None:
        conversation, sight = self._conversation, self._sights.newest
        holder = sight.holder_of(question_id) if sight is not None else conversation.id
        if holder != conversation.id:
            conversation = await self._opened.harness.conversation(holder)
        await conversation.answer(question_id, decision, by="the user")

    # -------------------------------------------------------------------------------------------- on the screen's thread

    def _show(self, sight: Sight) -> None:
        self._on_sight(sight)
        if not self._opened.waits:
            self.resume()

    async def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._opened.loop))

    async def _submit(self, content: str | Sequence[Content], mode: Literal["followUp", "steer"]) -> None:
        await self._call(self._conversation.submit(content, mode=mode))
        # Killed between the two, the composer opens with what was already sent: seen by the person, and nothing is lost.
        await self._call(self._conversation.save_draft(*(self._draft or ("", 0))))

    async def _run_command(self, command: str, *, shown: bool) -> None:
        await self._call(self._conversation.run_command(command, shown=shown))
        await self._call(self._conversation.save_draft(*(self._draft or ("", 0))))

    async def _take_back(self, submission_id: int) -> bool:
        return await self._call(self._conversation.withdraw(submission_id)) == "withdrawn"

    async def _save_drafts(self) -> None:
        while (draft := self._draft) is not None and draft != self._stored_draft:
            started_ms = self._clock.monotonic_ms()
            await self._call(self._conversation.save_draft(*draft))
            self._stored_draft = draft
            # A draft of megabytes takes long to store: most of the time is left to whoever types.
            await self._clock.sleep_ms(max(DRAFT_MS, 4 * (self._clock.monotonic_ms() - started_ms)))

    async def _flush_draft(self) -> None:
        if self._draft is not None and self._draft != self._stored_draft:
            await self._run(self._call(self._conversation.save_draft(*self._draft)))
        self._draft = self._stored_draft = None

    def _run(self, work: Awaitable[object]) -> asyncio.Task[bool]:
        task = asyncio.create_task(self._told(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _told(self, work: Awaitable[object]) -> bool:
        try:
            return await work is not False
        except PidurableError as problem:
            self._on_problem(problem)
            return False
