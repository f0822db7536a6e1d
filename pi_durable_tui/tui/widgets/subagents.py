"""The cards of the subagents and background commands at work, right below the calls that started them (rules TU-7, TO-10).

Drawn from committed views alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text as Styled
from textual import events
from textual.message import Message
from textual.widget import Widget

from pi_durable_tui.records.messages import AssistantMessage, Text, Usage
from pi_durable_tui.tui import status
from pi_durable_tui.tui.safe_text import safe_line, safe_text

if TYPE_CHECKING:
    from pi_durable_tui.harness.live import ToolSlot
    from pi_durable_tui.harness.view import ConversationView
    from pi_durable_tui.tui.following import Sight, Subagent
    from pi_durable_tui.tui.palette import Palette

_SHOWN = 4
_TAIL_CHARS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One subagent or command in two lines of safe text.

    Attributes:
        conversation_id: Of the subagent; None: it is a command.
        said: The last line of what it says, "" before its first word.
        is_growing: More of that line may come: of a long one the end is shown.
    """

    conversation_id: int | None
    name: str
    facts: tuple[str, ...]
    said: str
    is_growing: bool = False
    is_asking: bool


def cards(sight: Sight, now_ms: int) -> tuple[Card, ...]:
    """A card for each subagent, then one for each call that goes on in the background. PURE."""
    return (*(_card(subagent, now_ms) for subagent in sight.subagents), *(_call_card(slot) for slot in sight.view.live.background))


def _call_card(slot: ToolSlot) -> Card:
    """Nothing in it moves with the time: an idle chat with a server in the background shall stay idle."""
    since = datetime.fromtimestamp(slot.started_at_ms / 1000, tz=UTC).astimezone(None).strftime("%H:%M")
    said = safe_text(slot.output[-_TAIL_CHARS:]).rstrip().rpartition("\n")[2].strip()
    name = safe_line(slot.title.removeprefix(f"{slot.name} "), max_cells=32)
    return Card(conversation_id=None, name=name, facts=("background", f"since {since}"), said=safe_line(said), is_asking=False)


def _card(subagent: Subagent, now_ms: int) -> Card:
    view = subagent.view
    facts = [_doing(view)]
    if view is not None and view.live.run is not None:
        facts.append(status.age_text(view.live.run.started_at_ms, now_ms))
    used = sum(view.usage.models.values(), Usage()) if view is not None else Usage()
    if used.input_tokens or used.output_tokens:
        facts.append(f"{status.count_text(used.input_tokens + used.output_tokens)} tokens")
    if subagent.is_background:
        facts.append("in the background")
    return Card(
        conversation_id=subagent.conversation_id,
        name=safe_line(subagent.name, max_cells=40),
        facts=tuple(facts),
        said=_said(view) if view is not None else "",
        is_growing=view is not None and _is_growing(view),
        is_asking=view is not None and any(slot.status == "asking" for slot in view.live.tools),
    )


def _doing(view: ConversationView | None) -> str:
    if view is None:
        return "starting"
    words = status.work_words(view) if view.is_busy else "ending"
    return words[:1].lower() + words[1:]


def _said(view: ConversationView) -> str:
    generation = view.live.generation
    messages = [generation.message] if generation is not None and generation.message is not None else []
    messages += [stored.entry.message for stored in reversed(view.entries) if isinstance(stored.entry.message, AssistantMessage)]
    for message in messages:
        for part in reversed(message.content):
            if isinstance(part, Text) and part.text.strip():
                return safe_line(part.text[-_TAIL_CHARS:].rstrip().rpartition("\n")[2].strip())
    return ""


def _is_growing(view: ConversationView) -> bool:
    generation = view.live.generation
    parts = generation.message.content if generation is not None and generation.message is not None else ()
    return bool(parts) and isinstance(parts[-1], Text)


def _end_of(text: str, cells: int) -> str:
    """As much of the end of a line as fits."""
    if cell_len(text) <= cells:
        return text
    end = text[-cells:]
    while end and cell_len(end) >= cells:
        end = end[1:]
    return f"…{end}"


class Subagents(Widget, can_focus=False):
    """Draws cards, oldest first; hidden while there are none. A click opens one."""

    class Opened(Message):
        """The person wants to look into a subagent."""

        def __init__(self, conversation_id: int) -> None:
            super().__init__()
            self.conversation_id = conversation_id

    def __init__(self, palette: Palette) -> None:
        super().__init__(id="subagents")
        self.palette = palette
        self._cards: tuple[Card, ...] = ()
        self.key = ""  # the one that looks into a subagent, as it is shown
        self.display = False

    def show_cards(self, shown: tuple[Card, ...]) -> None:
        """Draw these from now on."""
        if shown != self._cards:
            is_same_height = [bool(card.said) for card in shown] == [bool(card.said) for card in self._cards]
            self._cards, self.display = shown, bool(shown)
            self.refresh(layout=not is_same_height)

    def on_click(self, event: events.Click) -> None:
        """Open the card that was clicked."""
        line = event.y
        for card in self._cards[-_SHOWN:]:
            line -= 2 if card.said else 1
            if line < 0:
                if card.conversation_id is not None:
                    self.post_message(self.Opened(card.conversation_id))
                return

    def render(self) -> Styled:
        """Two lines for each of the newest: how it is doing, and what it says."""
        palette = self.palette
        text = Styled(end="")
        shown = self._cards[-_SHOWN:]
        for index, card in enumerate(shown):
            color = palette.warn if card.is_asking else palette.accent
            text.append("" if index == 0 else "\n")
            text.append("◆ ", palette.style(color, bold=True))
            text.append(card.name, palette.style(palette.text, bold=True))
            text.append(f"  {' · '.join(card.facts)}", palette.style(palette.muted))
            text.append(self._hint(shown, index), palette.style(palette.muted, italic=True))
            if card.said:
                text.append("\n│ ", palette.style(palette.faint))
                text.append(_end_of(card.said, self.size.width - 2) if card.is_growing else card.said, palette.style(palette.text))
        hidden = len(self._cards) - len(shown)
        if hidden > 0:
            text.append(f"\n  … and {hidden} older", palette.style(palette.muted))
        return text

    def _hint(self, shown: tuple[Card, ...], index: int) -> str:
        """What a person can do about a card, behind the first of its kind."""
        is_command = shown[index].conversation_id is None
        if any((card.conversation_id is None) == is_command for card in shown[:index]):
            return ""
        return "   /tasks stops it" if is_command else f"   {self.key} looks into it" if self.key else ""
