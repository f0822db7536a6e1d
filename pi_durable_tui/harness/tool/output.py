"""The running output of a call: its newest part is stored in `pi.live`, and only what is stored is shown (rule TO-4)."""

from __future__ import annotations

from pi_durable_tui.harness.live import LIVE
from pi_durable_tui.harness.progress import Pace
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.json import Json, JsonObject, clean_text
from pi_durable_tui.records.task import Task
from pi_durable_tui.session.transaction import Transaction

KEPT_CHARS = 16_384
"""How much of running output stands in `pi.live`; the tool itself keeps the whole where that matters."""


class RunningOutput:
    """Collects what a tool says while it runs.

    Stored at `output_interval` when `persist_within` is 0, else within `persist_within` of being said.
    """

    def __init__(self, runtime: TaskRuntime) -> None:
        progress = runtime.services.settings.progress
        self._runtime = runtime
        self._tail = ""
        self._dropped_chars = 0
        self._pace = Pace(
            self._store,
            clock=runtime.services.clock,
            interval_ms=max(progress.output_interval_ms, progress.persist_within_ms),
            delay_ms=progress.persist_within_ms,
        )

    def add(self, text: str) -> None:
        """Take more output; only the newest `KEPT_CHARS` characters are kept here."""
        text = clean_text(text)
        if not text:
            return
        tail = self._tail + text
        cut = max(0, len(tail) - KEPT_CHARS)
        self._tail = tail[cut:]
        self._dropped_chars += cut
        self._pace.changed()

    async def stop(self) -> None:
        """Store nothing more."""
        await self._pace.stop()

    async def _store(self) -> None:
        async def write(transaction: Transaction, task: Task) -> None:
            slot = slot_of((await transaction.document(LIVE, task.conversation_id)).value, task.id)
            if slot is not None:
                slot["output"] = self._tail
                if self._dropped_chars:
                    slot["outputDroppedChars"] = self._dropped_chars

        await self._runtime.commit(write, priority="partial")


def slot_of(live: JsonObject, task_id: int) -> JsonObject | None:
    """The slot of a task in a stored `pi.live`."""
    lists: list[Json] = [live.get("tools"), live.get("commands"), live.get("background")]
    found = [slot for slots in lists if isinstance(slots, list) for slot in slots if isinstance(slot, dict) and slot.get("taskId") == task_id]
    return found[0] if found else None
