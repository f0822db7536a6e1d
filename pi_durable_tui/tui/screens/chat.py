"""The main screen: one conversation from its views, the composer, and what the program has to say (terminal.md, section 3).

It turns a view into what each widget shows, and fetches older pages when somebody scrolls up. It hands nothing in: what a person
does goes up to the app as messages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from textual.app import ComposeResult
from textual.screen import Screen
from textual.timer import Timer

from pi_durable_tui.clock import Clock
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.tui import status
from pi_durable_tui.tui.bridge import OLDER_ENTRIES
from pi_durable_tui.tui.palette import Palette
from pi_durable_tui.tui.projection import Projection
from pi_durable_tui.tui.rows import Notice, queued_rows
from pi_durable_tui.tui.widgets.activity import Activity
from pi_durable_tui.tui.widgets.footer import Footer
from pi_durable_tui.tui.widgets.menu import Menu
from pi_durable_tui.tui.widgets.prompt import Prompt
from pi_durable_tui.tui.widgets.question import Question
from pi_durable_tui.tui.widgets.queue import Queue
from pi_durable_tui.tui.widgets.transcript import Transcript

FetchOlder = Callable[[int], Awaitable[Sequence[StoredEntry]]]


class ChatScreen(Screen[None]):
    """See the module.

    Attributes:
        view: The newest view shown; None until there is one.
        prompt, transcript, question: For the app's actions.
    """

    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]

    def __init__(self, *, clock: Clock, place: status.Place, palette: Palette, notices: Sequence[Notice], typing_gap_s: float) -> None:
        super().__init__()
        self.view: ConversationView | None = None
        self._clock, self._place, self._first_notices = clock, place, tuple(notices)
        self._menu = Menu(palette)
        self.transcript = Transcript(palette)
        self.question = Question(palette, clock.monotonic_ms)
        self.prompt = Prompt(self._menu, typing_gap_s=typing_gap_s)
        self._activity, self._queue, self._footer = Activity(palette), Queue(palette), Footer(palette)
        self._projection = Projection()
        self._fetch: FetchOlder | None = None
        self._is_fetching = self._has_all = self._is_failed = False
        self._ticker: Timer | None = None

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield from (self.transcript, self._activity, self._queue, self.question, self._menu, self.prompt, self._footer)

    def on_mount(self) -> None:
        """An empty transcript, and a composer that takes keys at once."""
        self.prompt.cursor_blink = False  # a timer that never stops
        self.prompt.focus()
        self._ticker = self.set_interval(status.SPINNER_STEP_MS / 1000, self._tick, pause=True)
        for notice in self._first_notices:
            self.say(notice)
        self._show_status()

    def begin(self, *, fetch_older: FetchOlder | None, seam: str = "") -> None:
        """The next views are those of a conversation that has not been shown yet.

        Args:
            fetch_older: Reads the page before an entry id.
            seam: What happened before this opening (rule TU-9); "" for nothing.
        """
        self._projection, self._fetch, self._has_all = Projection(seam=seam), fetch_older, False
        self.transcript.clear()

    def show(self, view: ConversationView) -> None:
        """Draw a view; views come in the order of their commits."""
        self.view = view
        self.transcript.show_rows(self._projection.apply(view), now_ms=self._clock.now_ms())
        self._queue.show_rows(queued_rows(view))
        asking = [slot for slot in view.live.tools if slot.status == "asking" and slot.question is not None]
        had_question = self.question.question_id is not None
        self.question.ask(asking[0] if asking else None, others=max(0, len(asking) - 1))
        if bool(asking) != had_question:
            (self.question if asking else self.prompt).focus()
        self._show_status()

    def fail(self) -> None:
        """The session stores nothing any more: say so and take no more work."""
        self._is_failed = True
        self.prompt.read_only = True
        self.prompt.add_class("-locked")
        self._show_status()

    def say(self, notice: Notice) -> None:
        """Show a notice."""
        self._activity.say(notice)

    def clear_notices(self) -> None:
        """Take notices and the list of commands away."""
        self._activity.clear_notices()
        self._menu.offer(())

    def action_unfold(self) -> None:
        """Ctrl+O: unfold tools and thinking, or fold them."""
        self.transcript.toggle_all()

    def action_page(self, direction: int) -> None:
        """PageUp and PageDown: the question while one is asked, else the transcript."""
        (self.transcript if self.question.question_id is None else self.question).page(direction)

    def action_go_start(self) -> None:
        """Ctrl+Home."""
        self.transcript.go_to_start()

    def action_go_end(self) -> None:
        """Ctrl+End."""
        self.transcript.go_to_end()

    def on_transcript_older_wanted(self) -> None:
        """Fetch the page before the first row, once at a time."""
        if self._fetch is not None and self.view is not None and self.view.has_older and not self._is_fetching and not self._has_all:
            self._is_fetching = True
            self.run_worker(self._fetch_older(self._fetch))

    def on_transcript_end_reached(self) -> None:
        """Pages that were fetched on the way up are let go; memory stays that of the newest entries."""
        self._has_all = False
        self.transcript.show_rows(self._projection.drop_older(), now_ms=self._clock.now_ms())

    async def _fetch_older(self, fetch: FetchOlder) -> None:
        before = self._projection.first_id
        page = await fetch(before) if before is not None else ()
        self._is_fetching = False
        if fetch is not self._fetch or before != self._projection.first_id:
            return  # meanwhile another conversation came, or the end was reached
        self._has_all = len(page) < OLDER_ENTRIES
        if page:
            self.transcript.show_rows(self._projection.prepend(page), now_ms=self._clock.now_ms())

    def _show_status(self) -> None:
        view, now_ms = self.view, self._clock.now_ms()
        is_busy = view is not None and view.is_busy and not self._is_failed
        light: status.Light = "failed" if self._is_failed else "opening" if view is None else "storing" if is_busy else "stored"
        words = status.activity(view, now_ms) if view is not None and is_busy else ""
        self._activity.show_work(status.spinner(now_ms), words, "Esc denies" if self.question.question_id is not None else "Esc stops")
        self._footer.show_parts(*status.footer_parts(view, self._place, light=light, now_ms=now_ms))
        if self._ticker is not None:
            (self._ticker.resume if is_busy else self._ticker.pause)()

    def _tick(self) -> None:
        self.transcript.tick(self._clock.now_ms())
        self._show_status()
