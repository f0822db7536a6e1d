"""Values of the harness in few words: tasks, entries, messages, submissions and views."""

from __future__ import annotations

from typing import Any

from pi_durable_tui.harness.live import Generation, Live, Run, ToolSlot
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.entry import ASSISTANT, COMPACTION, SYSTEM, TOOL_RESULT, USER, Edit, Entry, StoredEntry
from pi_durable_tui.records.messages import (
    AssistantContent,
    AssistantMessage,
    Content,
    Problem,
    StopReason,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_durable_tui.records.submission import Queued, Submission, SubmissionState
from pi_durable_tui.records.task import (
    Aborted,
    Completed,
    Completing,
    Failed,
    Faulted,
    Orphaned,
    Outcome,
    Pending,
    Running,
    Sleeping,
    Task,
    TaskState,
    Terminal,
    Waiting,
)

START_MS = 1_700_000_000_000
CONVERSATION = 1
MODEL = "test/one"
HERE = {"phase": "here"}

DONE = Completed(value=1)
OUTCOMES: dict[str, Outcome] = {
    "completed": DONE,
    "failed": Failed(problem=Problem(reason="tool_error")),
    "aborted": Aborted(),
    "orphaned": Orphaned(),
    "faulted": Faulted(message="broke"),
}
NOT_COMPLETED = sorted(set(OUTCOMES) - {"completed"})

# ----------------------------------------------------------------------------------------------------------------- tasks

STATES: dict[str, TaskState] = {
    "pending": Pending(checkpoint=HERE),
    "running": Running(checkpoint=HERE),
    "waiting": Waiting(checkpoint=HERE, on=(90,)),
    "sleeping": Sleeping(checkpoint=HERE, until=START_MS + 50),
    "completing": Completing(outcome=DONE),
    "terminal": Terminal(outcome=DONE),
}


def task(task_id: int, state: TaskState | str = "pending", **changes: Any) -> Task:
    fields: dict[str, Any] = {"kind": "test.work", "conversation_id": CONVERSATION, "input": {}, "created_at_ms": START_MS, **changes}
    return Task(id=task_id, state=STATES[state] if isinstance(state, str) else state, **fields)


def waiting(*on: int, policy: Any = "allSettled") -> Waiting:
    return Waiting(checkpoint=HERE, on=on, policy=policy)


def sleeping(until: int | None) -> Sleeping:
    return Sleeping(checkpoint=HERE, until=until)


# -------------------------------------------------------------------------------------------------------------- messages


def call(call_id: str, name: str = "read", malformed: str | None = None, **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments, malformed=malformed)


def text_of(*texts: str) -> tuple[Text, ...]:
    return tuple(Text(text=text) for text in texts)


def said(*parts: Content | str) -> UserMessage:
    return UserMessage(content=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def told(*texts: str) -> SystemMessage:
    return SystemMessage(content=text_of(*texts))


def answered(*parts: AssistantContent | str, stop: StopReason = "stop", model: str = MODEL, problem: Problem | None = None) -> AssistantMessage:
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return AssistantMessage(content=content, model=model, stop_reason=stop, problem=problem)


def gave(call_id: str, *texts: str, name: str = "read", is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=text_of(*texts), is_error=is_error)


def thought(text: str, signature: str | None = None) -> Thinking:
    return Thinking(text=text, signature=signature)


# --------------------------------------------------------------------------------------------------------------- entries

KINDS: dict[type, str] = {UserMessage: USER, SystemMessage: SYSTEM, AssistantMessage: ASSISTANT, ToolResultMessage: TOOL_RESULT}


def entry(entry_id: int, message: Any = None, *, conversation_id: int = CONVERSATION, edits: tuple[Edit, ...] = (), **changes: Any) -> Entry:
    fields: dict[str, Any] = {"kind": KINDS.get(type(message), "test.note"), "at_ms": START_MS + entry_id, **changes}
    return Entry(id=entry_id, conversation_id=conversation_id, message=message, edits=edits, **fields)


def transcript(*messages: Any) -> list[Entry]:
    """Entries 1, 2, 3 … of these messages."""
    return [entry(number, message) for number, message in enumerate(messages, 1)]


def summary(entry_id: int, text: str, *, head: int, edits: tuple[Edit, ...] = ()) -> Entry:
    return entry(entry_id, said(text), kind=COMPACTION, head=head, edits=edits)


def stored(*entries: Entry, seq: int = 1) -> tuple[StoredEntry, ...]:
    return tuple(StoredEntry(seq=seq, entry=each) for each in entries)


# ---------------------------------------------------------------------------------------------------- conversations, views


def submission(submission_id: int, state: SubmissionState | None = None, **changes: Any) -> Submission:
    fields: dict[str, Any] = {"conversation_id": CONVERSATION, "mode": "followUp", "content": text_of("hi"), "digest": "d", "at_ms": START_MS, **changes}
    return Submission(id=submission_id, state=state if state is not None else Queued(), **fields)


def run(task_id: int = 10, turn: int = 1, submissions: tuple[int, ...] = (5,)) -> Run:
    return Run(task_id=task_id, started_at_ms=START_MS, submissions=submissions, turn=turn)


def generation(message: AssistantMessage | None = None, *, task_id: int = 10, attempt: int = 1, **changes: Any) -> Generation:
    return Generation(task_id=task_id, attempt=attempt, started_at_ms=START_MS, message=message, **changes)


def slot(task_id: int, status: Any = "running", **changes: Any) -> ToolSlot:
    fields: dict[str, Any] = {"call_id": f"c{task_id}", "name": "bash", "arguments": {"command": "ls"}, "title": "ls", "started_at_ms": START_MS, **changes}
    return ToolSlot(task_id=task_id, status=status, **fields)


def view(seq: int = 1, *, live: Live | None = None, conversation_id: int = CONVERSATION, **changes: Any) -> ConversationView:
    conversation = Conversation(id=conversation_id, created_at_ms=START_MS)
    return ConversationView(conversation=conversation, seq=seq, committed_at_ms=START_MS + seq, live=live if live is not None else Live(), **changes)
