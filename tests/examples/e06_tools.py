"""Example 06: tools: typed arguments, running output, and what the model hears when it calls one wrongly.

A tool is a value: a name, a struct for its arguments (its JSON schema is what the model is told), and a function. Two calls of one answer
run together. A call whose arguments do not fit is never run; the model gets an error result and goes on.

    python -m tests.examples.e06_tools

It prints:

    user: How far is it?
    agent: [divide a=10 b=4] [divide a='ten' b=4] [divide a=1 b=0]
    result: 2.5
    result: <harness> [error] The arguments of divide do not fit, so it was not run: Expected `float`, got `str` - at `$.a`. </harness>
    result: <harness> [error] Tool divide failed: ZeroDivisionError: float division by zero </harness>
    agent: One of three: 2.5.
"""

from __future__ import annotations

import asyncio

import msgspec

from pi_durable_tui.library import Text, Tool, ToolContext, ToolResult, ToolResultMessage
from tests.examples.parts import AGENT, calls, in_order, line, open_harness, say


class Division(msgspec.Struct):
    """What the model has to say: two numbers."""

    a: float
    b: float


async def divide(numbers: Division, context: ToolContext) -> ToolResult:
    """The work itself. What is put out while it runs is stored before anybody sees it."""
    context.output("dividing\n")
    return ToolResult(content=(Text(text=f"{numbers.a / numbers.b:g}"),))


DIVIDE = Tool(
    name="divide",
    description="Divide a by b.",
    arguments=Division,
    execute=divide,
    title=lambda numbers: f"{numbers.a:g} : {numbers.b:g}",
    access="read",  # approval modes ask before anything that edits or runs commands
    replay="safe",  # after a kill it may simply run again
)


def call_id(message: object) -> str:
    """Which call a result belongs to."""
    assert isinstance(message, ToolResultMessage)  # between the two answers stand results only
    return message.tool_call_id


async def main() -> None:
    """One round of three calls, and an answer."""
    script = in_order(
        calls(("divide", {"a": 10, "b": 4}), ("divide", {"a": "ten", "b": 4}), ("divide", {"a": 1, "b": 0})),
        say("One of three: 2.5."),
    )
    harness = await open_harness(script, tools=(DIVIDE,))
    conversation = await harness.create_conversation(AGENT)
    question = await conversation.submit("How far is it?")
    await conversation.settled(question.id)
    first, asked, *results, last = [stored.entry for stored in await conversation.entries()]
    results.sort(key=lambda entry: call_id(entry.message))  # they stand in the order in which they came
    for entry in (first, asked, *results, last):
        print(line(entry).replace("\n", " "))
    await harness.close()


if __name__ == "__main__":
    asyncio.run(main())
