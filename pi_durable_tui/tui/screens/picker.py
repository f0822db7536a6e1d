"""Picks one of many: a list, what is typed to narrow it, and a preview of the chosen one.

Texts are foreign and made safe when drawn (rule SA-1). It knows nothing of what it lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget

from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.safe_text import safe_line, safe_text
from pi_durable_tui.tui.screens.fitting import fitting

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Generic[V]):
    """One line of the list.

    Attributes:
        stem: Drawn in front of the label, quietly: a tree's lines.
        note: Stands behind the label, as plain as it is: a value.
        badge: A short remark that stands out, such as "unfinished".
        detail: Said at the right: when, how many.
        preview: What is shown of it while it is chosen.
    """

    value: V
    label: str
    stem: str = ""
    note: str = ""
    badge: str = ""
    detail: str = ""
    preview: str = ""

    @property
    def more(self) -> str:
        """What can be searched beside the label."""
        return f"{self.note} {self.badge} {self.detail} {self.preview}"


@dataclass(frozen=True, slots=True)
class Picked(Generic[V]):
    """What was chosen, and by which key: "enter" or one of the extra ones."""

    value: V
    key: str


class PickerScreen(ModalScreen[Picked[V] | None], Generic[V]):
    """Closes with a Picked, or with None on Esc.

    Args:
        keys: Further keys that pick, with what they do: {"f": "forks there"}. Where one is a letter, typing does not narrow the list.
        start: Index of the choice that is chosen first.
        enter: What Enter does, in words; "": as usual.
        own: What is typed as a choice of its own, offered below all that fits; None: it is none.
    """

    def __init__(
        self,
        palette: Palette,
        title: str,
        choices: Sequence[Choice[V]],
        *,
        keys: dict[str, str] | None = None,
        start: int = 0,
        enter: str = "",
        own: Callable[[str], Choice[V] | None] | None = None,
    ) -> None:
        super().__init__()
        self._palette, self._title, self._all, self._keys = palette, title, tuple(choices), keys or {}
        self._enter, self._own = enter, own
        self._is_searched = not any(len(key) == 1 for key in self._keys)
        self._typed = ""
        self._list: _Choices[V] = _Choices(palette, self._all, start)
        self._preview = _Preview(palette)

    def refill(self, title: str, choices: Sequence[Choice[V]]) -> None:
        """More is known now: the same list with these; what is typed and chosen stays."""
        self._title, self._all = title, tuple(choices)
        self._narrow(self._typed, keep=True)
        self._show()

    def compose(self) -> ComposeResult:
        """The list above the preview."""
        with Vertical(id="picker"):
            yield self._list
            yield self._preview

    def on_mount(self) -> None:
        """The first choice is previewed."""
        self._show()

    def on_resize(self) -> None:
        """Another number of lines fits."""
        self.call_after_refresh(self._show)

    def on_key(self, event: events.Key) -> None:
        """Moving, picking, narrowing."""
        event.stop()
        match event.key:
            case "up" | "down":
                self._list.move(1 if event.key == "down" else -1)
            case "enter":
                self._pick("enter")
            case "escape":
                self.dismiss(None)
            case "backspace":
                self._narrow(self._typed[:-1])
            case _ if event.key in self._keys:
                self._pick(event.key)
            case _ if event.character is not None and event.is_printable and self._is_searched:
                self._narrow(self._typed + event.character)
            case _:
                pass
        self._show()

    def on__choices_clicked(self, message: _Choices.Clicked) -> None:
        """A click previews, a second one picks."""
        if message.is_double:
            self._pick("enter")
        self._show()

    def action_page(self, direction: int) -> None:
        """PageUp and PageDown."""
        self._list.move(direction * max(1, self._list.size.height - 1), around=False)
        self._show()

    def action_go_start(self) -> None:
        """Ctrl+Home."""
        self._list.move(-len(self._all), around=False)
        self._show()

    def action_go_end(self) -> None:
        """Ctrl+End."""
        self._list.move(len(self._all), around=False)
        self._show()

    def _pick(self, key: str) -> None:
        chosen = self._list.chosen
        if chosen is not None:
            self.dismiss(Picked(chosen.value, key))

    def _narrow(self, typed: str, *, keep: bool = False) -> None:
        if keep or typed != self._typed:
            self._typed = typed
            found = fitting(self._all, typed, label=lambda choice: choice.label, more=lambda choice: choice.more)
            own = self._own(typed.strip()) if self._own is not None and typed.strip() else None
            self._list.offer((*found, *((own,) if own is not None else ())), keep=keep)

    def _show(self) -> None:
        for box in self.query("#picker"):  # it is not there yet while the screen is being made
            box.border_title = Content(safe_line(self._title))
            box.border_subtitle = Content(self._words())
        self._list.typed = self._typed
        self._preview.show(self._list.chosen.preview if self._list.chosen is not None else "")
        self._list.refresh()

    def _words(self) -> str:
        """Where in the list the chosen one is when not all of it is seen, and what keys do."""
        enter = f"Enter {self._enter or ('takes it' if self._is_searched else 'opens')}"
        more = [f"{key.capitalize() if len(key) > 1 else key} {what}" for key, what in self._keys.items()]
        place = [self._list.place] if self._list.place else []
        return " · ".join([*place, *(["type to search"] if self._is_searched else []), enter, *more, "Esc closes"])


class _Choices(Widget, Generic[V], can_focus=True):
    """The list; draws only what is visible."""

    class Clicked(Message):
        """A line was chosen with the mouse."""

        def __init__(self, *, is_double: bool) -> None:
            super().__init__()
            self.is_double = is_double

    def __init__(self, palette: Palette, choices: Sequence[Choice[V]], start: int) -> None:
        super().__init__(id="picker-list")
        self._palette, self._choices, self._index, self._top = palette, tuple(choices), max(0, min(start, len(choices) - 1)), 0
        self.typed = ""

    @property
    def chosen(self) -> Choice[V] | None:
        return self._choices[self._index] if self._choices else None

    @property
    def place(self) -> str:
        is_cut = 0 < self.size.height - self._head_lines < len(self._choices)
        return f"{self._index + 1} of {len(self._choices)}" if is_cut else ""

    def offer(self, choices: Sequence[Choice[V]], *, keep: bool) -> None:
        before = self.chosen if keep else None
        self._choices, self._index, self._top = tuple(choices), 0, 0
        if before is not None:
            self._index = next((index for index, choice in enumerate(choices) if choice.value == before.value), 0)

    def move(self, step: int, *, around: bool = True) -> None:
        count = len(self._choices)
        if count:
            self._index = (self._index + step) % count if around else max(0, min(self._index + step, count - 1))

    def on_click(self, event: events.Click) -> None:
        index = self._top + event.y - self._head_lines
        if event.y >= self._head_lines and index < len(self._choices):
            self._index = index
            self.post_message(self.Clicked(is_double=event.chain > 1))

    @property
    def _note_at(self) -> int:
        """Notes stand below each other."""
        return 2 + max((cell_len(choice.label) for choice in self._choices if choice.note), default=0)

    @property
    def _head_lines(self) -> int:
        return 1 if self.typed else 0

    def render(self) -> Text:
        palette, width = self._palette, max(10, self.size.width)
        room = max(1, self.size.height - self._head_lines)
        self._top = max(0, min(self._top, self._index), self._index - room + 1)
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        if self.typed:
            text.append("/ ", palette.style(palette.accent, bold=True))
            text.append(f"{safe_line(self.typed, max_cells=width - 4)}\n", palette.style(palette.text))
        if not self._choices:
            text.append("Nothing fits." if self.typed else "Nothing to choose from.", palette.style(palette.muted))
        shown = self._choices[self._top : self._top + room]
        for index, choice in enumerate(shown):
            line = self._line(choice, is_chosen=self._top + index == self._index, width=width)
            text.append_text(line)
            text.append("\n" if index < len(shown) - 1 else "")
        return text

    def _line(self, choice: Choice[V], *, is_chosen: bool, width: int) -> Text:
        palette = self._palette
        detail = Text(safe_line(choice.detail, max_cells=max(1, width // 2)), palette.style(palette.muted))
        badge = Text(f" {choice.badge}", palette.style(palette.warn)) if choice.badge else Text()
        head = Text.assemble(
            ("› " if is_chosen else "  ", palette.style(palette.accent, bold=True)),
            (choice.stem, palette.style(palette.faint)),
            (safe_line(choice.label, max_cells=width), palette.style(palette.accent if is_chosen else palette.text, bold=is_chosen)),
            (" " * (self._note_at - cell_len(choice.label)) if choice.note else "", palette.style()),
            (safe_line(choice.note, max_cells=width), palette.style(palette.text if is_chosen else palette.muted)),
        )
        room = max(4, width - detail.cell_len - badge.cell_len - 2)
        if head.cell_len > room:
            head.truncate(room, overflow="ellipsis")
        head.append_text(badge)
        return Text.assemble(head, " " * max(1, width - head.cell_len - detail.cell_len - 1), detail)


class _Preview(Widget, can_focus=False):
    """What is shown of the chosen one."""

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="picker-preview")
        self._palette, self._text = palette, ""

    def show(self, text: str) -> None:
        if text != self._text:
            self._text = text
            self.refresh()

    def render(self) -> Text:
        return Text(safe_text(self._text), self._palette.style(self._palette.muted), overflow="ellipsis", end="")
