"""What happened since the last look at a conversation, as text for a terminal without an app. PURE: no I/O, no clock.

Only committed state is told (OB-1). The text is raw: whoever prints it makes it safe first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pi_durable_tui.harness.live import ToolSlot
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.entry import COMPACTION, StoredEntry
from pi_durable_tui.records.messages import AssistantMessage, Text, ToolResultMessage, UserMessage

OUTPUT_LINES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was told already.

    Attributes:
        entry_id: The newest entry; older ones are never told again.
        answer: The part of the running answer that was told.
        calls: Call id -> how many lines of its output were told; a call that is not in it was not told of.
        retry: The attempt whose wait was told.
        remarks: The ids of the questions and compactions that were told of.
    """

    entry_id: int = 0
    answer: str = ""
    calls: Mapping[str, int] = field(default_factory=dict[str, int])
    retry: int = 0
    remarks: frozenset[int] = frozenset()


def told_so_far(view: ConversationView) -> Told:
    """Everything of `view` counts as told."""
    return Told(entry_id=max((stored.entry.id for stored in view.entries), default=0))


def tell(told: Told, view: ConversationView) -> tuple[str, Told]:
    """The news of `view` after `told`, and what is told then. The text may be empty, and end without a newline inside an answer."""
    pieces: list[str] = []
    for stored in view.entries:
        if stored.entry.id > told.entry_id:
            piece, told = _entry(told, stored)
            pieces.append(piece)
    generation = view.live.generation
    if generation and generation.message and (answer := generation.message.text) != told.answer and answer.startswith(told.answer):
        pieces.append(("" if told.answer else "\n") + answer[len(told.answer) :])
        told = replace(told, answer=answer)
    if generation and generation.retry and generation.retry.attempt != told.retry:
        told = replace(told, retry=generation.retry.attempt)
        pieces.append(f"  … trying again: {generation.retry.problem.reason}\n")
    remarks = _remarks(view)
    pieces += [text for key, text in remarks.items() if key not in told.remarks]
    told = replace(told, remarks=told.remarks | remarks.keys())
    for slot in view.live.tools:
        if slot.status == "running":
            piece, told = _running(told, slot)
            pieces.append(piece)
    return "".join(pieces), told


def _remarks(view: ConversationView) -> dict[int, str]:
    """What waits for a person, and what is summarized; by the id of the task that does so."""
    asked = {slot.question: f"\n  ? may it: {slot.title}\n" for slot in view.live.tools if slot.question is not None}
    return asked | {run.task_id: "\n  … summarizing the older part of the conversation\n" for run in view.live.compactions}


def _running(told: Told, slot: ToolSlot) -> tuple[str, Told]:
    """The start of a call, and whole lines of its output as they come, up to OUTPUT_LINES."""
    start = "" if slot.call_id in told.calls else f"\n  ▸ {slot.title}\n"
    shown = told.calls.get(slot.call_id, 0)
    whole = slot.output.split("\n")[:-1]
    lines = [] if slot.output_dropped_chars else whole[shown:OUTPUT_LINES]
    return start + _indented(lines, " "), replace(told, calls={**told.calls, slot.call_id: shown + len(lines)})


def _entry(told: Told, stored: StoredEntry) -> tuple[str, Told]:
    told = replace(told, entry_id=stored.entry.id)
    match stored.entry.message:
        case UserMessage(content=content) if stored.entry.kind == COMPACTION:
            text = "\n".join(part.text for part in content if isinstance(part, Text))
            return _indented(text.splitlines(), " "), told
        case UserMessage(content=content):
            words = " ".join(part.text for part in content if isinstance(part, Text))
            return f"\n> {words}\n", told
        case AssistantMessage() as message:
            return _answer(told, message), replace(told, answer="")
        case ToolResultMessage() as message:
            known = message.tool_call_id in told.calls
            start = "" if known else f"\n  ▸ {(stored.entry.data or {}).get('title', message.tool_name)}\n"
            return start + _result(message, told.calls.get(message.tool_call_id, 0)), told
        case _:
            return "", told


def _answer(told: Told, message: AssistantMessage) -> str:
    """The rest of an answer; one that was cut off says so."""
    text = message.text
    rest = text[len(told.answer) :] if told.answer and text.startswith(told.answer) else ("\n" + text if text else "")
    if message.stop_reason in ("aborted", "error"):
        reason = message.problem.reason if message.problem else message.stop_reason
        return f"{rest}\n  [{reason}: this answer was cut off here]\n"
    return f"{rest}\n" if text else ""


def _result(message: ToolResultMessage, shown: int) -> str:
    """The lines of a result after those that were told while it ran; of many, the last."""
    lines = (message.text.rstrip("\n").splitlines() or ["(no output)"])[shown:]
    last = lines[-OUTPUT_LINES:]
    left_out = [f"… {len(lines) - len(last)} lines more"] if len(lines) > len(last) else []
    return _indented([*left_out, *last], "✗" if message.is_error else " ")


def _indented(lines: Sequence[str], mark: str) -> str:
    return "".join(f"  {mark} │ {line}\n" for line in lines)
