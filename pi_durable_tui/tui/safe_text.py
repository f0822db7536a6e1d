"""The one way for foreign text to the screen and to a terminal (rule SA-1). PURE: no I/O, linear in the length of the text.

Foreign is everything a model, a tool, a file, a person or a name brought. A terminal obeys escape sequences wherever they
come from, so what remains of them here is one visible mark:

    ESC and C1 sequences, whole, cut off or split over pieces   one ␛ for each
    other control characters, except newline and tab            one � for each run
    bidi controls, tag characters, stray zero-width characters  one � for each run
    line and paragraph separators, CR LF                        a newline
    tabs                                                        spaces up to the next stop
    a line wider than MAX_LINE_CELLS                            broken there, nothing is lost

A zero-width joiner stays between two characters above ASCII (emoji, Indic scripts); variation selectors 15 and 16 stay.
This file must never let a byte below U+0020 other than newline through, and never interpret markup.
"""

from __future__ import annotations

import re
from functools import cache

from rich.cells import cell_len

SEQUENCE_MARK = "\u241b"
CONTROL_MARK = "\ufffd"
MAX_LINE_CELLS = 4096
TAB_CELLS = 4
_MAX_PAYLOAD_CHARS = 4096

_STRING = rf"[^\x07\x18\x1a\x1b\x9c\n]{{0,{_MAX_PAYLOAD_CHARS}}}+(?:\x07|\x1b\\|\x9c)?"
_CSI = r"[0-?]{0,256}+[ -/]{0,16}+[@-~]?"
_SEQUENCE = rf"\x1b(?:\[{_CSI}|[\]PX^_]{_STRING}|[ -/]{{0,16}}+[0-~]?)|\x9b{_CSI}|[\x90\x98\x9d\x9e\x9f]{_STRING}"
_BIDI = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ZERO_WIDTH = r"\u00ad\u034f\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
_HIDDEN = r"\ufe00-\ufe0d\U000e0000-\U000e0fff"
_CONTROL = r"\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x8f\x91-\x97\x99\x9a\x9c"
_DROPPED = rf"[{_CONTROL}{_BIDI}{_ZERO_WIDTH}{_HIDDEN}\ud800-\udfff]"
_STRAY_JOINER = r"(?<![\u00a0-\u200b\u200e-\U0010ffff])[\u200c\u200d]|[\u200c\u200d](?![\u00a0-\u200b\u200e-\U0010ffff])"

_UNSAFE = rf"(?P<newline>\r\n|[\u2028\u2029])|(?P<sequence>{_SEQUENCE})|(?:{_DROPPED}|{_STRAY_JOINER})+"
_TROUBLE = re.compile(rf"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029{_BIDI}{_ZERO_WIDTH}{_HIDDEN}\u200c\u200d\ud800-\udfff]")
_IN_JSON = re.compile(rf"[\x7f-\x9f\u2028\u2029{_BIDI}{_ZERO_WIDTH}{_HIDDEN}\u200c\u200d]")
_COLORS = re.compile(r"\x1b\[[0-9;:]{0,64}+m")


@cache
def _unsafe() -> re.Pattern[str]:
    """Compiled when the first trouble comes: it takes longer than all the rest of this file, and a start has none (speed.md)."""
    return re.compile(_UNSAFE)


def safe_text(text: str) -> str:
    """The text as it may be shown: several lines, no control character but newline, no line wider than MAX_LINE_CELLS.

    Args:
        text: Anything, lone surrogates included.

    Returns:
        Harmless text without tabs and long lines is the same object.
    """
    if _TROUBLE.search(text):
        text = _expand_tabs(_replace(text))
    return _break_lines(text) if _has_long_line(text) else text


def safe_line(text: str, *, max_cells: int = MAX_LINE_CELLS) -> str:
    """The text as one line of at most `max_cells` cells: line ends become one space, the rest is cut with "…"."""
    line = " ".join(part.strip() for part in safe_text(text).split("\n") if part.strip())
    if cell_len(line) <= max_cells:
        return line
    cut = line[:max_cells]
    while cut and cell_len(cut) > max_cells - 1:
        cut = cut[: len(cut) - max(1, (cell_len(cut) - max_cells + 1) // 2)]
    return cut.rstrip() + "…"


def safe_input(text: str) -> str:
    """What a paste or a stored draft brings into the composer: control characters go without a mark, tabs and long lines stay."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not _TROUBLE.search(text):
        return text
    return _unsafe().sub(lambda match: "\n" if match["newline"] else "", text)


def safe_json(encoded: bytes) -> str:
    """One JSON value as text that does nothing to a terminal: the same value, with what a terminal obeys, or a reader is fooled by, in the escapes of JSON.

    Args:
        encoded: JSON from an encoder, which escapes the other control characters itself.
    """
    return _IN_JSON.sub(_escaped, encoded.decode())


def overwritten(text: str) -> str:
    """The text as a terminal would leave it: of each line only what followed its last bare CR (progress bars, CASE-D5)."""
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def without_colors(text: str) -> str:
    """The text without colour sequences, which tools print for the eye only and which need no mark; all others stay for `safe_text`."""
    return _COLORS.sub("", text) if "\x1b" in text else text


class SafeStream:
    """`safe_text` for text that arrives in pieces: the pieces joined give what the whole would give (line breaks of the cap apart).

    A piece that may be the beginning of a sequence is held back until it is known what it is, at most to the end of its line.
    """

    def __init__(self) -> None:
        self._held = ""
        self._before = ""  # the last character passed on: a joiner and a run of dropped characters look back at it
        self._column = 0

    def feed(self, piece: str) -> str:
        """Safe text for this piece; what is still undecided comes with a later one."""
        text = self._held + piece
        start = _open_end(text) if _TROUBLE.search(text) else len(text)
        self._held = text[start:]
        return self._pass(text[:start])

    def finish(self) -> str:
        """Safe text for what was held back."""
        text, self._held = self._held, ""
        return self._pass(text)

    def _pass(self, text: str) -> str:
        if not text:
            return ""
        context, safe, self._before = self._before, text, text[-1]
        if _TROUBLE.search(context + text):
            safe = _replace(context + text)[len(_replace(context)) :]
            if _ends_in_sequence(text):
                self._before = ""
        return self._fit(safe) if safe else ""

    def _fit(self, text: str) -> str:
        """Expand tabs and break lines as if `text` stood at the column where the last piece ended."""
        if "\t" in text:
            gap = self._column % TAB_CELLS
            text = _expand_tabs(" " * gap + text)[gap:]
        first, newline, _ = text.partition("\n")
        if self._column + cell_len(first) > MAX_LINE_CELLS:
            text, newline, self._column = "\n" + text, "\n", 0
        text = _break_lines(text) if _has_long_line(text) else text
        last = text.rpartition("\n")[2]
        self._column = cell_len(last) + (0 if newline else self._column)
        return text


def _open_end(text: str) -> int:
    """Where the undecided end begins; the length of the text when everything is decided."""
    before: re.Match[str] | None = None
    for match in _unsafe().finditer(text):
        if match.end() == len(text) and match["sequence"] and not _is_whole(match[0]):
            # A lone ESC right behind an open string may be the first half of its terminator.
            joined = before is not None and match[0] == "\x1b" and before["sequence"] and before.end() == match.start() and not _is_whole(before[0])
            return before.start() if before is not None and joined else match.start()
        before = match
    return len(text) - 1 if text.endswith(("\r", "\u200c", "\u200d")) else len(text)


def _ends_in_sequence(text: str) -> bool:
    return any(match.end() == len(text) and match["sequence"] for match in _unsafe().finditer(text))


def _is_whole(sequence: str) -> bool:
    if len(sequence) > _MAX_PAYLOAD_CHARS:
        return True
    if sequence[0] == "\x9b" or sequence.startswith("\x1b["):
        body = sequence[1:] if sequence[0] == "\x9b" else sequence[2:]
        return len(body) > 256 or "@" <= body[-1:] <= "~"
    if sequence[0] != "\x1b" or sequence[1:2] in ("]", "P", "X", "^", "_"):
        return sequence.endswith(("\x07", "\x1b\\", "\x9c"))
    return len(sequence) > 16 or "0" <= sequence[-1] <= "~"


def _replace(text: str) -> str:
    return _unsafe().sub(_mark, text)


def _mark(match: re.Match[str]) -> str:
    if match["newline"]:
        return "\n"
    if match["sequence"]:
        return SEQUENCE_MARK
    return CONTROL_MARK


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _expand_tabs(text: str) -> str:
    if "\t" not in text:
        return text
    return "\n".join(_expand_line(line) if "\t" in line else line for line in text.split("\n"))


def _expand_line(line: str) -> str:
    if line.isascii():
        return line.expandtabs(TAB_CELLS)
    parts = line.split("\t")
    column, result = 0, []
    for part in parts[:-1]:
        column += cell_len(part)
        gap = TAB_CELLS - column % TAB_CELLS
        result.append(part + " " * gap)
        column += gap
    return "".join([*result, parts[-1]])


def _has_long_line(text: str) -> bool:
    """Whether a line may be wider than the cap: no character is wider than two cells."""
    return len(text) >= MAX_LINE_CELLS // 2 and max(map(len, text.split("\n"))) >= MAX_LINE_CELLS // 2


def _break_lines(text: str) -> str:
    return "\n".join(_break_line(line) if len(line) >= MAX_LINE_CELLS // 2 else line for line in text.split("\n"))


def _break_line(line: str) -> str:
    """No character is wider than two cells, so half the cap fits without measuring; ASCII is one cell each."""
    if cell_len(line) <= MAX_LINE_CELLS:
        return line
    step = MAX_LINE_CELLS if line.isascii() else MAX_LINE_CELLS // 2
    return "\n".join(line[start : start + step] for start in range(0, len(line), step))
