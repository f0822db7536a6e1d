"""A program in a terminal for measuring: types one odd letter at a time and looks for its bytes in what the program writes.

No emulator runs beside it, so what is measured is the program, not the measuring. A letter that stands in no text around it is
found in the raw bytes of the frame that echoes it.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

COLUMNS, ROWS = 120, 40
LETTERS = [chr(code) for code in range(0x0100, 0x0250) if chr(code).isalpha()]
"""One cell wide, two bytes long, and in no text that the bench makes up."""


@dataclass(slots=True)
class Hands:
    """A running program.

    Attributes:
        started_s: When it was started (`time.monotonic`).
    """

    process: subprocess.Popen[bytes]
    master: int
    started_s: float
    seen: bytes = b""
    _letter: int = 0
    _cpu: dict[int, float] = field(default_factory=dict[int, float])

    @classmethod
    def start(cls, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> Hands:
        """Start it in a terminal of its own."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        started_s = time.monotonic()
        environ = {"TERM": "xterm-256color", "COLORTERM": "truecolor", **environ}
        process = subprocess.Popen(list(command), cwd=cwd, env=environ, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        return cls(process, master, started_s)

    def read(self, patience_s: float) -> bytes:
        """What comes within the time; b"" for nothing."""
        ready, _, _ = select.select([self.master], [], [], patience_s)
        data = os.read(self.master, 1 << 16) if ready else b""
        self.seen = (self.seen + data)[-200_000:]
        return data

    def drain(self, duration_s: float) -> None:
        """Read for a while."""
        end_s = time.monotonic() + duration_s
        while (left_s := end_s - time.monotonic()) > 0:
            self.read(left_s)

    def wait_for(self, wanted: bytes, within_s: float = 60.0) -> float:
        """Read until these bytes have come since the last wait; seconds since the call."""
        begun_s = time.monotonic()
        while wanted not in self.seen:
            if time.monotonic() - begun_s > within_s or self.process.poll() is not None:
                raise TimeoutError(f"{wanted!r} did not come; the end of what did: {self.seen[-2_000:]!r}")
            self.read(0.5)
        self.seen = self.seen.partition(wanted)[2]
        return time.monotonic() - begun_s

    def write(self, data: bytes) -> None:
        """Write all of it, reading what comes meanwhile, as a terminal does."""
        os.set_blocking(self.master, False)
        try:
            while data:
                _, ready, _ = select.select([], [self.master], [], 0.05)
                if ready:
                    data = data[os.write(self.master, data[:65_536]) :]
                self.read(0)
        finally:
            os.set_blocking(self.master, True)

    def echo_ms(self, within_s: float = 20.0) -> float:
        """Type a letter; how long until it is written back."""
        letter = LETTERS[self._letter % len(LETTERS)].encode()
        self._letter += 1
        self.seen = b""
        begun_s = time.monotonic()
        os.write(self.master, letter)
        self.wait_for(letter, within_s)
        return (time.monotonic() - begun_s) * 1_000

    def cpu_s(self) -> float:
        """Processor seconds that the program and all below it have used so far; what has ended is counted as it was last seen."""
        root = psutil.Process(self.process.pid)
        for each in (root, *root.children(recursive=True)):
            try:
                times = each.cpu_times()
            except psutil.Error:
                continue
            self._cpu[each.pid] = times.user + times.system
        return sum(self._cpu.values())

    def rss_mb(self) -> float:
        """Memory of the program and all below it."""
        root = psutil.Process(self.process.pid)
        return sum(each.memory_info().rss for each in (root, *root.children(recursive=True))) / 1e6

    def end(self) -> None:
        """End it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.master)
