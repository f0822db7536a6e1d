"""The app: puts the widgets together and passes messages between them and the bridge. It draws nothing and decides nothing itself.

The first paint happens before anything is opened: `start` runs afterwards, and what is typed meanwhile is kept (speed.md). What
is on the screen comes from committed views alone; an action changes the screen by changing the state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, get_args

import msgspec
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import PidurableError, SessionFailed
from pi_durable_tui.harness.live import ApprovalMode
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.tui import commands, status
from pi_durable_tui.tui.bridge import OLDER_ENTRIES, Bridge, Opened
from pi_durable_tui.tui.keymap import KEYS
from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.rows import Notice, Projection, content_text, queued_rows
from pi_durable_tui.tui.screens.help import HelpScreen
from pi_durable_tui.tui.widgets.activity import Activity
from pi_durable_tui.tui.widgets.footer import Footer
from pi_durable_tui.tui.widgets.menu import Menu
from pi_durable_tui.tui.widgets.prompt import TYPING_GAP_S, Prompt
from pi_durable_tui.tui.widgets.question import Question
from pi_durable_tui.tui.widgets.queue import Queue
from pi_durable_tui.tui.widgets.transcript import Transcript

APPROVAL_MODES: tuple[ApprovalMode, ...] = get_args(ApprovalMode)
TWICE_MS = 2_000


class PidurableApp(App[None], inherit_bindings=False):
    """The terminal app of one conversation.

    Args:
        start: Opens the harness; called after the first paint, on the screen's loop. A PidurableError ends the app with its exit code.
        first_prompt: Sent as soon as the conversation is open; "" for none.

    Attributes:
        view: The newest view shown; None until there is one.
        problem: What ended the app; None when a person did.
    """

    CSS_PATH = "styles/app.tcss"
    TITLE = "pidurable"
    ENABLE_COMMAND_PALETTE = False
    VERTICAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [(0, "-low"), (16, "-high")]
    BINDINGS: ClassVar[list[BindingType]] = [Binding(key.keys, key.action, key.help, show=False, priority=True) for key in KEYS if key.action]

    def __init__(
        self,
        start: Callable[[], Awaitable[Opened]],
        *,
        clock: Clock,
        place: status.Place,
        palette: Palette,
        notices: Sequence[Notice] = (),
        first_prompt: str = "",
        typing_gap_s: float = TYPING_GAP_S,
    ) -> None:
        super().__init__()
        self.view: ConversationView | None = None
        self.problem: PidurableError | None = None
        self._start, self._clock, self._place, self._palette = start, clock, place, palette
        self._first_notices, self._first_prompt = tuple(notices), first_prompt
        self._bridge: Bridge | None = None
        self._projection = Projection()
        self._is_send_held = self._is_fetching = self._has_all = False
        self._interrupted_ms = float("-inf")
        self._transcript, self._activity, self._queue = Transcript(palette), Activity(palette), Queue(palette)
        self._question, self._menu, self._footer = Question(palette, clock.monotonic_ms), Menu(palette), Footer(palette)
        self._prompt = Prompt(self._menu, typing_gap_s=typing_gap_s)
        self._ticker: Timer | None = None
        self.register_theme(palette.theme())
        self.theme = palette.name
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield from (self._transcript, self._activity, self._queue, self._question, self._menu, self._prompt, self._footer)

    def on_mount(self) -> None:
        """Show the empty screen; open afterwards."""
        self._prompt.cursor_blink = False
        self._prompt.focus()
        self._ticker = self.set_interval(status.SPINNER_STEP_MS / 1000, self._tick, pause=True)
        for notice in self._first_notices:
            self._activity.say(notice)
        self._show_status()
        self.call_after_refresh(self.run_worker, self._open())

    async def _open(self) -> None:
        try:
            opened = await self._start()
        except PidurableError as problem:
            self.problem = problem
            self.exit(return_code=problem.exit_code)
            return
        self._projection = Projection(seam=opened.seam)
        for notice in opened.notices:
            self._activity.say(notice)
        self._bridge = Bridge(opened, clock=self._clock, on_view=self._show, on_problem=self._tell)

    # ------------------------------------------------------------------------------------------------ from the bridge

    def _show(self, view: ConversationView) -> None:
        is_first, self.view = self.view is None, view
        now_ms = self._clock.now_ms()
        self._transcript.show_rows(self._projection.apply(view), now_ms=now_ms)
        self._queue.show_rows(queued_rows(view))
        asking = [slot for slot in view.live.tools if slot.status == "asking" and slot.question is not None]
        had_question = self._question.question_id is not None
        self._question.ask(asking[0] if asking else None, others=max(0, len(asking) - 1))
        if bool(asking) != had_question:
            (self._question if asking else self._prompt).focus()
        self._show_status()
        if is_first:
            self._greet(view)

    def _greet(self, view: ConversationView) -> None:
        typed = self._prompt.full_text
        if view.draft.text and not typed:
            self._prompt.put(view.draft.text, view.draft.cursor)
        elif view.draft.text:
            self._prompt.put_back([view.draft.text])
        if self._first_prompt:
            self._send(self._first_prompt, "steer")
            self._first_prompt = ""
        if self._is_send_held:
            self._is_send_held = False
            self._prompt.send("steer")

    def _tell(self, problem: PidurableError) -> None:
        self._activity.say(Notice(tone="bad", text=f"{problem.message} {problem.hint}".strip()))
        if isinstance(problem, SessionFailed):
            self.problem = problem
            self._prompt.read_only = True
            self._prompt.add_class("-locked")
        self._show_status()

    def _show_status(self) -> None:
        view, now_ms = self.view, self._clock.now_ms()
        is_busy = view is not None and view.is_busy and self.problem is None
        light: status.Light = "failed" if self.problem is not None else "opening" if view is None else "storing" if is_busy else "stored"
        self._activity.show_work(status.spinner(now_ms), status.activity(view, now_ms) if is_busy and view is not None else "")
        self._footer.show_parts(*status.footer_parts(view, self._place, light=light, now_ms=now_ms))
        if self._ticker is not None:
            (self._ticker.resume if is_busy else self._ticker.pause)()

    def _tick(self) -> None:
        self._transcript.tick(self._clock.now_ms())
        self._show_status()

    # ----------------------------------------------------------------------------------------------- from the widgets

    def on_prompt_sent(self, message: Prompt.Sent) -> None:
        """A command is run, a message is handed in."""
        self._activity.clear_notices()
        typed = commands.read(message.text)
        if typed is None:
            self._send(message.text, message.mode)
        elif typed.command is None:
            self._activity.say(Notice(tone="warn", text=f"There is no command /{typed.name}. /help shows all of them."))
        else:
            getattr(self, f"command_{typed.command.name}")(typed.argument)

    def on_prompt_draft_changed(self, message: Prompt.DraftChanged) -> None:
        """What is typed is stored as it is typed."""
        if self._bridge is not None and self.view is not None and self.problem is None:
            self._bridge.save_draft(message.text, message.cursor)

    def on_question_answered(self, message: Question.Answered) -> None:
        """The card goes when the answer is stored."""
        if self._bridge is not None:
            self._bridge.answer(message.question_id, message.decision)

    def on_transcript_older_wanted(self) -> None:
        """Fetch the page before the first row, once at a time."""
        if self._bridge is not None and self.view is not None and self.view.has_older and not self._is_fetching and not self._has_all:
            self._is_fetching = True
            self.run_worker(self._fetch_older(self._bridge))

    async def _fetch_older(self, bridge: Bridge) -> None:
        before = self._projection.first_id
        page = await bridge.older(before) if before is not None else ()
        self._has_all, self._is_fetching = len(page) < OLDER_ENTRIES, False
        if page:
            self._transcript.show_rows(self._projection.prepend(page), now_ms=self._clock.now_ms())

    def on_transcript_end_reached(self) -> None:
        """Pages that were fetched on the way up are let go."""
        self._has_all = False
        self._transcript.show_rows(self._projection.drop_older(), now_ms=self._clock.now_ms())

    def _send(self, text: str, mode: str) -> None:
        if self.problem is not None or self._bridge is None or self.view is None:
            self._prompt.put_back([text])
            self._is_send_held = self.problem is None
            return
        is_steering = mode == "steer" and self.view.is_busy
        self._transcript.go_to_end()
        self.run_worker(self._submit(self._bridge, text, is_steering=is_steering))

    async def _submit(self, bridge: Bridge, text: str, *, is_steering: bool) -> None:
        if not await bridge.submit(text, mode="steer" if is_steering else "followUp"):
            self._prompt.put_back([text])

    # -------------------------------------------------------------------------------------------- commands and actions

    def command_help(self, _argument: str) -> None:
        """Show keys and commands."""
        self.push_screen(HelpScreen(self._palette))

    def command_model(self, argument: str) -> None:
        """Show or change the model."""
        if argument and self._bridge is not None:
            self._bridge.set_agent(model=argument)
        elif self.view is not None:
            self._activity.say(Notice(tone="info", text=f"The model is {self.view.agent.model or 'not set'}. /model provider/model changes it."))

    def command_approve(self, argument: str) -> None:
        """Show or change the approval mode."""
        if argument in APPROVAL_MODES and self._bridge is not None:
            self._bridge.set_agent(approval=argument)
        elif self.view is not None:
            self._activity.say(Notice(tone="info", text=f"Approval is {self.view.agent.approval}. /approve takes {', '.join(APPROVAL_MODES)}."))

    def command_new(self, _argument: str) -> None:
        """Start a new chat with the same agent."""
        if self._bridge is not None and self.view is not None:
            self.run_worker(self._change(self._bridge, self.view))

    async def _change(self, bridge: Bridge, view: ConversationView) -> None:
        if await bridge.new_conversation(msgspec.structs.replace(view.agent, title="")):
            self._projection, self._has_all = Projection(), False
            self._transcript.clear()

    def command_quit(self, _argument: str) -> None:
        """Leave."""
        self.run_worker(self._leave())

    async def _leave(self) -> None:
        if self._bridge is not None:
            await self._bridge.close()
        self.exit(return_code=self.problem.exit_code if self.problem is not None else 0)

    def action_stop(self) -> None:
        """Esc: deny the question, else stop the run, else take notices and the menu away."""
        if isinstance(self.screen, HelpScreen):
            self.pop_screen()
        elif self._question.question_id is not None:
            self._question.decide("deny")
        elif self.view is not None and self.view.is_busy and self._bridge is not None:
            self.run_worker(self._abort(self._bridge))
        else:
            self._menu.offer(())
            self._activity.clear_notices()

    async def _abort(self, bridge: Bridge) -> None:
        withdrawn = await bridge.abort()
        if withdrawn:
            self._prompt.put_back([content_text(submission.content) for submission in withdrawn])

    def action_clear_or_quit(self) -> None:
        """Ctrl+C: clear the line (Up brings it back); on an empty one, twice in a row: leave."""
        now_ms = self._clock.monotonic_ms()
        is_second, self._interrupted_ms = now_ms - self._interrupted_ms < TWICE_MS, now_ms
        if self._prompt.text:
            self._prompt.remember(self._prompt.full_text)
            self._prompt.put("")
        elif is_second:
            self.command_quit("")
        else:
            self._activity.say(Notice(tone="info", text="Ctrl+C again leaves; pidurable --continue comes back"))

    def action_end_of_input(self) -> None:
        """Ctrl+D: leave when nothing is typed, else delete to the right."""
        if self._prompt.text:
            self._prompt.action_delete_right()
        else:
            self.command_quit("")

    def action_queue(self) -> None:
        """Alt+Enter: hand in for after the run."""
        self._prompt.send("followUp")

    def action_take_back(self) -> None:
        """Alt+Up: the newest queued message comes back into the composer."""
        waiting = [item for item in self.view.inbox.items if item.mode != "write"] if self.view is not None else []
        if waiting and self._bridge is not None:
            self.run_worker(self._take_back(self._bridge, waiting[-1].submission_id, content_text(waiting[-1].content)))

    async def _take_back(self, bridge: Bridge, submission_id: int, text: str) -> None:
        if await bridge.take_back(submission_id):
            self._prompt.put_back([text])

    def action_next_approval(self) -> None:
        """Shift+Tab: the next approval mode."""
        if self._bridge is not None and self.view is not None:
            following = APPROVAL_MODES[(APPROVAL_MODES.index(self.view.agent.approval) + 1) % len(APPROVAL_MODES)]
            self._bridge.set_agent(approval=following)

    def action_unfold(self) -> None:
        """Ctrl+O."""
        self._transcript.toggle_all()

    def action_page(self, direction: int) -> None:
        """PageUp and PageDown."""
        self._transcript.page(direction)

    def action_go_start(self) -> None:
        """Ctrl+Home."""
        self._transcript.go_to_start()

    def action_go_end(self) -> None:
        """Ctrl+End."""
        self._transcript.go_to_end()
