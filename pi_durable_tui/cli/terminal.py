"""Runs the app: the harness on a thread and event loop of its own, the screen on the main thread (rules CL-5, CL-7, CL-8).

Whatever ends the app, the session is closed cleanly; what stands at the end of the transcript stays in the normal screen. The
app's library is imported here, when it is needed, and nowhere else in the command line.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import sys
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pi_durable_tui.cli.paths import folders
from pi_durable_tui.cli.screen.guard import TerminalGuard
from pi_durable_tui.cli.setup import Setup
from pi_durable_tui.cli.signals import leave_on_signals
from pi_durable_tui.cli.streams import forget
from pi_durable_tui.cli.wish import Wish

if TYPE_CHECKING:
    from pi_durable_tui.cli.chat import Opened
    from pi_durable_tui.harness.ports import ModelGateway
    from pi_durable_tui.tui.app import PidurableApp
    from pi_durable_tui.tui.bridge import Opened as Shown

T = TypeVar("T")

LAST_LINES = 12
CLOSE_WITHIN_S = 15.0
SWITCH_S = 0.001  # how long a thread keeps the interpreter while another one waits: a key passes three threads on its way
FRAMES_PER_S = "120"  # the library paints on a beat: a key that comes right after a frame waits for up to two of them
ESCAPE_MS = "50"  # how long Escape may be the beginning of a sequence, in terminals that cannot tell; a sequence comes in one piece
COLORS = "COLORFGBG"
KILLED = "pidurable was killed. What was on the screen is stored. Resume with: pidurable --continue"

Script: TypeAlias = Callable[["Opened", "PidurableApp", asyncio.AbstractEventLoop], Coroutine[Any, Any, None]]
"""(chat, app, the screen's loop): acts in a person's place; runs on the harness's loop once the chat is on the screen."""


class HarnessThread:
    """A thread with an event loop for the harness: a slow frame delays no commit, a busy stream delays no key."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="harness", daemon=True)
        self._thread.start()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which runs on the thread."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work` last, then end the thread; the process does not wait longer than CLOSE_WITHIN_S for either."""
        try:
            asyncio.run_coroutine_threadsafe(work, self.loop).result(CLOSE_WITHIN_S)
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(CLOSE_WITHIN_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()


def run_app(setup: Setup, wish: Wish, *, script: Script | None = None) -> int:
    """Run the app until the person leaves or a signal ends it, and return the exit code.

    Args:
        setup: Where.
        wish: What the command line said.
        script: Acts in the person's place, for demos.

    Raises:
        PidurableError: What ended the app; the terminal is as before.
    """
    gc.disable()  # until all is loaded: there is nothing to collect, only much to look through
    os.environ.setdefault("TEXTUAL_FPS", FRAMES_PER_S)
    os.environ.setdefault("ESCDELAY", ESCAPE_MS)
    with contextlib.ExitStack() as stack:
        # A demo's player is killed and followed by the next one, which takes the terminal as it is.
        guard = stack.enter_context(TerminalGuard(KILLED)) if script is None else None
        return _run(setup, wish, script, guard)


def _run(setup: Setup, wish: Wish, script: Script | None, guard: TerminalGuard | None) -> int:
    from pi_durable_tui.cli.screen.branch import branch  # noqa: PLC0415 - with the app
    from pi_durable_tui.cli.screen.keys import read_keymap  # noqa: PLC0415 - imports textual
    from pi_durable_tui.tui.app import PidurableApp  # noqa: PLC0415 - the same
    from pi_durable_tui.tui.palette import palette_of  # noqa: PLC0415 - the same
    from pi_durable_tui.tui.status import Place  # noqa: PLC0415 - the same

    sys.setswitchinterval(SWITCH_S)
    worker = HarnessThread()
    starting = _Start(setup, wish, worker, script)
    app = PidurableApp(
        starting.open,
        clock=setup.clock,
        place=Place(directory=str(setup.place.directory), branch=branch(setup.place.directory)),
        palette=palette_of(setup.settings.theme or "system", colors=setup.environ.get(COLORS, "")),
        first_prompt=wish.prompt,
        keys=read_keymap(folders(setup.environ).config),
    )
    starting.app = app
    if guard is not None:
        app.on_terminal = guard.say
    undo = leave_on_signals(app.leave_on_signal)
    try:
        app.run(mouse=setup.settings.mouse)
    finally:
        undo()
        worker.finish(starting.close())
    if script is None:  # what a demo did is gone with its stage
        _say_goodbye(app)
    if app.problem is not None:
        raise app.problem
    return app.return_code or 0


class _Start:
    """Opens what the app shows, after its first paint, and closes it when the app is gone."""

    def __init__(self, setup: Setup, wish: Wish, worker: HarnessThread, script: Script | None) -> None:
        self.app: PidurableApp | None = None
        self._setup = setup
        self._wish = wish
        self._worker = worker
        self._script = script
        self._opened: dict[int, tuple[Opened, Shown]] = {}  # by session
        self._resumed: set[int] = set()
        self._screen: asyncio.AbstractEventLoop | None = None
        self._background: set[asyncio.Task[None]] = set()

    async def open(self) -> Shown:
        """Runs on the screen's loop."""
        self._screen = asyncio.get_running_loop()
        return await self._worker.call(self._open(self._screen))

    async def close(self) -> None:
        """Runs on the harness's loop. Nothing may have been opened."""
        for task in self._background:
            task.cancel()
        for opened, _ in self._opened.values():
            await opened.close()

    async def _open(self, screen: asyncio.AbstractEventLoop) -> Shown:
        # The harness, its tools and its stores are loaded here, on their own thread, while the first paint is read (speed.md).
        from pi_durable_tui.cli.chat import open_wished  # noqa: PLC0415

        gc.freeze()
        gc.enable()
        return self._shown(await open_wished(self._setup, self._wish), self._wish, screen)

    async def _enter(self, session: int, conversation_id: int) -> Shown:
        """A chat of another session of the directory, which stays open until the app is gone; runs on the harness's loop."""
        from pi_durable_tui.cli.chat import open_wished  # noqa: PLC0415 - loaded by now

        if session not in self._opened:
            wish = Wish(resume=True, chat_id=f"{session}.{conversation_id}", trust=self._wish.trust)
            assert self._screen is not None  # the app has opened its first chat
            self._shown(await open_wished(self._setup, wish), wish, self._screen)
        opened, shown = self._opened[session]
        conversation = await opened.harness.conversation(conversation_id)
        if session in self._resumed:
            return replace(shown, conversation=conversation, resume=_nothing, seam="", notices=(), waits=False)
        return replace(shown, conversation=conversation)

    def _shown(self, opened: Opened, wish: Wish, screen: asyncio.AbstractEventLoop) -> Shown:
        from pi_durable_tui.cli.project.app_workspace import AppWorkspace  # noqa: PLC0415
        from pi_durable_tui.cli.project.workspace import app_remarks  # noqa: PLC0415
        from pi_durable_tui.cli.providers import PLAYBACK  # noqa: PLC0415
        from pi_durable_tui.cli.screen.desk import Desk  # noqa: PLC0415
        from pi_durable_tui.cli.screen.house import house_of  # noqa: PLC0415
        from pi_durable_tui.cli.screen.keys import read_keymap  # noqa: PLC0415
        from pi_durable_tui.cli.screen.seam import seam_text  # noqa: PLC0415
        from pi_durable_tui.tui.bridge import Opened as Shown  # noqa: PLC0415 - with the app
        from pi_durable_tui.tui.palette import palette_of  # noqa: PLC0415 - the same
        from pi_durable_tui.tui.rows import Notice  # noqa: PLC0415 - the same

        problem = (f"{opened.problem.message}\n{opened.problem.hint}",) if opened.problem else ()
        workspace = AppWorkspace(self._setup, wish, opened)
        told = (*problem, *app_remarks(opened.workspace, opened.loaded), *opened.remarks, *workspace.remarks)
        if (app := self.app) is not None:
            opened.workspace.listen(lambda text: app.call_later(app.tell, "warn", text))
            opened.servers.listen(lambda text: app.call_later(app.tell, "warn", text))

        async def resume() -> None:
            self._resumed.add(opened.session)
            await opened.harness.resume()
            is_recorded = ((await opened.conversation.agent()).model or "").startswith(PLAYBACK)
            self._spawn(_get_ready(opened, loads_models=not is_recorded))
            if self._script is not None and self.app is not None and wish is self._wish:
                self._spawn(self._script(opened, self.app, screen))

        shown = Shown(
            loop=self._worker.loop,
            harness=opened.harness,
            files=opened.history,
            conversation=opened.conversation,
            workspace=workspace,
            resume=resume,
            seam=seam_text(opened.harness.recovery, None) if wish.resume else "",
            notices=tuple(Notice(tone="warn", text=text) for text in told),
            palette_of=partial(palette_of, colors=self._setup.environ.get(COLORS, "")),
            house=house_of(self._setup, wish, opened, self._enter),
            read_keys=partial(read_keymap, folders(self._setup.environ).config),
            waits=wish.resume and self._setup.settings.on_continue == "ask",
            desk=Desk(str(self._setup.place.directory), self._setup.clock, self._setup.environ),
        )
        self._opened[opened.session] = (opened, shown)
        return shown

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Work in the background that failed ends the app: otherwise it would look alive and be only half of it."""
        self._background.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and self.app is not None and self._screen is not None:
            self._screen.call_soon_threadsafe(self.app.fail, error)


async def _nothing() -> None:
    """The work of a session that is open goes on already."""


async def _get_ready(opened: Opened, *, loads_models: bool) -> None:
    """What the first request needs comes first; then the MCP servers, whose library takes a while, too."""
    if loads_models:
        await _warm_up(opened.models)
    opened.servers.connect()


async def _warm_up(models: ModelGateway) -> None:
    """Load what the first request needs, without a search for garbage among what is loaded: that would stop every key for a second."""
    gc.disable()
    try:
        await models.warm_up()
    finally:
        gc.freeze()
        gc.enable()


def _say_goodbye(app: PidurableApp) -> None:
    """The end of the transcript and the way back, in the normal screen (rule CL-8). A terminal that is gone is no error."""
    from pi_durable_tui.tui.last_lines import last_lines  # noqa: PLC0415 - with the app
    from pi_durable_tui.tui.safe_text import safe_line  # noqa: PLC0415 - the same

    width = max(8, shutil.get_terminal_size().columns)
    lines = last_lines(app.view, LAST_LINES, width=width) if app.view is not None and app.view.entries else ()
    try:
        if lines:
            ended = "".join(f"\nEnded with the program: {safe_line(slot.title)}" for slot in (app.view.live.background if app.view is not None else ()))
            sys.stdout.write("".join(f"{line}\n" for line in lines) + f"{ended}\nResume with: pidurable --continue\n")
        sys.stdout.flush()
    except OSError:
        forget(sys.stdout)
