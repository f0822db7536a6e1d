"""Example 14: compaction: the old part of a conversation becomes a summary for the model, and stays as it is for people.

It happens by itself when the context grows towards the model's window; here we ask for it. The request that follows begins with the
summary; the transcript has lost nothing.

    python -m tests.examples.e14_compaction

It prints:

    request 4 asks for a summary, above all of: the names
    request 5 begins with: <summary> Ada and Bob were named. </summary>
    request 5 has 3 messages, the transcript 9 entries
    tokens of the summary are counted: 550
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pi_durable_tui.library import ModelRequest, Text, UserMessage
from tests.examples.parts import AGENT, Step, in_order, open_harness, say

LONG = " It was a long story." * 20


async def main() -> None:
    """Three long turns, a summary, and a fourth turn."""
    requests: list[ModelRequest] = []
    script = in_order(say(f"Ada.{LONG}"), say(f"Bob.{LONG}"), say(f"Nobody.{LONG}"), say("Ada and Bob were named."), say("Ada was first."))

    def answer(request: ModelRequest) -> Iterable[Step]:
        requests.append(request)
        return script(request)

    harness = await open_harness(answer)
    conversation = await harness.create_conversation(AGENT)
    for question in ("Who was first?", "Who was second?", "Who was third?"):
        await conversation.settled((await conversation.submit(question)).id)

    await harness.ended(await conversation.compact("the names"))
    asked = text(requests[3])
    wish = next(each for each in asked.split("\n") if "above all" in each)
    print("request 4 asks for a summary, above all of:", wish.split(": ")[1])

    await conversation.settled((await conversation.submit("Who was first again?")).id)
    print("request 5 begins with:", text(requests[4]).replace("\n", " "))
    view = await conversation.view()
    print(f"request 5 has {len(requests[4].messages)} messages, the transcript {len(view.entries)} entries")
    print("tokens of the summary are counted:", sum(used.input_tokens + used.output_tokens for used in view.usage.models.values()))
    await harness.close()


def text(request: ModelRequest) -> str:
    """The first message of a request."""
    first = request.messages[0]
    assert isinstance(first, UserMessage)  # every request begins with a person's words, or a summary in their place
    return next(part.text for part in first.content if isinstance(part, Text))


if __name__ == "__main__":
    asyncio.run(main())
