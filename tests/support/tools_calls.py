"""Calls tools the way the harness does: arguments through their schema, prepare, execute, what was shown and stored kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pi_durable_tui.clock import Clock, SystemClock
from pi_durable_tui.harness.ports import BackgroundInfo, Reconciled, SubagentInfo, Tool, ToolContext, ToolResult
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.json import JsonObject
from pi_durable_tui.records.messages import Text
from pi_durable_tui.tools.catalog import all_tools
from pi_durable_tui.tools.environment import LocalEnvironment


class NoSubagents:
    """The subagents of a conversation that has none."""

    async def list(self) -> tuple[SubagentInfo, ...]:
        return ()

    async def message(self, task_id: int, text: str) -> bool:
        return False

    async def stop(self, task_id: int) -> bool:
        return False


class NoBackgroundCalls:
    """The calls in the background of a conversation that has none."""

    async def list(self) -> tuple[BackgroundInfo, ...]:
        return ()

    async def stop(self, task_id: int) -> bool:
        return False

    async def wait(self, task_id: int, *, limit_ms: float) -> bool:
        return True


class Workplace:
    """A folder to work in, its environment, and the tools by name. A second one over the same folders is what a restart gives."""

    def __init__(self, root: Path, *, clock: Clock | None = None, variables: dict[str, str] | None = None) -> None:
        self.folder = root / "work"
        self.state = root / "state"
        self.folder.mkdir(exist_ok=True)
        self.environment = LocalEnvironment(str(self.folder), self.state, clock or SystemClock(), variables)
        self.tools: dict[str, Tool] = {tool.name: tool for tool in all_tools()}
        self.output: list[str] = []
        self.started: list[JsonObject] = []
        self.calls = 0
        self.documents: dict[str, JsonObject] = {}

    def context(self, prepared: Any = None, call_id: str | None = None) -> ToolContext:
        async def started(facts: JsonObject) -> None:
            self.started.append(facts)

        async def document(definition: Definition) -> JsonObject:
            return self.documents.get(definition.kind, {})

        self.calls += 1
        return ToolContext(
            environment=self.environment,
            output=self.output.append,
            prepared=prepared,
            started=started,
            call_id=call_id or f"call{self.calls}",
            subagents=NoSubagents(),
            background=NoBackgroundCalls(),
            document=document,
        )

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        """Prepare and execute, as a call that nothing interrupts."""
        tool = self.tools[name]
        converted = msgspec.convert(arguments, tool.arguments)
        context = self.context()
        if tool.prepare is not None:
            prepared = await tool.prepare(converted, context)
            if isinstance(prepared, ToolResult):
                return prepared
            context = self.context(prepared, context.call_id)
        assert tool.execute is not None
        result = await tool.execute(converted, context)
        for definition, step in result.documents:
            self.documents[definition.kind] = step(self.documents.get(definition.kind, {}))
        return result

    async def prepare(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The intent of a call that is not refused."""
        tool = self.tools[name]
        assert tool.prepare is not None
        prepared = await tool.prepare(msgspec.convert(arguments, tool.arguments), self.context())
        assert isinstance(prepared, dict)
        return prepared

    async def execute(self, name: str, prepared: Any, **arguments: Any) -> ToolResult:
        """Execute a call whose intent was stored."""
        tool = self.tools[name]
        assert tool.execute is not None
        return await tool.execute(msgspec.convert(arguments, tool.arguments), self.context(prepared))

    async def reconcile(self, name: str, prepared: Any, *, call_id: str = "call1", **arguments: Any) -> Reconciled:
        tool = self.tools[name]
        assert tool.reconcile is not None
        return await tool.reconcile(msgspec.convert(arguments, tool.arguments), self.context(prepared, call_id))


def text_of(result: ToolResult) -> str:
    """What the model reads of a result."""
    return "\n".join(part.text for part in result.content if isinstance(part, Text))


def names_in(folder: Path) -> list[str]:
    """What a folder holds, sorted."""
    return sorted(path.name for path in folder.iterdir())


def details_of(result: ToolResult) -> dict[str, Any]:
    """What people are shown of a result."""
    assert result.details is not None
    return dict(result.details)
