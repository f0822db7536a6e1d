"""Markdown to styled lines, one block at a time (rule TU-2). PURE: text in, lines out.

`split_blocks` cuts a text into blocks that can be drawn one by one: a paragraph, a heading, a fence, a table, one item of a
list, a part of a very long line. All but the last block of a growing text are final (stream.py lives on that). HTML is shown as
the text it is; nothing here is ever fetched, and a link shows where it leads (rule SA-4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from rich.console import Console
from rich.style import Style
from rich.text import Text

from pi_durable_tui.tui.draw.marks import mark_join, mark_joins, ours, piece
from pi_durable_tui.tui.draw.syntax import highlight
from pi_durable_tui.tui.palette import Palette

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_OPEN_BLOCK_CHARS = 6_000
MAX_OPEN_TABLE_CHARS = 24_000  # half a table is none, so it is cut only where drawing it again and again would be felt
MIN_CELLS = 4  # narrower than this nothing is wrapped: the widest character needs two, a list marker two more
_COLUMN_GAP = 3
_FENCE = re.compile(r"( *)(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$")
_ITEM = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])( +|$)")


Joint: TypeAlias = Literal["", " "]
"""What stands between two parts of one line."""


class Block(Struct, frozen=True, kw_only=True):
    """A piece of Markdown that can be drawn by itself. `gap`: a blank line stands before it; `joins`: it goes on with the line before it."""

    text: str
    gap: bool
    is_open_fence: bool = False
    joins: Joint | None = None


class Span(NamedTuple):
    """Where a block stands in its text; the other fields are those of `Block`."""

    start: int
    end: int
    gap: bool
    is_open_fence: bool = False
    joins: Joint | None = None


def split_blocks(text: str) -> list[Block]:
    """The blocks of `text` in order; joined (with what stands between them) they are the text. Empty text has none.

    An item of a list is a block with all that is indented below it. A fence ends at its closing line only. A paragraph longer than
    MAX_OPEN_BLOCK_CHARS is cut at a line end, and a line longer than that at a blank, so that no open block grows without bound.
    """
    return [Block(text=text[start:end].rstrip("\n"), gap=gap, is_open_fence=is_open, joins=joins) for start, end, gap, is_open, joins in spans(text)]


def spans(text: str, joins: Joint | None = None) -> Iterator[Span]:
    """The spans of the blocks of `text`, in order.

    Args:
        joins: `text` begins inside of a long line; this stands between it and the part before.
    """
    start: int | None = None
    fence = ""
    in_item = gap = blank = False
    position = 0
    for line in text.splitlines(keepends=True) if text else ():
        body = line.rstrip("\n")
        is_blank = not body.strip()
        if fence:
            if body.strip().startswith(fence) and not body.strip().strip(fence[0]):
                fence = ""
                if not in_item and start is not None:
                    yield Span(start, position + len(line), gap)
                    start, blank, gap = None, False, False
        elif is_blank:
            blank, joins = True, joins if position else None
        else:
            opened, item = (None, None) if joins is not None and not position else (_FENCE.match(body), _ITEM.match(body))
            if start is not None and not _continues(
                in_item=in_item,
                blank=blank,
                item=bool(item),
                indented=body.startswith("  "),
                fence=bool(opened),
                is_full=position - start > _most_chars(text, start),
            ):
                yield Span(start, position, gap, joins=joins)
                start = joins = None
            if start is None:
                start, in_item, gap = position, item is not None, blank and position > 0
            blank, fence = False, opened[2] if opened else ""
            for end, begin, joint in () if in_item or fence else _cuts(text, position, position + len(body.rstrip())):
                yield Span(start, end, gap, joins=joins)
                start, gap, joins = begin, False, joint
        position += len(line)
    if start is not None:
        yield Span(start, position, gap, bool(fence) and not in_item, joins)


def _most_chars(text: str, start: int) -> int:
    return MAX_OPEN_TABLE_CHARS if text.startswith("|", start) else MAX_OPEN_BLOCK_CHARS


def _cuts(text: str, start: int, end: int) -> Iterator[tuple[int, int, Joint]]:
    """Where the line from `start` to `end` is cut: the end of a part, the begin of the next one, and what stands between them."""
    while end - start > MAX_OPEN_BLOCK_CHARS:
        cut = text.rfind(" ", start + 1, start + MAX_OPEN_BLOCK_CHARS)
        joint: Joint = " " if cut >= 0 else ""
        cut = cut if cut >= 0 else start + MAX_OPEN_BLOCK_CHARS
        start = cut + len(joint)
        yield cut, start, joint


def _continues(*, in_item: bool, blank: bool, item: bool, indented: bool, fence: bool, is_full: bool) -> bool:
    """Whether a line belongs to the block before it, which may be as long as it gets."""
    if in_item:
        return indented or not (item or blank or fence)
    return not (blank or item or fence or is_full)


class MarkdownPainter:
    """Draws blocks for one width and palette.

    Args:
        width: Cells per line, at least 1.
        console: Only asked how text wraps; nothing is printed to it.
    """

    def __init__(self, *, width: int, palette: Palette, console: Console) -> None:
        self.width = max(MIN_CELLS, width)
        self.palette = palette
        self._console = console
        self._text = palette.style(palette.text)

    @cached_property
    def _parser(self) -> MarkdownIt:
        # Imported at the first answer drawn, not at start: an empty chat needs no parser for its first paint.
        from markdown_it import MarkdownIt  # noqa: PLC0415

        return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])

    def block(self, block: Block) -> list[Text]:
        """The lines of one block, its gap included."""
        lines = [Text("", end="")] if block.gap else []
        if block.is_open_fence:
            first, _, code = block.text.partition("\n")
            return lines + self.code(code, language_of(first), self.width)
        if block.joins is not None:
            lines = self.wrap(self._inline(self._parser.parseInline(block.text)[0], self._text), self.width)
            mark_join(lines[0], block.joins)
            return lines
        return lines + self._tokens(self._parser.parse(block.text), self.width)

    def code(self, code: str, language: str, width: int) -> list[Text]:
        """Lines of code behind a thin rule; long lines wrap, nothing is cut off."""
        bar = ours(self.palette.style(self.palette.faint))
        result: list[Text] = []
        for line in highlight(code, language, self.palette, base=self._text):
            result += [Text.assemble(("▏ ", bar), part, end="") for part in self.wrap(line, width - 2)]
        return result

    def wrap(self, text: Text, width: int) -> list[Text]:
        """`text` in lines of at most `width` cells; at least one line."""
        width = max(MIN_CELLS, width)
        if text.cell_len <= width and "\n" not in text.plain:
            return [text]
        parts = list(text.wrap(self._console, width, overflow="fold", tab_size=4)) or [Text("", end="")]
        mark_joins(text, parts)
        return parts

    def _wrap_cell(self, text: Text, width: int) -> list[Text]:
        """As `wrap`, but the lines of a cell stay lines of the table when they are copied."""
        width = max(MIN_CELLS, width)
        fits = text.cell_len <= width and "\n" not in text.plain
        return [text] if fits else list(text.wrap(self._console, width, overflow="fold", tab_size=4)) or [Text("", end="")]

    def _tokens(self, tokens: list[Token], width: int) -> list[Text]:
        result: list[Text] = []
        position = 0
        while position < len(tokens):
            end = _closing(tokens, position)
            lines = self._token(tokens[position], tokens[position + 1 : end], width)
            if result and lines and tokens[position].type != "list_item_open" and not tokens[position].hidden and not _is_list(tokens[position]):
                result.append(Text("", end=""))
            result += lines
            position = end + 1
        return result

    def _token(self, token: Token, inner: list[Token], width: int) -> list[Text]:
        palette = self.palette
        match token.type:
            case "paragraph_open" | "inline":
                return self.wrap(self._inline(inner[0] if inner else token, self._text), width)
            case "heading_open":
                color = palette.accent if token.tag in ("h1", "h2") else palette.text
                return self.wrap(self._inline(inner[0], palette.style(color, bold=True)), width)
            case "fence" | "code_block":
                return self.code(token.content, language_of(token.info), width)
            case "bullet_list_open" | "ordered_list_open":
                return self._list(token, inner, width)
            case "blockquote_open":
                return self._prefixed(self._tokens(inner, width - 2), "┃ ", "┃ ", ours(palette.style(palette.faint)), style=palette.style(palette.muted))
            case "table_open":
                return self._table(inner, width)
            case "hr":
                return [Text("─" * min(width, 40), palette.style(palette.faint), end="")]
            case _:
                return self.wrap(Text(token.content.rstrip("\n"), self._text, end=""), width) if token.content else []

    def _list(self, token: Token, inner: list[Token], width: int) -> list[Text]:
        result: list[Text] = []
        position, number = 0, int(token.attrs.get("start", 1))
        while position < len(inner):
            end = _closing(inner, position)
            marker = "• " if token.type == "bullet_list_open" else f"{number}. "
            lines = self._tokens(inner[position + 1 : end], width - len(marker)) or [Text("", end="")]
            result += self._prefixed(lines, marker, " " * len(marker), self.palette.style(self.palette.muted))
            position, number = end + 1, number + 1
        return result

    def _prefixed(self, lines: list[Text], first: str, other: str, prefix_style: Style, *, style: Style | None = None) -> list[Text]:
        result: list[Text] = []
        for index, line in enumerate(lines):
            if style is not None:
                line = Text.assemble(line, style=style, end="")  # noqa: PLW2901 - the same line, coloured
            is_wrapped = index > 0 and piece(line).joins is not None
            result.append(Text.assemble((first if index == 0 else other, ours(prefix_style) if is_wrapped else prefix_style), line, end=""))
        return result

    def _inline(self, token: Token, base: Style) -> Text:
        palette = self.palette
        text = Text("", base, end="")
        stack: list[tuple[str, int, str]] = []
        for child in token.children or ():
            match child.type:
                case "text":
                    text.append(child.content)
                case "code_inline":
                    text.append(child.content, palette.style(palette.string))
                case "softbreak" | "hardbreak":
                    text.append("\n")
                case "image":
                    text.append(f"{child.content or 'image'} ({child.attrs.get('src', '')})", palette.style(palette.muted))
                case "em_open" | "strong_open" | "s_open" | "link_open":
                    stack.append((child.type, len(text), str(child.attrs.get("href", ""))))
                case "em_close" | "strong_close" | "s_close" | "link_close":
                    kind, start, target = stack.pop()
                    self._close_span(text, kind, start, target)
                case _:
                    text.append(child.content)
        return text

    def _close_span(self, text: Text, kind: str, start: int, target: str) -> None:
        match kind:
            case "em_open":
                text.stylize(Style(italic=True), start)
            case "strong_open":
                text.stylize(Style(bold=True), start)
            case "s_open":
                text.stylize(Style(strike=True), start)
            case _:
                shown = text.plain[start:]
                text.stylize(self.palette.style(self.palette.accent), start)
                if target and target not in (shown, f"mailto:{shown}"):
                    text.append(f" ({target})", self.palette.style(self.palette.muted))

    def _table(self, inner: list[Token], width: int) -> list[Text]:
        rows: list[list[tuple[Text, str]]] = []
        header = self.palette.style(self.palette.text, bold=True)
        for position, token in enumerate(inner):
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                cell = self._inline(inner[position + 1], header if token.type == "th_open" else self._text)
                rows[-1].append((cell, str(token.attrs.get("style", "")).removeprefix("text-align:") or "left"))
        widths = _column_widths([[cell.cell_len for cell, _ in row] for row in rows], width)
        result: list[Text] = []
        for index, row in enumerate(rows):
            cells = [self._wrap_cell(cell, column) for (cell, _), column in zip(row, widths, strict=False)]
            for line in range(max(map(len, cells), default=0)):
                parts = [
                    _aligned(cell[line] if line < len(cell) else Text(), side, column) for cell, (_, side), column in zip(cells, row, widths, strict=False)
                ]
                result.append(Text(" " * _COLUMN_GAP, end="").join(parts))
            if index == 0:
                result.append(Text("─" * (sum(widths) + _COLUMN_GAP * (len(widths) - 1)), self.palette.style(self.palette.faint), end=""))
        return result


def _column_widths(cells: list[list[int]], width: int) -> list[int]:
    """Cells for each column: what its widest text needs, the widest columns narrowed until all fit into `width`."""
    widths = [max((row[column] for row in cells if column < len(row)), default=0) for column in range(len(cells[0]) if cells else 0)]
    room = max(width - _COLUMN_GAP * (len(widths) - 1), MIN_CELLS * len(widths))
    while sum(widths) > room:
        widest = max(range(len(widths)), key=widths.__getitem__)
        others = max([size for index, size in enumerate(widths) if index != widest], default=MIN_CELLS)
        widths[widest] -= max(1, min(sum(widths) - room, widths[widest] - max(others, MIN_CELLS)))
    return widths


def _aligned(text: Text, side: str, width: int) -> Text:
    text = text.copy()
    room = max(0, width - text.cell_len)
    left = room if side == "right" else room // 2 if side == "center" else 0
    text.pad_left(left)
    text.pad_right(room - left)
    return text


def _closing(tokens: list[Token], position: int) -> int:
    """Index of the token that closes the one at `position`; itself for a leaf."""
    if tokens[position].nesting != 1:
        return position
    level = tokens[position].level
    for index in range(position + 1, len(tokens)):
        if tokens[index].level == level and tokens[index].nesting == -1:
            return index
    return len(tokens) - 1


def _is_list(token: Token) -> bool:
    return token.type in ("bullet_list_open", "ordered_list_open")


def language_of(info: str) -> str:
    """The language that a fence or its first line names; "" for none."""
    found = _FENCE.match(info)
    word = found[3] if found else info.split(maxsplit=1)[0] if info.strip() else ""
    return word.lower()
