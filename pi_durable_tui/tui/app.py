"""The app: passes messages between the screen and the bridge. It draws nothing and decides nothing about the work itself.

The first paint happens before anything is opened: `start` runs afterwards, and what is typed meanwhile is kept (speed.md). What
is on the screen comes from committed views alone; an action changes the screen by changing the state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, get_args

import msgspec
from textual.binding import Binding, BindingType
from textual.screen import Screen

from pi_durable_tui.clock import Clock
from pi_durable_tui.errors import PidurableError, SessionFailed
from pi_durable_tui.harness.live import Agent, ApprovalMode
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.tui import commands
from pi_durable_tui.tui.bridge import Bridge, Opened
from pi_durable_tui.tui.keymap import KEYS
from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.rows import Notice, content_text
from pi_durable_tui.tui.screens.chat import ChatScreen
from pi_durable_tui.tui.screens.help import HelpScreen
from pi_durable_tui.tui.status import Place
from pi_durable_tui.tui.terminal_app import TerminalApp
from pi_durable_tui.tui.widgets.prompt import TYPING_GAP_S, Prompt, SendMode
from pi_durable_tui.tui.widgets.question import Question

APPROVAL_MODES: tuple[ApprovalMode, ...] = get_args(ApprovalMode)
TWICE_MS = 2_000


class PidurableApp(TerminalApp, inherit_bindings=False):
    """The terminal app of one conversation.

    Args:
        start: Opens the harness; called after the first paint, on the screen's loop. A PidurableError ends the app with its exit code.
        notices: What to say from the first paint on.
        first_prompt: Sent as soon as the conversation is open; "" for none.
        typing_gap_s: Keys closer together than this are a paste.
    """

    CSS_PATH = "styles/app.tcss"
    TITLE = "pidurable"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding(key.keys, key.action, key.help, show=False, priority=True) for key in KEYS if key.action]

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
    ) -> None:
        super().__init__()
        self._start, self._clock, self._palette, self._first_prompt = start, clock, palette, first_prompt
        self._chat = ChatScreen(clock=clock, place=place, palette=palette, notices=notices, typing_gap_s=typing_gap_s)
        self._bridge: Bridge | None = None
        self._is_send_held = False
        self._interrupted_ms = float("-inf")
        self.register_theme(palette.theme())
        self.theme = palette.name
        self.animation_level = "none"

    @property
    def view(self) -> ConversationView | None:
        """The newest view shown; None until there is one."""
        return self._chat.view

    def get_default_screen(self) -> Screen[None]:
        """The chat."""
        return self._chat

    def on_mount(self) -> None:
        """Open once the empty screen has been painted."""
        self.call_after_refresh(self.run_worker, self._open())

    async def _open(self) -> None:
        try:
            opened = await self._start()
        except PidurableError as problem:
            self.problem = problem
            self.exit(return_code=problem.exit_code)
            return
        for notice in opened.notices:
            self._chat.say(notice)
        self._bridge = Bridge(opened, clock=self._clock, on_view=self._show, on_problem=self._tell)
        self._chat.begin(fetch_older=self._bridge.older, seam=opened.seam)

    def _show(self, view: ConversationView) -> None:
        is_first = self._chat.view is None
        self._chat.show(view)
        if is_first:
            self._greet(view)

    def _greet(self, view: ConversationView) -> None:
        """The stored draft comes back, ahead of what was typed while opening; what was sent meanwhile goes out."""
        prompt = self._chat.prompt
        if view.draft.text and not prompt.full_text:
            prompt.put(view.draft.text, view.draft.cursor)
        elif view.draft.text:
            prompt.put_back([view.draft.text])
        if self._first_prompt:
            self._send(self._first_prompt, "steer")
        if self._is_send_held:
            prompt.send("steer")

    def _tell(self, problem: PidurableError) -> None:
        self._chat.say(Notice(tone="bad", text=f"{problem.message} {problem.hint}".strip()))
        if isinstance(problem, SessionFailed):
            self.problem = problem
            self._chat.fail()

    def on_prompt_sent(self, message: Prompt.Sent) -> None:
        """A command is run, a message is handed in."""
        self._chat.clear_notices()
        typed = commands.read(message.text)
        if typed is None:
            self._send(message.text, message.mode)
            return
        if self._bridge is not None and self.problem is None:
            self._bridge.save_draft("", 0)
        if typed.command is None:
            self._chat.say(Notice(tone="warn", text=f"There is no command /{typed.name}. /help shows all of them."))
        else:
            getattr(self, f"command_{typed.command.name}")(typed.argument)

    def on_prompt_draft_changed(self, message: Prompt.DraftChanged) -> None:
        """What is typed is stored as it is typed (rule TU-10)."""
        if self._bridge is not None and self.view is not None and self.problem is None:
            self._bridge.save_draft(message.text, message.cursor)

    def on_question_answered(self, message: Question.Answered) -> None:
        """The card goes when the answer is stored."""
        if self._bridge is not None:
            self._bridge.answer(message.question_id, message.decision)

    def _send(self, text: str, mode: SendMode) -> None:
        if self.problem is not None or self._bridge is None or self.view is None:
            self._chat.prompt.put_back([text])
            self._is_send_held = self.problem is None
            return
        self._chat.transcript.go_to_end()
        self.run_worker(self._submit(self._bridge, text, "steer" if mode == "steer" and self.view.is_busy else "followUp"))

    async def _submit(self, bridge: Bridge, text: str, mode: SendMode) -> None:
        if not await bridge.submit(text, mode=mode):
            self._chat.prompt.put_back([text])

    def command_help(self, _argument: str) -> None:
        """Show keys and commands."""
        self.push_screen(HelpScreen(self._palette))

    def command_model(self, argument: str) -> None:
        """Show or change the model."""
        if argument and self._bridge is not None:
            self._bridge.set_agent(model=argument)
        elif self.view is not None:
            self._chat.say(Notice(tone="info", text=f"The model is {self.view.agent.model or 'not set'}. /model provider/model changes it."))

    def command_approve(self, argument: str) -> None:
        """Show or change the approval mode."""
        if argument in APPROVAL_MODES and self._bridge is not None:
            self._bridge.set_agent(approval=argument)
        elif self.view is not None:
            self._chat.say(Notice(tone="info", text=f"Approval is {self.view.agent.approval}. /approve takes {', '.join(APPROVAL_MODES)}."))

    def command_new(self, _argument: str) -> None:
        """Start a new chat with the same agent."""
        if self._bridge is not None and self.view is not None:
            self.run_worker(self._change(self._bridge, msgspec.structs.replace(self.view.agent, title="")))

    async def _change(self, bridge: Bridge, agent: Agent) -> None:
        if await bridge.new_conversation(agent):
            self._chat.begin(fetch_older=bridge.older)

    def command_quit(self, _argument: str) -> None:
        """Leave, once what was sent and typed is stored."""
        self.run_worker(self.leave(self.problem.exit_code if self.problem is not None else 0))

    async def leave(self, return_code: int = 0) -> None:
        """Leave, once what was sent and typed is stored."""
        if self._bridge is not None:
            await self._bridge.close()
        await super().leave(return_code)

    def action_stop(self) -> None:
        """Esc: close the help, deny the question, stop the run, or take notices away; the first of these that applies."""
        if isinstance(self.screen, HelpScreen):
            self.pop_screen()
        elif self._chat.question.question_id is not None:
            self._chat.question.decide("deny")
        elif self.view is not None and self.view.is_busy and self._bridge is not None:
            self.run_worker(self._abort(self._bridge))
        else:
            self._chat.clear_notices()

    async def _abort(self, bridge: Bridge) -> None:
        withdrawn = await bridge.abort()
        if withdrawn:
            self._chat.prompt.put_back([content_text(submission.content) for submission in withdrawn])

    def action_clear_or_quit(self) -> None:
        """Ctrl+C: clear the line (Up brings it back); on an empty one, twice in a row: leave."""
        now_ms, prompt = self._clock.monotonic_ms(), self._chat.prompt
        is_second, self._interrupted_ms = now_ms - self._interrupted_ms < TWICE_MS, now_ms
        if prompt.text:
            prompt.remember(prompt.full_text)
            prompt.put("")
        elif is_second:
            self.command_quit("")
        else:
            self._chat.say(Notice(tone="info", text="Ctrl+C again leaves; pidurable --continue comes back."))

    def action_end_of_input(self) -> None:
        """Ctrl+D: leave when nothing is typed, else delete to the right."""
        if self._chat.prompt.text:
            self._chat.prompt.action_delete_right()
        else:
            self.command_quit("")

    def action_queue(self) -> None:
        """Alt+Enter: hand in for after the run."""
        self._chat.prompt.send("followUp")

    def action_take_back(self) -> None:
        """Alt+Up: the newest queued message comes back into the composer."""
        waiting = [item for item in self.view.inbox.items if item.mode != "write"] if self.view is not None else []
        if waiting and self._bridge is not None:
            self.run_worker(self._take_back(self._bridge, waiting[-1].submission_id, content_text(waiting[-1].content)))

    async def _take_back(self, bridge: Bridge, submission_id: int, text: str) -> None:
        if await bridge.take_back(submission_id):
            self._chat.prompt.put_back([text])

    def action_next_approval(self) -> None:
        """Shift+Tab: the next approval mode."""
        if self._bridge is not None and self.view is not None:
            self._bridge.set_agent(approval=APPROVAL_MODES[(APPROVAL_MODES.index(self.view.agent.approval) + 1) % len(APPROVAL_MODES)])
