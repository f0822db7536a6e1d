"""Example 09: the inbox: what happens to messages while the agent is at work.

A follow-up waits for the end of the run, a steering message joins it after the current round of tools, a write needs no answer, `reject`
would rather not wait. What is queued is stored, can be taken back, and survives a kill. A request id makes a message arrive once,
however often it is sent.

    python -m tests.examples.e09_inbox

It prints:

    rejected: conversation 1 is busy
    sent twice, stored once: True
    taken back: withdrawn
    waiting: and then the other | quick, look here
    user: do the one thing
    agent: [work]
    result: worked
    user: quick, look here
    agent: Both seen.
    user: and then the other
    agent: And the other.
"""

from __future__ import annotations

import asyncio

import msgspec

from pi_durable_tui.library import Content, ConversationBusy, Text, Tool, ToolContext, ToolResult
from tests.examples.parts import AGENT, call, in_order, line, open_harness, say


class Nothing(msgspec.Struct):
    """No arguments."""


def slow_tool(begun: asyncio.Event, may_end: asyncio.Event) -> Tool:
    """A tool that works until it may end."""

    async def work(_arguments: Nothing, _context: ToolContext) -> ToolResult:
        begun.set()
        await may_end.wait()
        return ToolResult(content=(Text(text="worked"),))

    return Tool(name="work", description="Work.", arguments=Nothing, execute=work, title=lambda _: "work", access="read")


async def main() -> None:
    """Hand in five messages while a tool runs."""
    begun, may_end = asyncio.Event(), asyncio.Event()
    script = in_order(call("work"), say("Both seen."), say("And the other."))
    harness = await open_harness(script, tools=(slow_tool(begun, may_end),))
    conversation = await harness.create_conversation(AGENT)
    await conversation.submit("do the one thing")
    await begun.wait()

    try:
        await conversation.submit("are you free?", mode="reject")
    except ConversationBusy as busy:
        print(f"rejected: {busy.message.split('.')[0].replace('Conversation', 'conversation')}")
    follow_up = await conversation.submit("and then the other", request_id="other")
    again = await conversation.submit("and then the other", request_id="other")
    print("sent twice, stored once:", again.id == follow_up.id)
    await conversation.submit("quick, look here", mode="steer")
    regretted = await conversation.submit("never mind")
    print("taken back:", await conversation.withdraw(regretted.id))
    print("waiting:", " | ".join(text(item.content) for item in (await conversation.view()).inbox.items))

    may_end.set()
    await conversation.settled(follow_up.id)
    for stored in await conversation.entries():
        print(line(stored.entry))
    await harness.close()


def text(content: tuple[Content, ...]) -> str:
    """The text of a message."""
    return "".join(part.text for part in content if isinstance(part, Text))


if __name__ == "__main__":
    asyncio.run(main())
