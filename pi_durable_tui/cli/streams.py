"""The standard streams as a program may find them: closed, full, without a reader, or open and silent (CASE-H3).

A number below 3 that is free would be given to the next file that is opened, such as a session; whatever is printed to that number would be written
into it. So the places of closed streams are taken before anything else is opened.

The rule for what is piped into print mode, so that an open and silent stdin never hangs a run without a word: a terminal is not read. With a prompt on
the command line, stdin counts as piped only if data or its end is there within a second; otherwise the run goes on without it and says so. Once data
came, or when there is no other prompt, it is read to its end, and after a second of waiting a line on stderr says so.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO, cast

from pi_durable_tui.errors import BadRequest

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

PATIENCE_S = 1.0
LIMIT_BYTES = 16 * 1024 * 1024
_PIECE_BYTES = 65_536
_NAMES = ("stdin", "stdout", "stderr")


class OutputLost(OSError):
    """Stdout can no longer be written, for want of room or because it is closed. A reader that has left is a BrokenPipeError."""


class _Output(io.FileIO):
    def write(self, data: ReadableBuffer, /) -> int | None:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from error


def prepare_streams() -> None:
    """Take the places of closed streams, and have stdout tell its own failures from others.

    Neither output ends the program for a character that it cannot show.
    """
    for number, name in enumerate(_NAMES):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                setattr(sys, name, _stand_in(number))
    stdout, stderr = cast("TextIO | None", sys.stdout), cast("object", sys.stderr)
    if stdout is not None:
        output = _Output(stdout.fileno(), "w", closefd=False)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(output), encoding=stdout.encoding, errors="backslashreplace", line_buffering=output.isatty())
    if isinstance(stderr, io.TextIOWrapper):
        stderr.reconfigure(errors="backslashreplace")


def _stand_in(number: int) -> TextIO | None:
    """Something harmless in place of a closed stream: reading it ends at once, writing it fails as before."""
    place = os.open(os.devnull, os.O_RDONLY)  # the lowest free number; not this one only if something else has that by now
    if place != number:
        os.close(place)
        return None
    if number == 0:
        return io.TextIOWrapper(io.BufferedReader(io.FileIO(number, closefd=False)))
    return io.TextIOWrapper(io.BufferedWriter(io.FileIO(number, "w", closefd=False)), encoding="utf-8")


def forget(stream: TextIO) -> None:
    """The reader, the terminal or the room is gone: point the stream at nothing, so that the interpreter's last flush does not complain."""
    with contextlib.suppress(OSError, ValueError):  # one that is in memory has no number
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def piped_text(descriptor: int | None, *, is_needed: bool, note: Callable[[str], None], patience_s: float = PATIENCE_S) -> str:
    """What was piped in; "" when nothing was.

    Args:
        descriptor: Of stdin; None: it is closed.
        is_needed: There is no other prompt, so waiting for it is right.
        note: Tells the person what is waited for.
        patience_s: Seconds until the first data, and until waiting is mentioned.

    Raises:
        BadRequest: More than 16 MiB, or it cannot be read. Nothing was sent.
    """
    if descriptor is None or os.isatty(descriptor):
        return ""
    if not _is_ready(descriptor, patience_s):
        if not is_needed:
            note("stdin is open but silent; going on without it (redirect it from /dev/null to avoid the wait).")
            return ""
        note("reading the prompt from stdin; it ends with the end of the input.")
    pieces: list[bytes] = []
    size_bytes = 0
    mentioned = False
    while True:
        if not mentioned and not _is_ready(descriptor, patience_s):
            note("stdin is still open; waiting for its end.")
            mentioned = True
        try:
            piece = os.read(descriptor, _PIECE_BYTES)
        except BlockingIOError:  # somebody who shares it has set it so
            select.select([descriptor], [], [])
            continue
        except OSError as error:
            raise BadRequest(f"stdin cannot be read: {error.strerror}. Nothing was sent.", hint="Redirect it from /dev/null, or from what is meant.") from error
        if not piece:
            break
        pieces.append(piece)
        size_bytes += len(piece)
        if size_bytes > LIMIT_BYTES:
            raise BadRequest("More than 16 MiB came from stdin. Nothing was sent.", hint="Put it into a file and let the agent read parts of it.")
    return b"".join(pieces).decode("utf-8", errors="replace")


def prompt_of(piped: str, words: str) -> str:
    """The prompt: what was piped, then the words of the command line; "" when both are blank. PURE."""
    return "\n\n".join(part for part in (piped.strip("\n"), words) if part.strip())


def _is_ready(descriptor: int, patience_s: float) -> bool:
    """True when a read would return at once: data, the end, or an error."""
    return bool(select.select([descriptor], [], [], patience_s)[0])
