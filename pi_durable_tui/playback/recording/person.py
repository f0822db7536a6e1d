"""What the person did, as the steps of an `input.jsonl`. PURE: no I/O, no clock.

Prompts, answers, stops, forks and deaths are found in the records; ids tell their order. What the format has no step for, and what left
no trace, is listed for people instead: nothing is left out silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pi_durable_tui.harness.compaction.checkpoint import CompactionInput
from pi_durable_tui.harness.kinds import COMPACTION, GENERATION, QUESTION, TOOL
from pi_durable_tui.harness.tool.checkpoint import Answer as StoredAnswer
from pi_durable_tui.harness.tool.checkpoint import CallInput, QuestionInput
from pi_durable_tui.harness.tool.command import COMMAND, CommandInput
from pi_durable_tui.playback.player import said
from pi_durable_tui.playback.recording.answers import silent_stop
from pi_durable_tui.playback.recording.source import Source, Strand, text_of
from pi_durable_tui.playback.steps import Answer, Approve, Compact, Fork, Join, Kill, Run, Step, Stop, Submit, When
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import TOOL_RESULT, USER, Entry
from pi_durable_tui.records.messages import AssistantMessage, Content, Text
from pi_durable_tui.records.submission import Done, Placed, Submission, Unanswered
from pi_durable_tui.records.task import Aborted, Completed, Failed, Task

TAIL_CHARS = 60
FORK_CHARS = 400

Placement = tuple[float, Step]
"""The id of the record that a step comes before or with, and the step."""


def steps_of(source: Source) -> tuple[Step, ...]:
    """Everything the person did, in order."""
    found: list[Placement] = []
    for number, strand in enumerate(source.line):
        if number:
            found.append((strand.conversation.id, Fork(at=_fork_text(source, strand))))
        found += [*_submissions(strand), *_approvals(strand, source), *_commands(strand)]
    for strand in source.strands:
        found += [*_answers(strand), *_kills(strand)]
    found += _stops(source)
    return tuple(step for _, step in sorted(found, key=lambda placement: placement[0]))


def missing_from(source: Source) -> tuple[str, ...]:
    """What happened and is in no step, one line each."""
    lines: list[str] = []
    for strand in source.line:
        taken_back = [each for each in strand.submissions if _is_typed(each) and isinstance(each.state, Unanswered) and each.state.entry_id is None]
        attached = [each for each in strand.submissions if _is_typed(each) and len(each.content) > 1]
        lines += [f"{len(taken_back)} queued message(s) that were taken back."] if taken_back else []
        lines += [f"{len(attached)} message(s) brought files or pictures along: put the files into workspace/."] if attached else []
        if any(change.group.startswith("restore ") for change in strand.changes):
            lines.append("Files that were taken back (/undo): what came after finds them as the calls had left them.")
        if any(entry.kind == USER and (entry.data or {}).get("hook") for entry in strand.entries):
            lines.append("What extensions said to the model.")
    return tuple(lines)


# ------------------------------------------------------------------------------------------------------------ submissions


def _is_typed(submission: Submission) -> bool:
    """Whether a person sent it: subagents' reports are handed in by the harness, with request ids of its own."""
    return submission.kind == USER and submission.mode != "write" and not (submission.request_id or "").startswith("subagent")


def _entry_of(submission: Submission) -> int | None:
    match submission.state:
        case Placed(entry_id=entry_id) | Done(entry_id=entry_id) | Unanswered(entry_id=entry_id):
            return entry_id
        case _:
            return None


def _submissions(strand: Strand) -> Iterator[Placement]:
    if strand.caller is not None:
        return
    ends = _ends(strand)
    for submission in strand.submissions:
        if not _is_typed(submission) or _entry_of(submission) is None:
            continue
        text = _words(submission.content)
        run = next((task for task, end in ends if task.id < submission.id < end), None)
        if run is None:
            yield submission.id, Submit(text=text)
        else:
            mode = "steer" if submission.mode == "steer" else "followUp"
            yield submission.id, Join(text=text, mode=mode, when=_meanwhile(strand, run, submission))


def _words(content: Sequence[Content]) -> str:
    return next((part.text for part in content if isinstance(part, Text)), "")


def _ends(strand: Strand) -> list[tuple[Task, int]]:
    """Every run with the newest record of it that is known by its id."""
    ends = {task.id: task.id for task in strand.tasks if task.kind == GENERATION}
    for task in strand.tasks:
        run_id = task.id if task.kind == GENERATION else task.owner
        if run_id in ends:
            ends[run_id] = max(ends[run_id], *(entry.id for entry in strand.of_task(task.id)), 0)
    return [(task, ends[task.id]) for task in strand.tasks if task.id in ends]


def _meanwhile(strand: Strand, run: Task, submission: Submission) -> When:
    """What was going on when something was sent during a run: a call, else an answer."""
    for task in strand.tasks:
        result = _result(strand, task)
        if task.kind == TOOL and task.id < submission.id and result is not None and result.id > submission.id:
            return When(tool=str(task.input.get("name")), call=str(task.input.get("callId")))
    answer = next((entry for entry in strand.of_task(run.id) if entry.id > submission.id), None)
    whole = said(answer.message) if answer is not None and isinstance(answer.message, AssistantMessage) else ""
    return When(answer_contains=whole[: TAIL_CHARS // 2].rpartition(" ")[0], turn=_turn(strand, run, submission.id))


def _turn(strand: Strand, run: Task, at: int) -> int:
    """In which turn a run was at that record: every answer that calls tools ends one."""
    answers = [entry.message for entry in strand.of_task(run.id) if entry.id < at]
    return 1 + sum(isinstance(message, AssistantMessage) and message.problem is None and bool(message.tool_calls) for message in answers)


def _approvals(strand: Strand, source: Source) -> Iterator[Placement]:
    """Changes of what needs no question, as they are seen at the next prompt."""
    before = source.approval
    senders = {_entry_of(submission): submission.id for submission in strand.submissions}
    for entry_id, mode in strand.approvals:
        if mode != before:
            yield senders.get(entry_id, entry_id) - 0.5, Approve(mode=mode)
        before = mode


def _fork_text(source: Source, strand: Strand) -> str:
    parent = strand.conversation.parent
    entries = {entry.id: entry for each in source.line for entry in each.entries}
    entry = entries.get(parent.entry_id) if parent is not None else None
    return text_of(entry.message)[-FORK_CHARS:] if entry is not None else ""


def _commands(strand: Strand) -> Iterator[Placement]:
    for task in strand.tasks:
        if task.kind == COMMAND:
            wanted = from_json(task.input, CommandInput)
            yield task.id, Run(command=str(wanted.arguments.get("command", "")), shown=wanted.shown)
        elif task.kind == COMPACTION and from_json(task.input, CompactionInput).reason == "manual":
            yield task.id, Compact(focus=from_json(task.input, CompactionInput).focus)


# --------------------------------------------------------------------------------------------------- answers, kills, stops


def _within(strand: Strand) -> bool | str:
    """Where a moment of this conversation is, as a `When` says it."""
    caller = strand.caller
    if caller is None:
        return False
    call_id = caller.input.get("callId")
    return call_id if isinstance(call_id, str) else True


def _answers(strand: Strand) -> Iterator[Placement]:
    calls = {task.id: task for task in strand.tasks if task.kind == TOOL}
    for task in strand.tasks:
        if task.kind != QUESTION or not isinstance(task.outcome, Completed):
            continue
        asked, given = from_json(task.input, QuestionInput), from_json(task.outcome.value, StoredAnswer)
        call = calls.get(asked.tool_task)
        decision = "always" if given.decision == "always" else "allow" if given.decision == "allow" else "deny"
        call_id = None if call is None else from_json(call.input, CallInput).call_id
        yield task.id, Answer(decision=decision, when=When(asks=asked.name, call=call_id, in_subagent=_within(strand)))


def _kills(strand: Strand) -> Iterator[Placement]:
    """Deaths that cut something off; of others no trace is left, and they make no difference."""
    for entry in strand.entries:
        if isinstance(entry.message, AssistantMessage) and entry.message.problem is not None and entry.message.problem.reason == "interrupted":
            yield entry.id - 0.5, Kill(when=_after(entry.message, strand))
    rounds: dict[object, Task] = {}
    for task in strand.tasks:
        if task.kind == TOOL and isinstance(task.outcome, Failed) and task.outcome.problem.reason == "interrupted":
            rounds[task.input.get("assistant")] = task  # one death for all calls of a round: the last one is waited for
    for task in rounds.values():
        yield task.id + 0.5, Kill(when=_during(strand, task))


def _stops(source: Source) -> Iterator[Placement]:
    """Where the person pressed Escape: a run was stopped, or a subagent, or a run with the subagents that worked for it."""
    with_subagents: set[int | None] = set()
    for strand in source.subagents:
        stop = _stop(strand)
        is_whole = strand.caller is not None and isinstance(strand.caller.outcome, Aborted)
        run_id = strand.caller.owner if strand.caller is not None else None
        if stop is not None and not (is_whole and run_id in with_subagents):
            yield stop[0], Stop(when=stop[1], all_of_it=is_whole)
        with_subagents |= {run_id} if is_whole and stop is not None else set()
    for strand in source.line:
        stopped = [task for task in strand.tasks if task.kind == GENERATION and task.id not in with_subagents]
        yield from ((stop[0], Stop(when=stop[1])) for task in stopped if (stop := _stop_of(strand, task)) is not None)


def _stop(strand: Strand) -> tuple[float, When] | None:
    """When a subagent was stopped; None: it was not."""
    stops = (_stop_of(strand, task) for task in strand.tasks if task.kind == GENERATION)
    return next((stop for stop in stops if stop is not None), None)


def _stop_of(strand: Strand, run: Task) -> tuple[float, When] | None:
    """Where and when a run was stopped; None: it was not."""
    if not isinstance(run.outcome, Aborted):
        return None
    newest = next(reversed(strand.of_task(run.id)), None)
    message = newest.message if newest is not None else None
    if newest is not None and isinstance(message, AssistantMessage) and message.problem is not None and message.problem.reason == "aborted":
        return newest.id - 0.5, _after(message, strand)
    stopped = [each for each in strand.tasks if each.owner == run.id and each.kind == TOOL and isinstance(each.outcome, Aborted)]
    if stopped and not silent_stop(strand, run):
        return stopped[-1].id + 0.5, _during(strand, stopped[-1])
    at = {task.id: end for task, end in _ends(strand)}[run.id] + 1
    return at - 0.5, When(answer_contains="", turn=_turn(strand, run, at), in_subagent=_within(strand))


def _after(message: AssistantMessage, strand: Strand) -> When:
    """Once all of a partial answer has come."""
    return When(answer_contains=said(message)[-TAIL_CHARS:], in_subagent=_within(strand))


def _during(strand: Strand, task: Task) -> When:
    """While a call runs, or is asked about, and has printed what is known of it."""
    asked = from_json(task.input, CallInput)
    question = next((each for each in strand.tasks if each.kind == QUESTION and from_json(each.input, QuestionInput).tool_task == task.id), None)
    if question is not None and not isinstance(question.outcome, Completed):
        return When(asks=asked.name, call=asked.call_id, in_subagent=_within(strand))
    return When(tool=asked.name, call=asked.call_id, output_contains=_printed(strand, task), in_subagent=_within(strand))


def _printed(strand: Strand, task: Task) -> str:
    """The end of what a call had printed: its result without the harness's remark."""
    result = _result(strand, task)
    parts = [part.text for part in result.message.content if isinstance(part, Text)] if result is not None and result.message is not None else []
    return "".join(parts[:-1])[-TAIL_CHARS:]


def _result(strand: Strand, task: Task) -> Entry | None:
    return next((entry for entry in strand.of_task(task.id) if entry.kind == TOOL_RESULT), None)
