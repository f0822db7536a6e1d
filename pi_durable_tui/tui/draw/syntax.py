"""Code in colour: text and a language's or file's name to one styled line per line of code. PURE apart from loading the lexers.

The lexer library is imported at the first use, not at start. What it cannot make sense of is shown plain; never an error.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from pi_durable_tui.tui.palette import Palette

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_HIGHLIGHTED_CHARS = 200_000
_MAX_LINE_CHARS = 2_000


def highlight(code: str, language: str, palette: Palette, *, base: Style) -> list[Text]:
    """One Text per line of `code`; at least one.

    Args:
        code: Safe text; a trailing newline adds no line.
        language: A fence's info word ("python") or a file name ("src/app.py"); "" or unknown: plain.
        base: Style of all that has no colour of its own.
    """
    lines = code.removesuffix("\n").split("\n")
    lexer = _lexer(language) if language else None
    if lexer is None or len(code) > MAX_HIGHLIGHTED_CHARS or max(map(len, lines)) > _MAX_LINE_CHARS:
        return [Text(line, base, end="") for line in lines]
    styles = _styles(palette)
    result = [Text("", base, end="")]
    for token, value in lexer.get_tokens("\n".join(lines)):
        kind = token
        while kind not in styles and kind.parent is not None:
            kind = kind.parent
        style = styles.get(kind)
        first, *others = value.split("\n")
        result[-1].append(first, style)
        for part in others:
            result.append(Text(part, base, end=""))
            if style is not None:
                result[-1].stylize(style)
    result = result[: len(lines)]
    return result + [Text("", base, end="") for _ in range(len(lines) - len(result))]


@lru_cache(maxsize=32)
def _lexer(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename  # noqa: PLC0415 - not before the first code is drawn
    from pygments.util import ClassNotFound  # noqa: PLC0415

    try:
        if "." in language or "/" in language:
            return get_lexer_for_filename(language.rpartition("/")[2], stripnl=False, ensurenl=False)
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=4)
def _styles(palette: Palette) -> dict[object, Style]:
    from pygments.token import Comment, Generic, Keyword, Literal, Name, Number, Operator, String  # noqa: PLC0415

    keyword, name = palette.style(palette.keyword), palette.style(palette.name_color)
    return {
        Comment: palette.style(palette.muted, italic=True),
        Keyword: keyword,
        Operator.Word: keyword,
        Name.Function: name,
        Name.Class: name,
        Name.Decorator: name,
        Name.Tag: keyword,
        Name.Attribute: name,
        Name.Builtin: name,
        String: palette.style(palette.string),
        Literal: palette.style(palette.string),
        Number: palette.style(palette.number),
        Keyword.Constant: palette.style(palette.number),
        Generic.Deleted: palette.style(palette.bad),
        Generic.Inserted: palette.style(palette.good),
        Generic.Heading: keyword,
    }
