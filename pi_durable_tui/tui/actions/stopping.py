"""Carries out what Esc and Ctrl+C decide (rule TU-8), and shows and stops what is at work (rule OB-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import ModalScreen
from textual.timer import Timer

from pi_durable_tui.harness.observation.inspection import TaskNode
from pi_durable_tui.tui.actions.escape import Stop, StopCompaction, StopRun, StopSubagent
from pi_durable_tui.tui.bridge import Bridge
from pi_durable_tui.tui.ports import HarnessPort
from pi_durable_tui.tui.rows import content_text, typed
from pi_durable_tui.tui.status import ends_with_us

if TYPE_CHECKING:
    from pi_durable_tui.tui.app import PidurableApp

TWICE_MS = 600
LEAVE_TWICE_MS = 2_000
READ_TASKS_MS = 250


class Stopping:
    """See the module. Used on the screen's loop."""

    def __init__(self, app: PidurableApp) -> None:
        self._app = app
        self._idle_ms = float("-inf")  # when Esc last had nothing to do
        self._interrupted_ms = float("-inf")  # when the line was last cleared, or found empty
        self._timer: Timer | None = None

    def escape(self) -> None:
        """Close what lies over the chat, deny the question, come back, or stop what runs; the first of these that applies.

        With nothing to do twice in a row, and nothing typed: the tree of chats.
        """
        app, chat = self._app, self._app.chat
        stop, was_idle_ms, self._idle_ms = chat.stops(), self._idle_ms, float("-inf")
        if isinstance(app.screen, ModalScreen):
            app.screen.dismiss(None)
        elif chat.leave_aside():
            pass
        elif chat.tasks.has_focus:
            self.toggle_tasks()
        elif chat.question.question_id is not None:
            chat.question.decide("deny")
        elif chat.is_look:
            app.deeds.moves.back()
        elif stop is not None:
            self._stop(stop)
        elif not chat.clear_notices() and not chat.prompt.text:
            self._idle_ms = app.clock.monotonic_ms()
            if self._idle_ms - was_idle_ms < TWICE_MS:
                app.deeds.directory.tree("")

    def clear_or_quit(self) -> None:
        """Close what lies over the chat, or clear the line (Up brings it back); on an empty one, twice in a row: leave."""
        app, prompt, now_ms = self._app, self._app.chat.prompt, self._app.clock.monotonic_ms()
        is_second, self._interrupted_ms = now_ms - self._interrupted_ms < LEAVE_TWICE_MS, now_ms
        if isinstance(app.screen, ModalScreen):
            app.screen.dismiss(None)
        elif prompt.text:
            prompt.remember(prompt.full_text)
            prompt.put("")
        elif is_second:
            app.deeds.commands["quit"]("")
        else:
            app.tell("info", f"{app.keymap.shown('clear_or_quit')} again leaves{ends_with_us(app.view)}; pidurable --continue comes back.")

    def _stop(self, stop: Stop) -> None:
        bridge = self._app.bridge
        if bridge is None:
            return
        self._app.chat.stopped(stop)
        match stop:
            case StopSubagent(task_id=task_id) | StopCompaction(task_id=task_id):
                bridge.abort_task(task_id)
            case StopRun():
                self._app.run_worker(self._abort(bridge))

    async def _abort(self, bridge: Bridge) -> None:
        withdrawn = await bridge.abort()
        if withdrawn:
            self._app.chat.prompt.put_back([content_text(typed(submission.content)) for submission in withdrawn])

    def toggle_tasks(self) -> None:
        """Show the task graph, or hide it; it is read again and again only while it is shown."""
        if isinstance(self._app.screen, ModalScreen):
            return
        is_shown = self._app.chat.toggle_tasks()
        if self._timer is None:
            self._timer = self._app.set_interval(READ_TASKS_MS / 1000, self._read_tasks, pause=True)
        (self._timer.resume if is_shown else self._timer.pause)()
        if is_shown:
            self._read_tasks()

    def stop_node(self, node: TaskNode) -> None:
        """Stop one task and what is below it."""
        if self._app.bridge is not None:
            self._app.bridge.abort_task(node.task_id, node.conversation_id)

    def _read_tasks(self) -> None:
        if self._app.bridge is not None:
            self._app.run_worker(self._show_tasks(self._app.bridge), group="tasks", exclusive=True)

    async def _show_tasks(self, bridge: Bridge) -> None:
        async def read(harness: HarnessPort) -> tuple[TaskNode, ...]:
            return harness.task_graph()

        nodes = await bridge.ask(read)
        if nodes is not None:
            self._app.chat.tasks.show_nodes(nodes, self._app.clock.now_ms())
