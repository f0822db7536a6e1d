"""What the app needs of the harness; used on the harness's loop, through the bridge.

`harness.harness.Harness` and `harness.conversation.Conversation` stand behind it; tests put a harness in their place that they
move by hand.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol

from pi_durable_tui.harness.chats import Branch, Chat
from pi_durable_tui.harness.live import Agent, UsageTotals
from pi_durable_tui.harness.observation.inspection import TaskNode
from pi_durable_tui.harness.observation.overview import CompactionPlan, ContextUse, SessionFacts
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.records.messages import Content
from pi_durable_tui.records.submission import Submission
from pi_durable_tui.tui.commands import Offer
from pi_durable_tui.tui.draw.trust import TrustQuestion


class FramePort(Protocol):
    """What a watch delivers."""

    @property
    def view(self) -> ConversationView: ...


class ConversationPort(Protocol):
    """A conversation."""

    @property
    def id(self) -> int: ...

    async def submit(self, content: str | Sequence[Content], *, mode: Literal["followUp", "steer"] = "followUp") -> Submission: ...

    async def withdraw(self, submission_id: int) -> Literal["withdrawn", "already_placed", "settled"]: ...

    async def abort(self) -> tuple[Submission, ...]: ...

    async def abort_task(self, task_id: int) -> bool: ...

    async def answer(self, question_id: int, decision: Literal["allow", "always", "deny"], *, by: str, note: str = "") -> None: ...

    async def run_command(self, command: str, *, shown: bool) -> int: ...

    async def compact(self, focus: str = "") -> int: ...

    async def set_agent(self, **changes: object) -> Agent: ...

    async def save_draft(self, text: str, cursor: int) -> None: ...

    def watch(self) -> AsyncIterator[FramePort]: ...

    async def entries(self, *, before: int | None = None, limit: int = 200) -> tuple[StoredEntry, ...]: ...


class OverviewPort(Protocol):
    """Questions about the session as a whole."""

    async def window_tokens(self, model: str) -> int | None: ...

    async def context(self, conversation_id: int) -> ContextUse: ...

    async def compaction(self, conversation_id: int) -> CompactionPlan | None: ...

    async def prompts(self) -> tuple[str, ...]: ...

    async def branches(self) -> tuple[Branch, ...]: ...

    async def facts(self) -> SessionFacts: ...


class PreparedPort(Protocol):
    """A message ready to be handed in, and what a person should know of it."""

    @property
    def content(self) -> Sequence[Content]: ...

    @property
    def remarks(self) -> tuple[str, ...]: ...


class WorkspacePort(Protocol):
    """What the working directory brings. Remarks are lines for a person."""

    @property
    def offers(self) -> tuple[Offer, ...]: ...

    async def undecided(self) -> TrustQuestion | None: ...

    async def all_files(self) -> TrustQuestion | None: ...

    async def decide(self, question: TrustQuestion, *, is_trusted: bool) -> tuple[str, ...]: ...

    async def reload(self) -> tuple[str, ...]: ...

    async def prepared(self, text: str, model: str | None) -> PreparedPort: ...


class HarnessPort(Protocol):
    """An open harness."""

    @property
    def overview(self) -> OverviewPort: ...

    async def create_conversation(self, agent: Agent) -> ConversationPort: ...

    async def conversation(self, conversation_id: int) -> ConversationPort: ...

    async def fork(self, conversation_id: int, entry_id: int | None = None) -> ConversationPort: ...

    async def chats(self) -> tuple[Chat, ...]: ...

    async def usage(self) -> UsageTotals: ...

    def task_graph(self) -> tuple[TaskNode, ...]: ...


class DeskPort(Protocol):
    """What the composer needs of the machine: file names and an editor. Called on threads of their own, never on the screen's."""

    def find(self, query: str, *, limit: int) -> Sequence[str]:
        """The paths below the working directory that fit a few letters best, folders with a "/" at the end. Never waits for a whole scan."""
        ...

    def complete(self, typed: str, *, limit: int) -> Sequence[str]:
        """The paths that a half-typed one may become, in order of names, folders with a "/" at the end."""
        ...

    def edit(self, text: str) -> str:
        """`text` as the person leaves it in their editor; called while the terminal is not the app's.

        Raises:
            EnvironmentFailure: There is no editor, or it failed.
        """
        ...
