"""What /rewind offers: the messages to go back to, and which part of the work goes back (rule TU-18). PURE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from pi_durable_tui.tui.actions.fork_points import ForkPoint
from pi_durable_tui.tui.ports import PlanPort
from pi_durable_tui.tui.screens.picker import Choice

Part: TypeAlias = Literal["both", "chat", "files"]
SHOWN_FILES = 6


def point_choices(points: Sequence[ForkPoint]) -> list[Choice[ForkPoint]]:
    """The messages, each with what came of it."""
    return [
        Choice(
            value=point,
            label=one_line(point.said),
            detail=f"#{point.said_id}",
            preview=f"{point.said.strip()}\n\n{point.answered[:2_000]}".strip(),
        )
        for point in points
    ]


def part_choices(plan: PlanPort | None, *, later: int, why_no_files: str, here: str) -> list[Choice[Part]]:
    """Which part of the work may go back.

    Args:
        plan: What going back would do to files; None: it cannot be said, because of `why_no_files`.
        later: How many messages of the chat are not in the new one, the picked one included.
        here: The working directory and "/", left out of the names of files.
    """
    messages = "this message" if later == 1 else f"this message and the {later - 1} after it"
    chat = (
        f"A new chat begins without {messages}; what you wrote comes back into the composer.\n"
        "This chat stays stored as it is, and goes on if it is at work: /tree shows both."
    )
    steps = plan.steps if plan is not None else ()
    if not steps:
        why = why_no_files or "No file was changed since that could be taken back."
        return [Choice(value="chat", label="The chat", detail="no files", preview=f"{chat}\n\n{why}")]
    names = [step.path.removeprefix(here) for step in steps[:SHOWN_FILES]]
    more = [f"and {len(steps) - SHOWN_FILES} more"] if len(steps) > SHOWN_FILES else []
    told = f"{file_count(len(steps))} +{sum(step.diff.added for step in steps)} −{sum(step.diff.removed for step in steps)}"
    files = f"As they were when the message was sent: {', '.join([*names, *more])}.\nThe difference is shown before anything is done, and /redo takes it back."
    return [
        Choice(value="both", label="The chat and the files", detail=told, preview=f"{files}\n\n{chat}"),
        Choice(value="chat", label="The chat only", preview=f"{chat}\n\nFiles stay as they are."),
        Choice(value="files", label="The files only", detail=told, preview=f"{files}\n\nThe chat goes on here; the model is told."),
    ]


def one_line(text: str, most: int = 200) -> str:
    """The beginning of a text on one line."""
    words = " ".join(text.split()) or "(no text)"
    return words if len(words) <= most else f"{words[: most - 1]}…"


def file_count(number: int) -> str:
    """So many files, in words."""
    return "1 file" if number == 1 else f"{number} files"
