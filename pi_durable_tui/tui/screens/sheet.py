"""A page of names and what belongs to them: keys and commands, the session, the context. Closes with Esc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from pi_durable_tui.tui.commands import COMMANDS
from pi_durable_tui.tui.keymap import APP_KEYS, COMPOSER_KEYS
from pi_durable_tui.tui.keys.bindings import Keymap
from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.safe_text import safe_line

MAX_NAME_CELLS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A heading and its lines, each a name and what belongs to it; without lines, a remark. Foreign text is allowed: it is made safe when drawn."""

    heading: str
    lines: tuple[tuple[str, str], ...]


class SheetScreen(ModalScreen[None]):
    """Closes with Esc, q or Enter."""

    BINDINGS = [("escape,q,enter", "dismiss", "Close")]

    def __init__(self, palette: Palette, title: str, parts: Sequence[Part]) -> None:
        super().__init__()
        self._palette, self._title, self._parts = palette, title, tuple(parts)

    def compose(self) -> ComposeResult:
        """One block of text that scrolls when it does not fit."""
        with VerticalScroll(id="sheet") as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("Esc closes")
            yield Static(self.page(), markup=False)

    def page(self) -> Group:
        """The parts in two columns, one name column for all; what does not fit beside its name goes on below it."""
        palette = self._palette
        width = max((cell_len(safe_line(name)) for part in self._parts for name, _ in part.lines), default=0) + 3
        blocks: list[RenderableType] = []
        for index, part in enumerate(self._parts):
            blocks += [Text()] if index else []
            style = palette.style(palette.accent, bold=True) if part.lines else palette.style(palette.muted, italic=True)
            blocks.append(Text(safe_line(part.heading), style))
            table = Table.grid(expand=True)
            table.add_column(width=min(width, MAX_NAME_CELLS), overflow="fold")
            table.add_column(ratio=1, overflow="fold")  # a path is of no use without its end
            for name, what in part.lines:
                table.add_row(Text(safe_line(name), palette.style(palette.text)), Text(safe_line(what), palette.style(palette.muted)))
            blocks += [table] if part.lines else []
        return Group(*blocks)

    def action_page(self, direction: int) -> None:
        """PageUp and PageDown."""
        box = self.query_one("#sheet", VerticalScroll)
        box.scroll_relative(y=direction * max(1, box.size.height - 1), animate=False)


def help_parts(keymap: Keymap) -> tuple[Part, ...]:
    """Commands and keys, from the tables: what works is in them, and nothing else."""
    commands = Part(heading="Commands", lines=tuple((f"/{command.name} {command.argument}".strip(), command.help) for command in COMMANDS))
    return (commands, *key_parts(keymap))


def key_parts(keymap: Keymap, *, named: bool = False) -> tuple[Part, ...]:
    """The keys that are bound, for people. `named`: with the names that the file of keys calls their actions."""
    return tuple(
        Part(heading=heading, lines=tuple((keymap.all_shown(key.name), f"{key.help} · {key.name}" if named else key.help) for key in table))
        for heading, table in (("Keys", APP_KEYS), ("Keys of the composer", COMPOSER_KEYS))
    )
