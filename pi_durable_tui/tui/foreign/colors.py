"""Colours that a tool printed, as styles (rule SA-1): of all sequences only SGR is read, and none of its bytes stays. PURE.

Concealed text and blinking are ignored, and a text in the colour of its own background loses the background: nothing that a tool
prints can be on the screen without being seen.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace
from rich.color import Color
from rich.style import Style

from pi_durable_tui.tui.safe_text import SafeStream, safe_text

_SGR = re.compile(r"\x1b\[([0-9;:]{0,64}+)m")
_LINE_END = re.compile(r"\r((?:\x1b\[[0-9;:]{0,64}+m)+)\n")
_MAX_SPANS = 20_000

Span = tuple[int, int, Style]
"""(first character, character behind the last, style)."""


class Colored(Struct, frozen=True):
    """Safe text, and the parts of it that have a colour, from left to right."""

    text: str
    spans: tuple[Span, ...] = ()


class _Look(Struct, frozen=True):
    color: Color | None = None
    back: Color | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    reverse: bool = False


def colored(text: str) -> Colored:
    """Safe text with the colours it had. The text is what `safe_text` makes of it without its colour sequences (line breaks of the cap apart)."""
    if "\x1b[" not in text:
        return Colored(safe_text(text))
    text = _LINE_END.sub(r"\1\n", text)  # a line end stays one when a colour ends inside of it
    stream, look, spans = SafeStream(), _Look(), list[Span]()
    parts: list[str] = []
    length = position = 0
    for match in (*_SGR.finditer(text), None):
        raw = text[position : match.start() if match is not None else len(text)]
        if raw:
            safe = stream.feed(raw) + stream.finish()
            style = _style(look)
            if safe and style and len(spans) < _MAX_SPANS:
                spans.append((length, length + len(safe), style))
            parts.append(safe)
            length += len(safe)
        if match is not None:
            look, position = _changed(look, match[1]), match.end()
    return Colored("".join(parts), tuple(spans))


@lru_cache(maxsize=512)
def _style(look: _Look) -> Style | None:
    if look == _Look():
        return None
    return Style(
        color=look.color,
        bgcolor=look.back if look.back != look.color else None,
        bold=look.bold or None,
        dim=look.dim or None,
        italic=look.italic or None,
        underline=look.underline or None,
        strike=look.strike or None,
        reverse=look.reverse or None,
    )


@lru_cache(maxsize=512)
def _changed(look: _Look, parameters: str) -> _Look:
    """The look after one SGR sequence; what is unknown changes nothing."""
    codes = [int(code) if code.isdecimal() else 0 for code in parameters.replace(":", ";").split(";")]
    position = 0
    while position < len(codes):
        code = codes[position]
        position += 1
        if code in (38, 48):
            color, taken = _extended(codes[position:])
            position += taken
            look = look if color is None else replace(look, **{"color" if code == 38 else "back": color})
        else:
            look = _simple(look, code)
    return look


def _simple(look: _Look, code: int) -> _Look:
    match code:
        case 0:
            return _Look()
        case 1 | 2 | 3 | 4 | 7 | 9:
            return replace(look, **{{1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}[code]: True})
        case 22:
            return replace(look, bold=False, dim=False)
        case 23 | 24 | 27 | 29:
            return replace(look, **{{23: "italic", 24: "underline", 27: "reverse", 29: "strike"}[code]: False})
        case 39 | 49:
            return replace(look, **{"color" if code == 39 else "back": None})
        case _ if 30 <= code <= 37 or 90 <= code <= 97:
            return replace(look, color=Color.from_ansi(code - 30 if code < 90 else code - 82))
        case _ if 40 <= code <= 47 or 100 <= code <= 107:
            return replace(look, back=Color.from_ansi(code - 40 if code < 100 else code - 92))
        case _:
            return look


def _extended(rest: list[int]) -> tuple[Color | None, int]:
    """The colour behind 38 or 48, and how many codes it takes."""
    match rest:
        case [5, number, *_] if number <= 255:
            return Color.from_ansi(number), 2
        case [2, red, green, blue, *_] if max(red, green, blue) <= 255:
            return Color.from_rgb(red, green, blue), 4
        case [5, *_]:
            return None, 2
        case [2, *_]:
            return None, 4
        case _:
            return None, 1
