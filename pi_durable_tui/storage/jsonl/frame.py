"""The frame of a line: what makes a damaged, torn, stale or moved line be noticed. PURE.

Theory. A line is one JSON object, so that jq and its kind can read the files:

    {"sum":"…","bytes":57,"seq":12,"prev":"…","data":{…}}

`sum` is a hash over everything after it; `prev` is the `sum` of the line before, so a line's `sum` stands for the whole file up to it,
and a line that was valid elsewhere is not valid here. `bytes` is the length of `data`: a frame can be found and judged without trusting
a line break. `seq` is the commit the line belongs to. Nothing but these exact bytes is a line; its line break belongs to it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

GENESIS = "0" * 32
"""The `prev` of the first line of a file."""

_HASH_BYTES = 16
_START = b'{"sum":"'
_AFTER_SUM = len(_START) + 2 * _HASH_BYTES + len(b'",')
_HEADER = re.compile(
    rb'\{"sum":"(?P<sum>[0-9a-f]{32})","bytes":(?P<bytes>[1-9][0-9]{0,11}),"seq":(?P<seq>0|[1-9][0-9]{0,17}),"prev":"(?P<prev>[0-9a-f]{32})","data":'
)
_END = b"}\n"


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is valid by itself. `start` and `end` are offsets in its file; `body` is the JSON text of its data."""

    sum: str
    prev: str
    seq: int
    body: bytes
    start: int
    end: int


def framed(body: bytes, *, seq: int, prev: str) -> tuple[bytes, str]:
    """The line that holds `body`, and its `sum`.

    Args:
        body: JSON text without line breaks.
    """
    rest = b'"bytes":%d,"seq":%d,"prev":"%s","data":%s}' % (len(body), seq, prev.encode(), body)
    digest = _digest(rest)
    return b'%s%s",%s\n' % (_START, digest.encode(), rest), digest


def line_at(data: bytes, start: int) -> Line | None:
    """The valid line that begins there; None: there is none."""
    header = _HEADER.match(data, start)
    if header is None:
        return None
    end = header.end() + int(header["bytes"])
    if data[end : end + len(_END)] != _END:
        return None
    found = header["sum"].decode()
    if _digest(memoryview(data)[start + _AFTER_SUM : end + 1]) != found:
        return None
    return Line(found, header["prev"].decode(), int(header["seq"]), data[header.end() : end], start, end + len(_END))


def chain(data: bytes, *, prev: str | None = GENESIS) -> Iterator[Line]:
    """The lines from the beginning of a file up to the first that is not valid or does not follow the one before.

    Args:
        prev: What the first line must follow; None: whatever it says.
    """
    start = 0
    while (line := line_at(data, start)) is not None and prev in (None, line.prev):
        yield line
        start, prev = line.end, line.sum


def valid_lines(data: bytes, start: int) -> Iterator[Line]:
    """Every line from there on that is valid by itself, wherever it begins and whatever it follows."""
    while (start := data.find(_START, start)) >= 0:
        line = line_at(data, start)
        if line is None:
            start += 1
        else:
            yield line
            start = line.end


def _digest(data: bytes | memoryview) -> str:
    return hashlib.blake2b(data, digest_size=_HASH_BYTES).hexdigest()
