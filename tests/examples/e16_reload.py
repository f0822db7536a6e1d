"""Example 16: an extension is replaced while one of its tools runs.

Installing an extension under a name that is there replaces it in place. What already runs ends with the code it took; the next call takes
the new code. Nobody has to wait and nothing is restarted.

    python -m tests.examples.e16_reload

It prints:

    the first call runs, version 2 is installed
    result: hello from version 1
    result: hello from version 2
    agent: Both have spoken.
"""

from __future__ import annotations

import asyncio

import msgspec

from pi_durable_tui.library import Extension, Text, Tool, ToolContext, ToolResult
from tests.examples.parts import AGENT, call, in_order, line, open_harness, say


class Nothing(msgspec.Struct):
    """No arguments."""


def greeter(version: int, begun: asyncio.Event, may_end: asyncio.Event) -> Extension:
    """One tool, which says which version it is of."""

    async def greet(_arguments: Nothing, _context: ToolContext) -> ToolResult:
        begun.set()
        await may_end.wait()
        return ToolResult(content=(Text(text=f"hello from version {version}"),))

    tool = Tool(name="greet", description="Greet.", arguments=Nothing, execute=greet, title=lambda _: "greet", access="read", replay="safe")
    return Extension(name="greeter", tools=(tool,))


async def main() -> None:
    """Two calls with a reload during the first."""
    begun, may_end = asyncio.Event(), asyncio.Event()
    script = in_order(call("greet"), call("greet"), say("Both have spoken."))
    harness = await open_harness(script, extensions=(greeter(1, begun, may_end),))
    conversation = await harness.create_conversation(AGENT)
    question = await conversation.submit("Greet twice.")

    await begun.wait()
    harness.install(greeter(2, begun, may_end))
    print("the first call runs, version 2 is installed")
    may_end.set()
    await conversation.settled(question.id)
    for stored in await conversation.entries():
        if line(stored.entry).startswith(("result", "agent: B")):
            print(line(stored.entry))
    await harness.close()


if __name__ == "__main__":
    asyncio.run(main())
