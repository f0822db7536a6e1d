"""The durable core as a library: everything a program of its own needs, in one import.

    from pi_durable_tui import library as durable

    async def main() -> None:
        clock = durable.SystemClock()
        storage = await durable.open_sqlite(Path("work.sqlite"), clock=clock)
        harness = await durable.Harness.open(
            storage,
            models=my_gateway,  # a ModelGateway
            clock=clock,
            entropy=durable.SystemEntropy(),
            environment=lambda conversation_id, agent: my_environment,
            tools=[my_tool],
        )
        chat = await harness.create_conversation(durable.Agent(model="any/name", approval="all"))
        handed_in = await chat.submit("Do something that takes hours.", request_id="once")
        print(await chat.settled(handed_in.id))
        await harness.close()

Kill it anywhere and run it again: the same request id finds the same submission, and the work goes on where it was. The numbered
programs in tests/examples show one thing each. Nothing here imports a user interface or a model library.
"""

from __future__ import annotations

from pi_durable_tui.clock import Clock, ManualClock, SystemClock
from pi_durable_tui.entropy import Entropy, SeededEntropy, SystemEntropy
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.hooks import Blocked, HookedCall, Hooks
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import (
    Environment,
    Finished,
    ModelEvent,
    ModelFailed,
    ModelGateway,
    ModelInfo,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    Tool,
    ToolCallDelta,
    ToolContext,
    ToolResult,
    UsageReport,
)
from pi_durable_tui.harness.registry import Extension
from pi_durable_tui.harness.services import Report
from pi_durable_tui.harness.settings import Settings
from pi_durable_tui.harness.tasks.definition import TaskDefinition
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.document import Definition
from pi_durable_tui.records.messages import Text, Usage
from pi_durable_tui.records.task import Completed, Failed
from pi_durable_tui.session.session import Session
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.memory import MemoryStorage
from pi_durable_tui.storage.port import Storage
from pi_durable_tui.storage.sqlite import open_sqlite

__all__ = [
    "Agent",
    "Blocked",
    "Clock",
    "Completed",
    "Conversation",
    "Definition",
    "Entropy",
    "Environment",
    "Extension",
    "Failed",
    "Finished",
    "Harness",
    "HookedCall",
    "Hooks",
    "ManualClock",
    "MemoryStorage",
    "ModelEvent",
    "ModelFailed",
    "ModelGateway",
    "ModelInfo",
    "ModelRequest",
    "Report",
    "SeededEntropy",
    "Session",
    "Settings",
    "Storage",
    "SystemClock",
    "SystemEntropy",
    "TaskDefinition",
    "TaskRuntime",
    "Text",
    "TextDelta",
    "ThinkingDelta",
    "Tool",
    "ToolCallDelta",
    "ToolContext",
    "ToolResult",
    "Transaction",
    "Usage",
    "UsageReport",
    "open_jsonl",
    "open_sqlite",
]
