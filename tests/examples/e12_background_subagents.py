"""Example 12: background subagents: they work beside the conversation, and report when they are done.

The call returns at once, and the run may end while they work. What they find comes as a message into the conversation, exactly once, and
begins a run of its own if nothing is going on. Stopping the conversation lets them go on; each can be told something, waited for or
stopped by its number.

    python -m tests.examples.e12_background_subagents

It prints:

    agent: Both are at work.
    subagents at work: left, right
    idle meanwhile: True
    user: [The background subagent right has finished.] Nothing on the right.
    agent: Noted.
    user: [The background subagent left has finished.] A door on the left.
    agent: Then we go left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pi_durable_tui.library import Conversation, Harness, ModelRequest, to_json
from pi_durable_tui.tools.subagent import subagent_tools
from tests.examples.parts import AGENT, Step, calls, in_order, line, open_harness, say


async def said(conversation: Conversation, text: str) -> None:
    """Return once the agent has said `text`."""
    async for frame in conversation.watch():
        if any(line(stored.entry) == f"agent: {text}" for stored in frame.view.entries):
            return


async def at_work(harness: Harness) -> list[str]:
    """The names of the subagents that live."""
    tasks = (await harness.session.storage.tasks(kind="pi.subagent")).items
    return [str(task.input["name"]) for task in tasks if task.is_live]


async def main() -> None:
    """Two subagents, of which the second ends first."""
    left_may_end, right_may_end = asyncio.Event(), asyncio.Event()
    start = [("subagent", {"name": name, "prompt": f"Look to the {name}.", "background": True}) for name in ("left", "right")]
    asking = in_order(calls(*start), say("Both are at work."), say("Noted."), say("Then we go left."))

    def answer(request: ModelRequest) -> Iterable[Step]:
        if any(tool.name == "subagent" for tool in request.tools):
            return asking(request)
        is_left = "left" in str([to_json(message) for message in request.messages])
        return say(left_may_end, "A door on the left.") if is_left else say(right_may_end, "Nothing on the right.")

    harness = await open_harness(answer, tools=subagent_tools())
    conversation = await harness.create_conversation(AGENT)
    question = await conversation.submit("Which way?")
    await conversation.settled(question.id)
    before = await conversation.entries()
    print(line(before[-1].entry))
    print("subagents at work:", ", ".join(await at_work(harness)))
    await conversation.idle()
    print("idle meanwhile:", not (await conversation.view()).is_busy)

    right_may_end.set()
    await said(conversation, "Noted.")
    left_may_end.set()
    await said(conversation, "Then we go left.")
    for stored in (await conversation.entries())[len(before) :]:
        print(line(stored.entry).replace("\n\n", " "))
    await harness.close()


if __name__ == "__main__":
    asyncio.run(main())
