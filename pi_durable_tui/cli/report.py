"""The only place of the command line that prints errors (rule CL-6): one paragraph on stderr, an exit code, no traceback unless asked.

What is printed goes through `safe_text`: messages carry foreign names. This file never decides what an error means; the classes in
errors.py do.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Protocol

from pi_durable_tui.errors import InternalError, PidurableError

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
    output = stream if stream is not None else sys.stderr
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        forget_stdout()
        return BROKEN_PIPE
    if debug:
        output.write(_safe("".join(traceback.format_exception(error))) + "\n")
    known = error if isinstance(error, PidurableError) else _bug(error, debug=debug)
    output.write(paragraph(known) + "\n")
    output.flush()
    return known.exit_code


def note(text: str, *, stream: TextOutput | None = None) -> None:
    """Print a remark that is no error, on stderr."""
    output = stream if stream is not None else sys.stderr
    output.write(_safe(f"pidurable: {text}") + "\n")
    output.flush()


def _safe(text: str) -> str:
    from pi_durable_tui.tui.safe_text import safe_text  # noqa: PLC0415 - not needed when all goes well

    return safe_text(text)


def _bug(error: BaseException, *, debug: bool) -> InternalError:
    known = InternalError(f"{type(error).__name__}: {error}"[:500])
    if not debug:
        known.hint += " Run the same command with --debug to see where."
    return known


def forget_stdout() -> None:
    """The reader, or the terminal, is gone: point stdout at nothing, so that the interpreter's last flush does not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
