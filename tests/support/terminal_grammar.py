"""The oracle of what reaches a terminal (rule SA-1): the sequences that this program itself writes, and harmless characters; nothing else.

The grammar is a list, not a filter: whatever is not in it is reported, also what only asks the terminal to type an answer.
"""

from __future__ import annotations

import re

MODES = ("1000", "1002", "1003", "1004", "1006", "1015", "1016", "1049", "2004", "2026", "2048", "25", "7")
"""Mouse, focus, size reports, alternate screen, paste, synchronized output, cursor, line wrap: what the app's driver switches, and switches back."""

OWN = re.compile(
    r"\x1b\[[0-9;]*m"  # a style
    r"|\x1b\[\d+;\d+H|\x1b\[H"  # a place on the screen
    rf"|\x1b\[\?(?:{'|'.join(MODES)})[hl]"
    r"|\x1b\[\?(?:2026|2048)\$p"  # what the driver asks the terminal: does it know these modes
    r"|\x1b\[>25u|\x1b\[<u"  # the keyboard protocol, on and off
    r"|\x1b\]22;(?:default|pointer|text)\x07"  # the shape of the mouse pointer
    r"|\r\n"  # a line's end, as the terminal makes it of a newline
)
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b\n]{0,80}(?:\x07|\x1b\\)?|.?)|[\x80-\x9f]", re.DOTALL)
HIDDEN = re.compile(
    "[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\u00ad\ufff9-\ufffb\U000e0000-\U000e0fff\u2028\u2029]"  # bidi, zero width, tags
)


def breaches(raw: bytes) -> list[str]:
    """Everything in the bytes that this program never writes by itself, as it stands there. PURE."""
    text = raw.decode("utf-8", "surrogateescape")
    found: list[str] = []
    position = 0
    for own in OWN.finditer(text):
        found += _strange(text[position : own.start()])
        position = own.end()
    return [*found, *_strange(text[position:])]


def plain(raw: bytes) -> str:
    """The characters that stay on the screen, in the order in which they came."""
    return OWN.sub("", raw.decode("utf-8", "replace"))


def _strange(text: str) -> list[str]:
    found = [match[0] for match in _SEQUENCE.finditer(text)]
    rest = _SEQUENCE.sub("", text)
    found += [char for char in rest if ord(char) < 0x20 or ord(char) == 0x7F or 0xD800 <= ord(char) <= 0xDFFF]
    return [*found, *HIDDEN.findall(rest)]
