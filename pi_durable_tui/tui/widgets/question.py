"""The card that asks a person before something is done (rules TU-19, SA-3).

It shows exactly what would be done, stands in rows of its own behind a border that no text of a transcript can draw, and takes
no answer in its first moments, so that a key meant for the composer allows nothing. A letter answers only when no other key follows
at once: "wait" must not be heard as "a", nor "why?" as "y". What is written goes into the composer. The question is stored state:
the card goes when the state says that it is answered, not when a key was pressed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct
from rich.text import Text
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from pi_durable_tui.tui.draw.diff import diff_lines
from pi_durable_tui.tui.draw.markdown import MarkdownPainter
from pi_durable_tui.tui.draw.paint import new_console, to_segments
from pi_durable_tui.tui.draw.syntax import highlight
from pi_durable_tui.tui.safe_text import safe_line, safe_text

if TYPE_CHECKING:
    from pi_durable_tui.harness.live import ToolSlot
    from pi_durable_tui.tui.palette import Palette

Decision: TypeAlias = Literal["allow", "always", "deny"]

GRACE_MS = 350
ALONE_GAPS = 16
"""A letter after which nothing comes for so many gaps of typing (0.24 s) answers; with a key in that time it is the beginning of a word."""
SHORT_LINES = 8  # of a call that is surely seen whole
_WALLS = {
    "files": "In a sandbox: it can change files of the working directory only.",
    "full": "In a sandbox: it can change files of the working directory only, and reaches no network.",
}
_BEHIND = "It runs on in the background until it ends, is stopped, or the program ends."


_LETTERS: dict[str, Decision] = {"y": "allow", "a": "always", "n": "deny"}


class _Letter(Struct, frozen=True):
    """A letter that may be an answer, or the first one of a word."""

    character: str
    decision: Decision
    question_id: int | None


class Question(ScrollView, can_focus=True):
    """Asks about one call; hidden while there is nothing to ask.

    Args:
        write: Puts what is no answer into the composer, and leads the keys that follow there too.
        alone_s: ALONE_GAPS in seconds; 0 where keys come from a program: then a letter answers at once.
    """

    ALLOW_SELECT = False

    class Answered(Message):
        """A person decided."""

        def __init__(self, question_id: int, decision: Decision) -> None:
            super().__init__()
            self.question_id = question_id
            self.decision: Decision = decision

    def __init__(self, palette: Palette, monotonic_ms: Callable[[], float], write: Callable[[str], None], *, alone_s: float) -> None:
        super().__init__(id="question")
        self.palette = palette
        self._monotonic_ms, self._write = monotonic_ms, write
        self._alone_s = alone_s
        self._letter: _Letter | None = None
        self._timer: Timer | None = None
        self._title = self._answers = ""
        self._slot: ToolSlot | None = None
        self._lines: list[Text] = []
        self._drawn_width = 0
        self._shown_ms = 0.0
        self._wrapping = new_console()
        self.display = False

    @property
    def question_id(self) -> int | None:
        """The open question; None while none is asked."""
        return self._slot.question if self._slot is not None else None

    def ask(self, slot: ToolSlot | None, *, others: int = 0, asker: str = "") -> None:
        """Show the question of `slot`; None hides the card.

        Args:
            others: How many more wait behind it.
            asker: The subagent that makes the call; "" for the conversation itself.
        """
        if slot is None:
            self._slot, self.display = None, False
            return
        more = f" · {others} more after this" if others else ""
        whose = f" · subagent {safe_line(asker, max_cells=40)}" if asker else ""
        self._title = f"{self._heading(slot)}{whose}{more}"
        always = "a always · " if self._rule(slot) else ""
        self._answers = f"y or Enter allows · {always}n or Esc denies"
        if self._slot is None or self._slot.question != slot.question:
            self._shown_ms = self._monotonic_ms()
            self._slot = slot
            self.display = True
            self._layout()
            self.scroll_to(y=0, animate=False, immediate=True)
        self._slot = slot
        self._frame()

    def decide(self, decision: Decision) -> None:
        """Take an answer, unless the card has only just appeared, or offers no rule to be kept always."""
        if decision == "always" and (self._slot is None or not self._rule(self._slot)):
            return
        if self._slot is not None and self._slot.question is not None and self._monotonic_ms() - self._shown_ms >= GRACE_MS:
            self.post_message(self.Answered(self._slot.question, decision))

    def appear(self) -> None:
        """It has only just been seen: no answer is taken for a moment."""
        self._shown_ms = self._monotonic_ms()

    def set_palette(self, palette: Palette) -> None:
        """Draw it in other colours."""
        self.palette = palette
        if self._slot is not None:
            self._layout()

    def page(self, direction: int) -> None:
        """Scroll by a screen less a line; -1 up, 1 down."""
        self.scroll_to(y=self.scroll_y + direction * max(1, self.scrollable_content_region.height - 1), animate=False, immediate=True)

    def on_key(self, event: events.Key) -> None:
        """Answers and scrolling; what else can be written is written, and so are keys that came before the composer had the focus."""
        letter, self._letter = self._letter, None
        if self._timer is not None:
            self._timer.stop()
        if self.screen.focused is not self:
            event.stop()
            if event.is_printable and event.character is not None:
                self._write(event.character)
            return
        match event.key:
            case "enter":
                self.decide(letter.decision if letter is not None else "allow")
            case "escape":
                self.decide("deny")
            case "up" | "down":
                self.scroll_to(y=self.scroll_y + (1 if event.key == "down" else -1), animate=False, immediate=True)
            case _ if event.is_printable and event.character is not None:
                self._take(event.character, letter)
            case _:
                return
        event.stop()

    def on_focus(self) -> None:
        """Keys answer now, but not the one that was meant for something else."""
        self.appear()
        self._frame()

    def on_blur(self) -> None:
        """Keys go elsewhere now, and the card says how they come back."""
        self._letter = None
        self._frame()

    def on_resize(self, _event: events.Resize) -> None:
        """Lines are drawn for one width."""
        if self._slot is not None and self._drawn_width != self.scrollable_content_region.width:
            self._layout()
        self._frame()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As high as its lines; the style sheet caps it."""
        del container, viewport, width
        return max(1, len(self._lines))

    def render_line(self, y: int) -> Strip:
        """The strip of line `y` of the visible part."""
        width = self.scrollable_content_region.width
        base = self.palette.style(self.palette.text, on=self.palette.raised)
        line = y + self.scroll_offset.y
        if line >= len(self._lines):
            return Strip.blank(width, base)
        return Strip(to_segments(self._lines[line], base, self._wrapping)).adjust_cell_length(width, base)

    def _take(self, character: str, before: _Letter | None) -> None:
        """Hold a letter that stands alone so far; what goes on is a word. `before`: what is held."""
        decision = _LETTERS.get(character.lower())
        is_answer = decision is not None and (decision != "always" or (self._slot is not None and bool(self._rule(self._slot))))
        if before is not None or decision is None or not is_answer:
            self._write((before.character if before is not None else "") + character)
        elif self._alone_s:
            self._letter = _Letter(character, decision, self.question_id)
            self._timer = self.set_timer(self._alone_s, self._hear)
        else:
            self.decide(decision)

    def _hear(self) -> None:
        """Nothing came after the letter: it is the answer to what was asked then."""
        letter, self._letter = self._letter, None
        if letter is not None and letter.question_id == self.question_id:
            self.decide(letter.decision)

    def _frame(self) -> None:
        """What is asked, how much of it there is, and what keys do."""
        if self._slot is None:
            return
        is_long = len(self._lines) > self.scrollable_content_region.height > 0
        length = f" · {len(self._lines)} lines, PageDown shows more" if is_long else ""
        self.border_title = Content(self._title + length)
        is_aside = self.screen.focused not in (self, None)  # nothing has the focus while the window has none
        self.border_subtitle = Content("Esc comes back here to answer" if is_aside else self._answers)

    def _layout(self) -> None:
        width = self.scrollable_content_region.width or max(8, self.app.size.width - 6)
        self._drawn_width = width
        self._lines = self._content(self._slot, width) if self._slot is not None else []
        self.virtual_size = Size(width, len(self._lines))
        self.refresh(layout=True)

    def _heading(self, slot: ToolSlot) -> str:
        kind = {"bash": "Run this command?", "edit": "Make this change?", "write": "Write this file?"}
        return kind.get(slot.name, f"Allow {safe_line(slot.name, max_cells=40)}?")

    def _rule(self, slot: ToolSlot) -> str:
        """The rule that "always" would make; "" when none is offered."""
        rule = (slot.question_details or {}).get("rule")
        return safe_line(rule) if isinstance(rule, str) else ""

    def _content(self, slot: ToolSlot, width: int) -> list[Text]:
        """Why it is asked, what would be done, and what "always" would mean; a long call comes last, so that all is seen before it."""
        painter = MarkdownPainter(width=width, palette=self.palette, console=self._wrapping)
        reason, rule = (slot.question_details or {}).get("reason"), self._rule(slot)
        quiet, warning = self.palette.style(self.palette.muted), self.palette.style(self.palette.warn)
        before = painter.wrap(Text(safe_line(reason), warning, end=""), width) if isinstance(reason, str) else []
        wall = _WALLS.get(str((slot.question_details or {}).get("sandbox")))
        before += painter.wrap(Text(wall, quiet, end=""), width) if wall is not None else []
        is_behind = (slot.question_details or {}).get("background") is True
        before += painter.wrap(Text(_BEHIND, quiet, end=""), width) if is_behind else []
        after = painter.wrap(Text(f"a always: {rule}", quiet, end=""), width) if rule else []
        call = self._call(slot, width, painter)
        parts = (before, call, after) if len(call) <= SHORT_LINES else (before, after, call)
        first, *others = [part for part in parts if part]
        return [*first, *(line for part in others for line in (Text("", end=""), *part))]

    def _call(self, slot: ToolSlot, width: int, painter: MarkdownPainter) -> list[Text]:
        palette = self.palette
        details = slot.question_details or {}
        diff, command, path = details.get("diff"), slot.arguments.get("command"), slot.arguments.get("path")
        if isinstance(diff, str) and diff:
            head = Text(safe_line(path if isinstance(path, str) else slot.title), palette.style(palette.accent, bold=True), end="")
            shown = diff_lines(safe_text(diff), path=safe_line(path) if isinstance(path, str) else "", width=width, palette=palette)
            return [*painter.wrap(head, width), *shown]
        if isinstance(command, str) and slot.name == "bash":  # with others it may be one of several things
            lines = highlight(safe_text(command), "bash", palette, base=palette.style(palette.text))
            return [part for line in lines for part in painter.wrap(line, width)]
        title = Text(safe_line(slot.title), palette.style(palette.accent, bold=True), end="")
        shown_json = safe_text(json.dumps(slot.arguments, indent=2, ensure_ascii=False))
        lines = highlight(shown_json, "json", palette, base=palette.style(palette.text))
        return [*painter.wrap(title, width), *(part for line in lines for part in painter.wrap(line, width))]
