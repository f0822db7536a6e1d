"""Every kind of model behind one door: the real gateway over three wire forms, each lenient and strict, the scripted model and the recorded one.

A script is written once, in the steps of `model_server.py`, and is told by each of them in its own way.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.harness.ports import (
    Finished,
    ModelEvent,
    ModelFailed,
    ModelGateway,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageReport,
)
from pi_durable_tui.harness.requests.assembly import Assembly
from pi_durable_tui.models.litellm_gateway import LiteLlmGateway
from pi_durable_tui.models.playback import PlaybackModel, parse
from pi_durable_tui.records.messages import AssistantMessage, Usage
from tests.support.model_server import ModelServer, Step
from tests.support.scripted_model import Hold, Noted, ScriptedModel
from tests.support.wire_forms import FormName

KEYS = {"OPENAI_API_KEY": "sk-test-0123456789abcdef", "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef"}
MODELS: dict[FormName, str] = {"chat": "openai/scripted", "messages": "anthropic/claude-sonnet-4-5", "responses": "openai/gpt-5-codex"}
Skill: TypeAlias = Literal["signed", "interleaved", "half calls", "cached", "wire"]

REASONS = {"overflow": "context_overflow", "invalid": "invalid_request", "thinking": "thinking_refused"}
"""What a refusal means where it is not called the same."""
RETRYABLE = frozenset({"overloaded", "rate_limit", "server"})


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of model, and what can be told about it in a script."""

    name: str
    model: str
    form: FormName | None = None
    is_strict: bool = False
    skills: frozenset[Skill] = frozenset()

    def __str__(self) -> str:
        return self.name


_WIRE: dict[FormName, frozenset[Skill]] = {
    "chat": frozenset({"interleaved", "half calls", "cached", "wire"}),
    "messages": frozenset({"signed", "half calls", "cached", "wire"}),
    "responses": frozenset({"signed", "interleaved", "half calls", "cached", "wire"}),
}
KINDS = (
    *(Kind(f"{form} {how}", MODELS[form], form, how == "strict", skills) for form, skills in _WIRE.items() for how in ("lenient", "strict")),
    Kind("scripted", "test/model", skills=frozenset({"signed", "interleaved", "half calls", "cached"})),
    Kind("playback", "playback/story"),
)


def kinds(*skills: Skill) -> list[Kind]:
    """Those that have all the skills."""
    return [kind for kind in KINDS if kind.skills.issuperset(skills)]


@dataclass(slots=True)
class Reached:
    """A model that can be asked. `server` is there for the wire forms."""

    gateway: ModelGateway
    model: str
    clock: ManualClock
    server: ModelServer | None = None
    asked: list[ModelRequest] = field(default_factory=list)

    async def ask(self, request: ModelRequest) -> list[ModelEvent]:
        """All events of one request."""
        return [event async for event in self.gateway.stream(request)]


@contextlib.asynccontextmanager
async def reached(kind: Kind, *script: Sequence[Step]) -> AsyncIterator[Reached]:
    """A model of that kind which answers by the script, one item per request."""
    clock = ManualClock()
    if kind.form is not None:
        async with ModelServer(script, strict=kind.is_strict) as server:
            gateway = gateway_to(server, clock)
            try:
                yield Reached(gateway, kind.model, clock, server)
            finally:
                await gateway.close()
        return
    if kind.name == "scripted":
        yield Reached(ScriptedModel(clock, *[_scripted(steps) for steps in script]), kind.model, clock)
        return
    lines = [line for number, steps in enumerate(script, 1) for line in ({"type": "request", "number": number}, *_recorded(steps))]
    requests = parse("\n".join(map(json.dumps, lines)), "model.jsonl")
    yield Reached(PlaybackModel(name="story", requests=requests, progress=Noted(), clock=clock), kind.model, clock)


def gateway_to(server: ModelServer, clock: Any, **more: Any) -> LiteLlmGateway:
    """The real gateway, with both providers at the server."""
    base_urls = {"openai": server.base_url, "anthropic": server.root_url}
    return LiteLlmGateway(clock=clock, entropy=SeededEntropy(1), environ=KEYS, base_urls=base_urls, **more)


def answer_of(events: Sequence[ModelEvent], model: str) -> AssistantMessage:
    """What the harness makes of the events."""
    assembly = Assembly(model)
    for event in events:
        if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            assembly.add(event)
        elif isinstance(event, UsageReport):
            assembly.usage = event.usage
    last = events[-1]
    return assembly.message(last.stop_reason if isinstance(last, Finished) else "error")


def ending_of(events: Sequence[ModelEvent]) -> Finished | ModelFailed:
    """The last event, which is the only one of its kind."""
    last = events[-1]
    assert isinstance(last, Finished | ModelFailed)
    assert not any(isinstance(event, Finished | ModelFailed) for event in events[:-1])
    return last


def reason_of(refusal: str) -> str:
    """The harness's word for a refusal."""
    return REASONS.get(refusal, refusal)


def _failed(refusal: str, message: str) -> ModelFailed:
    return ModelFailed(reason=reason_of(refusal), message=message, retryable=refusal in RETRYABLE)  # type: ignore[arg-type]


def _scripted(steps: Sequence[Step]) -> list[Any]:
    events: list[Any] = []
    counts = next((step["usage"] for step in steps if "usage" in step), None)
    for step in steps:
        match step:
            case {"text": str(piece)}:
                events.append(TextDelta(piece))
            case {"reason": str(piece)}:
                events.append(ThinkingDelta(piece, signature=step.get("signature")))
            case {"redacted": str(data)}:
                events.append(ThinkingDelta("", signature=data, redacted=True))
            case {"call": dict(piece)}:
                events.append(ToolCallDelta(piece["index"], piece.get("id", ""), piece.get("name", ""), piece.get("arguments", "")))
            case {"finish": str(why)}:
                if counts is not None:
                    usage = Usage(input_tokens=counts["prompt"], output_tokens=counts["completion"], cache_read_tokens=counts["cached"])
                    events.append(UsageReport(usage))
                events.append(Finished("toolUse" if why == "tool_calls" else why))  # type: ignore[arg-type]
            case {"refuse": str(refusal)} | {"fail": str(refusal)}:
                events.append(_failed(refusal, step["message"]))
            case {"cut": _}:
                events.append(ModelFailed(reason="connection", message="cut", retryable=True))
            case {"stall": _}:
                events.append(Hold())
            case _:
                assert "usage" in step, step
    return events


def _recorded(steps: Sequence[Step]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    counts = next((step["usage"] for step in steps if "usage" in step), None)
    for step in steps:
        match step:
            case {"text": str(text)} | {"reason": str(text)}:
                lines.append({"type": "text" if "text" in step else "thinking", "text": text})
            case {"call": dict(piece)}:
                lines.append({"type": "call", "key": piece["index"], "id": piece["id"], "name": piece["name"], "arguments": json.loads(piece["arguments"])})
            case {"finish": str(why)}:
                if counts is not None:
                    lines.append({"type": "usage", "input_tokens": counts["prompt"], "output_tokens": counts["completion"]})
                lines.append({"type": "finish", "reason": "toolUse" if why == "tool_calls" else why})
            case {"refuse": str(refusal)} | {"fail": str(refusal)}:
                lines.append({"type": "fail", "reason": reason_of(refusal), "message": step["message"], "retryable": refusal in RETRYABLE})
            case {"cut": _}:
                lines.append({"type": "fail", "reason": "connection", "message": "cut", "retryable": True})
            case {"stall": _}:
                lines.append({"type": "stall"})
            case _:
                assert "usage" in step, step
    return lines
