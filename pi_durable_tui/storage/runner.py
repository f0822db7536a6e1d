"""Where the blocking calls of a store run: on one thread of their own, in order, or right where they are called.

A cancelled wait ends only the wait (rule SE-8): work that has begun goes on to its end, work that has not is not begun.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from pi_durable_tui.errors import PidurableError, SessionClosed

T = TypeVar("T")


class Runner(Protocol):
    """One place, one call at a time."""

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returned or raised."""
        ...

    def stop(self) -> None:
        """No thread of it is left; called once, when nothing is running."""
        ...


class ThreadRunner:
    """A thread of its own, so that a slow disk never delays a key.

    It hands results to the loop directly. An executor of the standard library would hand them from a future of its own to one of the loop,
    which takes as long again as the rest of the way there and back; the budget for storing a partial answer has no room for that.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        # A daemon, because nobody may have closed the store when the interpreter ends: then what was begun is still brought to its end.
        self._thread = threading.Thread(target=_serve, args=(self._waiting,), name="pidurable-store", daemon=True)
        self._thread.start()
        self._is_stopped = False
        atexit.register(self.stop)

    async def run(self, work: Callable[[], T]) -> T:
        if self._is_stopped:
            raise SessionClosed("A call of the store")
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[T] = loop.create_future()

        def carry_out() -> None:
            if heard.cancelled():
                return  # before its turn
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits, whatever it is
                _tell(loop, _fail, heard, error)
            else:
                _tell(loop, _succeed, heard, result)

        self._waiting.put(carry_out)
        return await heard

    def stop(self) -> None:
        self._is_stopped = True
        atexit.unregister(self.stop)
        self._waiting.put(None)
        self._thread.join()


def _serve(waiting: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (piece := waiting.get()) is not None:
        piece()
        del piece  # while it waits for the next, nothing of this one is kept


def _tell(loop: asyncio.AbstractEventLoop, how: Callable[..., None], heard: asyncio.Future[T], what: object) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(how, heard, what)


def _succeed(heard: asyncio.Future[T], result: T) -> None:
    if not heard.done():
        heard.set_result(result)


def _fail(heard: asyncio.Future[T], error: BaseException) -> None:
    if not heard.done():
        heard.set_exception(error)


class InlineRunner:
    """The caller's own thread, for tests that must run the same way twice, and for short programs."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()

    def stop(self) -> None:
        """Nothing to end."""


class Closing(Protocol):
    """A store."""

    async def close(self) -> None: ...


S = TypeVar("S", bound=Closing)


async def open_on(runner: Runner, work: Callable[[], S]) -> S:
    """The store that `work` opens where the runner runs it; the runner stops when there is none.

    The thread goes on opening after a cancellation: what it opened must not stay locked with nobody to close it, so the wait passes then.
    """
    opening = asyncio.ensure_future(runner.run(work))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        try:
            store = await opening
        except PidurableError:
            runner.stop()
        else:
            await store.close()
        raise
    except BaseException:
        runner.stop()
        raise
