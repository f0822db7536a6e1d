"""PURE. Cuts a text to what a model may be given: 50 KiB and 2,000 lines, the end kept and a little of the start (rule TO-4)."""

from __future__ import annotations

from dataclasses import dataclass

RESULT_BYTES = 50 * 1024
RESULT_LINES = 2_000
HEAD_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A head and a tail of a text. `left_out_*` say what lies between them; both 0: `head` is the whole text."""

    head: str
    tail: str = ""
    left_out_lines: int = 0
    left_out_bytes: int = 0


def head_within(text: str, *, max_bytes: int, max_lines: int) -> str:
    """The longest beginning within both limits; whole lines, unless the first one alone is too long. No character is split."""
    end = len(text)
    position = 0
    for _ in range(max_lines):
        position = text.find("\n", position) + 1
        if position == 0:
            break
    else:
        end = position
    whole = text[:end].encode()
    if len(whole) <= max_bytes:
        return text[:end]
    piece = whole[:max_bytes]
    line_end = piece.rfind(b"\n") + 1
    return (piece[:line_end] or piece).decode(errors="ignore")


def tail_within(text: str, *, max_bytes: int, max_lines: int) -> str:
    """The longest end within both limits; whole lines, unless the last one alone is too long. No character is split."""
    start = 0
    position = len(text) - 1 if text.endswith("\n") else len(text)
    for _ in range(max_lines):
        position = text.rfind("\n", 0, position)
        if position < 0:
            break
    else:
        start = position + 1
    whole = text[start:].encode()
    if len(whole) <= max_bytes:
        return text[start:]
    piece = whole[len(whole) - max_bytes :]
    line_start = piece.find(b"\n") + 1
    kept = piece[line_start:] if line_start < len(piece) else piece
    return kept.decode(errors="ignore")


def head_and_tail(text: str, *, max_bytes: int = RESULT_BYTES, max_lines: int = RESULT_LINES) -> Cut:
    """Keep `text` whole when it is within the limits, else about a fifth of them for its start and the rest for its end.

    Args:
        text: Without lone surrogates.
        max_bytes: Of UTF-8, head and tail together.
        max_lines: Head and tail together.
    """
    size = len(text.encode())
    lines = line_count(text)
    if size <= max_bytes and lines <= max_lines:
        return Cut(head=text)
    head_bytes, head_lines = int(max_bytes * HEAD_SHARE), int(max_lines * HEAD_SHARE)
    head = head_within(text, max_bytes=head_bytes, max_lines=head_lines)
    tail = tail_within(text[len(head) :], max_bytes=max_bytes - head_bytes, max_lines=max_lines - head_lines)
    return Cut(
        head=head,
        tail=tail,
        left_out_lines=max(0, lines - line_count(head) - line_count(tail)),
        left_out_bytes=size - len(head.encode()) - len(tail.encode()),
    )


def line_count(text: str) -> int:
    """How many lines a text has; a last one without newline counts, an empty text has none."""
    return text.count("\n") + (0 if text.endswith("\n") or not text else 1)


def size_text(size_bytes: int) -> str:
    """A size for people: 812 bytes, 1.4 KB, 3.0 MB."""
    if size_bytes < 1_000:
        return f"{size_bytes} bytes"
    amount = size_bytes / 1_000
    for unit in ("KB", "MB"):
        if amount < 1_000:
            return f"{amount:.1f} {unit}"
        amount /= 1_000
    return f"{amount:.1f} GB"
