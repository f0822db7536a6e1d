"""Example 10: an observer who comes late: the state as it is, then what happens.

`watch_events` begins with a snapshot, so it does not matter when an observer joins, or joins again: here in the middle of an answer. What
it is told is what is stored, never more.

    python -m tests.examples.e10_late_join

It prints:

    snapshot: the agent has said 'One, two,' so far
    message_update: 'One, two, three, four.'
    message_end: 'One, two, three, four.'
    submission: done
    usage
    run_end
"""

from __future__ import annotations

import asyncio
from typing import Any

from pi_durable_tui.library import AgentEvent, Conversation
from tests.examples.parts import AGENT, in_order, open_harness, say


def told(event: AgentEvent | dict[str, Any]) -> str:
    """An event in one line."""
    event = dict(event)
    match event["type"]:
        case "snapshot":
            return f"snapshot: the agent has said {spoken(event['live']['generation']['message'])} so far"
        case "message_update" | "message_end":
            return f"{event['type']}: {spoken(event['message'])}"
        case "submission":
            return f"submission: {event['state']['status']}"
        case kind:
            return str(kind)


def spoken(message: dict[str, Any]) -> str:
    """The text of an answer."""
    return repr("".join(part["text"] for part in message["content"]))


async def begun(conversation: Conversation, text: str) -> None:
    """Return once the stored answer has got as far as `text`."""
    async for frame in conversation.watch():
        generation = frame.view.live.generation
        if generation is not None and generation.message is not None and generation.message.text == text:
            return


async def main() -> None:
    """Join when half of the answer is there, and leave when the run has ended."""
    joined, half_read = asyncio.Event(), asyncio.Event()
    harness = await open_harness(in_order(say("One, two,", joined, " three, four.", half_read)))
    conversation = await harness.create_conversation(AGENT)
    await conversation.submit("Count to four.")
    await begun(conversation, "One, two,")

    async for event in conversation.watch_events():
        print(told(event))
        if event["type"] == "snapshot":
            joined.set()
        if event["type"] == "message_update":
            half_read.set()
        if event["type"] == "run_end":
            break
    await harness.close()


if __name__ == "__main__":
    asyncio.run(main())
