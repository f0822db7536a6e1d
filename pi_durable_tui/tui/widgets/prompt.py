"""The composer: what a person types until it is sent (rules TU-10, TU-12; CASE-E3).

Text comes in through `safe_input` only, so no paste can bring a control character onto the screen. Lines that arrive faster than
anybody types are a paste, whatever the terminal calls them: their line ends are new lines and send nothing. A long paste stands as a
marker that no key can break: whoever touches a part of it touches all of it. It stores nothing itself; it tells what stands in it,
and the app hands that on.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from textual import events
from textual.document._document import Document, EditResult, Location
from textual.document._edit import Edit
from textual.message import Message
from textual.widgets import TextArea

from pi_durable_tui.errors import EnvironmentFailure
from pi_durable_tui.tui.commands import Offer, completions
from pi_durable_tui.tui.safe_text import safe_input
from pi_durable_tui.tui.terminal_app import TerminalApp
from pi_durable_tui.tui.widgets.choices import Choice, Choices
from pi_durable_tui.tui.widgets.composing import tokens
from pi_durable_tui.tui.widgets.composing.kill_ring import KillRing

if TYPE_CHECKING:
    from pi_durable_tui.tui.ports import DeskPort
    from pi_durable_tui.tui.widgets.menu import Menu

TYPING_GAP_S = 0.015
FOLD_CHARS = 4_000
FOLD_LINES = 60
_HISTORY = 1_000
_OFFERED = 50

SendMode: TypeAlias = Literal["steer", "followUp"]
FetchHistory: TypeAlias = Callable[[], Awaitable[Sequence[str]]]

_KILLS = frozenset({"kill_word_left", "kill_word_right", "kill_line_left", "kill_line_right"})


def is_burst(gap_s: float, *, limit_s: float = TYPING_GAP_S) -> bool:
    """Whether a key that came `gap_s` seconds after the one before was pasted rather than typed."""
    return gap_s < limit_s


class Prompt(TextArea, inherit_bindings=False):
    """See the module.

    Args:
        menu: Shows the commands that a "/" may become.
        choices: Shows file names, paths and what was sent before.
        typing_gap_s: Keys closer together than this are a paste.

    Attributes:
        keys: Key -> what it does here; keys that are not in it only type.
        offers: Skills and templates, which "/" offers beside the commands.
    """

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

    class Failed(Message):
        """What the person wanted could not be done."""

        def __init__(self, problem: EnvironmentFailure) -> None:
            super().__init__()
            self.problem = problem

    def __init__(self, menu: Menu, choices: Choices, *, typing_gap_s: float = TYPING_GAP_S) -> None:
        super().__init__(id="prompt", soft_wrap=True, compact=True, highlight_cursor_line=False, placeholder="Ask for work, or type / for commands")
        self.offers: tuple[Offer, ...] = ()
        self.keys: Mapping[str, str] = {}
        self._menu, self._choices = menu, choices
        self._typing_gap_s = typing_gap_s
        self._last_key_s = float("-inf")
        self._folded: dict[str, str] = {}
        self._kills = KillRing()
        self._yanked: tuple[Location, Location] | None = None
        self._desk: DeskPort | None = None
        self._fetch_history: FetchHistory | None = None
        self._sent: list[str] = []
        self._recalled: int | None = None
        self._stashed = ""
        self._searched_from: str | None = None  # what stood here when the history was opened
        self._completed: str | None = None  # the text that the offered paths belong to
        self._told = ""

    @property
    def _lines(self) -> Document:
        return cast("Document", self.document)

    @property
    def full_text(self) -> str:
        """What would be sent: the text with folded pastes in full."""
        return self._unfold(self.text)

    def equip(self, desk: DeskPort | None, fetch_history: FetchHistory) -> None:
        """From now on there are file names and an editor, and what was sent before, oldest first, when somebody wants it."""
        self._desk, self._fetch_history = desk, fetch_history

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
        self._choices.close()
        self.post_message(self.Sent(text, mode))

    def leave_aside(self) -> bool:
        """Close the list of choices; False when there was none. What stood here before a search of the history comes back."""
        before, self._searched_from = self._searched_from, None
        if before is not None:
            self.put(before)
        return self._choices.close() or before is not None

    # --------------------------------------------------------------------------------------------------------------- keys

    async def _on_key(self, event: events.Key) -> None:
        gap_s, self._last_key_s = event.time - self._last_key_s, event.time
        action = self.keys.get(event.key)
        if action not in _KILLS:
            self._kills.other_key()
        if action not in {"yank", "rotate_yank"}:
            self._yanked = None
        if action is None:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        await self.run_action("new_line" if event.key == "enter" and is_burst(gap_s, limit_s=self._typing_gap_s) else action)

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        if not self.read_only:
            self._insert(self._fold(safe_input(event.text)))

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Tell what stands here now, and offer what it may become."""
        event.stop()
        text = self.text
        self._menu.offer(completions(text, self.offers) if self._searched_from is None else ())
        self._offer_around()
        if text != self._told and self._searched_from is None:
            self._told = text
            cursor = self._lines.get_index_from_location(self.cursor_location)
            self.post_message(self.DraftChanged(self.full_text, len(self._unfold(text[:cursor]))))

    def action_send_typed(self) -> None:
        """Take what is chosen in a list, or hand the text out."""
        if self._choices.chosen is not None:
            self._take()
            return
        chosen = self._menu.chosen
        if chosen is not None and self.text.strip() != f"/{chosen.name}":
            self.put(f"/{chosen.name}")
        self.send("steer")

    def action_new_line(self) -> None:
        """Begin a new line."""
        self._insert("\n")

    def action_complete(self) -> None:
        """Take what is chosen in a list, or complete the path at the cursor."""
        if self._choices.chosen is not None:
            self._take()
        elif self._menu.chosen is not None:
            self.put(f"/{self._menu.chosen.name} ")
        elif self._desk is not None and (token := tokens.path(self._before)).text:
            self.run_worker(self._complete(self._desk, token), group="choices", exclusive=True)

    def action_cursor_up(self, select: bool = False) -> None:
        """Up; on the first line to what was sent before."""
        if self._choices.chosen is not None:
            self._choices.move(-1)
        elif self._menu.chosen is not None:
            self._menu.move(-1)
        elif not select and self.navigator.is_first_wrapped_line(self.cursor_location) and (self._sent or self._fetch_history is not None):
            self._with_history(lambda: self._recall(-1))
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Down; on the last line back towards what was being typed."""
        if self._choices.chosen is not None:
            self._choices.move(1)
        elif self._menu.chosen is not None:
            self._menu.move(1)
        elif not select and self.navigator.is_last_wrapped_line(self.cursor_location) and self._recalled is not None:
            self._recall(1)
        else:
            super().action_cursor_down(select)

    def action_search_history(self) -> None:
        """Ctrl+R: choose from what was sent before; what is typed narrows it down. Again: the next older one."""
        if self._searched_from is not None:
            self._choices.move(1)
            return
        self._searched_from = self.full_text
        self._with_history(self._offer_around)

    def action_edit_elsewhere(self) -> None:
        """Ctrl+G: write the text in an editor; the app waits."""
        app = self.app
        if self._desk is None or self.read_only or not isinstance(app, TerminalApp):
            return
        try:
            with app.lent():
                text = self._desk.edit(self.full_text)
        except EnvironmentFailure as problem:
            self.post_message(self.Failed(problem))
        else:
            self.put(text)

    def action_repaint(self) -> None:
        """Ctrl+L: draw the whole screen anew, after another program wrote on it."""
        app = self.app
        if isinstance(app, TerminalApp):
            app.repaint()

    # ------------------------------------------------------------------------------------------------- killing and yanking

    def action_kill_word_left(self) -> None:
        """Ctrl+W."""
        self._kill(self.action_delete_word_left, "left")

    def action_kill_word_right(self) -> None:
        """Alt+D."""
        self._kill(self.action_delete_word_right, "right")

    def action_kill_line_left(self) -> None:
        """Ctrl+U."""
        self._kill(self.action_delete_to_start_of_line, "left")

    def action_kill_line_right(self) -> None:
        """Ctrl+K; at the end of a line it joins the next one."""
        self._kill(self.action_delete_right if self.cursor_at_end_of_line else self.action_delete_to_end_of_line, "right")

    def action_yank(self) -> None:
        """Ctrl+Y: bring back what was killed last."""
        self._yank(self._kills.yank(), *self.selection)

    def action_rotate_yank(self) -> None:
        """Alt+Y, right after Ctrl+Y: the kill before that one instead."""
        if self._yanked is not None:
            self._yank(self._kills.rotate(), *self._yanked)

    def edit(self, edit: Edit) -> EditResult:
        """Change the text; a folded paste is changed as a whole or not at all."""
        if self._folded:
            edit.from_location, edit.to_location = self._around_folds(edit.from_location, edit.to_location)
        return super().edit(edit)

    def _kill(self, delete: Callable[[], None], side: Literal["left", "right"]) -> None:
        before, at = self.text, self._lines.get_index_from_location(self.cursor_location)
        delete()
        after = self._lines.get_index_from_location(self.cursor_location)
        start = min(at, after)
        self._kills.kill(before[start : start + len(before) - len(self.text)], side)

    def _yank(self, text: str, start: Location, end: Location) -> None:
        result = self._replace_via_keyboard(text, start, end) if text and not self.read_only else None
        if result is not None:
            self.move_cursor(result.end_location)
            self._yanked = (min(start, end), result.end_location)

    def _around_folds(self, one: Location, other: Location) -> tuple[Location, Location]:
        """The range, widened so that it holds a folded paste whole or not at all."""
        first, last = sorted((self._lines.get_index_from_location(one), self._lines.get_index_from_location(other)))
        is_insertion = first == last
        for found in self._markers(self.text):
            if is_insertion and found.start() < first < found.end():
                first = last = found.end()
            elif not is_insertion and found.start() < last and first < found.end():
                first, last = min(first, found.start()), max(last, found.end())
        return self._lines.get_location_from_index(first), self._lines.get_location_from_index(last)

    # ------------------------------------------------------------------------------------------------------------- choices

    @property
    def _before(self) -> str:
        """The text ahead of the cursor."""
        return self.text[: self._lines.get_index_from_location(self.cursor_location)]

    def _offer_around(self) -> None:
        """Offer what fits at the cursor, or nothing."""
        if self._searched_from is not None:
            found = tokens.history_matches(self._sent, self.text)
            self._choices.offer("Sent before", [Choice(text) for text in found[:_OFFERED]])
            return
        token = tokens.mention(self._before) if self._desk is not None else None
        if token is None or self._desk is None:
            if self.text != self._completed:
                self._choices.close()
        else:
            self.run_worker(self._find(self._desk, token), group="choices", exclusive=True)

    async def _find(self, desk: DeskPort, token: tokens.Token) -> None:
        names = await asyncio.to_thread(desk.find, token.text, limit=_OFFERED)
        if tokens.mention(self._before) == token:  # else more was typed meanwhile
            self._choices.offer("Files", [Choice(name) for name in names])

    async def _complete(self, desk: DeskPort, token: tokens.Token) -> None:
        names = list(await asyncio.to_thread(desk.complete, token.text, limit=_OFFERED))
        if tokens.path(self._before) != token or not names:
            return
        shared = tokens.common(names)
        if len(names) == 1 or len(shared) > len(token.text):
            self._replace_token(token, _escaped(shared))
        if len(names) > 1:
            self._completed = self.text
            self._choices.offer("Paths", [Choice(name) for name in names])

    def _take(self) -> None:
        chosen, before = self._choices.chosen, self._before
        is_history, self._searched_from = self._searched_from is not None, None
        mention = tokens.mention(before)
        self._choices.close()
        if chosen is None:
            return
        if is_history:
            self.put(chosen.text)
        elif mention is not None:
            self._replace_token(mention, tokens.mention_text(chosen.text) + ("" if chosen.text.endswith("/") else " "))
        else:
            self._replace_token(tokens.path(before), _escaped(chosen.text))

    def _replace_token(self, token: tokens.Token, text: str) -> None:
        text = safe_input(text)
        start = self._lines.get_location_from_index(token.start)
        result = self._replace_via_keyboard(text, start, self.cursor_location) if not self.read_only else None
        if result is not None:
            self.move_cursor(result.end_location)

    # ------------------------------------------------------------------------------------------------ history, long pastes

    def _insert(self, text: str) -> None:
        if text and not self.read_only:
            result = self._replace_via_keyboard(text, *self.selection)
            if result is not None:
                self.move_cursor(result.end_location)

    def _with_history(self, then: Callable[[], None]) -> None:
        """Do `then` once what other chats were asked is known."""
        if self._fetch_history is None:
            then()
            return
        fetch, self._fetch_history = self._fetch_history, None

        async def run() -> None:
            older = [text for text in dict.fromkeys(await fetch()) if text not in self._sent]
            self._sent = [*older, *self._sent][-_HISTORY:]
            then()

        self.run_worker(run())

    def _recall(self, step: int) -> None:
        if not self._sent:
            return
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

    def _markers(self, text: str) -> list[re.Match[str]]:
        return list(re.finditer("|".join(map(re.escape, self._folded)), text)) if self._folded else []

    def _unfold(self, text: str) -> str:
        """In one pass: what was pasted is not looked into for markers."""
        return re.sub("|".join(map(re.escape, self._folded)), lambda found: self._folded[found[0]], text) if self._folded else text


def _escaped(path: str) -> str:
    return re.sub(r"([\s\\\"'`()<>|;&])", r"\\\1", path)
