"""Plays what the person does in a recorded session, step by step, on a real conversation.

Which steps were taken is noted where it survives a kill, before the next one starts; a prompt carries the number of its step as its
request id, so that a kill between sending and noting sends nothing twice (rule SU-2). The moments of kills and stops are told by
committed state alone, so a story takes the same course at any speed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import ConfigError
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.playback.folder import Kill, Step, Stop, Submit, When


class Hands(Protocol):
    """How the person acts: through the conversation itself, or by typing into the app."""

    async def submit(self, text: str, request_id: str) -> None:
        """Send a prompt; return once it is stored."""
        ...

    async def stop(self) -> None:
        """Stop the run."""
        ...


class PlainHands:
    """Acts on the conversation itself."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def submit(self, text: str, request_id: str) -> None:
        await self._conversation.submit(text, request_id=request_id)

    async def stop(self) -> None:
        await self._conversation.abort()


async def play(
    steps: Sequence[Step], *, taken: int, conversation: Conversation, hands: Hands, clock: Clock, note: Callable[[Step], None], die: Callable[[], NoReturn]
) -> None:
    """Take the steps that are left and return when the conversation is idle after the last.

    Args:
        steps: All steps of the story.
        taken: How many were taken before this process started.
        conversation: The chat they happen in.
        hands: Who takes them.
        clock: Paces them.
        note: Notes that a step was taken, for good.
        die: Ends the process.

    Raises:
        ConfigError: The moment of a step never came: the conversation came to rest before.
    """
    for number, step in enumerate(steps[taken:], start=taken + 1):
        match step:
            case Submit(text=text):
                await conversation.idle()
                await hands.submit(text, f"step-{number}")
                note(step)
            case Kill(when=when):
                await _moment(conversation, when, number, clock)
                note(step)
                die()
            case Stop(when=when):
                await _moment(conversation, when, number, clock)
                await hands.stop()
                note(step)
    await conversation.idle()


def holds(when: When, view: ConversationView) -> bool:
    """True when the moment is now. PURE."""
    generation = view.live.generation
    answer = generation.message.text if generation and generation.message else ""
    if when.answer_contains is not None and when.answer_contains not in answer:
        return False
    if when.tool is None:
        return True
    return any(slot.name == when.tool and slot.status == "running" and when.output_contains in slot.output for slot in view.live.tools)


async def _moment(conversation: Conversation, when: When, number: int, clock: Clock) -> None:
    async for frame in conversation.watch():
        if holds(when, frame.view):
            await clock.sleep_ms(when.after_ms)
            return
        if not frame.view.is_busy and not any(submission.is_open for submission in frame.view.submissions):
            break
    raise ConfigError(f"The moment of step {number} of the recorded session never came.", hint="The conversation came to rest before it.")
