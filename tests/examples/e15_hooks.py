"""Example 15: hooks: a guard that stands before every tool call.

An extension may look at a run at fixed moments and change it. `before_tool` sees each call before anything is done: it lets it pass, gives
it other arguments, or says no. The model hears the no as an error result. A guard that breaks blocks the call rather than wave it through.

    python -m tests.examples.e15_hooks

It prints:

    removed: notes.txt
    result: removed notes.txt
    result: <harness> [error] Secrets are not removed. </harness>
    result: <harness> [error] The call was not run: a check before it failed (KeyError: 'path'). </harness>
    agent: One of three is gone.
"""

from __future__ import annotations

import asyncio

import msgspec

from pi_durable_tui.library import Blocked, Extension, HookedCall, Hooks, JsonObject, Settings, Text, Tool, ToolContext, ToolResult
from tests.examples.parts import AGENT, calls, in_order, line, open_harness, say


class Removal(msgspec.Struct):
    """Which file."""

    path: str = "everything"


async def remove(arguments: Removal, _context: ToolContext) -> ToolResult:
    """Removes nothing really."""
    print("removed:", arguments.path)
    return ToolResult(content=(Text(text=f"removed {arguments.path}"),))


async def guard(call: HookedCall) -> Blocked | JsonObject | None:
    """No secrets; and always the clean path."""
    path = str(call.arguments["path"]).strip()
    return Blocked("Secrets are not removed.") if path.startswith("secret") else {"path": path}


REMOVE = Tool(name="remove", description="Remove a file.", arguments=Removal, execute=remove, title=lambda given: given.path, access="edit")


async def main() -> None:
    """Three calls before a guard."""
    wanted = ("remove", {"path": " notes.txt "}), ("remove", {"path": "secret.key"}), ("remove", {})
    harness = await open_harness(
        in_order(calls(*wanted), say("One of three is gone.")),
        tools=(REMOVE,),
        extensions=(Extension(name="guard", hooks=Hooks(before_tool=guard)),),
        settings=Settings(tool_execution="sequential"),
        reporter=lambda _report: None,  # the third call's broken check is in its result, too
    )
    conversation = await harness.create_conversation(AGENT)
    await conversation.settled((await conversation.submit("Clean up.")).id)
    for stored in (await conversation.entries())[2:]:
        print(line(stored.entry).replace("\n", " "))
    await harness.close()


if __name__ == "__main__":
    asyncio.run(main())
