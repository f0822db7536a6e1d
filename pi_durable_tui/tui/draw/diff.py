"""A unified diff as coloured lines with line numbers (rule TU-5). PURE: text in, lines out."""

from __future__ import annotations

import re

from rich.cells import set_cell_size
from rich.style import Style
from rich.text import Text

from pi_durable_tui.tui.draw.syntax import highlight
from pi_durable_tui.tui.palette import Palette

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def diff_lines(diff: str, *, path: str, width: int, palette: Palette) -> list[Text]:
    """One line for each line of the diff, cut to `width` cells; hunks after the first are told apart by a faint "⋯".

    Args:
        diff: Unified, with or without file headers; safe text.
        path: Names the language; "" for none.
        width: Cells of a line, at least 12; changed lines are coloured over all of them.
    """
    lines = [line for line in diff.split("\n") if not line.startswith(("--- ", "+++ ", "diff ", "index "))]
    code = highlight("\n".join(line[1:] if not line.startswith("@@") else "" for line in lines), path, palette, base=palette.style(palette.text))
    digits = max(3, len(str(max((int(number) for found in _HUNK.finditer(diff) for number in found.groups()), default=0) + len(lines))))
    result: list[Text] = []
    old = new = 1
    for line, colored in zip(lines, code, strict=False):
        found = _HUNK.match(line)
        if found:
            old, new = int(found[1]), int(found[2])
            if result:
                result.append(Text(f"{'⋯':>{digits}}", palette.style(palette.faint), end=""))
            continue
        sign = line[:1]
        match sign:
            case "+":
                number, tint, mark = new, palette.added_back, palette.good
                new += 1
            case "-":
                number, tint, mark = old, palette.removed_back, palette.bad
                old += 1
            case "\\":
                number, tint, mark, colored = None, None, palette.muted, Text(line[2:], palette.style(palette.muted))  # noqa: PLW2901 - said, not code
            case _:
                number, tint, mark = new, None, palette.muted
                old, new = old + 1, new + 1
        label = f"{number if number is not None else '':>{digits}} "
        result.append(_line(label, sign if sign in ("+", "-") else " ", colored, width=width, tint=tint, mark=mark, palette=palette))
    return result


def _line(label: str, sign: str, code: Text, *, width: int, tint: str | None, mark: str, palette: Palette) -> Text:
    room = max(1, width - len(label) - 2)
    code = code.copy()
    if code.cell_len > room:
        code.right_crop(len(code.plain) - len(set_cell_size(code.plain, room - 1).rstrip()))
        code.append("…", palette.style(palette.muted))
    whole = Text.assemble((label, palette.style(palette.muted if tint else palette.faint)), (f"{sign} ", palette.style(mark)), code, end="")
    if tint:
        whole.append(" " * max(0, width - whole.cell_len))
        whole.stylize(Style(bgcolor=tint))
    return whole
