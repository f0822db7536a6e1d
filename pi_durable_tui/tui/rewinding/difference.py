"""Shows what would change in files, or what was changed, all of it, and may ask whether it shall (rule TU-18). Only one key says yes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from pi_durable_tui.tui.draw.diff import diff_lines
from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.ports import PlanPort
from pi_durable_tui.tui.safe_text import safe_line, safe_text

MAX_LINES = 2_000
"""So many lines of differences are shown at most; the number of changed lines stands at every file in any case."""
WIDTH, AROUND = 112, 7
"""The box as the style sheet makes it: its width, and what border, padding and scroll bar take of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file. Foreign text is allowed.

    Attributes:
        remark: What happens to it beside its text, "" for nothing.
        diff: Unified; "" for what is no text.
    """

    name: str
    remark: str
    diff: str
    added: int
    removed: int


def changes_of(plan: PlanPort, here: str) -> list[FileChange]:
    """What a plan would change. `here`: a directory and "/", left out of the names. PURE."""
    return [
        FileChange(
            name=step.path.removeprefix(here),
            remark="is removed" if step.data is None else "comes back" if step.now is None else "",
            diff=step.diff.text,
            added=step.diff.added,
            removed=step.diff.removed,
        )
        for step in plan.steps
    ]


def difference_lines(changes: Sequence[FileChange], palette: Palette, *, width: int) -> list[Text]:
    """Every file with its difference, at most MAX_LINES lines of those. PURE."""
    lines: list[Text] = []
    room = MAX_LINES
    for change in changes:
        head = Text(safe_line(change.name, max_cells=width), palette.style(palette.accent, bold=True), end="")
        head.append(f"  +{change.added} −{change.removed}", palette.style(palette.muted))
        head.append(f"  {change.remark}" if change.remark else "", palette.style(palette.warn))
        lines += [*([Text("", end="")] if lines else []), head]
        text = safe_text(change.diff)
        drawn = diff_lines(text, path=safe_line(change.name), width=width, palette=palette) if text and room else []
        lines += islice(drawn, room)
        left_out, room = max(0, len(drawn) - room), max(0, room - len(drawn))
        if left_out or (text and not drawn):
            lines.append(Text(f"… {left_out or text.count(chr(10))} more lines", palette.style(palette.muted), end=""))
        elif not text:
            lines.append(Text("(no text)", palette.style(palette.muted), end=""))
    return lines


class DifferenceScreen(ModalScreen[bool]):
    """Closes with True on y, with False or None on Esc; n and p go to the next and previous file.

    Args:
        title: A question, or what the changes are.
        asks: It is a question. What is only looked at has the whole width, for two columns.
    """

    def __init__(self, palette: Palette, title: str, changes: Sequence[FileChange], *, asks: bool = True) -> None:
        super().__init__()
        self._palette, self._title, self._changes, self._asks = palette, title, tuple(changes), asks
        self._heads: list[int] = []

    def compose(self) -> ComposeResult:
        """One page that scrolls."""
        with VerticalScroll(id="sheet", classes="" if self._asks else "-whole") as box:
            box.border_title = Content(self._title)
            files = ["n next file", "p previous"] if len(self._changes) > 1 else []
            box.border_subtitle = Content(" · ".join([*(["y changes all of these files"] if self._asks else []), *files, "Esc closes"]))
            yield Static(markup=False)

    def on_mount(self) -> None:
        """The arrows scroll."""
        self.query_one("#sheet").focus()

    def on_resize(self, event: events.Resize) -> None:
        """The lines fit the width."""
        width = max(12, (min(WIDTH, event.size.width) if self._asks else event.size.width) - AROUND)
        lines = difference_lines(self._changes, self._palette, width=width)
        self._heads = [0, *(index + 1 for index, line in enumerate(lines) if not line.plain)]  # only between files is a line empty
        self.query_one("#sheet Static", Static).update(Text("\n").join(lines))

    def on_key(self, event: events.Key) -> None:
        """Yes or no, or another file."""
        match event.key:
            case "y" if self._asks:
                self.dismiss(True)  # noqa: FBT003 - what the person said
            case "escape":
                self.dismiss(False)  # noqa: FBT003 - the same
            case "n" | "p":
                self._go_to_file(1 if event.key == "n" else -1)
            case _:
                return
        event.stop()

    def _go_to_file(self, step: int) -> None:
        box = self.query_one("#sheet", VerticalScroll)
        heads = [head for head in self._heads if (head > box.scroll_y if step > 0 else head < box.scroll_y)]
        if heads:
            box.scroll_to(y=heads[0] if step > 0 else heads[-1], animate=False)

    def action_page(self, direction: int) -> None:
        """PageUp and PageDown."""
        box = self.query_one("#sheet", VerticalScroll)
        box.scroll_relative(y=direction * max(1, box.size.height - 1), animate=False)

    def action_go_start(self) -> None:
        """Ctrl+Home."""
        self.query_one("#sheet", VerticalScroll).scroll_home(animate=False)

    def action_go_end(self) -> None:
        """Ctrl+End."""
        self.query_one("#sheet", VerticalScroll).scroll_end(animate=False)
