"""What the model said, as the lines of a `model.jsonl`. PURE: no I/O, no clock.

A store keeps whole answers and how long each took, not the moment of each word: so an answer comes word by word, evenly over the time it
took. An attempt of which nothing had come left no entry, only a gap in the counting of attempts; it is played as one that failed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

import msgspec

from pi_durable_tui.harness.compaction.checkpoint import CompactionInput
from pi_durable_tui.harness.kinds import COMPACTION, GENERATION
from pi_durable_tui.harness.ports import FailureReason
from pi_durable_tui.models.playback import (
    ARGUMENT_PIECE_CHARS,
    CallLine,
    FailLine,
    FinishLine,
    Request,
    RequestLine,
    StallLine,
    Step,
    TextLine,
    ThinkingLine,
    UsageLine,
)
from pi_durable_tui.playback.recording.source import Source, Strand, text_of
from pi_durable_tui.records.codec import encode, from_json
from pi_durable_tui.records.entry import SYSTEM, USER, Entry
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import AssistantMessage, Text, Thinking, ToolCall
from pi_durable_tui.records.task import Aborted, Completed, Failed, Task

SUMMARY = "summary"
CHECKED_CHARS = 120
LONGEST_WAIT_MS = 5_000
LONGEST_PIECE_MS = 250
_WAITING = 0.2  # of an answer's time, before its first word
_NOTHING_CAME = FailLine(reason="unknown", message="Nothing came of this attempt, and why is not stored.", retryable=True)
_FAMILIAR: frozenset[str] = frozenset(get_args(FailureReason))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The answer to a request. `at`: the record that it comes before, which tells the order."""

    at: int
    asked: Entry | None  # what the person said last, if nothing else came since
    steps: tuple[Step, ...]


def requests_of(source: Source) -> tuple[Request, ...]:
    """All requests, each conversation's numbered from 1, and those of summaries for themselves."""
    summaries = sorted((placed for strand in source.strands for placed in _summaries(strand)), key=lambda placed: placed.at)
    made = [
        Request(expect=RequestLine(number=number, conversation=SUMMARY, contains=("<conversation>",)), steps=each.steps)
        for number, each in _numbered(summaries)
    ]
    for strand in source.strands:
        for number, placed in _numbered(sorted(_answers(strand), key=lambda each: each.at)):
            expect = RequestLine(number=number, conversation=strand.name, contains=() if placed.asked is None else _checked(placed.asked))
            made.append(Request(expect=expect, steps=placed.steps))
    return tuple(made)


def _numbered(placed: Sequence[Placed]) -> Iterator[tuple[int, Placed]]:
    return enumerate(placed, start=1)


def _checked(asked: Entry) -> tuple[str, ...]:
    """A line of what was asked, by which the request is told from others."""
    lines = [line.strip() for line in text_of(asked.message).splitlines()]
    return tuple(line[:CHECKED_CHARS] for line in lines if line)[:1]


# ------------------------------------------------------------------------------------------------------------------ runs


def _answers(strand: Strand) -> Iterator[Placed]:
    """The requests of all runs of a conversation, in order within each run."""
    overflows = [task for task in strand.tasks if task.kind == COMPACTION and from_json(task.input, CompactionInput).reason == "overflow"]
    for task in strand.tasks:
        if task.kind == GENERATION:
            yield from _run(strand, task, overflows)


def _run(strand: Strand, task: Task, overflows: list[Task]) -> Iterator[Placed]:
    """The requests of a run, by the answers that are stored, and by what is missing between them."""
    entries = [entry for entry in strand.of_task(task.id) if isinstance(entry.message, AssistantMessage)]
    attempt, message = 1, None
    for position, entry in enumerate(entries):
        message = entry.message
        assert isinstance(message, AssistantMessage)  # just chosen so
        asked = _asked(strand, entry.id)
        while overflows and overflows[0].id < entry.id:
            yield Placed(at=overflows.pop(0).id, asked=asked, steps=(FailLine(reason="context_overflow", message="The context is too long."),))
        stored = _whole(entry.data, "attempt")
        yield from (Placed(at=entry.id, asked=asked, steps=(_NOTHING_CAME,)) for _ in range(stored - attempt))
        is_tried_again = position + 1 < len(entries) or not isinstance(task.outcome, Failed)
        ending = _ending(message, is_tried_again=is_tried_again)
        yield Placed(at=entry.id, asked=asked, steps=(*_pieces(message, _whole(entry.data, "durationMs")), ending))
        attempt = 1 if isinstance(ending, FinishLine) else stored + 1
    yield from _silent_end(strand, task, message)


def _silent_end(strand: Strand, task: Task, message: AssistantMessage | None) -> Iterator[Placed]:
    """The last request of a run that ended before anything of an answer had come."""
    newest = max((entry.id for entry in strand.entries), default=0) + 1
    asked = _asked(strand, newest)
    is_answered = message is not None and message.problem is not None and message.problem.reason in ("aborted", "interrupted", *_FAMILIAR, "model_error")
    match task.outcome:
        case Failed(problem=problem) if not is_answered:
            reason = "no_model" if problem.reason == "no_model" else "invalid_request"
            yield Placed(at=newest, asked=asked, steps=(FailLine(reason=reason, message=problem.message),))
        case Aborted() if silent_stop(strand, task):
            yield Placed(at=newest, asked=asked, steps=(StallLine(),))
        case _:
            pass


def silent_stop(strand: Strand, task: Task) -> bool:
    """Whether a run was stopped while the model had been asked and had said nothing yet."""
    if not isinstance(task.outcome, Aborted):
        return False
    entries = strand.of_task(task.id)
    newest = entries[-1].message if entries else None
    if not isinstance(newest, AssistantMessage):
        return True
    if newest.problem is not None and newest.problem.reason == "aborted":
        return False
    calls = {call.id for call in newest.tool_calls}
    return not any(isinstance(each.outcome, Aborted) and each.owner == task.id and each.input.get("callId") in calls for each in strand.tasks)


def _asked(strand: Strand, before: int) -> Entry | None:
    """What a person said right before that entry."""
    for position in range(bisect_left(strand.entries, before, key=lambda entry: entry.id) - 1, -1, -1):
        entry = strand.entries[position]
        if entry.message is not None and entry.kind != SYSTEM:
            return entry if entry.kind == USER else None
    return None


def _whole(data: JsonObject | None, name: str) -> int:
    value = (data or {}).get(name)
    return value if isinstance(value, int) else 1


def _ending(message: AssistantMessage, *, is_tried_again: bool) -> FinishLine | FailLine | StallLine:
    problem = message.problem
    if problem is not None and problem.reason in ("aborted", "interrupted", "restart_limit", "fault"):
        return StallLine()
    if problem is not None and message.stop_reason == "error" and problem.reason != "model_error":
        reason: FailureReason = msgspec.convert(problem.reason, FailureReason) if problem.reason in _FAMILIAR else "unknown"
        return FailLine(reason=reason, message=problem.message, retryable=is_tried_again)
    if message.stop_reason == "length":
        return FinishLine(reason="length")
    return FinishLine(reason="toolUse" if message.tool_calls else "stop")


# ---------------------------------------------------------------------------------------------------------------- pieces


def _pieces(message: AssistantMessage, duration_ms: int) -> Iterator[Step]:
    """The content and the tokens of an answer; its time is spread evenly over its pieces."""
    parts = [part for part in message.content if not (isinstance(part, Thinking) and part.redacted)]
    count = sum(_count(part) for part in parts)
    after_ms = min(LONGEST_WAIT_MS, int(duration_ms * _WAITING))
    each_ms = min(LONGEST_PIECE_MS, int(duration_ms * (1 - _WAITING)) // max(1, count))
    for key, part in enumerate(parts):
        yield _piece(part, key, after_ms if key == 0 else 0, each_ms)
    if message.usage is not None:
        yield UsageLine(input_tokens=message.usage.input_tokens, output_tokens=message.usage.output_tokens)


def _piece(part: Text | Thinking | ToolCall, key: int, after_ms: int, each_ms: int) -> Step:
    match part:
        case Text(text=text):
            return TextLine(text=text, after_ms=after_ms, each_ms=each_ms)
        case Thinking(text=text):
            return ThinkingLine(text=text, after_ms=after_ms, each_ms=each_ms)
        case ToolCall(id=call_id, name=name, arguments=arguments, malformed=raw):
            return CallLine(key=key, id=call_id, name=name, arguments=arguments, raw=raw, after_ms=after_ms, each_ms=each_ms)


def _count(part: Text | Thinking | ToolCall) -> int:
    if isinstance(part, ToolCall):
        return 1 + len(encode(part.arguments)) // ARGUMENT_PIECE_CHARS
    return len(re.findall(r"\S+", part.text))


# ------------------------------------------------------------------------------------------------------------- summaries


def _summaries(strand: Strand) -> Iterator[Placed]:
    """The requests for summaries, as far as something is known of them."""
    texts = {entry.data.get("taskId"): entry for entry in strand.entries if entry.kind == COMPACTION and entry.data is not None}
    for task in strand.tasks:
        if task.kind != COMPACTION:
            continue
        match task.outcome:
            case Completed(value=int()):
                entry = texts[task.id]
                duration_ms = max(0, (task.ended_at_ms or 0) - task.created_at_ms)
                text = TextLine(text=_summary(entry), each_ms=min(LONGEST_PIECE_MS, duration_ms // max(1, len(text_of(entry.message).split()))))
                yield Placed(at=task.id, asked=None, steps=(text, FinishLine(reason="stop")))
            case Failed(problem=problem):
                yield Placed(at=task.id, asked=None, steps=(FailLine(reason="invalid_request", message=problem.message),))
            case Aborted():
                yield Placed(at=task.id, asked=None, steps=(StallLine(),))
            case _:
                pass


def _summary(entry: Entry) -> str:
    """What the model had said, without what the harness puts around it."""
    text = text_of(entry.message).removeprefix("<summary>\n").removesuffix("\n</summary>")
    files = (entry.data or {}).get("files")
    return text.rpartition("\n\nFiles touched so far: ")[0] if files else text
