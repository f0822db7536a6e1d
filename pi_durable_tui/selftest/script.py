"""The run that is killed: one prompt, a command and a file at once, another command, an answer; all but the model's words is real.

Real harness, store, tools and processes. The model answers by what it is asked, so that it goes on sensibly after any kill. What is
seen from outside of the store is written down outside of it: commits once they are told (`acknowledged`), what commands did (`effects`).
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from pi_durable_tui.clock import Clock, SystemClock
from pi_durable_tui.entropy import SystemEntropy
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import Finished, ModelEvent, ModelInfo, ModelRequest, TextDelta, ToolCallDelta, UsageReport
from pi_durable_tui.harness.settings import Retry, Settings
from pi_durable_tui.playback.folder import append_line
from pi_durable_tui.records.messages import ToolResultMessage, Usage
from pi_durable_tui.storage.conversion import open_store
from pi_durable_tui.storage.kind import StoreKind
from pi_durable_tui.tools.catalog import all_tools
from pi_durable_tui.tools.environment import LocalEnvironment

PROMPT = "Do the work."
ANSWER = "All is done."
COMMANDS = ("c1", "c3")
"""The ids of the calls that run a command: each must start at most once."""
FILE_CALL = "c2"
FILE_TEXT = "written by c2"
PIECE_MS = 6
_WORDS = 10


@dataclass(frozen=True, slots=True)
class Stage:
    """The folder of one run. `kind`: of its store."""

    root: Path
    kind: StoreKind = "sqlite"

    @property
    def work(self) -> Path:
        """The working directory of its tools."""
        return self.root / "work"

    @property
    def store(self) -> Path:
        """The session."""
        return self.root / f"session.{self.kind}"

    @property
    def acknowledged(self) -> Path:
        """The number of every commit that observers were told of, one a line."""
        return self.root / "acknowledged"

    @property
    def effects(self) -> Path:
        """What commands did: `CALL start`, `CALL end`, one a line."""
        return self.root / "effects"

    @property
    def file(self) -> Path:
        """What the file call writes."""
        return self.work / "notes.txt"

    @property
    def errors(self) -> Path:
        """What children raised."""
        return self.root / "errors"


class Worker:
    """The model (ModelGateway)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        for event in answer(sum(isinstance(message, ToolResultMessage) for message in request.messages)):
            await self._clock.sleep_ms(PIECE_MS)
            yield event

    async def info(self, model: str) -> ModelInfo:  # noqa: ARG002 - there is one model
        return ModelInfo(context_window_tokens=100_000)

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


def answer(results: int) -> list[ModelEvent]:
    """What the model says to a conversation with so many tool results. PURE."""
    words = [TextDelta(f"n{number:03} ") for number in range(_WORDS)]
    used = UsageReport(Usage(input_tokens=100, output_tokens=10))
    match results:
        case 0:
            return [*words, _command(0, "c1"), _write(1), used, Finished("toolUse")]
        case 2:
            return [*words, _command(0, "c3"), used, Finished("toolUse")]
        case _:
            return [TextDelta(ANSWER), used, Finished("stop")]


def live(stage: Stage) -> int:
    """Start the run, or go on with it, and return when it has come to its end."""
    asyncio.run(_live(stage))
    return 0


async def _live(stage: Stage) -> None:
    clock = SystemClock()
    harness = await Harness.open(
        await open_store(stage.kind, stage.store, clock=clock),
        models=Worker(clock),
        clock=clock,
        entropy=SystemEntropy(),
        environment=lambda _id, agent: LocalEnvironment(agent.cwd, stage.root / "files", clock, os.environ),
        tools=all_tools(),
        settings=Settings(retry=Retry(max_retries=20, base_delay_ms=10, max_delay_ms=10), restart_limit=20),
    )
    try:
        harness.session.subscribe(lambda commit: append_line(stage.acknowledged, str(commit.seq)))
        chats = await harness.chats()
        if chats:
            chat = await harness.conversation(chats[0].conversation_id)
        else:
            chat = await harness.create_conversation(Agent(model="selftest/worker", approval="all", cwd=str(stage.work)))
        await harness.resume()
        await chat.settled((await chat.submit(PROMPT, request_id="the prompt")).id)
        await chat.idle()
    finally:
        await harness.close()


def _command(key: int, call_id: str) -> ToolCallDelta:
    return ToolCallDelta(key, call_id, "bash", json.dumps({"command": f"echo {call_id} start >> ../effects; sleep 0.03; echo {call_id} end >> ../effects"}))


def _write(key: int) -> ToolCallDelta:
    return ToolCallDelta(key, FILE_CALL, "write", json.dumps({"path": "notes.txt", "content": f"{FILE_TEXT}\n"}))
