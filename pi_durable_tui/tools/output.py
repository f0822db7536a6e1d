"""Takes in the output of a command in bounded memory, however much comes (CASE-D4).

It makes live text, the part for the model, and the file that keeps the rest.

Up to `WHOLE_BYTES` everything is held and shown live. Beyond, the live text is a sample, and of the output the start, the end and, on
disk, the first `SPILL_BYTES` are kept. The file holds the bytes as they came; everything else is plain text (CASE-D5).
"""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass

from pi_durable_tui.clock import Clock
from pi_durable_tui.harness.ports import Diagnostic, ToolContext
from pi_durable_tui.tools.environment import SPILL_BYTES, LocalEnvironment, environment_of, in_thread
from pi_durable_tui.tools.result import cut_note
from pi_durable_tui.tools.text.terminal_text import PlainStream, plain
from pi_durable_tui.tools.text.truncate import RESULT_BYTES, head_and_tail, size_text

WHOLE_BYTES = 1024 * 1024
TAIL_BYTES = 256 * 1024
SAMPLE_BYTES = 4_096
SAMPLE_EVERY_MS = 100  # beyond WHOLE_BYTES one piece of output is shown per so much time
PROGRESS_EVERY_MS = 2_000  # a line that overwrites itself is shown as often


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a command put out. `path` is where the full output (or its first SPILL_BYTES) lies; None when `text` is all of it."""

    text: str
    total_bytes: int
    path: str | None
    diagnostics: tuple[Diagnostic, ...]


class OutputCollector:
    """One command's output.

    Args:
        environment: Where the file goes.
        call_id: Names the file.
        show: Takes live text.
        clock: Paces what is shown.
    """

    def __init__(self, environment: LocalEnvironment, call_id: str, show: Callable[[str], None], clock: Clock) -> None:
        self._environment = environment
        self._call_id = call_id
        self._show = show
        self._clock = clock
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stream = PlainStream()
        self._whole = bytearray()
        self._tail = bytearray()
        self._total_bytes = 0
        self._shown_at_ms = clock.monotonic_ms()
        self._descriptor: int | None = None
        self._path: str | None = None
        self._spilled_bytes = 0
        self._spill_problem: str | None = None

    def add(self, data: bytes) -> None:
        """More output. Quick, and bounded in what it keeps."""
        self._total_bytes += len(data)
        if len(self._whole) < WHOLE_BYTES:
            self._whole += data
            self._live(data)
        else:
            self._tail += data
            if len(self._tail) > 2 * TAIL_BYTES:
                del self._tail[:-TAIL_BYTES]
            self._sample(data)
        if self._descriptor is not None or self._path is not None:
            self._spill(data)
        elif self._total_bytes > RESULT_BYTES and self._spill_problem is None:
            self._begin_spill()

    def show_rest(self) -> None:
        """Show what was held back, once the output has ended. Nothing may be added afterwards."""
        if rest := self._stream.feed(self._decoder.decode(b"", final=True)) + self._stream.finish():
            self._show(rest)

    def finish(self) -> Collected:
        """The result, once the output has ended. Takes a while for much of it: belongs on a thread."""
        text = plain(self._kept().decode(errors="replace"))
        cut = head_and_tail(text)
        if not cut.left_out_bytes and not self._tail:
            self.close()
            return Collected(text=text, total_bytes=self._total_bytes, path=self._path, diagnostics=())
        if self._path is None and self._spill_problem is None:
            self._begin_spill()
        self.close()
        joint = "" if cut.head.endswith("\n") or not cut.head else "\n"
        shown = f"{cut.head}{joint}[… the middle was left out …]\n{cut.tail}" if cut.left_out_bytes else text
        return Collected(text=shown, total_bytes=self._total_bytes, path=self._path, diagnostics=cut_note(self._cut_message(), "warn"))

    def close(self) -> None:
        """Give the file back; can be called again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _kept(self) -> bytes:
        if not self._tail:
            return bytes(self._whole)
        tail = bytes(self._tail[-TAIL_BYTES:])
        tail = tail[tail.find(b"\n") + 1 :]  # from a line start, so that no escape sequence or character is cut
        return bytes(self._whole) + b"\n" + tail

    def _cut_message(self) -> str:
        message = f"The output was {size_text(self._total_bytes)}; its start and its end are shown."
        if self._spill_problem is not None:
            return f"{message} The rest could not be kept: {self._spill_problem}."
        kept = "All of it is" if self._spilled_bytes == self._total_bytes else f"Its first {size_text(self._spilled_bytes)} are"
        return f"{message} {kept} in {self._path}."

    def _live(self, data: bytes) -> None:
        now_ms = self._clock.monotonic_ms()
        shown = self._stream.feed(self._decoder.decode(data))
        if not shown and now_ms - self._shown_at_ms >= PROGRESS_EVERY_MS:
            shown = self._stream.settle()
        if shown:
            self._shown_at_ms = now_ms
            self._show(shown)

    def _sample(self, data: bytes) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._shown_at_ms < SAMPLE_EVERY_MS:
            return
        self._decoder.reset()
        self._live(b"\n[...]\n" + data[data.find(b"\n") + 1 :][-SAMPLE_BYTES:])

    def _begin_spill(self) -> None:
        try:
            path, self._descriptor = self._environment.open_spill(self._call_id)
        except OSError as error:
            self._spill_problem = error.strerror or str(error)
            self._path = None
            return
        self._path = str(path)
        self._spill(bytes(self._whole))

    def _spill(self, data: bytes) -> None:
        """Write what still fits. A short write is cut back and ends the keeping (rule ST-18)."""
        rest = data[: SPILL_BYTES - self._spilled_bytes]
        if self._descriptor is None or not rest:
            return
        try:
            while rest:
                written = os.write(self._descriptor, rest)
                self._spilled_bytes += written
                rest = rest[written:]
        except OSError as error:
            self._spill_problem = error.strerror or str(error)
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._spilled_bytes)
            self.close()


async def bounded(text: str, context: ToolContext) -> tuple[str, tuple[Diagnostic, ...]]:
    """So much of a text as a model may be given, and a remark on where all of it is; for tools that get an answer as a whole."""
    environment = environment_of(context)
    collector = OutputCollector(environment, context.call_id, lambda _text: None, environment.clock)

    def collected() -> Collected:
        collector.add(text.encode())
        return collector.finish()

    try:
        found = await in_thread(collected)
    finally:
        collector.close()
    return found.text, found.diagnostics
