"""The checkpoints of `pi.generation`: where a run goes on, and with what (FB-20, FB-21)."""

from __future__ import annotations

import msgspec

from pi_durable_tui.records.json import Json, JsonObject
from pi_durable_tui.records.messages import Problem, Record
from pi_durable_tui.records.modes import ThinkingLevel


class Prepare(Record, frozen=True, tag_field="phase", tag="prepare"):
    """Resolve the agent for the next request. `attempt` counts from 1 in each turn."""

    attempt: int = 1
    compacted: int = 0  # how often the context was compacted for this request
    without_thinking: bool = False  # the provider refused earlier thoughts: this turn is asked for without any


class Request(Record, frozen=True, tag_field="phase", tag="request"):
    """Send the request made of everything up to entry `cutoff`."""

    attempt: int
    model: str
    cutoff: int
    thinking_level: ThinkingLevel = "off"
    stream_options: JsonObject = msgspec.field(default_factory=dict[str, Json])
    compacted: int = 0
    without_thinking: bool = False


class RetryAt(Record, frozen=True, tag_field="phase", tag="retry"):
    """The attempt failed; the next one starts at `until` (milliseconds since 1970 UTC)."""

    attempt: int
    until: int
    problem: Problem
    compacted: int = 0
    without_thinking: bool = False


class Poll(Request, frozen=True, kw_only=True, tag_field="phase", tag="poll"):
    """The provider has the answer to that request later: ask for `handle` again at `poll_at`."""

    handle: JsonObject
    poll_at: int


class Tools(Record, frozen=True, tag_field="phase", tag="tools"):
    """A tool round: the answer that made the calls, the tasks that run, and the call ids whose task is not made yet."""

    assistant: int  # entry id
    tools: tuple[int, ...]  # task ids, in call order
    pending: tuple[str, ...] = ()  # call ids, in call order
