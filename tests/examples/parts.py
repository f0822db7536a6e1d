"""What the examples share, so that each can show one thing: a model that says what it is told to, a harness around it, and a few lines to print."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pi_durable_tui.library import (
    Agent,
    AssistantMessage,
    Entry,
    Extension,
    Finished,
    Harness,
    JsonObject,
    MemoryStorage,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Report,
    Settings,
    Storage,
    SystemClock,
    SystemEntropy,
    Text,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolResultMessage,
    Usage,
    UsageReport,
    UserMessage,
)

Step: TypeAlias = ModelEvent | asyncio.Event
"""A piece of an answer, or something the model waits for before it goes on."""
Answer: TypeAlias = Callable[[ModelRequest], Iterable[Step]]

AGENT = Agent(model="example/model", approval="all")
"""An agent that need not ask before it uses a tool."""
USED = UsageReport(Usage(input_tokens=100, output_tokens=10))


def say(*parts: str | asyncio.Event) -> tuple[Step, ...]:
    """A whole answer of text; an event among the parts holds it up there."""
    return (*(TextDelta(part) if isinstance(part, str) else part for part in parts), USED, Finished("stop"))


def call(name: str, /, **arguments: object) -> tuple[Step, ...]:
    """A whole answer that calls one tool."""
    return calls((name, dict(arguments)))


def calls(*wanted: tuple[str, dict[str, object]]) -> tuple[Step, ...]:
    """A whole answer that calls several tools at a time."""
    deltas = [ToolCallDelta(n, f"call-{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(wanted)]
    return (*deltas, USED, Finished("toolUse"))


def in_order(*answers: Sequence[Step]) -> Answer:
    """The first answer to the first request, the second to the second, and so on."""
    left = iter(answers)
    return lambda _request: next(left)


@dataclass(slots=True)
class Model:
    """A gateway to no provider at all: `answer` says what comes back for each request."""

    answer: Answer = in_order()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Send the answer, piece by piece."""
        for step in self.answer(request):
            if isinstance(step, asyncio.Event):
                await step.wait()
            else:
                yield step

    async def info(self, model: str) -> ModelInfo:
        """Every model has the same window."""
        del model
        return ModelInfo(context_window_tokens=100_000)

    async def warm_up(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The environment of tools that need no more than a path."""

    cwd: str = "."


async def open_harness(
    answer: Answer | None = None,
    *,
    storage: Storage | None = None,
    tools: Sequence[Tool] = (),
    extensions: Sequence[Extension] = (),
    settings: Settings | None = None,
    reporter: Callable[[Report], None] = lambda report: print(f"report: {report.kind}: {report.message}"),
) -> Harness:
    """A harness over `storage` (None: in memory) whose model answers as told."""
    return await Harness.open(
        storage or MemoryStorage(),
        models=Model(answer or in_order()),
        clock=SystemClock(),
        entropy=SystemEntropy(),
        environment=lambda _conversation_id, agent: Folder(agent.cwd),
        tools=tools,
        extensions=extensions,
        settings=settings,
        reporter=reporter,
    )


def line(entry: Entry) -> str:
    """An entry as one line of text: who, and what."""
    match entry.message:
        case UserMessage():
            return f"user: {_text(entry.message.content)}"
        case AssistantMessage():
            asked = [f"[{part.name}{_arguments(part.arguments)}]" for part in entry.message.content if isinstance(part, ToolCall)]
            return " ".join(["agent:", *([entry.message.text] if entry.message.text else []), *asked])
        case ToolResultMessage():
            return f"result: {entry.message.text}"
        case _:
            return f"{entry.kind}: {_text(entry.message.content) if entry.message is not None else ''}"


def _text(content: Iterable[object]) -> str:
    return "".join(part.text for part in content if isinstance(part, Text))


def _arguments(arguments: JsonObject) -> str:
    return "".join(f" {name}={value!r}" for name, value in arguments.items())
