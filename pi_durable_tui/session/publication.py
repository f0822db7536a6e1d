"""Telling observers of stored commits, in commit order, on the event loop's thread (rules SE-1, OB-2).

An observer that raises is reported to the event loop's exception handler; neither the commit nor the other observers notice.
"""

from __future__ import annotations

import asyncio
import itertools
import weakref
from collections.abc import Callable
from typing import TypeAlias

from pi_durable_tui.errors import SessionFailed
from pi_durable_tui.records.commit import Commit
from pi_durable_tui.session.watch import Watch

Observer: TypeAlias = Callable[[Commit], None]


class Publication:
    """The observers and watches of one session."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._observers: dict[int, Observer] = {}
        self._watches: weakref.WeakValueDictionary[int, Watch] = weakref.WeakValueDictionary()  # a forgotten watch must not fill up for ever

    def subscribe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with every later commit; returns what ends that, which may be called again."""
        number = next(self._numbers)
        self._observers[number] = observer
        return lambda: self._forget(number)

    def watch(self, *, capacity: int) -> Watch:
        """A queue of every later commit."""
        watch = Watch(capacity=capacity)
        self._watches[next(self._numbers)] = watch
        return watch

    def publish(self, commit: Commit) -> None:
        """Tell everybody. Who subscribes meanwhile starts with the next commit; who unsubscribes is not called any more."""
        for watch in list(self._watches.values()):
            watch.push(commit)
        for number, observer in list(self._observers.items()):
            if number not in self._observers:
                continue
            try:
                observer(commit)
            # Foreign code; the commit is stored, and the next observer must hear of it. A cancellation that comes out of code that awaits nothing
            # is one that it has read off something else, not that of the commit.
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"An observer of a session raised at commit {commit.seq}. The commit is stored and the session goes on.", "exception": error}
                )

    def end(self, failure: SessionFailed | None = None) -> None:
        """Publish nothing more: observers are forgotten, watches end once they are read out."""
        self._observers.clear()
        for watch in list(self._watches.values()):
            watch.end(failure)

    def _forget(self, number: int) -> None:
        self._observers.pop(number, None)
