"""The input and the checkpoint of `pi.subagent`."""

from __future__ import annotations

from pi_durable_tui.records.messages import Record


class SubagentInput(Record, frozen=True):
    """Who works, and where; `background`: the answer is handed to the asking conversation as a message."""

    name: str
    conversation: int
    submission: int
    background: bool = False


class Report(Record, frozen=True, tag_field="phase", tag="report"):
    """The subagent's run has ended: say what came of it."""
