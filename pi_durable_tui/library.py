"""The durable core as a library: everything a program of its own needs, in one import.

    from pi_durable_tui import library as durable

    async def main() -> None:
        clock = durable.SystemClock()
        storage = await durable.open_sqlite(Path("work.sqlite"), clock=clock)
        harness = await durable.Harness.open(
            storage,
            models=my_gateway,  # a ModelGateway
            clock=clock,
            entropy=durable.SystemEntropy(),
            tools=[my_tool],
        )
        chats = await harness.chats()
        if chats:
            chat = await harness.conversation(chats[0].conversation_id)
        else:
            chat = await harness.create_conversation(durable.Agent(model="any/name", approval="all"))
        handed_in = await chat.submit("Do something that takes hours.", request_id="once")
        print(await chat.settled(handed_in.id))
        await harness.close()

Kill it anywhere and run it again: the same request id finds the same submission, and the work goes on where it was. The numbered
programs in tests/examples show one thing each, and need no more than this. What can go wrong is in the tree of errors that
`pi_durable_tui/errors.py` draws; its classes that a program acts on are here. Nothing here imports a user interface or a model library.
"""

from __future__ import annotations

from pi_durable_tui.clock import Clock, ManualClock, SystemClock
from pi_durable_tui.entropy import Entropy, SeededEntropy, SystemEntropy
from pi_durable_tui.errors import (
    BadRequest,
    ConversationBusy,
    EnvironmentFailure,
    NotFound,
    PidurableError,
    ReadOnlySession,
    Refused,
    RequestConflict,
    SchemaTooNew,
    SessionClosed,
    SessionFailed,
    StorageRejected,
    StoreCorrupt,
    StoreLocked,
)
from pi_durable_tui.harness.approval import ApprovalRequest, Approver, Rule, Verdict
from pi_durable_tui.harness.chats import Chat
from pi_durable_tui.harness.conversation import Conversation, SubmitMode, Withdrawal
from pi_durable_tui.harness.extensions.hooks import Blocked, HookedCall, HookedCompaction, Hooks
from pi_durable_tui.harness.extensions.registry import Command, CommandContext, Extension
from pi_durable_tui.harness.extensions.task_definition import Advance, End, Ending, Move, Sleep, TaskDefinition, Wait
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent, Budget, CompactionRun, Failure, Generation, Inbox, InboxItem, Live, RetryWait, Run, ToolSlot, UsageTotals
from pi_durable_tui.harness.live import Draft as ComposerDraft
from pi_durable_tui.harness.observation.events import AgentEvent
from pi_durable_tui.harness.observation.following import follow_tasks, follow_view
from pi_durable_tui.harness.observation.frames import Frame
from pi_durable_tui.harness.observation.inspection import Inspection, TaskInfo, TaskNode
from pi_durable_tui.harness.opening import Recovery
from pi_durable_tui.harness.ports import (
    AgentProfile,
    BackgroundCalls,
    BackgroundInfo,
    Deferred,
    Delegation,
    Diagnostic,
    Effects,
    Environment,
    FailureReason,
    Finished,
    Join,
    ModelEvent,
    ModelFailed,
    ModelGateway,
    ModelInfo,
    ModelRequest,
    Reconciled,
    SubagentInfo,
    Subagents,
    TextDelta,
    ThinkingDelta,
    Tool,
    ToolCallDelta,
    ToolContext,
    ToolResult,
    ToolSpec,
    UsageReport,
)
from pi_durable_tui.harness.runs import Desk
from pi_durable_tui.harness.services import Report
from pi_durable_tui.harness.settings import Compaction, Limits, Progress, Retry, Settings
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.codec import from_json, to_json
from pi_durable_tui.records.commit import Commit, DocumentChange
from pi_durable_tui.records.conversation import Conversation as ConversationRecord
from pi_durable_tui.records.conversation import ForkPoint
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.entry import USER, Edit, Entry, StoredEntry
from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import (
    AssistantMessage,
    Content,
    Image,
    Message,
    Problem,
    StopReason,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_durable_tui.records.modes import ApprovalMode, ThinkingLevel
from pi_durable_tui.records.submission import Done, Placed, Queued, Submission, Unanswered
from pi_durable_tui.records.task import Aborted, Completed, Failed, Faulted, Orphaned, Outcome, Pending, Running, Sleeping, Task, Terminal, Waiting
from pi_durable_tui.session.documents import Draft as DocumentDraft
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.session.watch import Overflowed, Watch
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Page, Storage
from pi_durable_tui.storage.sqlite import open_sqlite

__all__ = [
    "USER",
    "Aborted",
    "Advance",
    "Agent",
    "AgentEvent",
    "AgentProfile",
    "ApprovalMode",
    "ApprovalRequest",
    "Approver",
    "AssistantMessage",
    "BackgroundCalls",
    "BackgroundInfo",
    "BadRequest",
    "Blocked",
    "Budget",
    "Chat",
    "Clock",
    "Command",
    "CommandContext",
    "Commit",
    "Compaction",
    "CompactionRun",
    "Completed",
    "ComposerDraft",
    "Content",
    "Conversation",
    "ConversationBusy",
    "ConversationRecord",
    "ConversationView",
    "Deferred",
    "Definition",
    "Delegation",
    "Desk",
    "Diagnostic",
    "DocumentChange",
    "DocumentDraft",
    "Done",
    "Edit",
    "Effects",
    "End",
    "Ending",
    "Entropy",
    "Entry",
    "Environment",
    "EnvironmentFailure",
    "Extension",
    "Failed",
    "Failure",
    "FailureReason",
    "Faulted",
    "Finished",
    "ForkPoint",
    "Frame",
    "Generation",
    "Harness",
    "HookedCall",
    "HookedCompaction",
    "Hooks",
    "Image",
    "Inbox",
    "InboxItem",
    "Inspection",
    "Join",
    "Json",
    "JsonObject",
    "Limits",
    "Live",
    "ManualClock",
    "MemoryStorage",
    "Message",
    "ModelEvent",
    "ModelFailed",
    "ModelGateway",
    "ModelInfo",
    "ModelRequest",
    "Move",
    "NotFound",
    "Orphaned",
    "Outcome",
    "Overflowed",
    "Page",
    "Pending",
    "PidurableError",
    "Placed",
    "Problem",
    "Progress",
    "Queued",
    "ReadOnlySession",
    "Reconciled",
    "Recovery",
    "Refused",
    "Report",
    "RequestConflict",
    "Retry",
    "RetryWait",
    "Rule",
    "Run",
    "Running",
    "SchemaTooNew",
    "SeededEntropy",
    "Session",
    "SessionClosed",
    "SessionFailed",
    "Settings",
    "Sleep",
    "Sleeping",
    "StopReason",
    "Storage",
    "StorageRejected",
    "StoreCorrupt",
    "StoreLocked",
    "StoredEntry",
    "SubagentInfo",
    "Subagents",
    "Submission",
    "SubmitMode",
    "SystemClock",
    "SystemEntropy",
    "SystemMessage",
    "Task",
    "TaskDefinition",
    "TaskInfo",
    "TaskNode",
    "TaskRuntime",
    "Terminal",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "ThinkingLevel",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolContext",
    "ToolResult",
    "ToolResultMessage",
    "ToolSlot",
    "ToolSpec",
    "Transaction",
    "Unanswered",
    "Usage",
    "UsageReport",
    "UsageTotals",
    "UserMessage",
    "Verdict",
    "Wait",
    "Waiting",
    "Watch",
    "Withdrawal",
    "follow_tasks",
    "follow_view",
    "from_json",
    "open_jsonl",
    "open_sqlite",
    "to_json",
]
