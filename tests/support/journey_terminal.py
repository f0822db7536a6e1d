"""A real program in a real terminal: starts it in a pty, types, and reads its screen as a terminal would draw it.

Nothing here sleeps blindly: every wait reads what the program writes until a condition holds or a deadline passes, and a deadline that
passes shows the screen.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyte

from tests.support.patience import PATIENCE_S

TYPING_GAP_S = 0.12
"""A person's pause before Enter; keys closer together are a paste, and an Enter inside of one is a new line."""

KEYS: Mapping[str, bytes] = {
    "enter": b"\r",
    "escape": b"\x1b",
    "ctrl+c": b"\x03",
    "ctrl+d": b"\x04",
    "alt+enter": b"\x1b[13;3u",  # as the keyboard protocol sends it that the app switches on
    "alt+up": b"\x1b[1;3A",
    "shift+tab": b"\x1b[Z",
    "backspace": b"\x7f",
}

_UNKNOWN_TO_EMULATOR = re.compile(rb"\x1b\[[<>=][0-9;:]*[a-zA-Z]|\x1b\[\?[0-9;]*\$[a-z]|\x1b\[\?u|\x1b\[[0-9;]+t|\x1bP[^\x1b]*\x1b\\|\x1b_[^\x1b]*\x1b\\")
"""Keyboard protocol, mode queries, window reports and strings that pyte would print as text."""
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-9;:<>=?$ ]*|[P_\]][^\x07\x1b]*\x1b?)?\Z")
_ALTERNATE = re.compile(rb"(\x1b\[\?1049[hl])")


_open: weakref.WeakSet[Terminal] = weakref.WeakSet()


def read_on() -> None:
    """Read what the programs of all open terminals have written: one that cannot write what it has painted does nothing else either."""
    for terminal in tuple(_open):
        terminal.read_for(0)


class Terminal:
    """A program and its terminal.

    Attributes:
        raw: Every byte the program has written.
        mode: How the terminal was set before the program started (termios attributes).
        process: The program.
    """

    def __init__(self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], columns: int = 100, rows: int = 32) -> None:
        self.raw = b""
        self.columns, self.rows = columns, rows
        self._master, self._slave = os.openpty()
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.mode = termios.tcgetattr(self._slave)
        self._pending = b""
        self._normal, self._alternate = self._new_screen(), self._new_screen()
        self.is_alternate = False
        self.process = self.start(command, cwd=cwd, environ=environ)
        _open.add(self)

    # -------------------------------------------------------------------------------------------------------------- verbs

    def type(self, text: str) -> None:
        """Type a text and wait until its end stands in the composer."""
        self._write(text.encode())
        self.wait_for(text[-30:])

    def press(self, *keys: str) -> None:
        """Press keys, as fast as a person at most."""
        for key in keys:
            self.read_for(TYPING_GAP_S)
            self._write(KEYS[key] if key in KEYS else key.encode())

    def send(self, text: str) -> None:
        """Type a text and press Enter."""
        self.type(text)
        self.press("enter")

    def wait_for(self, *texts: str, within_s: float = PATIENCE_S) -> None:
        """Read on until all texts stand on the screen, spaces and line breaks aside."""
        wanted = [_packed(text) for text in texts]
        self.wait_until(lambda: all(text in _packed(self.screen()) for text in wanted), what=f"{texts!r} on the screen", within_s=within_s)

    def wait_gone(self, *texts: str, within_s: float = PATIENCE_S) -> None:
        """Read on until none of the texts stands on the screen."""
        wanted = [_packed(text) for text in texts]
        self.wait_until(lambda: not any(text in _packed(self.screen()) for text in wanted), what=f"{texts!r} gone from the screen", within_s=within_s)

    def wait_until(self, condition: Callable[[], bool], *, what: str, within_s: float = PATIENCE_S) -> None:
        """Read on until the condition holds."""
        deadline_s = time.monotonic() + within_s
        while not condition():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or (not self._read(min(left_s, 0.05)) and self.process.poll() is not None and not condition()):
                state = "is running" if self.process.poll() is None else f"ended with {self.process.returncode}"
                raise AssertionError(f"not seen within {within_s} s: {what}. The program {state}. The screen:\n{self.screen()}")

    def read_for(self, duration_s: float) -> None:
        """Read on for a while; at least what is there."""
        while self._read(0):
            pass
        deadline_s = time.monotonic() + duration_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            self._read(left_s)

    def kill(self) -> None:
        """Kill it, as `kill -9` does, and read what it still had written."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        while self._read(0.05):
            pass

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def wait_end(self, *, within_s: float = PATIENCE_S) -> int:
        """Its exit code; minus the signal when one ended it."""
        self.wait_until(lambda: self.process.poll() is not None, what="the end of the program", within_s=within_s)
        while self._read(0.05):
            pass
        assert self.process.returncode is not None
        return self.process.returncode

    # ------------------------------------------------------------------------------------------------------------- looking

    def lines(self) -> list[str]:
        """The lines of the screen that is shown, without trailing blanks."""
        return [line.rstrip() for line in (self._alternate if self.is_alternate else self._normal).display]

    def app_lines(self) -> list[str]:
        """The lines of the app's own screen, as it was left when it is gone."""
        return [line.rstrip() for line in self._alternate.display]

    def screen(self) -> str:
        """The screen as text."""
        return "\n".join(self.lines())

    def sees(self, text: str) -> bool:
        """Whether the text stands on the screen, spaces and line breaks aside."""
        return _packed(text) in _packed(self.screen())

    def current_mode(self) -> list[object]:
        """How the terminal is set now."""
        return termios.tcgetattr(self._slave)

    # -------------------------------------------------------------------------------------------------------------- inside

    def start(self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the program on the terminal, which is its controlling one."""
        return subprocess.Popen(
            list(command),
            cwd=cwd,
            env={"TERM": "xterm-256color", "COLORTERM": "truecolor", **environ},
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - a controlling terminal is what a terminal gives
        )

    def close(self) -> None:
        """End everything."""
        _open.discard(self)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        for handle in (self._master, self._slave):
            with contextlib.suppress(OSError):
                os.close(handle)

    def hang_up(self) -> None:
        """Close the terminal, as closing its window does: the program gets SIGHUP and nobody reads what it writes."""
        _open.discard(self)
        for handle in (self._slave, self._master):
            os.close(handle)

    def _new_screen(self) -> pyte.Screen:
        return pyte.Screen(self.columns, self.rows)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._master, data) :]

    def _read(self, patience_s: float) -> bool:
        """Read once; False when nothing came."""
        ready, _, _ = select.select([self._master], [], [], patience_s)
        if not ready:
            return False
        data = os.read(self._master, 65_536)
        self.raw += data
        self._feed(data)
        return True

    def _feed(self, data: bytes) -> None:
        data = self._pending + data
        unfinished = _UNFINISHED.search(data)
        cut = unfinished.start() if unfinished else len(data)
        data, self._pending = data[:cut], data[cut:]
        for piece in _ALTERNATE.split(_UNKNOWN_TO_EMULATOR.sub(b"", data)):
            match piece:
                case b"\x1b[?1049h":
                    self.is_alternate, self._alternate = True, self._new_screen()
                    self._stream = pyte.ByteStream(self._alternate)
                case b"\x1b[?1049l":
                    self.is_alternate = False
                    self._stream = pyte.ByteStream(self._normal)
                case _:
                    self._current_stream().feed(piece)

    def _current_stream(self) -> pyte.ByteStream:
        if not hasattr(self, "_stream"):
            self._stream = pyte.ByteStream(self._normal)
        return self._stream


@contextlib.contextmanager
def terminal(command: Sequence[str], *, cwd: Path, environ: Mapping[str, str], columns: int = 100, rows: int = 32) -> Iterator[Terminal]:
    """A running program in a terminal; killed when the test is done with it."""
    made = Terminal(command, cwd=cwd, environ=environ, columns=columns, rows=rows)
    try:
        yield made
    finally:
        made.close()


def modes_left_on(raw: bytes) -> list[str]:
    """The terminal modes that a program switched on and not off again: alternate screen, mouse, focus, paste, synchronized output, keyboard, hidden cursor."""
    state: dict[str, bool] = {}
    for numbers, switch in re.findall(rb"\x1b\[\?([0-9;]+)([hl])", raw):
        for number in numbers.decode().split(";"):
            state[number] = (switch == b"h") if number != "25" else (switch == b"l")
    pushed = len(re.findall(rb"\x1b\[>[0-9;]*u", raw)) - len(re.findall(rb"\x1b\[<[0-9]*u", raw))
    return sorted([number for number, is_on in state.items() if is_on and number != "7"] + (["keyboard"] if pushed > 0 else []))


def _packed(text: str) -> str:
    return re.sub(r"[\s│▎▌┃]+", "", text)
