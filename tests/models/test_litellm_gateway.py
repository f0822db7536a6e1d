"""The gateway over the real library, against a real HTTP server on loopback: what one request becomes, and what each way of failing is."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.harness.ports import (
    Finished,
    ModelEvent,
    ModelFailed,
    ModelInfo,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolSpec,
    UsageReport,
)
from pi_durable_tui.models.litellm_gateway import LiteLlmGateway
from pi_durable_tui.models.reading import Library
from pi_durable_tui.records.messages import AssistantMessage, Text, ToolCall, ToolResultMessage, Usage, UserMessage
from tests.support.model_server import CUT, EOF, STALL, ModelServer, Script, call, event, finish, hold, http, reason, text, usage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("library"),
    # Said by the library about itself; the program silences them when it loads it, pytest turns them on again for each test.
    pytest.mark.filterwarnings("ignore::UserWarning:pydantic"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

KEY = "sk-test-0123456789abcdef"
HI = (UserMessage(content=(Text(text="hi"),)),)
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@contextlib.asynccontextmanager
async def gateway_to(*, base_url: str = "", clock: ManualClock | None = None, environ: dict[str, str] | None = None) -> AsyncIterator[LiteLlmGateway]:
    known = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": base_url} if environ is None else environ
    gateway = LiteLlmGateway(clock=clock or ManualClock(), entropy=SeededEntropy(1), environ=known)
    try:
        yield gateway
    finally:
        await gateway.close()


async def events_of(gateway: LiteLlmGateway, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in gateway.stream(request)]


async def play(*script: Sequence[dict[str, Any]], request: ModelRequest | None = None, strict: bool = False) -> tuple[list[ModelEvent], ModelServer]:
    """The events of one request against a script, and the server that saw it."""
    async with ModelServer(script, strict=strict) as server, gateway_to(base_url=server.base_url) as gateway:
        return await events_of(gateway, request or ModelRequest(model="openai/scripted", messages=HI)), server


def only_failure(events: list[ModelEvent]) -> ModelFailed:
    assert isinstance(events[-1], ModelFailed)
    assert not any(isinstance(event, Finished | ModelFailed) for event in events[:-1])
    return events[-1]


@pytest.mark.rule("GE-6", "AG-5")
async def test_text_thinking_calls_and_usage_arrive_in_order() -> None:
    script = [reason("hm"), text("a"), text("b"), call(0, "c1", "bash", '{"a":'), call(0, None, None, "1}"), finish("tool_calls"), usage(100, 5, 90)]
    events, server = await play(script)

    assert events == [
        ThinkingDelta("hm"),
        TextDelta("a"),
        TextDelta("b"),
        ToolCallDelta(0, id="c1", name="bash"),
        ToolCallDelta(0, arguments='{"a":'),
        ToolCallDelta(0, arguments="1}"),
        UsageReport(Usage(input_tokens=100, output_tokens=5, cache_read_tokens=90)),
        Finished("toolUse"),
    ]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
