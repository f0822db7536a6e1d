"""Follows one conversation and the subagents at work in it, on the harness's loop (rules OB-1, TU-7).

What it tells comes out of commits only: the view of the conversation and one of each subagent whose task lives. It draws nothing
and keeps nothing of a subagent that has ended, because then its call has a result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pi_durable_tui.errors import InternalError, PidurableError
from pi_durable_tui.harness.kinds import SUBAGENT
from pi_durable_tui.harness.subagent.checkpoint import SubagentInput
from pi_durable_tui.records.codec import from_json

if TYPE_CHECKING:
    from pi_durable_tui.harness.live import RetryWait, ToolSlot
    from pi_durable_tui.harness.view import ConversationView
    from pi_durable_tui.tui.ports import ReadPort


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent:
    """A subagent at work. `view` None: nothing of it has been read yet."""

    task_id: int
    name: str
    conversation_id: int
    is_background: bool
    view: ConversationView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """All that a screen draws from: a conversation and its subagents at work, oldest first."""

    view: ConversationView
    subagents: tuple[Subagent, ...] = ()

    @property
    def committed_at_ms(self) -> int:
        """When the newest commit of all that was made."""
        return max([self.view.committed_at_ms, *(one.view.committed_at_ms for one in self.subagents if one.view is not None)])

    def holder_of(self, question_id: int) -> int:
        """The id of the conversation in which that question is asked; the shown one when none is known to ask it."""
        return next((holder for holder, slot in self.questions() if slot.question == question_id), self.view.conversation.id)

    def questions(self) -> Iterator[tuple[int, ToolSlot]]:
        """Every call that waits for an answer of a person, with the id of the conversation that asks."""
        for view in self._views():
            yield from ((view.conversation.id, slot) for slot in view.live.tools if slot.status == "asking" and slot.question is not None)

    def waits(self) -> Iterator[RetryWait]:
        """Every request that failed and waits for its next attempt."""
        for view in self._views():
            if view.live.generation is not None and view.live.generation.retry is not None:
                yield view.live.generation.retry

    def _views(self) -> Iterator[ConversationView]:
        yield self.view
        yield from (subagent.view for subagent in self.subagents if subagent.view is not None)


def subagents_at_work(view: ConversationView) -> tuple[Subagent, ...]:
    """The subagents whose tasks live in a conversation, oldest first. PURE."""
    found: list[Subagent] = []
    for task in view.tasks:
        if task.kind == SUBAGENT:
            wanted = from_json(task.input, SubagentInput)
            found.append(
                Subagent(task_id=task.id, name=wanted.name, conversation_id=wanted.conversation, is_background=wanted.background, view=None),
            )
    return tuple(found)


class Following:
    """See the module.

    Args:
        open_conversation: Finds the conversation of a subagent.
        on_sight: Gets each new sight, on the harness's loop.
        on_problem: Gets what ended the watch of the conversation or of a subagent.
    """

    def __init__(
        self,
        conversation: ReadPort,
        open_conversation: Callable[[int], Awaitable[ReadPort]],
        *,
        on_sight: Callable[[Sight], None],
        on_problem: Callable[[PidurableError], None],
    ) -> None:
        self._conversation, self._open = conversation, open_conversation
        self._on_sight, self._on_problem = on_sight, on_problem
        self._view: ConversationView | None = None
        self._views: dict[int, ConversationView] = {}
        self._watches: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Until it is cancelled or the session closes."""
        try:
            await self._told(self._watch_own())
        finally:
            self._keep_up(set())

    async def _watch_own(self) -> None:
        async for frame in self._conversation.watch():
            self._view = frame.view
            self._keep_up({subagent.conversation_id for subagent in subagents_at_work(frame.view)})
            self._tell()

    def _keep_up(self, wanted: set[int]) -> None:
        for conversation_id in self._watches.keys() - wanted:
            self._watches.pop(conversation_id).cancel()
            self._views.pop(conversation_id, None)
        for conversation_id in wanted - self._watches.keys():
            self._watches[conversation_id] = asyncio.create_task(self._told(self._watch(conversation_id)))

    async def _watch(self, conversation_id: int) -> None:
        conversation = await self._open(conversation_id)
        async for frame in conversation.watch():
            self._views[conversation_id] = frame.view
            self._tell()

    async def _told(self, watching: Awaitable[None]) -> None:
        try:
            await watching
        except PidurableError as problem:
            self._on_problem(problem)
        except Exception as problem:  # noqa: BLE001 - a dead watch would leave a screen that looks alive; it must be told
            self._on_problem(InternalError(f"the watch of a conversation ended: {problem!r}"))

    def _tell(self) -> None:
        if self._view is not None:
            subagents = tuple(replace(each, view=self._views.get(each.conversation_id)) for each in subagents_at_work(self._view))
            self._on_sight(Sight(view=self._view, subagents=subagents))
