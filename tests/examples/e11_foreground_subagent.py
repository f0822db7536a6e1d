"""Example 11: a foreground subagent: work in a conversation of its own, whose answer is the result of a call.

The subagent has at most the tools and rights of the one that asks. Its conversation is owned by a task, so it stops with the run that
wants it, and after a kill it goes on where it was. Whatever it read along the way stays out of the asking conversation.

    python -m tests.examples.e11_foreground_subagent

It prints:

    user: How many files are there?
    agent: [subagent name='counter' prompt='Count the files.']
    result: There are three files.
    agent: Three.
    the subagent's own conversation:
      user: Count the files.
      agent: [list]
      result: a.py b.py c.py
      agent: There are three files.
    chats of the session: 1
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from pi_durable_tui.library import ModelRequest, Text, Tool, ToolContext, ToolResult
from pi_durable_tui.tools.subagent import subagent_tools
from tests.examples.parts import AGENT, Step, call, in_order, line, open_harness, say


class Nothing(msgspec.Struct):
    """No arguments."""


async def list_files(_arguments: Nothing, _context: ToolContext) -> ToolResult:
    """The files that there are."""
    return ToolResult(content=(Text(text="a.py b.py c.py"),))


LIST = Tool(name="list", description="List files.", arguments=Nothing, execute=list_files, title=lambda _: "list", access="read", replay="safe")


async def main() -> None:
    """One question, which the agent hands on."""
    asking = in_order(call("subagent", name="counter", prompt="Count the files."), say("Three."))
    working = in_order(call("list"), say("There are three files."))

    def answer(request: ModelRequest) -> Iterable[Step]:
        can_delegate = any(tool.name == "subagent" for tool in request.tools)  # a subagent cannot start another one
        return asking(request) if can_delegate else working(request)

    harness = await open_harness(answer, tools=(*subagent_tools(), LIST))
    conversation = await harness.create_conversation(AGENT)
    await conversation.settled((await conversation.submit("How many files are there?")).id)
    for stored in await conversation.entries():
        print(line(stored.entry))

    print("the subagent's own conversation:")
    (task,) = (await harness.session.storage.tasks(kind="pi.subagent")).items
    (owned,) = (await harness.session.storage.conversations(owner=task.id)).items
    for stored in await (await harness.conversation(owned.id)).entries():
        if stored.entry.kind != "pi.system":
            print(f"  {line(stored.entry)}")
    print("chats of the session:", len(await harness.chats()))
    await harness.close()


if __name__ == "__main__":
    asyncio.run(main())
