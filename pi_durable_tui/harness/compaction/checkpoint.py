"""The input and the checkpoints of `pi.compaction`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pi_durable_tui.records.messages import Record

Reason: TypeAlias = Literal["manual", "overflow", "threshold"]


class CompactionInput(Record, frozen=True):
    """Why, and what the summary shall look at above all."""

    reason: Reason
    focus: str = ""


class Select(Record, frozen=True, tag_field="phase", tag="select"):
    """Choose what to summarize."""


class Summarize(Record, frozen=True, tag_field="phase", tag="summarize"):
    """Ask the model for the summary of everything before entry `first_kept`, in at most `limit_chars` of text."""

    model: str
    first_kept: int
    newest: int  # the newest entry that was looked at
    keep_tokens: int
    limit_chars: int
    attempt: int = 1
    focus: str = ""
