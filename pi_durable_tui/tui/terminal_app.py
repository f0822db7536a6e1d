"""What an app of ours does about the terminal and its own end (rules CL-7, TU-14; CASE-E5). It shows nothing itself.

However it ends, the driver gives the terminal back, and what was wrong is kept for whoever ran the app to report: no traceback on
the screen, and never a successful exit code after a failure. NO_COLOR means no colour codes at all, not grey ones.
"""

from __future__ import annotations

import asyncio
import os
import re
import selectors
import signal
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import IO, Literal, cast

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.binding import Binding, BindingsMap
from textual.color import Color
from textual.drivers.linux_driver import LinuxDriver
from textual.filter import LineFilter, Monochrome
from textual.worker import WorkerFailed

from pi_durable_tui.errors import InternalError, PidurableError
from pi_durable_tui.tui.foreign.paste import PasteParser
from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.safe_text import CONTROL_MARK

LEAVE_WITHIN_S = 5.0
_READ_BYTES = 65_536
_QUIET_S = 0.1
_HELD_S = 0.01  # Escape alone is a key
_OBEYED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_SETS_OFF = 60  # how far the brightness of a background (0 to 255) lies from the screen's when it is meant to be seen


class TerminalApp(App[None], inherit_bindings=False):
    """Base of our app; see the module.

    Attributes:
        problem: What ended or stopped the app; None when a person left it. Whoever ran the app reports it.
        on_terminal: Told "on" when the app takes the terminal and "off" when it has given it back, also around a suspension.
    """

    def __init__(self) -> None:
        super().__init__()
        if self.driver_class is LinuxDriver:
            self.driver_class = ToldDriver
        self.problem: PidurableError | None = None
        self.on_terminal: Callable[[Literal["on", "off"]], None] = lambda _word: None
        self._is_leaving = False
        self._filters = [LastLine(), *self._filters]
        if self.no_color or os.environ.get("TERM") == "dumb":
            self._filters = [*(known for known in self._filters if not isinstance(known, Monochrome)), WithoutColor()]

    def bind_keys(self, actions: Mapping[str, str]) -> None:
        """From now on these keys, and no others, do the app's actions, whatever has the focus. `actions`: key -> action."""
        self._bindings = BindingsMap([Binding(key, action, show=False, priority=True) for key, action in actions.items()])

    def put_on(self, palette: Palette) -> None:
        """Use these colours from now on; what draws itself is told by whoever calls this."""
        self.register_theme(palette.theme())
        self.ansi_color = palette.is_ansi
        self.theme = palette.name

    async def leave(self, return_code: int = 0) -> None:
        """Leave; an app that has something to put away does so first."""
        self.exit(return_code=return_code)

    def leave_on_signal(self, return_code: int) -> None:
        """Leave with this exit code; may be called in a signal handler, at any time, more than once."""
        loop = self._loop
        if loop is None:
            raise SystemExit(return_code)  # not running yet, or not any more: the terminal is not ours
        loop.call_soon_threadsafe(self._leave_once, return_code)

    def fail(self, error: BaseException) -> None:
        """End because of a bug; call it on the app's loop. The first one is the one that is kept."""
        if self.problem is None:
            cause = error.error if isinstance(error, WorkerFailed) else error
            self.problem = cause if isinstance(cause, PidurableError) else InternalError(f"{type(cause).__name__}: {cause}"[:500])
            if self.problem is not cause:
                self.problem.__cause__ = cause
        self._return_code = self.problem.exit_code
        self._close_messages_no_wait()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Another program has the terminal inside of this."""
        if self._driver is None or not self._driver.can_suspend:  # without a terminal there is nothing to lend
            yield
            return
        with self.suspend():
            yield

    def repaint(self) -> None:
        """Draw the whole screen anew, whatever stands there: another program may have written on it."""
        self._display(self.screen, self.screen._compositor.render_update(full=True))  # noqa: SLF001 - the library redraws only what changed

    def _leave_once(self, return_code: int) -> None:
        if not self._is_leaving:
            self._is_leaving = True
            self.run_worker(self._leave_in_time(return_code), exit_on_error=False)

    async def _leave_in_time(self, return_code: int) -> None:
        """What cannot be put away in time must not keep a process alive that was told to end."""
        try:
            await asyncio.wait_for(self.leave(return_code), LEAVE_WITHIN_S)
        finally:
            self.exit(return_code=return_code)

    def _handle_exception(self, error: Exception) -> None:
        """The library would print a traceback with the values of variables, which may hold secrets."""
        if self.is_headless:  # tests want the exception itself
            super()._handle_exception(error)
        else:
            self.fail(error)


class Terminal:
    """Where the driver writes. What is written to a terminal that is gone is dropped: whoever waited for it would wait for ever."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.fileno, self.isatty = file.fileno, file.isatty

    def write(self, text: str) -> int:
        """Write, or do nothing."""
        with suppress(OSError):
            return self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is held back, or do nothing."""
        with suppress(OSError):
            self._file.flush()


class ToldDriver(LinuxDriver):
    """Tells the app when it takes the terminal and when it has given it back."""

    def __init__(self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._file = cast("IO[str]", Terminal(self._file))

    def start_application_mode(self) -> None:
        self._tell("on")
        super().start_application_mode()

    def run_input_thread(self) -> None:
        """Read until the app lets go of the terminal."""
        parser, decode = PasteParser(XTermParser(self._debug)), getincrementaldecoder("utf-8")("replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                came = selector.select(_HELD_S if parser.is_holding else _QUIET_S)
                if came:
                    data = self._read()
                    if not data:
                        self._give_up()
                        return
                    for event in parser.feed(decode(data)):
                        self.process_message(event)
                for event in parser.tick(is_quiet=not came):
                    self.process_message(event)

    def _read(self) -> bytes:
        """What came; b"" when the terminal is gone."""
        try:
            return os.read(self.fileno, _READ_BYTES)
        except OSError:
            return b""

    def _give_up(self) -> None:
        """The terminal is gone without a signal: an app that nobody can reach must not stay (CASE-H4)."""
        app = self._app
        if isinstance(app, TerminalApp):
            app.leave_on_signal(128 + signal.SIGHUP)

    def resume_application_mode(self) -> None:
        super().resume_application_mode()
        app, loop = self._app, self._app._loop  # noqa: SLF001 - the library has no public name for it
        if isinstance(app, TerminalApp) and loop is not None:
            loop.call_soon_threadsafe(app.repaint)

    def close(self) -> None:
        super().close()  # waits until everything is written
        self._tell("off")

    def _tell(self, word: Literal["on", "off"]) -> None:
        app = self._app
        if isinstance(app, TerminalApp):
            app.on_terminal(word)


class LastLine(LineFilter):
    """The second line behind `safe_text` (rule SA-1): whatever a widget draws, no control character of its text gets to the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments; in their text a mark for what a terminal would obey."""
        del background
        if not any(_OBEYED.search(text) for text, _, control in segments if not control):
            return segments
        return [Segment(text if control else _OBEYED.sub(CONTROL_MARK, text), style, control) for text, style, control in segments]


class WithoutColor(LineFilter):
    """Takes colours away; what only its background sets off (the cursor, a selection) is shown in reverse."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments without colours."""
        shade = int(background.brightness * 255)
        return [Segment(text, _plain(style, shade) if style is not None else None, control) for text, style, control in segments]


@lru_cache(maxsize=1024)
def _plain(style: Style, shade: int) -> Style:
    back = style.bgcolor
    is_set_off = back is not None and not back.is_default and abs(_shade(back) - shade) > _SETS_OFF
    return style.without_color + Style(reverse=True) if is_set_off else style.without_color


def _shade(color: RichColor) -> int:
    red, green, blue = color.get_truecolor()
    return (red * 299 + green * 587 + blue * 114) // 1000
