"""A program on a terminal whose every byte is kept, and nothing else: quick, for oracles over bytes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.patience import RUN_S


@dataclass(frozen=True, slots=True)
class Recording:
    """What a program wrote to its terminal.

    Attributes:
        code: Its exit code, or minus the signal.
        raw: Every byte.
        is_restored: The terminal's settings are as they were.
        typed: What stood in the terminal's input afterwards and nobody had typed.
    """

    code: int
    raw: bytes
    is_restored: bool
    typed: bytes


def recorded(command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], columns: int = 100, rows: int = 40, within_s: float = RUN_S) -> Recording:
    """Run a program to its end in a terminal of its own; killed when it does not end in time."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    before = termios.tcgetattr(slave)
    process = subprocess.Popen(
        list(command),
        cwd=cwd,
        # Its size is that of this terminal, whatever the environment of the tests says of theirs.
        env={**{name: value for name, value in environ.items() if name not in {"COLUMNS", "LINES"}}, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - a controlling terminal is what a terminal gives
    )
    pieces: list[bytes] = []
    deadline_s = time.monotonic() + within_s
    try:
        while (is_over := process.poll() is not None) is False or select.select([master], [], [], 0.1)[0]:
            if select.select([master], [], [], 0.05)[0]:
                pieces.append(os.read(master, 1 << 16))
            elif is_over:
                break
            assert time.monotonic() < deadline_s, f"not over within {within_s} s; the last it wrote: {b''.join(pieces)[-500:]!r}"
        os.set_blocking(slave, False)
        typed = b""
        with contextlib.suppress(OSError):
            typed = os.read(slave, 4096)
        return Recording(process.returncode, b"".join(pieces), termios.tcgetattr(slave) == before, typed)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)
        os.close(slave)
