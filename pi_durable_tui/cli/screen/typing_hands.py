"""A person at the keyboard of the app, for demos: types prompts key by key and sends them, as the viewer would."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal, Protocol

from pi_durable_tui.clock import Clock
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.playback.player import subagent_slot
from pi_durable_tui.records.entry import USER
from pi_durable_tui.records.modes import ApprovalMode

KEY_MS = 35
BEFORE_ENTER_MS = 400
READING_MS = 2_000
"""How long a person looks at something new before acting on it."""


class Keyboard(Protocol):
    """What takes keys: the app."""

    def simulate_key(self, key: str) -> object: ...


class TypingHands:
    """Implements `playback.player.Hands` on the harness's loop; the keys are pressed on the screen's.

    Args:
        harness: Has the conversations.
        conversation: The one that the app shows.
        keyboard: The app.
        screen: Its event loop.
        clock: Paces the typing.
    """

    def __init__(self, harness: Harness, conversation: Conversation, keyboard: Keyboard, screen: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._harness = harness
        self._conversation = conversation
        self._keyboard = keyboard
        self._screen = screen
        self._clock = clock

    async def submit(self, text: str, request_id: str) -> None:  # noqa: ARG002 - the app gives its messages no request ids
        before = _newest_user_entry(await self._conversation.view())
        await self._on_screen(self._type(text))
        async for frame in self._conversation.watch():
            if _newest_user_entry(frame.view) > before or frame.view.inbox.items:
                return

    async def join(self, text: str, mode: Literal["steer", "followUp"], request_id: str) -> None:  # noqa: ARG002 - as with `submit`
        known = _submissions(await self._conversation.view())
        await self._on_screen(self._type(text, "enter" if mode == "steer" else "alt+enter"))
        async for frame in self._conversation.watch():
            if _submissions(frame.view) > known:
                return

    async def stop(self, call_id: str | None, *, all_of_it: bool) -> None:
        slot = subagent_slot(await self._conversation.view(), call_id)
        await self._on_screen(self._press("escape"))
        if slot is not None and all_of_it:
            await self._on_screen(self._press("escape"))
        if slot is None or all_of_it:
            await self._conversation.idle()
            return
        async for frame in self._conversation.watch():
            if subagent_slot(frame.view, call_id) is None:
                return

    async def answer(self, conversation_id: int, question_id: int, decision: Literal["allow", "always", "deny"]) -> None:
        await self._clock.sleep_ms(READING_MS)
        await self._on_screen(self._press({"allow": "y", "always": "a", "deny": "n"}[decision]))
        asking = await self._harness.conversation(conversation_id)
        async for frame in asking.watch():
            if not any(slot.question == question_id for slot in frame.view.live.tools):
                return

    async def approve(self, mode: ApprovalMode) -> None:
        await self._on_screen(self._type(f"/approve {mode}"))
        async for frame in self._conversation.watch():
            if frame.view.agent.approval == mode:
                return

    async def compact(self, focus: str) -> None:
        await self._on_screen(self._type(f"/compact {focus}".strip()))
        await self._clock.sleep_ms(READING_MS)

    async def run(self, command: str, *, shown: bool) -> None:
        await self._on_screen(self._type(f"{'!' if shown else '!!'}{command}"))
        await self._clock.sleep_ms(READING_MS)

    async def fork(self, entry_id: int) -> Conversation:
        known = max(chat.conversation_id for chat in await self._harness.chats())
        await self._on_screen(self._type(f"/fork {entry_id}"))
        while (newest := max(chat.conversation_id for chat in await self._harness.chats())) == known:
            await self._clock.sleep_ms(KEY_MS)
        self._conversation = await self._harness.conversation(newest)
        await self._clock.sleep_ms(READING_MS)
        return self._conversation

    async def _on_screen(self, work: Coroutine[Any, Any, None]) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._screen))

    async def _type(self, text: str, ending: str = "enter") -> None:
        for character in text:
            await self._press("ctrl+j" if character == "\n" else character)
        await self._clock.sleep_ms(BEFORE_ENTER_MS)
        await self._press(ending)

    async def _press(self, key: str) -> None:
        self._keyboard.simulate_key(key)
        await self._clock.sleep_ms(KEY_MS)


def _newest_user_entry(view: ConversationView) -> int:
    return max((stored.entry.id for stored in view.entries if stored.entry.kind == USER), default=0)


def _submissions(view: ConversationView) -> int:
    return max((submission.id for submission in view.submissions), default=0)
