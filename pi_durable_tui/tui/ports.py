"""What the app needs of the harness; used on the harness's loop, through the bridge.

`harness.harness.Harness` and `harness.conversation.Conversation` stand behind it; tests put a harness in their place that they
move by hand.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:  # the harness itself is loaded after the first paint
    from pi_durable_tui.harness.approval import Granted, Rule
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


class ReadPort(Protocol):
    """A conversation that is only looked at."""

    @property
    def id(self) -> int: ...

    def watch(self) -> AsyncIterator[FramePort]: ...

    async def entries(self, *, before: int | None = None, limit: int = 200) -> tuple[StoredEntry, ...]: ...


class ConversationPort(ReadPort, Protocol):
    """A conversation."""

    async def submit(self, content: str | Sequence[Content], *, mode: Literal["followUp", "steer"] = "followUp") -> Submission: ...

    async def withdraw(self, submission_id: int) -> Literal["withdrawn", "already_placed", "settled"]: ...

    async def abort(self) -> tuple[Submission, ...]: ...

    async def abort_task(self, task_id: int) -> bool: ...

    async def answer(self, question_id: int, decision: Literal["allow", "always", "deny"], *, by: str, note: str = "") -> None: ...

    async def run_command(self, command: str, *, shown: bool) -> int: ...

    async def compact(self, focus: str = "") -> int: ...

    async def set_agent(self, **changes: object) -> Agent: ...

    async def save_draft(self, text: str, cursor: int) -> None: ...


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


class ServerPort(Protocol):
    """An MCP server: what is started or asked, and how it stands."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def shown(self) -> str: ...

    @property
    def tools(self) -> tuple[str, ...]: ...

    @property
    def problem(self) -> str: ...


class WorkspacePort(Protocol):
    """What the working directory brings. Remarks are lines for a person."""

    @property
    def offers(self) -> tuple[Offer, ...]: ...

    async def undecided(self) -> TrustQuestion | None: ...

    async def all_files(self) -> TrustQuestion | None: ...

    async def decide(self, question: TrustQuestion, *, is_trusted: bool) -> tuple[str, ...]: ...

    async def reload(self) -> tuple[str, ...]: ...

    async def prepared(self, text: str, model: str | None) -> PreparedPort: ...

    async def run(self, text: str, conversation_id: int, say: Callable[[str], None]) -> Literal[True]: ...

    async def servers(self) -> Sequence[ServerPort]: ...


class DiffPort(Protocol):
    """A difference: a unified diff, and how many lines it adds and removes."""

    @property
    def text(self) -> str: ...

    @property
    def added(self) -> int: ...

    @property
    def removed(self) -> int: ...


class StepPort(Protocol):
    """One file that would be changed: what it shall hold (None: be gone), and the name of what it holds (None: it is not there)."""

    @property
    def path(self) -> str: ...

    @property
    def data(self) -> bytes | None: ...

    @property
    def now(self) -> str | None: ...

    @property
    def diff(self) -> DiffPort: ...


class PlanPort(Protocol):
    """What taking file changes back would do; `impossible` are (path, why)."""

    @property
    def steps(self) -> Sequence[StepPort]: ...

    @property
    def impossible(self) -> Sequence[tuple[str, str]]: ...

    @property
    def is_whole(self) -> bool: ...


class RestoredPort(Protocol):
    """What was done, and (path, why) of what was not."""

    @property
    def paths(self) -> Sequence[str]: ...

    @property
    def failed(self) -> Sequence[tuple[str, str]]: ...


class FileDifferencePort(Protocol):
    """What became of a file: the difference, and a remark in words, "" for none."""

    @property
    def path(self) -> str: ...

    @property
    def diff(self) -> DiffPort: ...

    @property
    def remark(self) -> str: ...


class DifferencesPort(Protocol):
    """What became of files. Not whole: commands may have changed more; not from the start: the oldest changes are forgotten."""

    @property
    def files(self) -> Sequence[FileDifferencePort]: ...

    @property
    def is_whole(self) -> bool: ...

    @property
    def is_from_start(self) -> bool: ...


class FilesPort(Protocol):
    """Files as of an entry; `restore` takes a plan that it gave. `differences` are since an entry; None: since the beginning."""

    async def plan_back(self, conversation_id: int, entry_id: int) -> PlanPort: ...

    async def differences(self, conversation_id: int, entry_id: int | None) -> DifferencesPort: ...

    async def plan_undo(self, conversation_id: int) -> PlanPort: ...

    async def restore(self, conversation_id: int, plan: Any) -> RestoredPort: ...  # noqa: ANN401 - a plan goes back to whoever made it


class PermissionsPort(Protocol):
    """The standing permissions of the session."""

    async def list(self) -> tuple[Granted, ...]: ...

    async def grant(self, rule: Rule, *, by: str) -> Granted: ...

    async def revoke(self, grant_id: int) -> None: ...


class HarnessPort(Protocol):
    """An open harness."""

    @property
    def permissions(self) -> PermissionsPort: ...

    @property
    def overview(self) -> OverviewPort: ...

    async def create_conversation(self, agent: Agent) -> ConversationPort: ...

    async def conversation(self, conversation_id: int) -> ConversationPort: ...

    async def fork(self, conversation_id: int, entry_id: int | None = None) -> ConversationPort: ...

    async def chats(self) -> tuple[Chat, ...]: ...

    async def usage(self) -> UsageTotals: ...

    def task_graph(self) -> tuple[TaskNode, ...]: ...


class DeskPort(Protocol):
    """What the app needs of the machine: file names, the branch, an editor, a browser. Called on threads of their own, never on the screen's."""

    def find(self, query: str, *, limit: int) -> Sequence[str]:
        """The paths below the working directory that fit a few letters best, folders with a "/" at the end. Never waits for a whole scan."""
        ...

    def complete(self, typed: str, *, limit: int) -> Sequence[str]:
        """The paths that a half-typed one may become, in order of names, folders with a "/" at the end."""
        ...

    def branch(self) -> str:
        """The branch that the working directory is on; "" for none."""
        ...

    def edit(self, text: str) -> str:
        """`text` as the person leaves it in their editor; called while the terminal is not the app's.

        Raises:
            EnvironmentFailure: There is no editor, or it failed.
        """
        ...

    def browse(self, url: str) -> None:
        """Have the person's browser open a web address; they have said so.

        Raises:
            EnvironmentFailure: There is none, or it failed. Nothing was opened.
        """
        ...
