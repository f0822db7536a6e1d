"""Calls whose end nobody knows, and what a person can say about them (rules TU-9, TO-2). PURE: views in, words out.

The call itself is settled the same way each time: its result says that it was interrupted. What a person knows better is told to the
model as a message of theirs: stored like any other, seen in the transcript, and true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

from pi_durable_tui.harness.kinds import TOOL
from pi_durable_tui.harness.tool.checkpoint import CallInput, Execute
from pi_durable_tui.records.codec import from_json
from pi_durable_tui.records.entry import TOOL_RESULT
from pi_durable_tui.records.task import Pending, Task
from pi_durable_tui.tui.safe_text import safe_line

if TYPE_CHECKING:
    from pi_durable_tui.harness.view import ConversationView
    from pi_durable_tui.records.json import Json

Answer: TypeAlias = Literal["interrupted", "again", "finished", "skip"]
INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A call that a process's end cut off after its intent. `title` says what it would do; safe text."""

    task_id: int
    title: str


def doubts(view: ConversationView, opened_seq: int) -> tuple[Doubt, ...]:
    """The calls in doubt, in call order: those that recovery has not come to yet, and those it has said so of since the opening.

    Args:
        opened_seq: The commit as of which the conversation was first shown.
    """
    waiting = [doubt for task in view.tasks if (doubt := _waiting(task)) is not None]
    told: list[Doubt] = []
    for stored in reversed(view.entries):
        if stored.seq <= opened_seq:
            break
        data = stored.entry.data or {}
        task_id = data.get("taskId")
        if stored.entry.kind == TOOL_RESULT and isinstance(task_id, int) and _has_code(data.get("diagnostics")):
            told.append(Doubt(task_id=task_id, title=safe_line(str(data.get("title", "")), max_cells=400)))
    found = {doubt.task_id: doubt for doubt in (*told, *waiting)}
    return tuple(found[task_id] for task_id in sorted(found))


def instruction(doubt: Doubt, answer: Answer) -> str:
    """What the model is told; "" when its result says all."""
    call = f"the interrupted call `{doubt.title}`"
    match answer:
        case "interrupted":
            return ""
        case "again":
            return f"Run {call} again."
        case "finished":
            return f"I checked: {call} had finished before the interruption. Take it as done and do not run it again."
        case "skip":
            return f"Leave out {call}: do not run it again, and go on without it."
        case _:
            assert_never(answer)


def _waiting(task: Task) -> Doubt | None:
    """A call that is not run yet after an opening, although its intent is stored."""
    checkpoint = task.checkpoint or {}
    if task.kind != TOOL or not isinstance(task.state, Pending) or checkpoint.get("phase") != "execute" or checkpoint.get("replay") != "unsafe":
        return None
    intent, asked = from_json(checkpoint, Execute), from_json(task.input, CallInput)
    return Doubt(task_id=task.id, title=safe_line(intent.title or asked.name, max_cells=400))


def _has_code(diagnostics: Json) -> bool:
    return isinstance(diagnostics, list) and any(isinstance(item, dict) and item.get("code") == INTERRUPTED for item in diagnostics)
