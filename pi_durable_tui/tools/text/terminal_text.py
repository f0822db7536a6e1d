"""PURE. What a terminal would show of a program's output, as plain text: no escape sequence, no carriage-return chain (CASE-D5).

Cost grows with the length of the text only, whatever it holds. Colours are lost, cursor moves between lines are ignored. This text is
for the model and the transcript; the screen filters once more (SA-1).
"""

from __future__ import annotations

import re

_STRING = r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\n\x80-\x9f]"  # a title, a link, a picture: up to its end mark
_STRING_LIMIT = 4_096  # one without an end mark must not swallow more than this of what follows
_SEQUENCE = re.compile(
    r"(?P<erase>(?:\x1b\[|\x9b)[02]?K)"
    r"|(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?"
    rf"|{_STRING}*+(?:\x07|\x1b\\|\x9c)"
    rf"|{_STRING}{{0,{_STRING_LIMIT}}}+"
    r"|\x1b[ -/]*+[0-~]?"
    r"|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_UNFINISHED = re.compile(rf"(?:(?:\x1b\[|\x9b)[0-?]*+[ -/]*+|{_STRING}*+\x1b?|\x1b[ -/]*+)\Z")
_MOVES = re.compile(r"[\r\x08]")
_TO_END, _WHOLE = "\x0e", "\x0f"  # stand for the two erasures inside this module; real ones are dropped in the same pass
_ERASURES = re.compile(f"[{_TO_END}{_WHOLE}]")
_HELD_LIMIT = 16_384


def plain(text: str) -> str:
    """The lines of `text` as they would stand on a screen in the end, without any control character but newline and tab."""
    text = _SEQUENCE.sub(_mark, text)
    if not (_MOVES.search(text) or _ERASURES.search(text)):
        return text  # nearly all output: line by line it would take ten times as long
    return "\n".join([_settle(line) if _MOVES.search(line) or _ERASURES.search(line) else line for line in text.split("\n")])


class PlainStream:
    """The same for text that comes in pieces. What was given out cannot be taken back, so a line that overwrites itself is held."""

    def __init__(self) -> None:
        self._held = ""
        self._midline = False  # part of the unfinished line was given out

    def feed(self, text: str) -> str:
        """More output; returns what can be shown of it now: whole lines, and of the last one what will stay."""
        lines, newline, rest = (self._held + text).rpartition("\n")
        done = self._close_line(lines) + newline if newline else ""
        if _MOVES.search(rest) or _UNFINISHED.search(rest[-_STRING_LIMIT:]):
            self._held = rest[-_HELD_LIMIT:]
            return done
        self._held = ""
        self._midline = self._midline or bool(rest)
        return done + plain(rest)

    def settle(self) -> str:
        """The present state of a held line, as a line of its own; "" when nothing is held. It stays held."""
        shown = plain(self._held)
        return self._close_line(self._held) + "\n" if shown else ""

    def finish(self) -> str:
        """What was held when the output ended."""
        held, self._held = self._held, ""
        return self._close_line(held) if held else ""

    def _close_line(self, lines: str) -> str:
        """Complete lines. A first one that overwrites what was given out starts anew."""
        first = lines.partition("\n")[0].rstrip("\r")
        again = "\n" if self._midline and "\r" in first else ""
        self._midline = False
        return again + plain(lines)


def _mark(match: re.Match[str]) -> str:
    erase = match["erase"]
    if not erase:
        return ""
    return _WHOLE if erase.endswith("2K") else _TO_END


def _settle(line: str) -> str:
    """One line after its carriage returns, backspaces and erasures.

    Goes from the last pass over the line to the first: an earlier one shows only where no later one wrote or erased.
    """
    result = ""
    limit = len(line)
    for part in reversed(line.split("\r")):
        shown, erased_from = _one_pass(part)
        if len(result) < limit:
            result += shown[len(result) : limit]
        limit = min(limit, erased_from)
    return result


def _one_pass(part: str) -> tuple[str, int]:
    """One pass over a line from its first column: its text, and the column from which nothing older is left."""
    nothing = len(part) + _HELD_LIMIT**2  # beyond every column
    if "\x08" not in part and not _ERASURES.search(part):
        return part, nothing
    cells: list[str] = []
    column = 0
    blank = 0  # cells before this one are blank, whatever they hold
    erased_from = nothing
    for char in part:
        if char == "\x08":
            column = max(0, column - 1)
        elif char == _TO_END:
            del cells[column:]
            erased_from = min(erased_from, column)
        elif char == _WHOLE:
            del cells[column:]
            blank, erased_from = column, 0
        else:
            if column < blank:
                cells[column:blank] = " " * (blank - column)
                blank = column
            cells[column : column + 1] = [char]
            column += 1
    return " " * min(blank, len(cells)) + "".join(cells[blank:]), erased_from
