"""Brings what is to be seen of one conversation from the harness's loop to the screen's (rules OB-2, TU-1).

Sights are handed over with at most one call pending, and one that a newer one has overtaken is skipped: a slow screen delays no
commit, a busy stream delays no key. It only reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import PidurableError
from pi_durable_tui.tui.following import Following, Sight
from pi_durable_tui.tui.ports import ReadPort

FRAME_MS = 33


class Sights:
    """See the module. All methods are called on the screen's loop.

    Args:
        loop: The harness's.
        open_conversation: Finds the conversation of a subagent; used on `loop`.
        on_sight: Gets what is to be shown, in the order of commits.
        on_problem: Gets what ended a watch.

    Attributes:
        newest: The newest one of the conversation that is followed, read from both loops; None until there is one.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        open_conversation: Callable[[int], Awaitable[ReadPort]],
        *,
        clock: Clock,
        on_sight: Callable[[Sight], None],
        on_problem: Callable[[PidurableError], None],
    ) -> None:
        self._loop, self._open, self._clock = loop, open_conversation, clock
        self._on_sight, self._on_problem = on_sight, on_problem
        self._screen = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._is_call_pending = False
        self.newest: Sight | None = None
        self._conversation: ReadPort | None = None
        self._following: Future[None] | None = None
        self._consuming = asyncio.create_task(self._consume())

    def follow(self, conversation: ReadPort) -> None:
        """From now on this conversation is followed, and no other one."""
        self.stop()
        self._conversation, self.newest = conversation, None

        def offer(sight: Sight) -> None:  # on the harness's loop
            if conversation is self._conversation:
                self.newest = sight
                if not self._is_call_pending:
                    self._is_call_pending = True
                    self._screen.call_soon_threadsafe(self._arrive)

        def tell(problem: PidurableError) -> None:
            self._screen.call_soon_threadsafe(self._on_problem, problem)

        following = Following(conversation, self._open, on_sight=offer, on_problem=tell)
        self._following = asyncio.run_coroutine_threadsafe(following.run(), self._loop)

    def stop(self) -> None:
        """Follow nothing any more."""
        if self._following is not None:
            self._following.cancel()

    async def close(self) -> None:
        """Nothing is delivered any more."""
        self.stop()
        self._consuming.cancel()
        await asyncio.gather(self._consuming, return_exceptions=True)

    def _arrive(self) -> None:
        # The mark goes first: a sight set after this line finds it gone and calls again, one set before is read by _consume.
        self._is_call_pending = False
        self._arrived.set()

    async def _consume(self) -> None:
        shown: Sight | None = None
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            sight = self.newest
            if sight is None or sight is shown or self._conversation is None or sight.view.conversation.id != self._conversation.id:
                continue
            shown = sight
            started_ms = self._clock.monotonic_ms()
            self._on_sight(sight)
            spent_ms = self._clock.monotonic_ms() - started_ms
            # Drawing may take at most a third of the time, so that keys are read in between.
            await self._clock.sleep_ms(max(FRAME_MS, 2 * spent_ms))
