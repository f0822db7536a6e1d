"""The composer: what a person types until it is sent (rules TU-10, TU-12; CASE-E3).

Text comes in through `safe_input` only, so no paste can bring a control character onto the screen. Lines that arrive faster than
anybody types are a paste, whatever the terminal calls them: their line ends are new lines and send nothing. It stores nothing
itself; it tells what stands in it, and the app hands that on.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from textual import events
from textual.binding import Binding
from textual.document._document import Document
from textual.message import Message
from textual.widgets import TextArea

from pi_durable_tui.tui.commands import Offer, completions
from pi_durable_tui.tui.safe_text import safe_input
from pi_durable_tui.tui.widgets.menu import Menu

TYPING_GAP_S = 0.015
FOLD_CHARS = 4_000
FOLD_LINES = 60
_HISTORY = 200

SendMode: TypeAlias = Literal["steer", "followUp"]


def is_burst(gap_s: float, *, limit_s: float = TYPING_GAP_S) -> bool:
    """Whether a key that came `gap_s` seconds after the one before was pasted rather than typed."""
    return gap_s < limit_s


class Prompt(TextArea):
    """See the module.

    Args:
        menu: Shows the commands that a "/" may become.
        typing_gap_s: Keys closer together than this are a paste.
    """

    BINDINGS = [Binding("ctrl+underscore", "undo", show=False)]

    class Sent(Message):
        """The person wants the text to go out."""

        def __init__(self, text: str, mode: SendMode) -> None:
            super().__init__()
            self.text = text
            self.mode: SendMode = mode

    class DraftChanged(Message):
        """Something was typed, pasted or deleted."""

        def __init__(self, text: str, cursor: int) -> None:
            super().__init__()
            self.text = text
            self.cursor = cursor

    def __init__(self, menu: Menu, *, typing_gap_s: float = TYPING_GAP_S) -> None:
        super().__init__(id="prompt", soft_wrap=True, compact=True, highlight_cursor_line=False, placeholder="Ask for work, or type / for commands")
        self.offers: tuple[Offer, ...] = ()
        self._menu = menu
        self._typing_gap_s = typing_gap_s
        self._last_key_s = float("-inf")
        self._folded: dict[str, str] = {}
        self._sent: list[str] = []
        self._recalled: int | None = None
        self._stashed = ""
        self._told = ""

    @property
    def _lines(self) -> Document:
        return cast("Document", self.document)

    @property
    def full_text(self) -> str:
        """What would be sent: the text with folded pastes in full."""
        return self._unfold(self.text)

    def put(self, text: str, cursor: int | None = None) -> None:
        """Replace everything by `text`, the cursor at `cursor` characters or at the end."""
        text = safe_input(text)
        self._folded.clear()
        shown = self._fold(text)
        self.load_text(shown)
        end = len(shown) if cursor is None or shown != text else max(0, min(cursor, len(shown)))
        self.move_cursor(self._lines.get_location_from_index(end))

    def put_back(self, texts: list[str]) -> None:
        """Bring messages back that were not delivered, ahead of what is typed."""
        typed = self.full_text
        self.put("\n\n".join([*texts, *([typed] if typed.strip() else [])]))

    def remember(self, text: str) -> None:
        """Make `text` the newest of what Up recalls."""
        if text.strip() and self._sent[-1:] != [text]:
            self._sent = [*self._sent, text][-_HISTORY:]
        self._recalled = None

    def send(self, mode: SendMode) -> None:
        """Hand the text out and be empty; does nothing while it is blank."""
        text = self.full_text.strip("\n")
        if not text.strip():
            return
        self.remember(text)
        self._told = ""  # the stored draft is emptied by whoever stores the message, after that: a kill in between loses neither
        self.put("")
        self._menu.offer(())
        self.post_message(self.Sent(text, mode))

    async def _on_key(self, event: events.Key) -> None:
        gap_s, self._last_key_s = event.time - self._last_key_s, event.time
        handled = True
        match event.key:
            case "enter" if not is_burst(gap_s, limit_s=self._typing_gap_s):
                self._enter()
            case "enter" | "shift+enter" | "ctrl+j":
                self._insert("\n")
            case "tab":
                if self._menu.chosen is not None:
                    self.put(f"/{self._menu.chosen.name} ")
            case _:
                handled = False
        if handled:
            event.stop()
            event.prevent_default()
        else:
            await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        if not self.read_only:
            self._insert(self._fold(safe_input(event.text)))

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Tell what stands here now, and offer commands."""
        event.stop()
        self._menu.offer(completions(self.text, self.offers))
        if self.text != self._told:
            self._told = self.text
            cursor = self._lines.get_index_from_location(self.cursor_location)
            self.post_message(self.DraftChanged(self.full_text, len(self._unfold(self.text[:cursor]))))

    def action_cursor_up(self, select: bool = False) -> None:
        """Up; on the first line to what was sent before."""
        if self._menu.chosen is not None:
            self._menu.move(-1)
        elif not select and self.navigator.is_first_wrapped_line(self.cursor_location) and self._sent:
            self._recall(-1)
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Down; on the last line back towards what was being typed."""
        if self._menu.chosen is not None:
            self._menu.move(1)
        elif not select and self.navigator.is_last_wrapped_line(self.cursor_location) and self._recalled is not None:
            self._recall(1)
        else:
            super().action_cursor_down(select)

    def action_delete_left(self) -> None:
        """Backspace; a folded paste goes as a whole."""
        index = self._lines.get_index_from_location(self.cursor_location)
        before = self.text[:index]
        for marker in self._folded:
            if before.endswith(marker) and self.selection.is_empty:
                self.delete(self._lines.get_location_from_index(index - len(marker)), self.cursor_location)
                return
        super().action_delete_left()

    def _enter(self) -> None:
        chosen = self._menu.chosen
        if chosen is not None and self.text.strip() != f"/{chosen.name}":
            self.put(f"/{chosen.name}")
        self.send("steer")

    def _insert(self, text: str) -> None:
        if text and not self.read_only:
            result = self._replace_via_keyboard(text, *self.selection)
            if result is not None:
                self.move_cursor(result.end_location)

    def _recall(self, step: int) -> None:
        if self._recalled is None:
            self._stashed, self._recalled = self.full_text, len(self._sent)
        self._recalled = max(0, self._recalled + step)
        if self._recalled >= len(self._sent):
            self._recalled = None
            self.put(self._stashed)
        else:
            self.put(self._sent[self._recalled])

    def _fold(self, text: str) -> str:
        """A long text as a marker that stands for it."""
        lines = text.count("\n") + 1
        if len(text) <= FOLD_CHARS and lines <= FOLD_LINES:
            return text
        marker = f"[pasted text {len(self._folded) + 1}: {len(text):,} characters, {lines:,} line{'s' if lines > 1 else ''}]"
        self._folded[marker] = text
        return marker

    def _unfold(self, text: str) -> str:
        for marker, folded in self._folded.items():
            text = text.replace(marker, folded)
        return text
