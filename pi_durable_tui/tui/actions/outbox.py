"""What leaves the composer and comes back into it (rules TU-10, TU-12). Nothing that was typed is dropped on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.tui.bridge import Bridge
from pi_durable_tui.tui.commands import nearest, read
from pi_durable_tui.tui.rows import content_text, typed
from pi_durable_tui.tui.widgets.prompt import SendMode

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp


class Outbox:
    """See the module.

    Args:
        first_prompt: Sent as soon as a conversation is there; "" for none.
    """

    def __init__(self, app: PidurableApp, first_prompt: str) -> None:
        self._app = app
        self._first_prompt = first_prompt
        self._held: list[tuple[str, SendMode]] = []  # sent before a conversation was there

    def greet(self, view: ConversationView) -> None:
        """The stored draft comes back, ahead of what was typed while opening; what was sent meanwhile goes out."""
        prompt = self._app.chat.prompt
        if view.draft.text and not prompt.full_text:
            prompt.put(view.draft.text, view.draft.cursor)
        elif view.draft.text:
            prompt.put_back([view.draft.text])
        first_prompt, self._first_prompt = self._first_prompt, ""
        if first_prompt:
            self.send(first_prompt, "steer")
        held, self._held = self._held, []
        for text, mode in held:
            self.send(text, mode)

    def take(self, text: str, mode: SendMode) -> None:
        """Run a command, or hand a message in."""
        app, line = self._app, read(text, self._app.chat.prompt.offers)
        if line is None:
            self.send(text, mode)
            return
        if line.command is None:
            near = nearest(line.name, app.chat.prompt.offers)
            app.chat.prompt.put_back([text])  # to be set right
            app.tell("warn", f"There is no command /{line.name}.{f' Is it /{near}?' if near else ''} /help shows all of them.")
            return
        if app.bridge is not None and app.problem is None:
            app.bridge.save_draft("", 0)
        app.deeds.commands[line.command.name](line.argument)

    def send(self, text: str, mode: SendMode) -> None:
        """Hand a message in; what cannot be stored comes back."""
        app = self._app
        if app.problem is not None:
            app.chat.prompt.put_back([text])
            return
        if app.bridge is None or app.view is None:
            self._held.append((text, mode))
            return
        app.chat.transcript.go_to_end()
        if text.startswith("!"):
            app.run_worker(self._run(app.bridge, text))
            return
        if app.deeds.extensions.is_command(text):
            app.deeds.extensions.run(app.bridge, text)
            return
        if app.view.agent.model is None:  # nobody would answer: better sent once somebody does
            app.chat.prompt.put_back([text])
            app.deeds.project.remind()
            app.tell("warn", f"No model is chosen: nothing was sent, your message is still here.\n/model{_key(app.keymap.shown('pick_model'))} chooses one.")
            return
        app.run_worker(self._submit(app.bridge, text, "steer" if mode == "steer" and app.view.is_busy else "followUp"))

    async def _submit(self, bridge: Bridge, text: str, mode: SendMode) -> None:
        content = await self._app.deeds.project.prepared(text)
        prompt = self._app.chat.prompt
        if content is None or not await bridge.submit(content, mode=mode):
            prompt.put_back([text])
        elif prompt.text:  # typed meanwhile: sending has emptied the stored draft
            bridge.save_draft(prompt.full_text, len(prompt.full_text))

    async def _run(self, bridge: Bridge, text: str) -> None:
        """`!cmd` runs and shows the model, `!!cmd` does not."""
        command = text.removeprefix("!")
        if not await bridge.run_command(command.removeprefix("!"), shown=not command.startswith("!")):
            self._app.chat.prompt.put_back([text])

    def take_back(self) -> None:
        """The newest queued message comes back."""
        view, bridge = self._app.view, self._app.bridge
        waiting = [item for item in view.inbox.items if item.is_typed] if view is not None else []
        if waiting and bridge is not None:
            self._app.run_worker(self._take_back(bridge, waiting[-1].submission_id, content_text(typed(waiting[-1].content))))

    async def _take_back(self, bridge: Bridge, submission_id: int, text: str) -> None:
        if await bridge.take_back(submission_id):
            self._app.chat.prompt.put_back([text])


def _key(shown: str) -> str:
    return f" ({shown})" if shown else ""
