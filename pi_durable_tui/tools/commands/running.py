"""How `bash` carries out a command that runs on behind its call (rule TO-10): its output to disk, its newest lines to the screen."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from pathlib import Path

from pi_durable_tui.clock import Clock
from pi_durable_tui.tools.commands.segments import KEPT_SEGMENTS, SEGMENT_BYTES, SegmentWriter
from pi_durable_tui.tools.text.terminal_text import PlainStream, plain
from pi_durable_tui.tools.text.truncate import size_text, tail_within

SHOWN_BYTES = 1_024
SHOWN_EVERY_MS = 1_000
TOLD_BYTES, TOLD_LINES = 4_096, 60  # of the end of the output, in the message about the end


class RunningText:
    """The output of a command that may run for days: all of it goes to disk, and now and then its newest lines are shown.

    Args:
        writer: Takes the bytes.
        show: Takes live text.
        clock: Paces what is shown.
    """

    def __init__(self, writer: SegmentWriter, folder: Path, show: Callable[[str], None], clock: Clock) -> None:
        self._writer = writer
        self._folder = folder
        self._show = show
        self._clock = clock
        self._tail = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stream = PlainStream()
        self._shown_at_ms = float("-inf")
        self._waiting = b""

    def add(self, data: bytes) -> None:
        """More output. Quick, and bounded in what it keeps."""
        self._writer.add(data)
        self._tail = (self._tail + data)[-2 * TOLD_BYTES :]
        self._waiting = (self._waiting + data)[-SHOWN_BYTES:]
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._shown_at_ms >= SHOWN_EVERY_MS:
            self._shown_at_ms = now_ms
            self._show_waiting()

    def finish(self) -> str:
        """The end of the output and where the rest is, for the message about the end."""
        self._show_waiting()
        self._writer.close()
        text = plain(self._tail.decode(errors="replace"))
        shown = tail_within(text, max_bytes=TOLD_BYTES, max_lines=TOLD_LINES).rstrip("\n")
        total = self._writer.total_bytes
        if total <= TOLD_BYTES and shown == text.rstrip("\n"):
            return shown or "(no output)"
        return f"[…]\n{shown}\n[{self._where(total)}]"

    def _where(self, total: int) -> str:
        if self._writer.problem is not None:
            return f"The output was {size_text(total)}; not all of it could be kept: {self._writer.problem}."
        kept = "All of it is" if total <= SEGMENT_BYTES * KEPT_SEGMENTS else "Its newest part is"
        return f"The output was {size_text(total)}. {kept} in {self._folder}{os.sep}."

    def _show_waiting(self) -> None:
        waiting, self._waiting = self._waiting, b""
        if len(waiting) == SHOWN_BYTES:
            waiting = waiting[waiting.find(b"\n") + 1 :]
        shown = self._stream.feed(self._decoder.decode(waiting)) or self._stream.settle()
        if shown:
            self._show(shown)
