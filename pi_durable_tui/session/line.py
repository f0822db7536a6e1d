"""The mutation line: work is admitted at once and carried out one piece after another (rules SE-1, SE-7, SE-8).

It knows nothing of what the work does. Whoever waits for a piece of work may stop waiting; the work goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from pi_durable_tui.errors import InternalError, SessionClosed

T = TypeVar("T")


class Line:
    """Work in the order of its admission, never two pieces at a time."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()  # wakes its waiters in the order they came
        self._admitted: set[asyncio.Task[Any]] = set()
        self._sealed = False

    @property
    def is_sealed(self) -> bool:
        """True once nothing more is admitted."""
        return self._sealed

    async def run(self, work: Callable[[], Awaitable[T]], *, what: str) -> T:
        """Admit the work, wait for its turn and its end; cancelling this wait leaves the work alone (rule SE-8).

        Args:
            what: What the work is, for error texts: "A commit".

        Returns:
            What the work returned.

        Raises:
            SessionClosed: The line was sealed; the work was not admitted.
            InternalError: Called from inside a piece of work, which would wait for itself.
            Exception: Whatever the work raised.
        """
        self.forbid_inside(what)
        return await self._admit(self._in_turn(work), what)

    async def beside(self, work: Callable[[], Coroutine[Any, Any, T]], *, what: str) -> T:
        """Like `run`, but at once, whatever else is going on: for work that changes nothing."""
        return await self._admit(work, what)

    def seal(self) -> None:
        """Admit nothing more; what was admitted still runs."""
        self._sealed = True

    async def drained(self) -> None:
        """Return once everything that was admitted has ended."""
        while self._admitted:
            await asyncio.wait(self._admitted)

    def forbid_inside(self, what: str) -> None:
        """Raise when the caller is itself a piece of work on this line.

        Raises:
            InternalError: It is; waiting for the line would wait for itself.
        """
        if asyncio.current_task() in self._admitted:
            raise InternalError(f"{what} was asked for inside a commit callback and would wait for itself")

    def _in_turn(self, work: Callable[[], Awaitable[T]]) -> Callable[[], Coroutine[Any, Any, T]]:
        async def turn() -> T:
            async with self._turn:
                return await work()

        return turn

    def _admit(self, work: Callable[[], Coroutine[Any, Any, T]], what: str) -> Awaitable[T]:
        if self._sealed:
            raise SessionClosed(what)
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[T] = loop.create_future()  # whoever stops waiting cancels this, and not the work
        admitted = loop.create_task(_told(work, heard))
        self._admitted.add(admitted)
        admitted.add_done_callback(self._admitted.discard)
        return heard


async def _told(work: Callable[[], Awaitable[T]], heard: asyncio.Future[T]) -> None:
    """Do the work, and say in the same step of the loop how it ended: who waits need not wait for the task to be taken down."""
    try:
        result = await work()
    except asyncio.CancelledError:
        heard.cancel()
        raise
    except BaseException as error:
        if not heard.done():
            heard.set_exception(error)
        if not isinstance(error, Exception):
            raise  # the loop ends with it
    else:
        if not heard.done():
            heard.set_result(result)
