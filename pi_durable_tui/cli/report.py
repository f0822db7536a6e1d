"""The only place of the command line that prints errors (rule CL-6): one paragraph on stderr, an exit code, no traceback unless asked.

What is printed goes through `safe_text`: messages carry foreign names. This file never decides what an error means; the classes in
errors.py do.
"""

from __future__ import annotations

import errno
import sys
import traceback
from typing import Protocol

from pi_durable_tui.cli.streams import OutputLost, forget
from pi_durable_tui.errors import EnvironmentFailure, InternalError, PidurableError

INTERRUPTED = 130
BROKEN_PIPE = 141


class TextOutput(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


def paragraph(error: PidurableError) -> str:
    """What happened, what is true now and the next step, as one paragraph of safe text."""
    text = f"pidurable: {error.message}"
    return _safe(" ".join(f"{text} {error.hint}".split()))


def report(error: BaseException, *, debug: bool, stream: TextOutput | None = None) -> int:
    """Print `error` and return the exit code that belongs to it.

    Args:
        error: A PidurableError, or whatever else got to the top; that is a bug of this program.
        debug: Print the traceback too.
        stream: Instead of stderr.
    """
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError | OutputLost):
        forget(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    if debug:
        _write(_safe("".join(traceback.format_exception(error))), stream)
    known = error if isinstance(error, PidurableError) else _lost(error) if isinstance(error, OutputLost) else _bug(error, debug=debug)
    _write(paragraph(known), stream)
    return known.exit_code


def note(text: str, *, stream: TextOutput | None = None) -> None:
    """Print a remark that is no error, on stderr."""
    _write(_safe(f"pidurable: {text}"), stream)


def _write(line: str, stream: TextOutput | None) -> None:
    """A stderr that is closed or full takes neither the work nor the exit code along."""
    output = stream if stream is not None else sys.stderr
    try:
        output.write(line + "\n")
        output.flush()
    except OSError:
        forget(sys.stderr)


def _safe(text: str) -> str:
    from pi_durable_tui.tui.safe_text import safe_text  # noqa: PLC0415 - not needed when all goes well

    return safe_text(text)


def _lost(error: OutputLost) -> EnvironmentFailure:
    reason = "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
    return EnvironmentFailure(
        f"The output cannot be written: {reason}. What is stored is as it was.", hint="Send it elsewhere; pidurable log prints a chat again."
    )


def _bug(error: BaseException, *, debug: bool) -> InternalError:
    known = InternalError(f"{type(error).__name__}: {error}"[:500])
    if not debug:
        known.hint += " Run the same command with --debug to see where."
    return known
