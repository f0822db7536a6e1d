"""The app of `pidurable watch`: a chat that another program works on, live (rule OB-6).

It has no way to write: it is given conversations that can only be read, and a way to ask who runs them. Taking over is left to
whoever ran the app, once it has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from textual.screen import ModalScreen, Screen
from textual.timer import Timer

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import PidurableError
from pi_durable_tui.harness.observation.inspection import TaskNode
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.tui.following import Sight
from pi_durable_tui.tui.keymap import APP_KEYS
from pi_durable_tui.tui.keys.bindings import Keymap, keymap
from pi_durable_tui.tui.linking.links import web_link
from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.ports import ReadPort
from pi_durable_tui.tui.rows import Notice, Tone
from pi_durable_tui.tui.screens.picker import Choice, PickerScreen
from pi_durable_tui.tui.status import Place
from pi_durable_tui.tui.terminal_app import TerminalApp
from pi_durable_tui.tui.watching.screen import WatchScreen
from pi_durable_tui.tui.watching.sights import Sights
from pi_durable_tui.tui.widgets.subagents import Subagents
from pi_durable_tui.tui.widgets.tasks import TaskPanel
from pi_durable_tui.tui.widgets.transcript import Transcript

T = TypeVar("T")

LOOK_S = 1.0
"""How often it is looked who runs the session, and, while they are shown, which tasks live."""
OLDER_ENTRIES = 200
TALKING = frozenset({"queue", "take_back", "next_thinking", "next_approval"})
"""Actions that say something: those have no key here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A chat that is watched. Everything is used on `loop`.

    Attributes:
        loop: The event loop of whoever reads the store, on a thread of its own.
        conversation: The chat.
        open_conversation: Another conversation of its session, such as a subagent's.
        owner: Who runs the session now, in words; "": nobody.
        tasks: What is at work in the session.
        window_tokens: The context window of a model; None: unknown.
        notices: What to say at the start.
    """

    loop: asyncio.AbstractEventLoop
    conversation: ReadPort
    open_conversation: Callable[[int], Awaitable[ReadPort]]
    owner: Callable[[], Awaitable[str]]
    tasks: Callable[[], Awaitable[tuple[TaskNode, ...]]]
    window_tokens: Callable[[str], Awaitable[int | None]]
    notices: tuple[str, ...] = ()


class WatchApp(TerminalApp, inherit_bindings=False):
    """See the module.

    Args:
        start: Opens what is watched; called after the first paint. A PidurableError ends the app with its exit code.
        keys: What is bound; None: the usual ones.

    Attributes:
        takes_over: True once the person wants to go on with the work, and nobody else runs it: the app has ended then.
    """

    CSS_PATH = "../styles/app.tcss"
    TITLE = "pidurable watch"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, start: Callable[[], Awaitable[Watched]], *, clock: Clock, place: Place, palette: Palette, keys: Keymap | None = None) -> None:
        super().__init__()
        self.takes_over = False
        self.chat = WatchScreen(clock=clock, place=place, palette=palette, notices=(), typing_gap_s=0.0)
        self._start, self._clock, self._palette = start, clock, palette
        self._watched: Watched | None = None
        self._sights: Sights | None = None
        self._back: list[ReadPort] = []  # from where subagents were opened; the last one is returned to first
        self._shown: ReadPort | None = None
        self._windows: dict[str, int | None] = {}
        self._looker: Timer | None = None
        keys = keys or keymap()
        self.bind_keys(keys.actions([each for each in APP_KEYS if each.name not in TALKING]))
        self.chat.set_keymap(keys)
        self.animation_level = "none"
        self.put_on(palette)

    def get_default_screen(self) -> Screen[None]:
        """The chat."""
        return self.chat

    def on_mount(self) -> None:
        """Open once the empty screen has been painted."""
        self.call_after_refresh(self.run_worker, self._open())

    async def _open(self) -> None:
        try:
            watched = self._watched = await self._start()
        except PidurableError as problem:
            self.problem = problem
            self.exit(return_code=problem.exit_code)
            return
        self._sights = Sights(watched.loop, watched.open_conversation, clock=self._clock, on_sight=self._show, on_problem=self._end)
        self._follow(watched.conversation)
        for notice in watched.notices:
            self.tell("warn", notice)
        await self._look()
        self._looker = self.set_interval(LOOK_S, self._look)

    async def leave(self, return_code: int = 0) -> None:
        """Leave; nothing has to be put away."""
        if self._looker is not None:
            self._looker.stop()
        if self._sights is not None:
            await self._sights.close()
        await super().leave(return_code)

    # ------------------------------------------------------------------------------------------------------------ showing

    def _follow(self, conversation: ReadPort) -> None:
        if self._sights is None or self._watched is None:
            return
        self._shown, watched = conversation, self._watched

        async def older(before: int) -> tuple[StoredEntry, ...]:
            return await self._call(watched, conversation.entries(before=before, limit=OLDER_ENTRIES)) or ()

        self._sights.follow(conversation)
        self.chat.begin(fetch_older=older)

    def _show(self, sight: Sight) -> None:
        model = sight.view.agent.model or ""
        self.chat.window_tokens = self._windows.get(model)
        self.chat.show(sight)
        if model and model not in self._windows:
            self._windows[model] = None
            self.run_worker(self._find_window(model))

    async def _find_window(self, model: str) -> None:
        if self._watched is not None:
            self._windows[model] = await self._call(self._watched, self._watched.window_tokens(model))
            if self.chat.sight is not None:
                self._show(self.chat.sight)

    def _end(self, problem: PidurableError) -> None:
        """What is watched cannot be read any more."""
        self.problem = problem
        self.exit(return_code=problem.exit_code)

    async def _look(self) -> None:
        if (watched := self._watched) is None:
            return
        owner = await self._call(watched, watched.owner())
        if owner is not None:
            self.chat.tell_owner(owner)
        if self.chat.tasks.display:
            await self._show_tasks()

    async def _show_tasks(self) -> None:
        nodes = await self._call(self._watched, self._watched.tasks()) if self._watched is not None else None
        if nodes is not None:
            self.chat.tasks.show_nodes(nodes, self._clock.now_ms())

    def tell(self, tone: Tone, text: str) -> None:
        """Say something, once."""
        self.chat.say(Notice(tone=tone, text=text))

    async def _call(self, watched: Watched, work: Awaitable[T]) -> T | None:
        """The result of work on the reader's loop; None on a problem, which is told."""

        async def run() -> T:
            return await work

        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), watched.loop))
        except PidurableError as problem:
            self.tell("bad", f"{problem.message} {problem.hint}".strip())
            return None

    # ------------------------------------------------------------------------------------------------- what a person wants

    def on_watch_screen_left(self) -> None:
        """The key q: leave."""
        self.run_worker(self.leave())

    def on_watch_screen_take_over_wanted(self) -> None:
        """The key t: leave for the chat itself, unless somebody runs it still."""
        self.run_worker(self._take_over(), exclusive=True, group="taking over")

    async def _take_over(self) -> None:
        if (watched := self._watched) is None:
            return
        owner = await self._call(watched, watched.owner())
        if owner:
            self.tell("warn", f"{owner} runs it still, and a session has one writer. It can be taken over once that program has ended.")
        elif owner is not None:
            self.takes_over = True
            await self.leave()

    def on_subagents_opened(self, message: Subagents.Opened) -> None:
        """A card was clicked."""
        self.run_worker(self._look_into(message.conversation_id))

    def on_transcript_link_clicked(self, message: Transcript.LinkClicked) -> None:
        """Nothing is opened from here."""
        link = web_link(message.address)
        if link is not None:
            self.copy_to_clipboard(link.url)
            self.tell("info", f"Copied {link.url}")

    def on_task_panel_look_wanted(self, message: TaskPanel.LookWanted) -> None:
        """The conversation that a node owns, or works in."""
        self.run_worker(self._look_into((*message.node.conversations, message.node.conversation_id)[0]))

    async def _look_into(self, conversation_id: int) -> None:
        watched, shown = self._watched, self._shown
        if watched is None or shown is None or shown.id == conversation_id:
            return
        found = await self._call(watched, watched.open_conversation(conversation_id))
        if found is not None:
            ids = [each.id for each in self._back]
            self._back = self._back[: ids.index(found.id)] if found.id in ids else [*self._back, shown]
            self._follow(found)

    # --------------------------------------------------------------------------------------------------------------- keys

    def action_stop(self) -> None:
        """Esc: close what lies over the chat, or come back from a subagent. It stops nothing here."""
        if isinstance(self.screen, ModalScreen):
            self.screen.dismiss(None)
        elif self.chat.leave_aside():
            pass
        elif self.chat.tasks.has_focus:
            self.chat.toggle_tasks()
        elif self._back:
            self._follow(self._back.pop())
        else:
            self.chat.clear_notices()

    def action_clear_or_quit(self) -> None:
        """Ctrl+C: leave."""
        self.run_worker(self.leave())

    def action_end_of_input(self) -> None:
        """Ctrl+D: leave."""
        self.run_worker(self.leave())

    async def action_tasks(self) -> None:
        """Ctrl+T: show the task graph, or hide it."""
        if not isinstance(self.screen, ModalScreen) and self.chat.toggle_tasks():
            await self._show_tasks()

    def action_subagents(self) -> None:
        """Alt+S: look into a subagent at work; when there are several, pick."""
        self.run_worker(self._pick_subagent())

    async def _pick_subagent(self) -> None:
        subagents = self.chat.sight.subagents if self.chat.sight is not None else ()
        if not subagents or isinstance(self.screen, ModalScreen):
            return
        chosen = subagents[0].conversation_id
        if len(subagents) > 1:
            choices = [Choice(value=each.conversation_id, label=each.name) for each in subagents]
            picked = await self.push_screen_wait(PickerScreen(self._palette, "Subagents", choices))
            if picked is None:
                return
            chosen = picked.value
        await self._look_into(chosen)
