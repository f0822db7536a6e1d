"""A conversation for the app that a test moves by hand: it delivers the views the test makes, and remembers what it was asked.

It keeps the order and the shapes of `harness.conversation.Conversation`; tests/tui/test_whole_way.py compares the two and runs the real one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pi_durable_tui.errors import NotFound, PidurableError
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.messages import ATTACHED, Content, Text
from pi_durable_tui.records.submission import Placed, Submission
from pi_durable_tui.tui.bridge import Opened
from pi_durable_tui.tui.commands import Offer
from pi_durable_tui.tui.draw.trust import TrustQuestion


@dataclass(frozen=True)
class FakeFrame:
    view: ConversationView


@dataclass
class FakeConversation:
    """Attributes:
    asked: Every call with its arguments, in order; appended on the harness's thread.
    refuse: Raised by the next command instead of doing it.
    """

    view: ConversationView
    older: tuple[StoredEntry, ...] = ()
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    refuse: PidurableError | None = None
    withdrawn: tuple[Submission, ...] = ()
    watchers: int = 0

    def __post_init__(self) -> None:
        self.pending: list[ConversationView] = [self.view]
        self.changed = asyncio.Event()
        self.broken: BaseException | None = None
        self.delivered = 0

    @property
    def id(self) -> int:
        return self.view.conversation.id

    def publish(self, view: ConversationView) -> None:
        """On the harness's loop: a commit made this view."""
        self.view = view
        self.pending.append(view)
        self.changed.set()

    def break_watch(self, error: BaseException) -> None:
        self.broken = error
        self.changed.set()

    async def watch(self) -> AsyncIterator[FakeFrame]:
        self.watchers += 1
        while True:
            while self.pending:
                self.delivered += 1
                yield FakeFrame(self.pending.pop(0))
            if self.broken is not None:
                raise self.broken
            self.changed.clear()
            await self.changed.wait()

    def _ask(self, *call: Any) -> None:
        refuse, self.refuse = self.refuse, None
        if refuse is not None:
            raise refuse
        self.asked.append(call)

    async def submit(self, content: str | Sequence[Content], *, mode: Literal["followUp", "steer"] = "followUp") -> Submission:
        self._ask("submit", content, mode)
        parts = (Text(text=content),) if isinstance(content, str) else tuple(content)
        return Submission(id=1, conversation_id=self.id, mode=mode, content=parts, digest="", at_ms=0, state=Placed(entry_id=2))

    async def withdraw(self, submission_id: int) -> Literal["withdrawn", "already_placed", "settled"]:
        self._ask("withdraw", submission_id)
        return "withdrawn"

    async def abort(self) -> tuple[Submission, ...]:
        self._ask("abort")
        return self.withdrawn

    async def abort_task(self, task_id: int) -> bool:
        self._ask("abort_task", task_id)
        return True

    async def compact(self, focus: str = "") -> int:
        self._ask("compact", focus)
        return 1

    async def answer(self, question_id: int, decision: Literal["allow", "deny"], *, by: str, note: str = "") -> None:
        self._ask("answer", question_id, decision, by)

    async def run_command(self, command: str, *, shown: bool) -> int:
        self._ask("run_command", command, shown)
        return 1

    async def set_agent(self, **changes: object) -> Agent:
        self._ask("set_agent", changes)
        return self.view.agent

    async def save_draft(self, text: str, cursor: int) -> None:
        self._ask("save_draft", text, cursor)

    async def entries(self, *, before: int | None = None, limit: int = 200) -> tuple[StoredEntry, ...]:
        self._ask("entries", before)
        return tuple(stored for stored in self.older if before is None or stored.entry.id < before)[-limit:]


class HarnessThread:
    """An event loop on a thread of its own, as compose gives one to the harness."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="harness", daemon=True)
        self._thread.start()

    def call(self, function: Any, *arguments: Any) -> Any:
        """Run a function on the harness's loop and wait for its result."""

        async def run() -> Any:
            return function(*arguments)

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)

    async def drained(self) -> None:
        """Return once everything scheduled on the harness's loop before has run."""
        for _ in range(5):
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop))
            await asyncio.sleep(0)

    def close(self) -> None:
        async def stop() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.loop.shutdown_asyncgens()

        asyncio.run_coroutine_threadsafe(stop(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


@dataclass
class FakeHarness:
    """Gives out conversations that the test made.

    Attributes:
        conversations: By id; a new one or a fork is the one with the highest id.
        asked: "new" and "fork", with their arguments.
        answers: What `overview`, `chats`, `usage` and `task_graph` say, by name.
    """

    conversations: dict[int, FakeConversation]
    asked: list[tuple[Any, ...]]
    answers: dict[str, Any] = field(default_factory=dict)

    @property
    def overview(self) -> FakeHarness:
        return self

    async def create_conversation(self, agent: Agent) -> FakeConversation:
        self.asked.append(("new", agent))
        return self.conversations[max(self.conversations)]

    async def conversation(self, conversation_id: int) -> FakeConversation:
        if conversation_id not in self.conversations:
            raise NotFound(f"conversation {conversation_id}", where="the fake")
        return self.conversations[conversation_id]

    async def fork(self, conversation_id: int, entry_id: int | None = None) -> FakeConversation:
        self.asked.append(("fork", conversation_id, entry_id))
        return self.conversations[max(self.conversations)]

    async def chats(self) -> Any:
        return self.answers.get("chats", ())

    async def usage(self) -> Any:
        return self.answers["usage"]

    def task_graph(self) -> Any:
        return self.answers.get("task_graph", ())

    async def window_tokens(self, model: str) -> int | None:
        return self.answers.get("window_tokens")

    async def context(self, conversation_id: int) -> Any:
        return self.answers["context"]

    async def compaction(self, conversation_id: int) -> Any:
        return self.answers.get("compaction")

    async def prompts(self) -> tuple[str, ...]:
        self.asked.append(("prompts",))
        return self.answers.get("prompts", ())

    async def branches(self) -> Any:
        return self.answers.get("branches", ())

    async def facts(self) -> Any:
        return self.answers["facts"]


@dataclass(frozen=True)
class FakePrepared:
    content: tuple[Content, ...]
    remarks: tuple[str, ...]


@dataclass
class FakeWorkspace:
    """A directory whose files a test decides on. `question`: what is asked at the start."""

    asked: list[tuple[Any, ...]] = field(default_factory=list)
    question: TrustQuestion | None = None
    offers: tuple[Offer, ...] = ()
    remarks: tuple[str, ...] = ()

    async def undecided(self) -> TrustQuestion | None:
        return self.question

    async def all_files(self) -> TrustQuestion | None:
        return self.question

    async def decide(self, question: TrustQuestion, *, is_trusted: bool) -> tuple[str, ...]:
        self.asked.append(("decide", [part.name for part in question.parts], is_trusted))
        return self.remarks

    async def reload(self) -> tuple[str, ...]:
        self.asked.append(("reload",))
        return self.remarks

    async def prepared(self, text: str, model: str | None) -> FakePrepared:
        attached = Text(text=f"{ATTACHED}a.py:\n```\nx\n```")
        return FakePrepared((Text(text=text), attached) if "@a.py" in text else (Text(text=text),), self.remarks)


def opened(thread: HarnessThread, conversation: FakeConversation, *others: FakeConversation, seam: str = "") -> Opened:
    """What compose's `start` returns."""

    async def resume() -> None:
        conversation.asked.append(("resume",))

    harness = FakeHarness({each.id: each for each in (conversation, *others)}, conversation.asked)
    workspace = FakeWorkspace(conversation.asked)
    return Opened(loop=thread.loop, harness=harness, conversation=conversation, workspace=workspace, resume=resume, seam=seam)
