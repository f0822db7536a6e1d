"""Rows as lines of a given width: what each kind of row looks like (rules TU-5, TU-6, SA-3). PURE: a row in, lines out.

The first two cells of every line are ours: a mark or nothing. Foreign text starts behind them, so it can never draw a border
of ours. What a row shows when it is folded, and when not, is decided here too.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import assert_never

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from pi_durable_tui.tui.draw.diff import diff_lines
from pi_durable_tui.tui.draw.markdown import MarkdownPainter, split_blocks
from pi_durable_tui.tui.draw.marks import ours, unmarked
from pi_durable_tui.tui.draw.stream import MarkdownStream
from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.rows import AnswerRow, MarkRow, RetryRow, Row, SummaryRow, ThinkingRow, ToolRow, ToolStatus, UserRow, can_unfold

MARGIN_CELLS = 2
MAX_TEXT_CELLS = 116
_FOLDED_DIFF_LINES = 14
_FOLDED_FAILURE_LINES = 8
_TOLD_AT_THE_END = frozenset({"bash", "subagent"})
"""What went wrong is said last by these; by all others first."""
_LINES_OF_ONE = 3  # of a line that is too long and says why something failed
_FOLDED_USER_LINES = 10
_TAIL_LINES = 5
_OWN_LINES = 24
_UNFOLDED_LINES = 400
_TOLD_MS = 100  # a duration below this says nothing to a person

_STATUS_MARKS: dict[ToolStatus, str] = {"pending": "○", "asking": "?", "running": "◐", "done": "✓", "failed": "✗", "interrupted": "!", "stopped": "■"}


def new_console() -> Console:
    """A console that prints nowhere: the text library asks it how to wrap."""
    return Console(
        file=io.StringIO(), width=80, color_system="truecolor", legacy_windows=False, force_terminal=True, markup=False, emoji=False, highlight=False
    )


def to_segments(line: Text, base: Style, console: Console) -> list[Segment]:
    """A line as segments over the style `base`; also of a text without spans, whose own style the text library forgets."""
    segments = Segment.apply_style(line.render(console, end=""), base + line.style if isinstance(line.style, Style) else base)
    return [Segment(text, unmarked(style) if style is not None else None, control) for text, style, control in segments]


def estimate_lines(row: Row, width: int) -> int:
    """Guess how many lines `row` takes, without drawing it; at least 1. Cheap: used for what is far from the visible part."""
    room = max(8, min(width, MAX_TEXT_CELLS) - 2 * MARGIN_CELLS)
    match row:
        case UserRow() if can_unfold(row):
            return _FOLDED_USER_LINES + 2
        case UserRow() | AnswerRow():
            return row.text.count("\n") + len(row.text) // room + 2
        case ToolRow():
            diff = min(row.diff.count("\n") + 1, _FOLDED_DIFF_LINES) if row.diff else 0
            return 1 + diff + (3 if row.status == "failed" else 0)
        case ThinkingRow() | RetryRow() | MarkRow() | SummaryRow():
            return 2
        case _:
            assert_never(row)


def is_one_line(row: Row, *, unfolded: bool) -> bool:
    """Whether a row is a tool that takes one line only."""
    if not isinstance(row, ToolRow) or unfolded or row.diff or row.is_own or (row.remarks and row.status != "done"):
        return False
    return row.status == "done" or not row.output


class Painter:
    """Draws rows for one width and palette; each drawn row ends without a blank line and begins with its own gap.

    Args:
        width: Cells of the whole line, margins included.
        unfold_key: The key that unfolds, as it is shown; "": there is none.
    """

    def __init__(self, *, width: int, palette: Palette, unfold_key: str = "") -> None:
        self.width = max(8, width)
        self.palette = palette
        self._unfolds = f" ({unfold_key})" if unfold_key else ""
        self.console = new_console()
        self._room = min(self.width, MAX_TEXT_CELLS) - 2 * MARGIN_CELLS
        self._markdown = MarkdownPainter(width=self._room, palette=palette, console=self.console)

    def stream(self) -> MarkdownStream:
        """A new stream for an open answer; its lines have no margin yet."""
        return MarkdownStream(self._markdown)

    def lines(self, row: Row, *, unfolded: bool, joins: bool = False, now_ms: int = 0) -> list[Text]:
        """The lines of `row`.

        Args:
            unfolded: Show all of it.
            joins: The row before is a tool of one line, so another one stands right below it.
            now_ms: Wall clock, for work that is still going on.
        """
        match row:
            case UserRow():
                return self._user(row, unfolded=unfolded)
            case AnswerRow():
                return [Text("", end=""), *self.indented([line for block in split_blocks(row.text) for line in self._markdown.block(block)])]
            case ThinkingRow():
                return self._thinking(row, unfolded=unfolded)
            case ToolRow():
                return self._tool(row, unfolded=unfolded, joins=joins, now_ms=now_ms)
            case RetryRow():
                left_s = max(0, -(-(row.until_ms - now_ms) // 1000))
                return [Text("", end=""), self._line("↻", self.palette.warn, f"Attempt {row.attempt} failed: {row.reason}. Next one in {left_s} s")]
            case MarkRow():
                return self._mark(row)
            case SummaryRow():
                return self._summary(row, unfolded=unfolded)
            case _:
                assert_never(row)

    def indented(self, lines: Sequence[Text]) -> list[Text]:
        """The lines behind the margin."""
        return [Text.assemble((" " * MARGIN_CELLS, ours()), line, end="") for line in lines]

    def _user(self, row: UserRow, *, unfolded: bool) -> list[Text]:
        palette = self.palette
        text = row.text.strip("\n")
        limit = (_UNFOLDED_LINES if unfolded else _FOLDED_USER_LINES) if can_unfold(row) else None
        # Only what is shown is wrapped: of megabytes that would take many seconds.
        head = text if limit is None else "\n".join(text.split("\n", limit)[:limit])[: limit * self._room]
        body = self._markdown.wrap(Text(head, palette.style(palette.text, bold=True), end=""), self._room)[:limit]
        if len(head) < len(text):
            hidden = text.count("\n", len(head))
            more = f"… {hidden:,} more line{'s' if hidden > 1 else ''}" if hidden else "… more"
            body.append(Text(more + ("" if unfolded else self._unfolds), ours(palette.style(palette.muted)), end=""))
        lines = [Text("", end="")]
        for index, part in enumerate(body):
            line = Text.assemble(("❯ " if index == 0 else "  ", ours(palette.style(palette.accent, bold=True))), part, end="")
            line.append(" " * max(0, self.width - line.cell_len), ours())
            line.stylize(palette.style(on=palette.raised))
            lines.append(line)
        return lines

    def _thinking(self, row: ThinkingRow, *, unfolded: bool) -> list[Text]:
        style = self.palette.style(self.palette.muted, italic=True)
        text = row.text.strip()
        if unfolded:
            body = self._markdown.wrap(Text(text, style, end=""), self._room)
            return [Text("", end=""), *(Text.assemble(("∴ " if index == 0 else "  ", ours(style)), part, end="") for index, part in enumerate(body))]
        first, _, rest = text.partition("\n")
        shown = text.rpartition("\n")[2] if row.is_open else f"{first} …" if rest else first
        return [Text("", end=""), self._cut(Text.assemble(("∴ ", ours(style)), (shown, style), end=""), self._room + MARGIN_CELLS)]

    def _tool(self, row: ToolRow, *, unfolded: bool, joins: bool, now_ms: int) -> list[Text]:
        result = [self._tool_line(row, now_ms)]
        if row.diff:
            result += self._diff(row, unfolded=unfolded)
        result += self._tool_output(row, unfolded=unfolded)
        if row.status in ("failed", "interrupted", "stopped") or unfolded or row.is_own:
            tone = self.palette.muted if row.is_own else self.palette.warn if row.status != "failed" else self.palette.bad
            for remark in row.remarks:
                parts = self._wrapped(Text(remark, self.palette.style(tone), end=""), self._room - 2)
                result += [Text.assemble((" " * 4, ours()), part, end="") for part in parts]
        return result if joins and len(result) == 1 else [Text("", end=""), *result]

    def _tool_line(self, row: ToolRow, now_ms: int) -> Text:
        palette = self.palette
        colors = {"done": palette.good, "failed": palette.bad, "interrupted": palette.warn, "stopped": palette.warn, "asking": palette.warn}
        color = colors.get(row.status, palette.accent)
        facts = Text(" · ".join(_facts(row, now_ms)), palette.style(palette.muted if row.status != "failed" else palette.bad), end="")
        mark = (f"{_STATUS_MARKS[row.status]} ", ours(palette.style(color, bold=True)))
        head = Text.assemble(mark, ("$" if row.is_own else row.name, palette.style(palette.text, bold=True)), end="")
        title = "" if row.title == row.name else row.title.removeprefix(f"{row.name} ").strip()
        room = min(self.width, MAX_TEXT_CELLS) - MARGIN_CELLS - head.cell_len - facts.cell_len - 4
        head.append("  ")
        head.append_text(self._cut(Text(title, palette.style(palette.text), end=""), max(1, room)))
        head.append("  ")
        return head.append_text(facts)

    def _diff(self, row: ToolRow, *, unfolded: bool) -> list[Text]:
        lines = diff_lines(row.diff, path=row.path, width=self.width - 2 * MARGIN_CELLS, palette=self.palette)
        shown = lines if unfolded or len(lines) <= _FOLDED_DIFF_LINES + 1 else lines[:_FOLDED_DIFF_LINES]
        result = [Text.assemble(("  ", ours()), line, end="") for line in shown]
        if len(shown) < len(lines):
            result.append(self._faint(f"… {len(lines) - len(shown)} more lines{self._unfolds}"))
        elif row.is_diff_cut:
            result.append(self._faint("… the change is longer than what is kept of it"))
        return result

    def _tool_output(self, row: ToolRow, *, unfolded: bool) -> list[Text]:
        is_over = row.status in ("done", "failed", "interrupted", "stopped")
        if not row.output or (row.status == "done" and not unfolded and not row.is_own):
            return []
        count = row.output.count("\n") + 1
        limit = _UNFOLDED_LINES if unfolded else _OWN_LINES if row.is_own else _FOLDED_FAILURE_LINES if is_over else _TAIL_LINES
        hidden, says_first = max(0, count - limit), row.status == "failed" and row.name not in _TOLD_AT_THE_END
        where = "more line" if says_first else "line"
        more = f"… {hidden} {where}{'s' if hidden > 1 else ''}{'' if says_first else ' before'}" + ("" if unfolded else self._unfolds)
        bar, style = ours(self.palette.style(self.palette.faint)), self.palette.style(self.palette.muted)
        room, lines = self._room - 2, _LINES_OF_ONE if row.status == "failed" else 1
        result: list[Text] = []
        for text in colored_lines(row, 0 if says_first else hidden, style)[:limit]:
            parts = self._markdown.wrap(text, room) if unfolded else self._wrapped(text, room, lines=lines)
            result += [Text.assemble(("  │ ", bar), part, end="") for part in parts]
        if hidden:
            result.insert(len(result) if says_first else 0, self._faint(more))
        return result

    def _mark(self, row: MarkRow) -> list[Text]:
        palette = self.palette
        colors = {"info": palette.accent, "good": palette.good, "warn": palette.warn, "bad": palette.bad}
        if not row.is_seam:
            body = self._markdown.wrap(Text(row.text, palette.style(colors[row.tone]), end=""), self._room)
            mark = "✗ " if row.tone == "bad" else "! "
            return [
                Text("", end=""),
                *(Text.assemble((mark if index == 0 else "  ", palette.style(colors[row.tone], bold=True)), part, end="") for index, part in enumerate(body)),
            ]
        return [Text("", end=""), self._rule(Text(f" {row.text} ", palette.style(colors[row.tone]), end=""))]

    def _summary(self, row: SummaryRow, *, unfolded: bool) -> list[Text]:
        palette = self.palette
        label = Text(f" {row.head} ", palette.style(palette.accent), end="")
        label.append(f"{self._unfolds.strip()} " if self._unfolds and not unfolded else "", palette.style(palette.muted))
        body = [line for block in split_blocks(row.text) for line in self._markdown.block(block)] if unfolded else []
        return [Text("", end=""), self._rule(label), *self.indented(body)]

    def _rule(self, label: Text) -> Text:
        """A line across with words in it."""
        label = self._cut(label, self._room)
        rest = max(0, min(self.width, MAX_TEXT_CELLS) - label.cell_len - 3)
        faint = self.palette.style(self.palette.faint)
        return Text.assemble(("───", faint), label, ("─" * rest, faint), end="")

    def _line(self, mark: str, color: str, text: str) -> Text:
        return self._cut(
            Text.assemble((f"{mark} ", self.palette.style(color, bold=True)), (text, self.palette.style(color)), end=""), self._room + MARGIN_CELLS
        )

    def _faint(self, text: str) -> Text:
        return Text.assemble(("    ", ours()), (text, self.palette.style(self.palette.muted)), end="")

    def _wrapped(self, text: Text, width: int, *, lines: int = _LINES_OF_ONE) -> list[Text]:
        """The first lines that it takes, the last of them cut when there are more."""
        parts = self._markdown.wrap(text, width) if lines > 1 else [text]
        if len(parts) > lines:
            parts = parts[:lines]
            parts[-1].append(" …")
        return [self._cut(part, width) for part in parts]

    def _cut(self, text: Text, width: int) -> Text:
        if text.cell_len > width:
            text.truncate(max(1, width), overflow="ellipsis")
        return text


def colored_lines(row: ToolRow, hidden: int, style: Style) -> list[Text]:
    """The lines of a tool's output after the first `hidden` ones, in the colours it printed over `style`."""
    start = 0
    for _ in range(hidden):
        start = row.output.index("\n", start) + 1
    text = Text(row.output[start:], style, end="")
    for first, last, color in row.colors:
        if last > start:
            text.stylize(color, max(0, first - start), last - start)
    return list(text.split("\n", allow_blank=True)) or [text]


def duration_text(duration_ms: int) -> str:
    """A duration for people: 0.2s, 14s, 3m 05s, 1h 02m."""
    if duration_ms < 10_000:
        return f"{max(0, duration_ms) / 1000:.1f}s"
    seconds = duration_ms // 1000
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02}s"
    return f"{seconds // 3600}h {seconds // 60 % 60:02}m"


def _facts(row: ToolRow, now_ms: int) -> list[str]:
    facts: list[str] = []
    match row.status:
        case "done" | "failed":
            if row.diff:
                facts.append(f"+{row.added_lines} −{row.removed_lines}")
            elif row.exit_code:
                facts.append(f"exit {row.exit_code}")
            elif row.status == "done" and row.amount:
                facts.append(row.amount)
            elif row.status == "done" and row.output:
                count = row.output.count("\n") + 1
                facts.append(f"{count:,} line{'s' if count > 1 else ''}")
        case "interrupted" | "stopped" | "pending":
            facts.append({"interrupted": "interrupted", "stopped": "stopped", "pending": "waiting"}[row.status])
        case "asking":
            facts.append("waits for your answer")
        case "running":
            if row.started_at_ms is not None and now_ms:
                facts.append(
                    duration_text((now_ms - row.started_at_ms) // 1000 * 1000)
                    if now_ms - row.started_at_ms >= 10_000
                    else f"{max(0, now_ms - row.started_at_ms) // 1000}s"
                )
        case _:
            assert_never(row.status)
    if row.duration_ms is not None and row.duration_ms >= _TOLD_MS:
        facts.append(duration_text(row.duration_ms))
    return facts
