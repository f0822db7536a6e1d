"""The main screen: one conversation from its views, the composer, and what the program has to say (terminal.md, section 3).

It turns a view into what each widget shows, and fetches older pages when somebody scrolls up. It hands nothing in: what a person
does goes up to the app as messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace
from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.timer import Timer

from pi_durable_tui.tui import status
from pi_durable_tui.tui.actions.escape import Round, Stop, StopSubagent, hint, what_stops
from pi_durable_tui.tui.keymap import COMPOSER_KEYS
from pi_durable_tui.tui.projection import Projection
from pi_durable_tui.tui.rows import Notice, queued_rows
from pi_durable_tui.tui.widgets.activity import Activity
from pi_durable_tui.tui.widgets.banner import Banner
from pi_durable_tui.tui.widgets.choices import Choices
from pi_durable_tui.tui.widgets.doubt_card import DoubtCard
from pi_durable_tui.tui.widgets.footer import Footer
from pi_durable_tui.tui.widgets.menu import Menu
from pi_durable_tui.tui.widgets.prompt import Prompt
from pi_durable_tui.tui.widgets.question import ALONE_GAPS, Question
from pi_durable_tui.tui.widgets.queue import Queue
from pi_durable_tui.tui.widgets.search import Search
from pi_durable_tui.tui.widgets.subagents import Subagents, cards
from pi_durable_tui.tui.widgets.tasks import TaskPanel
from pi_durable_tui.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from pi_durable_tui.clock import Clock
    from pi_durable_tui.harness.live import ToolSlot
    from pi_durable_tui.harness.view import ConversationView
    from pi_durable_tui.records.entry import StoredEntry
    from pi_durable_tui.tui.bridge import Bridge, Opened
    from pi_durable_tui.tui.following import Sight
    from pi_durable_tui.tui.keys.bindings import Keymap
    from pi_durable_tui.tui.palette import Palette
    from pi_durable_tui.tui.ports import DeskPort

FetchOlder: TypeAlias = "Callable[[int], Awaitable[Sequence[StoredEntry]]]"
WRITING_MS = 1_500
"""Whoever wrote so lately is writing still: a question that comes meanwhile takes no keys away."""


class ChatScreen(Screen[None]):
    """See the module.

    Attributes:
        sight: What is shown; None until there is something.
        prompt, transcript, question, tasks, banner: For the app's actions.
        window_tokens: The context window of the shown conversation's model; None: unknown.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-slim"), (100, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]

    def __init__(self, *, clock: Clock, place: status.Place, palette: Palette, notices: Sequence[Notice], typing_gap_s: float) -> None:
        super().__init__()
        self.sight: Sight | None = None
        self.window_tokens: int | None = None
        self._clock, self._place, self._first_notices = clock, place, tuple(notices)
        self._menu, self._choices = Menu(palette), Choices(palette)
        self.transcript = Transcript(palette)
        self.question = Question(palette, clock.monotonic_ms, self._write, alone_s=ALONE_GAPS * typing_gap_s)
        self.prompt = Prompt(self._menu, self._choices, typing_gap_s=typing_gap_s)
        self.tasks = TaskPanel(palette)
        self.search = Search(palette)
        self.doubts = DoubtCard(palette, clock.monotonic_ms, self._focus_home)
        self._opened_seq: int | None = None
        self._activity, self._queue, self._footer = Activity(palette), Queue(palette), Footer(palette)
        self._subagents, self.banner = Subagents(palette), Banner(palette)
        self._stopped_in: Round | None = None
        self._stop_key = ""
        self._projection = Projection()
        self._fetch: FetchOlder | None = None
        self._desk: DeskPort | None = None
        self._is_fetching = self._has_all = self._is_failed = False
        self._ticker: Timer | None = None
        self._written_ms = float("-inf")  # when something was last written into the composer

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield from (self.tasks, self.transcript, self._subagents, self._activity, self._queue)
        yield from (self.question, self.doubts, self.search, self._menu, self._choices, self.prompt, self.banner, self._footer)

    @property
    def view(self) -> ConversationView | None:
        """The newest view shown; None until there is one."""
        return self.sight.view if self.sight is not None else None

    @property
    def is_look(self) -> bool:
        """True while a subagent is looked into: nothing can be said there."""
        return self.view is not None and self.view.conversation.owner is not None

    @property
    def look_words(self) -> str:
        """What stands in the composer's place while nothing can be said; "" while something can. Foreign text is allowed."""
        return f"Subagent {self.view.agent.title}: looking only" if self.view is not None and self.is_look else ""

    @property
    def can_answer(self) -> bool:
        """Questions are put to whoever sits here."""
        return True

    def on_mount(self) -> None:
        """An empty transcript, and a composer that takes keys at once."""
        self.prompt.cursor_blink = False  # a timer that never stops
        self._focus_home()
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
        self.sight = self._opened_seq = None
        self.doubts.begin()

    def show(self, sight: Sight) -> None:
        """Draw what is to be seen; sights come in the order of their commits."""
        from pi_durable_tui.tui.actions.doubt import doubts  # noqa: PLC0415 - not before the first paint

        if self.sight is None:  # until now the conversation that was left stood here: nothing flashes in between
            self.transcript.clear()
        before = self.view
        self.sight, view, now_ms = sight, sight.view, self._clock.now_ms()
        self.transcript.show_rows(self._projection.apply(view), now_ms=now_ms)
        if self.transcript.is_following and self._projection.older_rows:  # the view has let entries go that nobody looks at
            self.transcript.show_rows(self._projection.drop_older(), now_ms=now_ms)
        self._queue.show_rows(queued_rows(view))
        self._subagents.show_cards(cards(sight, now_ms))
        self.banner.show(self.look_words)
        if self.prompt.display == self.is_look:
            self.prompt.display = not self.is_look
            self._focus_home()
        if not view.live.compactions and before is not None and before.live.compactions:
            self._activity.let_pass()
        if self._is_at_work(before) != self._is_at_work(view):
            self._look_for_branch()
        self._opened_seq = view.seq if self._opened_seq is None else self._opened_seq
        self.doubts.show_doubts(() if self.is_look else doubts(view, self._opened_seq), has_work=bool(view.tasks))
        asking = _asking(sight) if self.can_answer else []
        had_question = self.question.question_id is not None
        self.question.ask(asking[0][0] if asking else None, others=max(0, len(asking) - 1), asker=asking[0][1] if asking else "")
        if bool(asking) != had_question and not self._is_writing:
            self._focus_home()
        self._show_status()

    def stops(self) -> Stop | None:
        """What Esc stops now, as the line above the composer says it."""
        return what_stops(self.view, stopped_in=self._stopped_in) if self.view is not None and not self.is_look else None

    def stopped(self, stop: Stop) -> None:
        """Esc has stopped this: after a subagent, the next Esc in the same round stops the run."""
        self._stopped_in = stop.round if isinstance(stop, StopSubagent) else None
        self._show_status()

    def toggle_tasks(self) -> bool:
        """Show the task graph and go there, or hide it. True: it is shown now."""
        self.tasks.display = not self.tasks.display
        if self.tasks.display:
            self.tasks.focus()
        else:
            self._focus_home()
        return self.tasks.display

    def set_keymap(self, keymap: Keymap) -> None:
        """These keys are bound from now on: the composer's do what they say, and hints name them."""
        self._stop_key = self.banner.key = keymap.shown("stop")
        self._subagents.key, self._queue.key = keymap.shown("subagents"), keymap.shown("take_back")
        self.prompt.keys = keymap.actions(COMPOSER_KEYS)
        self.transcript.set_unfold_key(keymap.shown("unfold"))
        self.tasks.border_subtitle = Content(" · ".join(["x stops", "Enter opens", *([f"{hides} hides"] if (hides := keymap.shown("tasks")) else [])]))
        if self.is_mounted:
            self._show_status()

    def set_palette(self, palette: Palette) -> None:
        """Draw everything in other colours."""
        self.transcript.set_palette(palette)
        for widget in (
            self._menu,
            self._activity,
            self._queue,
            self._footer,
            self._subagents,
            self.banner,
            self.tasks,
            self.search,
            self._choices,
            self.doubts,
        ):
            widget.palette = palette
            widget.refresh()
        self.question.set_palette(palette)

    def on_screen_resume(self) -> None:
        """Back from another screen: a question that came meanwhile has only just been seen."""
        self.question.appear()

    def fail(self) -> None:
        """The session stores nothing any more: say so and take no more work."""
        self._is_failed = True
        self.prompt.read_only = True
        self.prompt.add_class("-locked")
        self._show_status()

    def say(self, notice: Notice) -> None:
        """Show a notice."""
        self._activity.say(notice)

    def clear_notices(self) -> bool:
        """Take notices and the list of commands away; False when there was neither."""
        had_offers = self._menu.chosen is not None
        self._menu.offer(())
        return self._activity.clear_notices() or had_offers

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

    def action_prompt(self, direction: Literal[-1, 1]) -> None:
        """Ctrl+Up and Ctrl+Down: to the previous or next message of the person."""
        self.transcript.go_to_prompt(direction)

    def action_select(self) -> None:
        """Alt+C: select by keys."""
        self.transcript.begin_selecting()

    def action_search(self) -> None:
        """Ctrl+F: look for a text in the transcript; again: the next older place."""
        if self.search.display:
            self.on_search_wanted(Search.Wanted(self.search.query_text, -1))
        else:
            self.search.open()

    def leave_aside(self) -> bool:
        """Close the search, the card about calls in doubt, the selection or a list of choices, or go back to the question; False: there was none."""
        if self.search.display:
            self.search.close()
            return True
        if self.doubts.put_off() or self.transcript.end_selecting() or self.prompt.leave_aside():
            return True
        return self._back_to_question()

    def equip(self, opened: Opened, bridge: Bridge) -> None:
        """The harness is open: what the composer and the card about calls in doubt need of it."""
        self._desk = opened.desk
        self.prompt.equip(opened.desk, bridge.prompts)
        self.doubts.equip(bridge.settle_doubt, bridge.resume, waits=opened.waits)

    def on_key(self, event: events.Key) -> None:
        """What is typed beside the composer goes into it. Esc closes lists also where another key stops."""
        if event.key == "escape":
            self.leave_aside()
        elif self._is_beside and event.is_printable and event.character is not None:
            self._write(event.character)

    def on_paste(self, event: events.Paste) -> None:
        """The same for what is pasted."""
        if self._is_beside:
            event.stop()
            self.prompt.focus()
            self.prompt.post_message(events.Paste(event.text))

    def _write(self, text: str) -> None:
        """It is the beginning of a message, and no answer to a question."""
        if self.prompt.display and not self.prompt.read_only:
            self.set_focus(self.prompt)
            self.prompt.insert(text)

    def on_prompt_sent(self) -> None:
        """Keys answer the question again. The message goes on to the app, and so does the next one."""
        self._back_to_question()

    def on_prompt_draft_changed(self, message: Prompt.DraftChanged) -> None:
        """Whoever takes away all that was written wants to answer."""
        self._written_ms = self._clock.monotonic_ms()
        if not message.text:
            self._back_to_question()

    def on_descendant_focus(self) -> None:
        """What Esc does depends on where keys go."""
        self._show_status()

    def _back_to_question(self) -> bool:
        """Let keys answer again; False when no question is open, or they do."""
        was_off = self._is_off_question
        if was_off:
            self.question.appear()
            self.set_focus(self.question)
        return was_off

    @property
    def _is_off_question(self) -> bool:
        """True while a question is open and keys go to the composer."""
        return self.question.question_id is not None and self.focused is self.prompt

    @property
    def _is_writing(self) -> bool:
        """True while somebody is in the middle of a message."""
        return self.focused is self.prompt and bool(self.prompt.text) and self._clock.monotonic_ms() - self._written_ms < WRITING_MS

    @property
    def _is_beside(self) -> bool:
        """True while keys go to what only stands beside the composer: the task graph, the cards."""
        return self.prompt.display and (self.doubts.has_focus or self.tasks.has_focus or self.question.has_focus)

    def on_prompt_failed(self, message: Prompt.Failed) -> None:
        """The editor could not be used."""
        self.say(Notice(tone="warn", text=message.problem.message))

    def on_search_wanted(self, message: Search.Wanted) -> None:
        """Show where it stands."""
        self.search.tell(self.transcript.search(message.query, message.step))

    def on_search_closed(self) -> None:
        """Nothing is highlighted any more; the view stays where it is."""
        self.transcript.search("", 0)
        self._focus_home()

    def on_transcript_left(self) -> None:
        """Nothing is selected by keys any more."""
        self._focus_home()

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
        from pi_durable_tui.tui.bridge import OLDER_ENTRIES  # noqa: PLC0415 - not before the first paint

        before = self._projection.first_id
        page = await fetch(before) if before is not None else ()
        self._is_fetching = False
        if fetch is not self._fetch or before != self._projection.first_id:
            return  # meanwhile another conversation came, or the end was reached
        self._has_all = len(page) < OLDER_ENTRIES
        if page:
            self.transcript.show_rows(self._projection.prepend(page), now_ms=self._clock.now_ms())

    @staticmethod
    def _is_at_work(view: ConversationView | None) -> tuple[bool, bool]:
        """Whether it runs, and whether anything is done to the directory meanwhile."""
        return (view.is_busy, bool(view.live.tools or view.live.commands)) if view is not None else (False, False)

    def _look_for_branch(self) -> None:
        """Work may have gone to another one, and so may a person elsewhere: looked for when work begins and ends, never by a timer."""
        if self._desk is not None:
            self.run_worker(self._show_branch(self._desk), group="branch", exclusive=True)

    async def _show_branch(self, desk: DeskPort) -> None:
        self._place = replace(self._place, branch=await asyncio.to_thread(desk.branch))
        self._show_status()

    def _show_status(self) -> None:
        sight, view, now_ms = self.sight, self.view, self._clock.now_ms()
        words = status.activity(sight, now_ms) if sight is not None and not self._is_failed else ""
        is_busy = bool(words) or bool(sight is not None and sight.subagents)
        light: status.Light = "failed" if self._is_failed else "opening" if view is None else "storing" if is_busy else "stored"
        esc = self._stop_words()
        self._activity.show_work(status.spinner(now_ms), words, esc)
        self._footer.show_parts(*status.footer_parts(sight, self._place, light=light, now_ms=now_ms, window_tokens=self.window_tokens))
        if self._ticker is not None:
            (self._ticker.resume if is_busy else self._ticker.pause)()

    def _stop_words(self) -> str:
        """What a person is told about the key that stops."""
        if self.question.question_id is not None:
            return "Esc goes back to the question" if self._is_off_question else "Esc denies"
        return "" if self.is_look else hint(self.stops(), self._stop_key)

    def _focus_home(self) -> None:
        """Keys go to the question while one is asked, else to the composer, else nowhere."""
        if self.question.question_id is not None:
            self.question.focus()
        elif self.doubts.display:
            self.doubts.focus()
        elif self.prompt.display:
            self.prompt.focus()
        else:
            self.set_focus(None)

    def _tick(self) -> None:
        now_ms = self._clock.now_ms()
        self.transcript.tick(now_ms)
        if self.sight is not None:
            self._subagents.show_cards(cards(self.sight, now_ms))
        self._show_status()


def _asking(sight: Sight) -> list[tuple[ToolSlot, str]]:
    """The calls that wait for an answer, each with the name of the subagent that makes it ("": the conversation itself)."""
    found = [(slot, "") for slot in sight.view.live.tools]
    found += [(slot, subagent.name) for subagent in sight.subagents if subagent.view is not None for slot in subagent.view.live.tools]
    return [(slot, asker) for slot, asker in found if slot.status == "asking" and slot.question is not None]
