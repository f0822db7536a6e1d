"""Example 05: the first harness: a question, an answer, and both still there after closing.

The harness runs an agent on a session. `submit` returns once the input is stored; `settled` waits for its end. What the model is, the
harness does not care: anything that implements `ModelGateway`. Here it is one that says what it is told to.

    python -m tests.examples.e05_first_harness

It prints:

    stored, not yet answered: placed
    settled: done
    user: What is durable?
    agent: What is still there afterwards.
    after reopening: 2 entries, 110 tokens used
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from pi_durable_tui.library import Submission, SystemClock, open_sqlite, to_json
from tests.examples.parts import AGENT, in_order, line, open_harness, say


def status(submission: Submission) -> str:
    """queued, placed, done or unanswered."""
    state = to_json(submission.state)
    assert isinstance(state, dict)  # every record is an object
    return str(state["status"])


async def main(path: Path) -> None:
    """Ask, close, and look again."""
    answer = in_order(say("What is still ", "there afterwards."))
    harness = await open_harness(answer, storage=await open_sqlite(path, clock=SystemClock()))
    conversation = await harness.create_conversation(AGENT)

    question = await conversation.submit("What is durable?")
    print("stored, not yet answered:", status(question))
    print("settled:", status(await conversation.settled(question.id)))
    for stored in await conversation.entries():
        print(line(stored.entry))
    await harness.close()

    again = await open_harness(storage=await open_sqlite(path, clock=SystemClock()))
    view = await (await again.conversation(conversation.id)).view()
    used = sum(usage.input_tokens + usage.output_tokens for usage in view.usage.models.values())
    print(f"after reopening: {len(view.entries)} entries, {used} tokens used")
    await again.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary) / "session.sqlite"))
