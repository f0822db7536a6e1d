"""A unified diff as coloured lines with line numbers, in one column or side by side (rule TU-5). PURE: text in, lines out."""

from __future__ import annotations

import re
from itertools import zip_longest

from msgspec import Struct
from rich.cells import set_cell_size
from rich.style import Style
from rich.text import Text

from pi_durable_tui.tui.draw.marks import ours
from pi_durable_tui.tui.draw.syntax import highlight
from pi_durable_tui.tui.palette import Palette

SIDE_BY_SIDE_CELLS = 140
MAX_CELLS = 112  # of one column: longer lines are no easier to read
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class _Changed(Struct, frozen=True):
    """A line of a diff: added, removed or neither, a remark (a backslash) or the next hunk ("@"), and its number in the old and the new file."""

    sign: str
    code: Text
    old: int | None = None
    new: int | None = None


def diff_lines(diff: str, *, path: str, width: int, palette: Palette) -> list[Text]:
    """The diff in lines of at most `width` cells; hunks after the first are told apart by a faint "⋯".

    Where there is room for two columns, what was stands beside what is. Line numbers and signs are marked as ours: they are not copied.

    Args:
        diff: Unified, with or without file headers; safe text.
        path: Names the language; "" for none.
        width: Cells of a line, at least 12; changed lines are coloured over all of them.
    """
    lines = _parsed(diff, path, palette)
    digits = max(3, len(str(max((number for line in lines for number in (line.old, line.new) if number is not None), default=0))))
    if width >= SIDE_BY_SIDE_CELLS and any(line.sign == "-" for line in lines) and any(line.sign == "+" for line in lines):
        return _side_by_side(lines, digits, min(width, 2 * MAX_CELLS), palette)
    return [_one_column(line, digits, min(width, MAX_CELLS), palette) for line in lines]


def _parsed(diff: str, path: str, palette: Palette) -> list[_Changed]:
    lines = diff.split("\n")
    start = next((index for index, line in enumerate(lines) if line.startswith("@@")), 0)  # headers stand ahead of the first hunk, and only there
    lines = [line for line in lines[:start] if not line.startswith(("--- ", "+++ ", "diff ", "index "))] + lines[start:]
    code = highlight("\n".join(line[1:] if not line.startswith("@@") else "" for line in lines), path, palette, base=palette.style(palette.text))
    result: list[_Changed] = []
    old = new = 1
    for line, colored in zip(lines, code, strict=False):
        found = _HUNK.match(line)
        if found:
            old, new = int(found[1]), int(found[2])
            if result:
                result.append(_Changed("@", Text("", end="")))
            continue
        match line[:1]:
            case "+":
                result.append(_Changed("+", colored, new=new))
                new += 1
            case "-":
                result.append(_Changed("-", colored, old=old))
                old += 1
            case "\\":
                result.append(_Changed("\\", Text(line[2:], palette.style(palette.muted), end="")))
            case _:
                result.append(_Changed(" ", colored, old=old, new=new))
                old, new = old + 1, new + 1
    return result


def _one_column(line: _Changed, digits: int, width: int, palette: Palette) -> Text:
    if line.sign == "@":
        return Text(f"{'⋯':>{digits}}", ours(palette.style(palette.faint)), end="")
    return _line(line, line.old if line.sign == "-" else line.new, digits, width, palette)


def _side_by_side(lines: list[_Changed], digits: int, width: int, palette: Palette) -> list[Text]:
    """What was at the left, what is at the right; a run of removed lines stands beside the added ones that follow it."""
    half = (width - 3) // 2
    result: list[Text] = []
    removed: list[_Changed] = []
    added: list[_Changed] = []

    def pair() -> None:
        result.extend(_beside(left, right, digits, half, palette) for left, right in zip_longest(removed, added))
        removed.clear()
        added.clear()

    for line in lines:
        match line.sign:
            case "-":
                if added:
                    pair()
                removed.append(line)
            case "+":
                added.append(line)
            case _:
                pair()
                result.append(_one_column(line, digits, width, palette) if line.sign != " " else _beside(line, line, digits, half, palette))
    pair()
    return result


def _beside(left: _Changed | None, right: _Changed | None, digits: int, half: int, palette: Palette) -> Text:
    """One line of two columns. Where both say the same the left one is not copied, so that a copy holds each line once."""
    blank = Text(" " * half, ours(), end="")
    was = _line(left, left.old, digits, half, palette, pad=True) if left is not None else blank
    if left is right:
        was.stylize(ours())
    is_now = _line(right, right.new, digits, half, palette) if right is not None else Text("", end="")
    return Text.assemble(was, (" │ ", ours(palette.style(palette.faint))), is_now, end="")


def _line(line: _Changed, number: int | None, digits: int, width: int, palette: Palette, *, pad: bool = False) -> Text:
    tint, mark = {"+": (palette.added_back, palette.good), "-": (palette.removed_back, palette.bad)}.get(line.sign, (None, palette.muted))
    label = f"{number if number is not None else '':>{digits}} "
    code, room = line.code.copy(), max(1, width - len(label) - 2)
    if code.cell_len > room:
        code.right_crop(len(code.plain) - len(set_cell_size(code.plain, room - 1).rstrip()))
        code.append("…", palette.style(palette.muted))
    sign = line.sign if line.sign in "+-" else " "
    whole = Text.assemble((label, ours(palette.style(palette.muted if tint else palette.faint))), (f"{sign} ", ours(palette.style(mark))), code, end="")
    if tint or pad:
        whole.append(" " * max(0, width - whole.cell_len), ours())
    if tint:
        whole.stylize(Style(bgcolor=tint))
    return whole
