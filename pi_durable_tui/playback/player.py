"""Plays what the person does in a recorded session, step by step, on a real conversation.

Which steps were taken is noted where it survives a kill, before the next one starts; a prompt carries the number of its step as its
request id, so that a kill between sending and noting sends nothing twice (rule SU-2). The moments of kills and stops are told by
committed state alone, so a story takes the same course at any speed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NoReturn, Protocol

import msgspec

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import ConfigError
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.live import ToolSlot
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.playback.folder import Answer, Fork, Kill, Step, Stop, Submit, When
from pi_durable_tui.records.messages import AssistantMessage


class Hands(Protocol):
    """How the person acts: through the conversation itself, or by typing into the app."""

    async def submit(self, text: str, request_id: str) -> None:
        """Send a prompt; return once it is stored."""
        ...

    async def stop(self) -> None:
        """Stop the subagent at work; without one the run."""
        ...

    async def answer(self, question_id: int, decision: Literal["allow", "deny"]) -> None:
        """Answer an open question; return once the answer is stored."""
        ...

    async def fork(self, entry_id: int) -> Conversation:
        """Go on in a fork that shares everything up to that entry; from now on the person acts there."""
        ...


class PlainHands:
    """Acts on the conversation itself.

    Args:
        forking: (conversation id, entry id) -> a fork.
    """

    def __init__(self, conversation: Conversation, forking: Callable[[int, int], Awaitable[Conversation]]) -> None:
        self._conversation = conversation
        self._forking = forking

    async def submit(self, text: str, request_id: str) -> None:
        await self._conversation.submit(text, request_id=request_id)

    async def stop(self) -> None:
        slot = subagent_slot(await self._conversation.view())
        if slot is not None and slot.subagent is not None:
            await self._conversation.abort_task(slot.subagent)
        else:
            await self._conversation.abort()

    async def answer(self, question_id: int, decision: Literal["allow", "deny"]) -> None:
        await self._conversation.answer(question_id, decision, by="the person of the story")

    async def fork(self, entry_id: int) -> Conversation:
        self._conversation = await self._forking(self._conversation.id, entry_id)
        return self._conversation


class Conversations(Protocol):
    """Where the conversations of subagents are found."""

    async def conversation(self, conversation_id: int) -> Conversation:
        """A stored conversation."""
        ...


async def play(
    steps: Sequence[Step],
    *,
    taken: int,
    conversation: Conversation,
    conversations: Conversations,
    hands: Hands,
    clock: Clock,
    note: Callable[[Step], None],
    die: Callable[[], NoReturn],
) -> None:
    """Take the steps that are left and return when the conversation is idle after the last.

    Args:
        steps: All steps of the story.
        taken: How many were taken before this process started.
        conversation: The chat they happen in.
        conversations: Has the subagents' ones.
        hands: Who takes them.
        clock: Paces them.
        note: Notes that a step was taken, for good.
        die: Ends the process.

    Raises:
        ConfigError: The moment of a step never came: the conversation came to rest before; or there is nothing to fork at.
    """
    for number, step in enumerate(steps[taken:], start=taken + 1):
        match step:
            case Submit(text=text):
                await conversation.idle()
                await hands.submit(text, f"step-{number}")
                note(step)
            case Kill(when=when):
                await _moment(conversation, conversations, when, number, clock)
                note(step)
                die()
            case Stop(when=when):
                await _moment(conversation, conversations, when, number, clock)
                await hands.stop()
                note(step)
            case Answer(decision=decision, when=when):
                view = await _moment(conversation, conversations, when, number, clock)
                await hands.answer(open_question(view, when), decision)
                note(step)
            case Fork(at=at):
                await conversation.idle()
                conversation = await hands.fork(entry_with(await conversation.view(), at, number))
                note(step)
    await conversation.idle()


def holds(when: When, view: ConversationView) -> bool:
    """True when the moment is now. PURE."""
    generation = view.live.generation
    answer = generation.message.text if generation and generation.message else ""
    if when.answer_contains is not None and when.answer_contains not in answer:
        return False
    if when.asks is not None and not any(slot.name == when.asks and slot.question is not None for slot in view.live.tools):
        return False
    if when.tool is None:
        return True
    return any(slot.name == when.tool and slot.status == "running" and when.output_contains in slot.output for slot in view.live.tools)


def open_question(view: ConversationView, when: When) -> int:
    """The id of the question that the moment is about. PURE."""
    return next(slot.question for slot in view.live.tools if slot.question is not None and when.asks in (None, slot.name))


def subagent_slot(view: ConversationView) -> ToolSlot | None:
    """The call that a subagent works for; None when none is at work. PURE."""
    return next((slot for slot in view.live.tools if slot.conversation is not None and slot.status == "running"), None)


def entry_with(view: ConversationView, text: str, number: int) -> int:
    """The newest answer that holds the text. PURE.

    Raises:
        ConfigError: None does.
    """
    for stored in reversed(view.entries):
        if isinstance(stored.entry.message, AssistantMessage) and text in stored.entry.message.text:
            return stored.entry.id
    raise ConfigError(f"Step {number} of the recorded session forks at an answer with {text!r}, and there is none.", hint="Look at what the model says.")


async def _moment(conversation: Conversation, conversations: Conversations, when: When, number: int, clock: Clock) -> ConversationView:
    """The view in which the moment has come."""
    async for frame in conversation.watch():
        slot = subagent_slot(frame.view)
        if when.in_subagent and slot is not None and slot.conversation is not None:
            return await _moment(
                await conversations.conversation(slot.conversation), conversations, msgspec.structs.replace(when, in_subagent=False), number, clock
            )
        if not when.in_subagent and holds(when, frame.view):
            await clock.sleep_ms(when.after_ms)
            return frame.view
        if not frame.view.is_busy and not any(submission.is_open for submission in frame.view.submissions):
            break
    raise ConfigError(f"The moment of step {number} of the recorded session never came.", hint="The conversation came to rest before it.")
