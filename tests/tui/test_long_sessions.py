"""A long session draws no more per frame than a short one: counted, not timed (CASE-E2, TU-1, TU-2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from textual import events

from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.entry import StoredEntry
from pi_durable_tui.tui import projection
from pi_durable_tui.tui.draw.markdown import MarkdownPainter
from pi_durable_tui.tui.draw.paint import Painter, new_console
from pi_durable_tui.tui.draw.stream import MarkdownStream
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.widgets.reading import drawn, row_view
from tests.support.tui_rig import Rig, running
from tests.support.tui_views import answer, result, slot, user, view

SHORT, LONG = 60, 6_000
CODE = "```python\nfor number in range(10):\n    print(number)\n```"


def story(entries: int) -> list[StoredEntry]:
    """Turns of a message, a call with output, and an answer with code."""
    made: list[StoredEntry] = []
    for number in range(1, entries, 3):
        made += [user(number, f"message {number}"), result(number + 1, "bash", "bash make", "out\n" * 30), answer(number + 2, f"# Answer {number}\n\n{CODE}")]
    return made


class Counted:
    """How often what costs time was done.

    Attributes:
        counts: Rows drawn as lines, heights estimated, entries turned into rows, lines put on the screen, Markdown blocks set.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        self._wrap(patch, Painter, "lines", "rows drawn")
        self._wrap(patch, row_view, "estimate_lines", "heights estimated")
        self._wrap(patch, projection, "entry_rows", "entries made rows")
        self._wrap(patch, row_view.RowView, "render_line", "lines on the screen")
        self._wrap(patch, MarkdownPainter, "block", "blocks set")
        self._wrap(patch, drawn, "to_segments", "lines made strips")

    def _wrap(self, patch: pytest.MonkeyPatch, owner: Any, name: str, what: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def counting(*arguments: Any, **options: Any) -> Any:
            self.counts[what] += 1
            return inner(*arguments, **options)

        patch.setattr(owner, name, counting)

    def since(self, before: Counter[str]) -> dict[str, int]:
        return dict(self.counts - before)


async def streamed(rig: Rig, made: Counted, entries: Sequence[StoredEntry]) -> dict[str, int]:
    """An answer comes in, a command runs, the spinner turns, the window loses and gains the focus; what that cost."""

    def now(*streaming: str, **more: Any) -> ConversationView:
        return view(*entries, streaming=list(streaming), **more)

    await rig.show(now("begin"))
    before = made.counts.copy()
    text = "begin"
    for number in range(12):
        text += f" and *word* {number}" if number % 3 else f"\n\n- item {number}"
        await rig.show(now(text))
    for _ in range(6):
        rig.clock.advance(250)
        rig.chat._tick()
        await rig.settle()
    await rig.show(view(*entries, tools=[slot(900_000, "bash", "bash make", output="line\n" * 50)]))
    rig.app.post_message(events.AppBlur())
    await rig.settle()
    rig.app.post_message(events.AppFocus())
    await rig.settle()
    await rig.type("typed meanwhile")
    return made.since(before)


@pytest.mark.rule("CASE-E2", "TU-1", "TU-2")
async def test_a_frame_of_a_long_session_costs_what_one_of_a_short_session_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Counted(monkeypatch)
    costs: list[dict[str, int]] = []
    for length in (SHORT, LONG):
        entries = story(length)
        async with running(view(*entries)) as rig:
            costs.append(await streamed(rig, made, entries))
    short, long = costs
    assert long.keys() == short.keys() >= {"rows drawn", "heights estimated", "lines on the screen", "blocks set", "lines made strips"}
    assert {what: (short[what], long[what]) for what in short if long[what] > 1.2 * short[what] + 3} == {}
    assert "entries made rows" not in long, "what is there already is not looked at again"


@pytest.mark.rule("CASE-E2", "TU-1")
async def test_another_turn_costs_the_same_however_many_were_before(monkeypatch: pytest.MonkeyPatch) -> None:
    made, entries = Counted(monkeypatch), story(LONG)
    async with running(view(*entries[:-300])) as rig:
        costs: list[int] = []
        for end in range(len(entries) - 297, len(entries) - 200, 3):
            before = made.counts.copy()
            await rig.show(view(*entries[:end]))
            costs.append(sum(made.since(before).values()))
        assert max(costs) <= 1.1 * min(costs), costs
        assert rig.chat.transcript.drawn_rows < 400


@pytest.mark.rule("CASE-E2")
async def test_an_idle_app_draws_nothing_and_has_no_timer_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Counted(monkeypatch)
    async with running(view(*story(LONG))) as rig:
        before = made.counts.copy()
        rig.clock.advance(60_000)
        await rig.settle()
        assert made.since(before) == {}
        widgets = [rig.app, rig.app.screen, *rig.app.screen.walk_children()]
        assert [timer for widget in widgets for timer in widget._timers if timer._active.is_set() and timer._repeat != 0] == []


@pytest.mark.rule("CASE-E2", "TU-2")
def test_the_second_half_of_a_megabyte_costs_what_the_first_half_cost() -> None:
    parts = ["# Part {0}\n\n", "A paragraph with `code` and *stress*, " * 12 + "\n\n", "- item {0}\n" * 8 + "\n", f"{CODE}\n\n", "word " * 1_500 + "\n\n"]
    whole = "".join(part.replace("{0}", str(number)) for number in range(120) for part in parts)[:1_000_000]
    stream = MarkdownStream(MarkdownPainter(width=100, palette=DARK, console=new_console()))
    redrawn: list[int] = []
    for end in range(2_000, len(whole) + 1, 2_000):
        changed = stream.show(whole[:end])
        redrawn.append(len(stream.lines) - changed)
    half = len(redrawn) // 2
    assert len(whole) > 900_000
    assert sum(redrawn[half:]) <= 1.2 * sum(redrawn[:half])
