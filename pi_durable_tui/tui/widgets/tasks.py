"""The panel of the task graph: what is at work in the session, as a tree (rule OB-4; terminal.md, section 3).

It draws the nodes it is given, and says which one shall be stopped or opened. It asks nothing by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from pi_durable_tui.tui.actions.tree import TaskRow, task_rows

if TYPE_CHECKING:
    from pi_durable_tui.harness.observation.inspection import TaskNode
    from pi_durable_tui.tui.palette import Palette


class TaskPanel(Widget, can_focus=True):
    """Hidden until somebody wants it."""

    class StopWanted(Message):
        """The person wants one task and everything below it to stop."""

        def __init__(self, node: TaskNode) -> None:
            super().__init__()
            self.node = node

    class LookWanted(Message):
        """The person wants to see the conversation of a task."""

        def __init__(self, node: TaskNode) -> None:
            super().__init__()
            self.node = node

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="tasks")
        self.palette = palette
        self._rows: tuple[TaskRow, ...] = ()
        self._chosen: int | None = None  # the id of a task, so that the choice stays while others come and go
        self.border_title = Content("At work")
        self.display = False

    @property
    def chosen(self) -> TaskNode | None:
        """The task that keys act on; None while there is none."""
        index = self._index
        return self._rows[index].node if index is not None else None

    def show_nodes(self, nodes: Sequence[TaskNode], now_ms: int) -> None:
        """Draw these from now on."""
        rows = task_rows(nodes, now_ms)
        if rows != self._rows:
            self._rows = rows
            self.refresh()

    def on_key(self, event: events.Key) -> None:
        """Choosing, stopping, opening; what is typed otherwise is not for the panel."""
        node = self.chosen
        match event.key:
            case "up" | "down":
                self._move(1 if event.key == "down" else -1)
            case "x" | "delete" if node is not None:
                self.post_message(self.StopWanted(node))
            case "enter" if node is not None:
                self.post_message(self.LookWanted(node))
            case _:
                return
        event.stop()

    @property
    def _index(self) -> int | None:
        if not self._rows:
            return None
        return next((index for index, row in enumerate(self._rows) if row.node.task_id == self._chosen), 0)

    def _move(self, step: int) -> None:
        index = self._index
        if index is not None:
            self._chosen = self._rows[(index + step) % len(self._rows)].node.task_id
            self.refresh()

    def render(self) -> Text:
        """Two lines for each task: what it is, and how it is doing."""
        palette = self.palette
        text = Text(end="")
        if not self._rows:
            text.append("Nothing is at work.", palette.style(palette.muted))
        index = self._index or 0
        room = max(1, self.size.height // 2)
        top = max(0, index - room + 1)
        colors = {"text": palette.text, "muted": palette.muted, "accent": palette.accent, "good": palette.good, "warn": palette.warn, "bad": palette.bad}
        shown = self._rows[top : top + room]
        for offset, row in enumerate(shown):
            is_chosen = top + offset == index and self.has_focus
            text.append("" if offset == 0 else "\n")
            text.append("› " if is_chosen else "  ", palette.style(palette.accent, bold=True))
            text.append(row.stem, palette.style(palette.faint))
            text.append(row.label, palette.style(palette.accent if is_chosen else palette.text, bold=is_chosen))
            text.append(f"\n  {_below(row.stem)}", palette.style(palette.faint))
            text.append(row.state, palette.style(colors[row.tone]))
        return text


def _below(stem: str) -> str:
    """The lines of a tree that go on below a node."""
    return stem.replace("├ ", "│ ").replace("└ ", "  ")
