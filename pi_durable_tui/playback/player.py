"""Plays what the person does in a recorded session, step by step, on a real conversation.

Which steps were taken is noted where it survives a kill, before the next one starts; a prompt carries the number of its step as its
request id, so that a kill between sending and noting sends nothing twice (rule SU-2). The moments of kills and stops are told by
committed state alone, so a story takes the same course at any speed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NoReturn, Protocol, assert_never

import msgspec

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import ConfigError
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.live import ToolSlot
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.playback.steps import Answer, Approve, Compact, Fork, Join, Kill, Run, Step, Stop, Submit, When
from pi_durable_tui.records.messages import AssistantMessage, Text, ToolCall, UserMessage
from pi_durable_tui.records.modes import ApprovalMode


class Hands(Protocol):
    """How the person acts: through the conversation itself, or by typing into the app."""

    async def submit(self, text: str, request_id: str) -> None:
        """Send a prompt; return once it is stored."""
        ...

    async def join(self, text: str, mode: Literal["steer", "followUp"], request_id: str) -> None:
        """Send something while a run is going on; return once it is stored."""
        ...

    async def stop(self, call_id: str | None, *, all_of_it: bool) -> None:
        """Stop the subagent at work (for that call, if one is named); without one, or if all of it is meant, the run."""
        ...

    async def answer(self, conversation_id: int, question_id: int, decision: Literal["allow", "always", "deny"]) -> None:
        """Answer an open question of that conversation; return once the answer is stored."""
        ...

    async def fork(self, entry_id: int) -> Conversation:
        """Go on in a fork that shares everything up to that entry; from now on the person acts there."""
        ...

    async def approve(self, mode: ApprovalMode) -> None:
        """Change what needs no question; return once that is stored."""
        ...

    async def compact(self, focus: str) -> None:
        """Let the older part be summarized; return once the wish is stored."""
        ...

    async def run(self, command: str, *, shown: bool) -> None:
        """Run a command beside the agent; return once the wish is stored."""
        ...


class Conversations(Protocol):
    """Where conversations are found, and forks made."""

    async def conversation(self, conversation_id: int) -> Conversation:
        """A stored conversation."""
        ...

    async def fork(self, conversation_id: int, entry_id: int | None = None) -> Conversation:
        """A fork of one as of that entry."""
        ...


class PlainHands:
    """Acts on the conversation itself.

    Args:
        forked: Is told of a fork and of its entry.
    """

    def __init__(self, conversation: Conversation, conversations: Conversations, forked: Callable[[Conversation, int], None]) -> None:
        self._conversation = conversation
        self._conversations = conversations
        self._forked = forked

    async def submit(self, text: str, request_id: str) -> None:
        await self._conversation.submit(text, request_id=request_id)

    async def join(self, text: str, mode: Literal["steer", "followUp"], request_id: str) -> None:
        await self._conversation.submit(text, mode=mode, request_id=request_id)

    async def stop(self, call_id: str | None, *, all_of_it: bool) -> None:
        slot = subagent_slot(await self._conversation.view(), call_id)
        if slot is not None and slot.subagent is not None and not all_of_it:
            await self._conversation.abort_task(slot.subagent)
        else:
            await self._conversation.abort()

    async def answer(self, conversation_id: int, question_id: int, decision: Literal["allow", "always", "deny"]) -> None:
        asking = await self._conversations.conversation(conversation_id)
        await asking.answer(question_id, decision, by="the person of the story")

    async def fork(self, entry_id: int) -> Conversation:
        self._conversation = await self._conversations.fork(self._conversation.id, entry_id)
        self._forked(self._conversation, entry_id)
        return self._conversation

    async def approve(self, mode: ApprovalMode) -> None:
        await self._conversation.set_agent(approval=mode)

    async def compact(self, focus: str) -> None:
        await self._conversation.compact(focus)

    async def run(self, command: str, *, shown: bool) -> None:
        await self._conversation.run_command(command, shown=shown)


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
        if isinstance(step, Submit | Fork | Approve | Compact | Run):
            await conversation.idle()
            view = await conversation.view()
        else:
            view = await _moment(conversation, conversations, step.when, number, clock)
        match step:
            case Kill():
                note(step)
                die()
            case Fork(at=at):
                conversation = await hands.fork(entry_with(view, at, number))
            case _:
                await _act(step, view, hands, f"step-{number}")
        note(step)
    await conversation.idle()


async def _act(step: Submit | Join | Stop | Answer | Approve | Compact | Run, view: ConversationView, hands: Hands, request_id: str) -> None:
    """Take a step whose moment, in which the view holds, has come."""
    match step:
        case Submit(text=text):
            await hands.submit(text, request_id)
        case Join(text=text, mode=mode):
            await hands.join(text, mode, request_id)
        case Stop(when=when, all_of_it=all_of_it):
            await hands.stop(when.in_subagent if isinstance(when.in_subagent, str) else None, all_of_it=all_of_it)
        case Answer(decision=decision, when=when):
            await hands.answer(view.conversation.id, open_question(view, when), decision)
        case Approve(mode=mode):
            await hands.approve(mode)
        case Compact(focus=focus):
            await hands.compact(focus)
        case Run(command=command, shown=shown):
            await hands.run(command, shown=shown)
        case _ as never:
            assert_never(never)


def holds(when: When, view: ConversationView) -> bool:
    """True when the moment is now. PURE."""
    generation, run = view.live.generation, view.live.run
    if when.turn and (run is None or run.turn < when.turn):
        return False
    if when.answer_contains is not None and (generation is None or when.answer_contains not in said(generation.message)):
        return False
    slots = [slot for slot in view.live.tools if when.call in (None, slot.call_id)]
    if when.asks is not None and not any(slot.name == when.asks and slot.question is not None for slot in slots):
        return False
    if when.tool is None:
        return True
    return any(slot.name == when.tool and slot.status == "running" and when.output_contains in slot.output for slot in slots)


def said(message: AssistantMessage | None) -> str:
    """Everything that an answer, also one that is still coming in, says, thinks and calls. PURE."""
    if message is None:
        return ""
    return "".join(part.name + (part.malformed or "") if isinstance(part, ToolCall) else part.text for part in message.content)


def open_question(view: ConversationView, when: When) -> int:
    """The id of the question that the moment is about. PURE."""
    asked = [slot for slot in view.live.tools if slot.question is not None and when.asks in (None, slot.name) and when.call in (None, slot.call_id)]
    assert asked[0].question is not None  # just seen to
    return asked[0].question


def subagent_slot(view: ConversationView, call_id: str | None = None) -> ToolSlot | None:
    """The call that a subagent works for, the one of that id if one is named; None when none is at work. PURE."""
    slots = [slot for slot in view.live.tools if slot.conversation is not None and slot.status == "running"]
    return next((slot for slot in slots if call_id in (None, slot.call_id)), None)


def entry_with(view: ConversationView, text: str, number: int) -> int:
    """The newest answer that holds the text, else the newest prompt. PURE.

    Raises:
        ConfigError: None does.
    """
    entries = [stored.entry for stored in reversed(view.entries)]
    answers = [entry.id for entry in entries if isinstance(entry.message, AssistantMessage) and text in entry.message.text]
    prompts = [entry.id for entry in entries if isinstance(entry.message, UserMessage) and text in _prompt(entry.message)]
    if answers or prompts:
        return [*answers, *prompts][0]
    raise ConfigError(f"Step {number} of the recorded session forks at an answer with {text!r}, and there is none.", hint="Look at what the model says.")


def _prompt(message: UserMessage) -> str:
    return "".join(part.text for part in message.content if isinstance(part, Text))


async def _moment(conversation: Conversation, conversations: Conversations, when: When, number: int, clock: Clock) -> ConversationView:
    """The view in which the moment has come."""
    async for frame in conversation.watch():
        slot = subagent_slot(frame.view, when.in_subagent if isinstance(when.in_subagent, str) else None)
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
