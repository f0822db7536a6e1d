"""Turns SIGTERM, SIGHUP and SIGINT into a clean end (rule CL-7, CASE-H4): running work is handed back, nothing is cut off.

A signal that was ignored when the program started (nohup) stays ignored.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from pi_durable_tui.cli.report import note

CLOSING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
LEAVING = (*CLOSING, signal.SIGQUIT)

Undo: TypeAlias = Callable[[], None]


def exit_code(number: signal.Signals) -> int:
    """What a shell reports for a program that a signal ended: 130, 129, 143."""
    return 128 + number


def on_signals(numbers: tuple[signal.Signals, ...], call: Callable[[signal.Signals], None]) -> Undo:
    """Have `call` called on the running event loop of the main thread when one of the signals comes; returns what takes it back."""
    loop = asyncio.get_running_loop()
    taken = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    for number in taken:
        loop.add_signal_handler(number, call, number)

    def undo() -> None:
        for number in taken:
            loop.remove_signal_handler(number)

    return undo


def leave_on_signals(leave: Callable[[int], None]) -> Undo:
    """Have `leave` called with the exit code when a signal asks the app to end, whether an event loop runs yet or not.

    Args:
        leave: Is called in the signal handler, on the main thread.

    Returns:
        What puts the handlers back that were there before.
    """

    def came(number: int, _frame: object) -> None:
        leave(exit_code(signal.Signals(number)))

    before = {number: signal.getsignal(number) for number in LEAVING}
    taken = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, came)

    def undo() -> None:
        for number in taken:
            signal.signal(number, before[number])

    return undo


async def until_signal(work: Coroutine[Any, Any, None]) -> int:
    """Run `work`; the first signal cancels it, once, so that it can close what it opened. Returns the exit code."""
    came: list[signal.Signals] = []
    running = asyncio.ensure_future(work)

    def close(number: signal.Signals) -> None:
        if not came:  # a second signal must not cut the closing short
            running.cancel()
        came.append(number)

    undo = on_signals(CLOSING, close)
    try:
        await running
    except asyncio.CancelledError:
        if not came:
            raise
        note(f"stopped by {came[0].name}; the work so far is stored. To go on: pidurable --continue")
        return exit_code(came[0])
    finally:
        undo()
    return 0
