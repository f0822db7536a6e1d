"""The card about calls that a crash cut off (rule TU-9): what became of each nobody knows, and a person may know better.

It is about one call at a time. Until somebody answers nothing is held up, unless the person wished to be asked before work goes on.
It stands in rows of its own behind a border, takes no answer in its first moments, and lets everything that is no answer go to the
composer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rich.text import Text
from textual import events
from textual.content import Content
from textual.widget import Widget

if TYPE_CHECKING:
    from pi_durable_tui.tui.actions.doubt import Answer, Doubt
    from pi_durable_tui.tui.palette import Palette

GRACE_MS = 350
_ANSWERS: tuple[tuple[str, Answer, str], ...] = (
    ("1", "interrupted", "the model knows that it was interrupted (Enter)"),
    ("2", "again", "run it again"),
    ("3", "finished", "it finished; do not run it again"),
    ("4", "skip", "leave it out and go on"),
)

Settle: TypeAlias = "Callable[[Doubt, Answer], None]"


class DoubtCard(Widget, can_focus=True):
    """Hidden while nothing is in doubt and nothing waits for a word."""

    ALLOW_SELECT = False

    def __init__(self, palette: Palette, monotonic_ms: Callable[[], float], done: Callable[[], None]) -> None:
        super().__init__(id="doubt")
        self.palette = palette
        self._monotonic_ms, self._done = monotonic_ms, done
        self._settle: Settle | None = None
        self._resume: Callable[[], None] | None = None
        self._open: tuple[Doubt, ...] = ()
        self._answered: set[int] = set()
        self._waits = False
        self._shown_ms = 0.0
        self._is_typing = False  # a burst of keys arrives before the focus has moved: its digits are text, not answers
        self.display = False

    def equip(self, settle: Settle, resume: Callable[[], None], *, waits: bool) -> None:
        """From now on answers are carried out.

        Args:
            settle: Tells the model what a person said of a call.
            resume: Lets the work go on.
            waits: The work goes on only when the person says so.
        """
        self._settle, self._resume, self._waits = settle, resume, waits

    def begin(self) -> None:
        """Another conversation is shown."""
        self._answered.clear()
        self.show_doubts((), has_work=False)

    def show_doubts(self, doubts: Sequence[Doubt], *, has_work: bool) -> None:
        """Ask about these, as far as they were not answered; `has_work`: something is unfinished and may wait for a word."""
        self._open = tuple(doubt for doubt in doubts if doubt.task_id not in self._answered)
        was_shown = self.display
        self.display = bool(self._open) or (self._waits and has_work)
        if self.display:
            number = f" · {len(self._open) - 1} more after this" if len(self._open) > 1 else ""
            self.border_title = Content(f"What became of this call?{number}" if self._open else "Go on with what was cut off?")
            self.border_subtitle = Content("Esc: not now" if self._waits else "the work goes on meanwhile · Esc closes")
        if self.display and not was_shown:
            self._shown_ms = self._monotonic_ms()
            self.focus()
        self.refresh(layout=self.display)

    def answer(self, answer: Answer) -> None:
        """Take an answer, unless the card has only just appeared."""
        if not self.display or self._monotonic_ms() - self._shown_ms < GRACE_MS:
            return
        if self._open and self._settle is not None:
            doubt, *_ = self._open
            self._answered.add(doubt.task_id)
            self._settle(doubt, answer)
        self._next()

    def put_off(self) -> bool:
        """Esc: what the results say stands; work that waits goes on waiting. False when the card is not shown."""
        if not self.display:
            return False
        self._answered |= {doubt.task_id for doubt in self._open}
        self._waits = False
        self._open, self.display = (), False
        self._done()
        return True

    def on_focus(self) -> None:
        """Keys are answers again."""
        self._is_typing = False

    def on_key(self, event: events.Key) -> None:
        """Answers; a key that is none goes where typing goes, and so does all that follows it."""
        if self._is_typing:
            return
        found: Answer | None = next((answer for key, answer, _ in _ANSWERS if key == event.key), None)
        if event.key == "enter":
            self.answer("interrupted")
        elif found is not None and self._open:
            self.answer(found)
        else:
            self._is_typing = event.is_printable
            return
        event.stop()

    def render(self) -> Text:
        """The call, then the answers."""
        palette = self.palette
        text = Text(end="")
        if not self._open:
            text.append("Enter goes on with it; so does a message.", palette.style(palette.text))
            return text
        text.append(f"{self._open[0].title}\n", palette.style(palette.accent, bold=True))
        text.append("It was cut off after it had begun, and may have done all, some or nothing of it.\n", palette.style(palette.muted))
        for index, (key, _, words) in enumerate(_ANSWERS):
            text.append(f"{key} ", palette.style(palette.warn, bold=True))
            text.append(words + ("\n" if index < len(_ANSWERS) - 1 else ""), palette.style(palette.text))
        return text

    def _next(self) -> None:
        left = tuple(doubt for doubt in self._open if doubt.task_id not in self._answered)
        if left:
            self.show_doubts(left, has_work=self._waits)
            return
        waited, self._waits = self._waits, False
        self._open, self.display = (), False
        if waited and self._resume is not None:
            self._resume()
        self._done()
