"""How long the sleeping tasks have slept, whatever was done to the wall clock meanwhile (rules TK-5, PR-18)."""

from __future__ import annotations

from collections.abc import Iterable

from pi_durable_tui.clock import Clock
from pi_durable_tui.records.task import Sleeping, Task


class Sleepers:
    """Each sleeping task with the time at which it fell asleep in this process, by the wall clock and by the one that nobody sets.

    A wake-up time is one of the wall clock of then. A wall clock that is set back, or stands still, afterwards prolongs no sleep; one that was
    set back before shortens none; one that is set forward, or a machine that slept, ends it.

    Args:
        tasks: Those found at the opening; their sleep goes on.
        newest_at_ms: When the newest commit from before the opening was made: so late it was already, whatever the wall clock says.
    """

    def __init__(self, clock: Clock, tasks: Iterable[Task], *, newest_at_ms: int) -> None:
        self._clock = clock
        began = max(clock.now_ms(), newest_at_ms), clock.monotonic_ms()
        self._since = {task.id: began for task in tasks if isinstance(task.state, Sleeping)}

    def adopt(self, tasks: Iterable[Task]) -> None:
        """Take over what a commit changed."""
        for task in tasks:
            if isinstance(task.state, Sleeping):
                self._since.setdefault(task.id, (self._clock.now_ms(), self._clock.monotonic_ms()))
            else:
                self._since.pop(task.id, None)

    def ahead_ms(self) -> dict[int, int]:
        """By task, how far its own time is ahead of the wall clock; 0 where that was not set back."""
        now_ms, monotonic_ms = self._clock.now_ms(), self._clock.monotonic_ms()
        return {task_id: max(0, int(wall_ms + monotonic_ms - then_ms) - now_ms) for task_id, (wall_ms, then_ms) in self._since.items()}
