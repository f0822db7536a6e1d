"""The chat while it is only watched: all that reads works, nothing can be said or answered (rule OB-6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.message import Message

from pi_durable_tui.tui.screens.chat import ChatScreen

if TYPE_CHECKING:
    from pi_durable_tui.tui.following import Sight
    from pi_durable_tui.tui.keys.bindings import Keymap

LEAVES = "q leaves, t takes over once it is gone"
TAKES_OVER = "t takes over, q leaves"


class WatchScreen(ChatScreen):
    """See the module.

    Attributes:
        owner: The program that runs the session, in words; "" when none does.
    """

    AUTO_FOCUS = ""  # keys go to the screen

    owner = ""
    _is_known = False  # somebody has looked who the owner is
    _back_key = ""

    class Left(Message):
        """The person is done watching."""

    class TakeOverWanted(Message):
        """The person wants to go on with the work here."""

    @property
    def is_look(self) -> bool:
        """Nothing can be said here."""
        return True

    @property
    def is_inside(self) -> bool:
        """True while a subagent is looked into."""
        return self.view is not None and self.view.conversation.owner is not None

    @property
    def can_answer(self) -> bool:
        """Whoever runs it is asked, not the one who watches."""
        return False

    @property
    def look_words(self) -> str:
        """What is watched, whose it is, and what keys do."""
        if not self._is_known:
            return "Read-only"
        if self.is_inside and self.view is not None:
            return f"Watching subagent {self.view.agent.title}"
        return f"Read-only · {self.owner} runs it · {LEAVES}" if self.owner else f"Read-only · no program runs it · {TAKES_OVER}"

    def on_mount(self) -> None:
        """No composer, also before there is anything to see."""
        self.prompt.display = False
        self._show_look()

    def show(self, sight: Sight) -> None:
        """Draw what is to be seen."""
        super().show(sight)
        self._show_look()

    def set_keymap(self, keymap: Keymap) -> None:
        """These keys are bound from now on."""
        super().set_keymap(keymap)
        self._queue.key = ""  # nothing can be taken back here
        self._back_key, hides = keymap.shown("stop"), keymap.shown("tasks")
        self.tasks.border_subtitle = Content(" · ".join(["Enter opens", *([f"{hides} hides"] if hides else [])]))

    def tell_owner(self, owner: str) -> None:
        """From now on this program runs the session; "": none does."""
        self.owner, self._is_known = owner, True
        self._show_look()

    def _show_look(self) -> None:
        self.banner.key = self._back_key if self.is_inside else ""
        self.banner.show(self.look_words)

    def on_key(self, event: events.Key) -> None:
        """The keys q and t, unless something is typed."""
        match event.key:
            case _ if self.search.display:  # it has only just been opened, and does not take the keys yet
                pass
            case "q":
                self.post_message(self.Left())
            case "t":
                self.post_message(self.TakeOverWanted())
            case _:
                pass
