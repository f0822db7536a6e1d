"""Reads what is piped into print mode (CASE-H3), so that an open and silent stdin never hangs a run without a word.

The rule, as documented in the README: a terminal is not read. With a prompt on the command line, stdin counts as piped only if data or
its end is there within a second; otherwise the run goes on without it and says so. Once data came, or when there is no other
prompt, it is read to its end, and after a second of waiting a line on stderr says so.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable

from pi_durable_tui.errors import BadRequest

PATIENCE_S = 1.0
LIMIT_BYTES = 16 * 1024 * 1024
_PIECE_BYTES = 65_536


def piped_text(descriptor: int | None, *, is_needed: bool, note: Callable[[str], None], patience_s: float = PATIENCE_S) -> str:
    """What was piped in; "" when nothing was.

    Args:
        descriptor: Of stdin; None: it is closed.
        is_needed: There is no other prompt, so waiting for it is right.
        note: Tells the person what is waited for.
        patience_s: Seconds until the first data, and until waiting is mentioned.

    Raises:
        BadRequest: More than 16 MiB. Nothing was sent.
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
        piece = os.read(descriptor, _PIECE_BYTES)
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
