"""Settings of the harness with their defaults (durable.md, section 14). Read at every use, never stored (rule EX-2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pi_durable_tui.records.json import Json, JsonObject


@dataclass(slots=True, kw_only=True)
class Retry:
    """Backoff of failed model requests: base, doubled, at most max."""

    enabled: bool = True
    max_retries: int = 3
    base_delay_ms: int = 2_000
    max_delay_ms: int = 60_000


@dataclass(slots=True, kw_only=True)
class Progress:
    """How often running work is stored."""

    partial_interval_ms: int = 100
    output_interval_ms: int = 100
    persist_within_ms: int = 1_000


@dataclass(slots=True, kw_only=True)
class Compaction:
    """When old context is summarized. `reserve` is kept free for the answer, `keep` of the newest is never summarized."""

    enabled: bool = True
    reserve_tokens: int = 16_384
    keep_tokens: int = 20_000
    background_tokens: int = 32_768


@dataclass(slots=True, kw_only=True)
class Limits:
    """What a run may use before it is ended without an answer; None: no limit.

    Attributes:
        max_turns: A turn is a request that is answered.
        max_time_ms: Of work, over all processes that worked on it; the time in which a person is asked, or no process runs, is not counted.
        background_calls: How many calls of a session may go on behind their results at once.
    """

    max_turns: int | None = None
    max_cost_usd: float | None = None
    max_time_ms: int | None = None
    background_calls: int = 16


@dataclass(slots=True, kw_only=True)
class Settings:
    """All of them; mutable, so that a change takes effect at the next use."""

    retry: Retry = field(default_factory=Retry)
    progress: Progress = field(default_factory=Progress)
    compaction: Compaction = field(default_factory=Compaction)
    limits: Limits = field(default_factory=Limits)
    restart_limit: float = 5  # infinity: unlimited
    tool_execution: Literal["parallel", "sequential"] = "parallel"
    steering_mode: Literal["one-at-a-time", "all"] = "one-at-a-time"
    follow_up_mode: Literal["one-at-a-time", "all"] = "one-at-a-time"
    close_grace_ms: int = 5_000
    stream: JsonObject = field(default_factory=dict[str, Json])
