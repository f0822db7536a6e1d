"""One readable, stable line per commit, for `golden.txt`. PURE: no I/O, no clock.

What differs between two runs of the same story is left out or replaced: times, measured durations, names of temporary folders, the
rhythm in which pieces of a running answer are stored. What a reader of a difference needs stays: which records a commit wrote, with
their ids, states and texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pi_durable_tui.records.commit import Commit, DocumentChange
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.json import Json
from pi_durable_tui.records.messages import AssistantMessage, Content, SystemMessage, Text, Thinking, ToolCall, ToolResultMessage, UserMessage
from pi_durable_tui.records.submission import Done, Placed, Queued, Submission, Unanswered
from pi_durable_tui.records.task import Completed, Failed, Faulted, Task

TEXT_CHARS = 160
_DURATION = re.compile(r"\b\d+(?:\.\d+)? ?(ms|s)\b")


def line_of(commit: Commit, places: Mapping[str, str]) -> str:
    """The line of a commit; "" for one that says nothing stable (only pieces of running work).

    Args:
        commit: As published.
        places: Texts to replace: the path of a temporary folder -> its name in the line.
    """
    parts = [
        *(f"conversation {item.id}" for item in commit.conversations),
        *(_entry(item.entry) for item in commit.entries),
        *(_task(item) for item in commit.tasks),
        *(_submission(item) for item in commit.submissions),
        *(part for change in commit.documents if (part := _document(change))),
    ]
    text = " | ".join(parts)
    for place, name in places.items():
        text = text.replace(place, name)
    return _DURATION.sub(r"<time> \1", text)


def line_of_recovery(interrupted: Iterable[Task]) -> str:
    """The line for what a new process found cut off, after its recovery."""
    return " | ".join(["KILLED, found", *(_task(task) for task in interrupted)])


def collapsed(lines: Iterable[str]) -> str:
    """All lines as the text of a golden file: empty ones left out, repeated ones once."""
    kept: list[str] = []
    for line in lines:
        if line and (not kept or kept[-1] != line):
            kept.append(line)
    return "".join(f"{line}\n" for line in kept)


def _entry(entry: Entry) -> str:
    return f"entry {entry.id} {entry.kind}{_message(entry)}"


def _message(entry: Entry) -> str:
    match entry.message:
        case AssistantMessage(content=content, stop_reason=reason, problem=problem):
            ended = f" {reason}" + (f" ({problem.reason})" if problem else "")
            return ended + "".join(f" {_part(part)}" for part in content)
        case ToolResultMessage(tool_call_id=call, content=content, is_error=is_error):
            return f" {call}{' error' if is_error else ''} {_texts(content)}"
        case UserMessage(content=content):
            return f" {_texts(content)}"
        case SystemMessage() | None:
            return ""


def _part(part: Text | Thinking | ToolCall) -> str:
    match part:
        case Text(text=text):
            return _quoted(text)
        case Thinking(text=text):
            return f"thinking {_quoted(text)}"
        case ToolCall(id=call, name=name):
            return f"calls {name} {call}"


def _texts(content: tuple[Content, ...]) -> str:
    return " ".join(_quoted(part.text) for part in content if isinstance(part, Text))


def _quoted(text: str) -> str:
    """Head and tail of a text on one line, so that a change at either end is seen."""
    if len(text) > TEXT_CHARS:
        text = f"{text[: TEXT_CHARS // 2]} … {text[-TEXT_CHARS // 2 :]}"
    return '"' + text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"') + '"'


def _task(task: Task) -> str:
    phase = f"/{task.checkpoint.get('phase')}" if task.checkpoint else ""
    restarts = f" restarts {task.restarts}" if task.restarts else ""
    return f"task {task.id} {task.kind} {task.status}{phase}{_outcome(task)}{restarts}"


def _outcome(task: Task) -> str:
    match task.outcome:
        case None:
            return ""
        case Failed(problem=problem):
            return f" failed ({problem.reason})"
        case Faulted(message=message):
            return f" faulted ({message})"
        case Completed():
            return " completed"
        case other:
            return f" {type(other).__name__.lower()}"


def _submission(submission: Submission) -> str:
    match submission.state:
        case Queued():
            where = "queued"
        case Placed(entry_id=entry):
            where = f"placed as {entry}"
        case Done(answer_entry_id=answer):
            where = f"done by {answer}"
        case Unanswered(problem=problem):
            where = f"unanswered ({problem.reason})"
    return f"submission {submission.id} {where}"


def _document(change: DocumentChange) -> str:
    """Only creation and disappearance, and in `pi.live` a coming retry: the rest repeats what the records say, piece by piece."""
    kind = change.address.kind
    if change.previous is None:
        return f"document {kind} starts"
    if change.value is None:
        return f"document {kind} ends"
    if kind == "pi.live" and _retry(change.value) and not _retry(change.previous):
        return "retry is waited for"
    return ""


def _retry(live: Json) -> bool:
    generation = live.get("generation") if isinstance(live, dict) else None
    return isinstance(generation, dict) and bool(generation.get("retry"))
