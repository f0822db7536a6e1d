"""The app: passes messages between the screen and the bridge. It draws nothing and decides nothing about the work itself.

The first paint happens before anything is opened: `start` runs afterwards, and what is typed meanwhile is kept (speed.md). What
is on the screen comes from committed views alone; an action changes the screen by changing the state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal

from textual.screen import Screen

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import PidurableError, SessionFailed
from pi_durable_tui.tui.actions.deeds import Deeds
from pi_durable_tui.tui.commands import APPROVAL_MODES, THINKING_LEVELS
from pi_durable_tui.tui.keymap import APP_KEYS
from pi_durable_tui.tui.keys.bindings import Keymap, keymap
from pi_durable_tui.tui.palette import Palette, ThemeName
from pi_durable_tui.tui.rows import Notice, Tone
from pi_durable_tui.tui.screens.chat import ChatScreen
from pi_durable_tui.tui.status import Place
from pi_durable_tui.tui.terminal_app import TerminalApp
from pi_durable_tui.tui.watching.attention import call_back
from pi_durable_tui.tui.widgets.prompt import TYPING_GAP_S, Prompt
from pi_durable_tui.tui.widgets.question import Question
from pi_durable_tui.tui.widgets.subagents import Subagents
from pi_durable_tui.tui.widgets.tasks import TaskPanel
from pi_durable_tui.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from pi_durable_tui.harness.view import ConversationView
    from pi_durable_tui.tui.bridge import Bridge, Opened
    from pi_durable_tui.tui.following import Sight


class PidurableApp(TerminalApp, inherit_bindings=False):
    """The terminal app of one session; it shows one conversation at a time.

    Args:
        start: Opens the harness; called after the first paint, on the screen's loop. A PidurableError ends the app with its exit code.
        notices: What to say from the first paint on.
        first_prompt: Sent as soon as the conversation is open; "" for none.
        typing_gap_s: Keys closer together than this are a paste; a person's pauses are counted in it. 0 where keys come from a program.
        keys: What is bound; None: the usual ones.

    Attributes:
        clock, palette, chat, keymap, deeds: For what commands do.
        bridge: None until the harness is open.
    """

    CSS_PATH = "styles/app.tcss"
    TITLE = "pidurable"
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        start: Callable[[], Awaitable[Opened]],
        *,
        clock: Clock,
        place: Place,
        palette: Palette,
        notices: Sequence[Notice] = (),
        first_prompt: str = "",
        typing_gap_s: float = TYPING_GAP_S,
        keys: Keymap | None = None,
    ) -> None:
        super().__init__()
        self.clock, self.palette = clock, palette
        self.chat = ChatScreen(clock=clock, place=place, palette=palette, notices=notices, typing_gap_s=typing_gap_s)
        self.take_keys(keys or keymap())
        self.bridge: Bridge | None = None
        self.deeds = Deeds(self, first_prompt=first_prompt, typing_gap_s=typing_gap_s)
        self._start = start
        self._opened: Opened | None = None
        self._windows: dict[str, int | None] = {}
        self.animation_level = "none"
        self.put_on(palette)

    @property
    def view(self) -> ConversationView | None:
        """The newest view shown; None until there is one."""
        return self.chat.view

    def get_default_screen(self) -> Screen[None]:
        """The chat."""
        return self.chat

    def on_mount(self) -> None:
        """Open once the empty screen has been painted."""
        self.call_after_refresh(self.run_worker, self._open())

    async def _open(self) -> None:
        try:
            opened = await self._start()
        except PidurableError as problem:
            self.problem = problem
            self.exit(return_code=problem.exit_code)
        else:
            await self.enter(opened)

    async def enter(self, opened: Opened) -> None:
        """Show what has been opened, in place of what was open before; the work of that goes on."""
        from pi_durable_tui.tui.bridge import Bridge  # noqa: PLC0415 - loaded by what has been opened: the first paint was before it

        before, self.bridge, self._opened = self.bridge, None, opened
        if before is not None:
            await before.close()
            self.chat.begin(fetch_older=None)
            self.chat.prompt.put("")  # it is the draft of the conversation that is left
        await self.deeds.project.begin(opened)
        self.bridge = Bridge(opened, clock=self.clock, on_sight=self._show, on_switch=self._switched, on_problem=self._tell)
        self.chat.equip(opened, self.bridge)
        self.chat.begin(fetch_older=self.bridge.older, seam=opened.seam)

    # ------------------------------------------------------------------------------------------------------------ showing

    def _show(self, sight: Sight) -> None:
        before, is_first = self.chat.sight, self.chat.sight is None
        model = sight.view.agent.model
        self.chat.window_tokens = self._windows.get(model or "")
        self.chat.show(sight)
        call_back(self, before, sight)
        if model and sight.view.usage.context_tokens and model not in self._windows:
            self._windows[model] = None
            self.run_worker(self._find_window(model))
        if is_first and sight.view.conversation.owner is None:
            self.deeds.outbox.greet(sight.view)

    def _switched(self) -> None:
        """What stood in the composer is the draft of the conversation that is left."""
        if self.bridge is not None:
            self.chat.begin(fetch_older=self.bridge.older)
            self.chat.prompt.put("")

    async def _find_window(self, model: str) -> None:
        if self.bridge is not None:
            self._windows[model] = await self.bridge.ask(lambda harness: harness.overview.window_tokens(model))
            if self.chat.sight is not None:
                self._show(self.chat.sight)

    def _tell(self, problem: PidurableError) -> None:
        self.tell("bad", f"{problem.message} {problem.hint}".strip())
        if isinstance(problem, SessionFailed):
            self.problem = problem
            self.chat.fail()

    def tell(self, tone: Tone, text: str) -> None:
        """Say something, once."""
        self.chat.say(Notice(tone=tone, text=text))

    def take_keys(self, keys: Keymap) -> None:
        """Other keys, now."""
        self.keymap = keys
        self.bind_keys(keys.actions(APP_KEYS))
        self.chat.set_keymap(keys)
        for remark in keys.remarks:
            self.tell("warn", remark)

    def wear(self, theme: ThemeName) -> None:
        """Other colours, now."""
        if self._opened is not None:
            self.palette = self._opened.palette_of(theme)
            self.put_on(self.palette)
            self.chat.set_palette(self.palette)

    # ------------------------------------------------------------------------------------------------ what widgets ask for

    def on_prompt_sent(self, message: Prompt.Sent) -> None:
        """A command is run, a message is handed in."""
        self.chat.clear_notices()
        self.deeds.outbox.take(message.text, message.mode)

    def on_prompt_draft_changed(self, message: Prompt.DraftChanged) -> None:
        """What is typed is stored as it is typed (rule TU-10)."""
        if self.bridge is not None and self.view is not None and self.problem is None and not self.chat.is_look:
            self.bridge.save_draft(message.text, message.cursor)

    def on_question_answered(self, message: Question.Answered) -> None:
        """The card goes when the answer is stored."""
        if self.bridge is not None:
            self.bridge.answer(message.question_id, message.decision)

    def on_transcript_link_clicked(self, message: Transcript.LinkClicked) -> None:
        """It is opened after a look."""
        self.deeds.links.ask(message.address)

    def on_subagents_opened(self, message: Subagents.Opened) -> None:
        """A card was clicked."""
        self.deeds.moves.look(message.conversation_id)

    def on_task_panel_stop_wanted(self, message: TaskPanel.StopWanted) -> None:
        """One node and what is below it."""
        self.deeds.stopping.stop_node(message.node)

    def on_task_panel_look_wanted(self, message: TaskPanel.LookWanted) -> None:
        """The conversation that a node owns, or works in."""
        self.deeds.moves.look((*message.node.conversations, message.node.conversation_id)[0])

    async def leave(self, return_code: int = 0) -> None:
        """Leave, once what was sent and typed is stored."""
        if self.bridge is not None:
            await self.bridge.close()
        await super().leave(return_code)

    # --------------------------------------------------------------------------------------------------------------- keys

    def action_stop(self) -> None:
        """Esc."""
        self.deeds.stopping.escape()

    def action_clear_or_quit(self) -> None:
        """Ctrl+C: clear the line; on an empty one, twice in a row: leave."""
        self.deeds.stopping.clear_or_quit()

    def action_end_of_input(self) -> None:
        """Ctrl+D: leave when nothing is typed, else delete to the right."""
        if self.chat.prompt.text:
            self.chat.prompt.action_delete_right()
        else:
            self.deeds.commands["quit"]("")

    def action_queue(self) -> None:
        """Alt+Enter: hand in for after the run."""
        self.chat.prompt.send("followUp")

    def action_take_back(self) -> None:
        """Alt+Up: the newest queued message comes back into the composer."""
        self.deeds.outbox.take_back()

    def action_next(self, field: Literal["approval", "thinking"]) -> None:
        """Shift+Tab and Alt+T: the next approval mode or thinking level."""
        if self.bridge is not None and self.view is not None and not self.chat.is_look:
            values = APPROVAL_MODES if field == "approval" else THINKING_LEVELS
            index = values.index(getattr(self.view.agent, field))
            self.bridge.set_agent(**{field: values[(index + 1) % len(values)]})

    def action_pick_model(self) -> None:
        """Alt+P: choose the model."""
        self.deeds.models.choose()

    def action_tasks(self) -> None:
        """Ctrl+T: show the task graph, or hide it."""
        self.deeds.stopping.toggle_tasks()

    def action_subagents(self) -> None:
        """Alt+S: look into a subagent."""
        self.deeds.moves.look_into()
