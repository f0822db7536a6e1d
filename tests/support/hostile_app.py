"""The real app on the terminal it is started in, shown one hostile view after another: `python -m tests.support.hostile_app ACT [--clean]`.

Every place that shows foreign text gets every text of `hostile_text`; each text stands behind the name of its place and its number
(`user017`). At the end it leaves as a person would. With `--clean` the texts are empty, for comparison.

    transcript    what a conversation is made of, on a tall terminal
    around        questions, footer, seam, composer, lists and sheets
"""

# ruff: noqa: ASYNC110 - it waits for another thread

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from textual.events import Paste
from textual.screen import Screen

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.view import ConversationView
from pi_durable_tui.records.messages import Problem
from pi_durable_tui.tui.app import PidurableApp
from pi_durable_tui.tui.bridge import Opened
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.rows import Notice
from pi_durable_tui.tui.screens.picker import Choice, PickerScreen
from pi_durable_tui.tui.screens.sheet import Part, SheetScreen
from pi_durable_tui.tui.status import Place
from tests.support.hostile_text import hostile_texts
from tests.support.tui_conversation import FakeConversation, HarnessThread, opened
from tests.support.tui_views import answer, result, slot, thinking, user, view

TRANSCRIPT = ("user", "think", "model", "code", "list", "output", "title", "remark", "path", "diff", "error", "slot", "live", "queue", "notice")
AROUND = ("name", "rule", "why", "ask", "pathask", "diffask", "agent", "tool", "steer", "seam", "paste", "label", "detail", "heading", "term", "mean")


class Hostile:
    """Makes the views.

    Args:
        texts: What to show.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.seq = 0

    def lines(self, place: str, numbers: Sequence[int]) -> str:
        """The texts, each behind its label; a line break between, which ends what is left open."""
        return "\n".join(f"{place}{number:03}{self.texts[number]}" for number in numbers)

    def batches(self, size: int) -> list[range]:
        """All numbers, so many at a time."""
        return [range(start, min(start + size, len(self.texts))) for start in range(0, len(self.texts), size)]

    def conversation(self, numbers: Sequence[int]) -> ConversationView:
        """All that a transcript is made of."""

        def at(place: str, line: str = "\n") -> str:
            return self.lines(place, numbers).replace("\n", line)

        self.seq += 1
        first = self.seq * 10
        said = at("model", "\n\n") + "\n\n```python\n" + at("code") + "\n```\n\n- " + at("list", "\n- ")
        entries = (
            user(first + 1, at("user")),
            answer(first + 2, thinking(at("think")), said),
            result(first + 3, "bash", at("title"), at("output"), is_error=True, diagnostics=[{"code": "x", "message": at("remark")}]),
            result(first + 4, "edit", at("path"), "", details={"diff": "+" + at("diff", "\n+"), "added": 1, "removed": 0}, arguments={"path": at("path")}),
            answer(first + 5, "so far", stop="error", problem=Problem(reason="provider", message=at("error"))),
        )
        return view(*entries, seq=self.seq, queued=[("followUp", at("queue"))], tools=[slot(7, "bash", at("slot"), output=at("live"))])

    def asking(self, numbers: Sequence[int], kind: int) -> ConversationView:
        """A question, the footer and the name of a tool."""

        def at(place: str) -> str:
            return self.lines(place, numbers)

        self.seq += 1
        arguments: dict[str, Any] = [{"command": at("ask")}, {"path": at("pathask")}, {at("key"): at("value")}][kind]
        details = {"reason": at("why"), "rule": at("rule"), **({"diff": "+" + at("diffask").replace("\n", "\n+")} if kind == 1 else {})}
        asking = slot(8, at("name"), at("asktitle"), status="asking", arguments=arguments, question=1_000 + self.seq, details=details)
        agent = Agent(model=at("agent"), title=at("chat"))
        return view(result(self.seq * 10, at("tool"), "t", "ok"), seq=self.seq, tools=[asking], agent=agent, queued=[("steer", at("steer"))])


class Stage:
    """The app and the hands that move it."""

    def __init__(self, app: PidurableApp, thread: HarnessThread, conversation: FakeConversation, hostile: Hostile) -> None:
        self.app, self.hostile = app, hostile
        self._thread, self._conversation = thread, conversation

    async def show(self, made: ConversationView) -> None:
        """The view is on the screen."""
        self._thread.call(self._conversation.publish, made)
        while self.app.view is None or self.app.view.seq < made.seq:
            await asyncio.sleep(0.002)
        await self.drawn(self.app.chat)

    async def drawn(self, screen: Screen[Any]) -> None:
        """All that waits to be drawn is; a busy machine would put it off, and the next view would take its place."""
        for _ in range(3):
            done = asyncio.Event()
            screen.call_after_refresh(done.set)
            await done.wait()
            screen._on_timer_update()

    async def transcript(self) -> None:
        self.app.chat.transcript.toggle_all()
        for numbers in self.hostile.batches(8):
            self.app.chat.clear_notices()
            self.app.tell("bad", self.hostile.lines("notice", numbers))
            await self.show(self.hostile.conversation(numbers))

    async def around(self) -> None:
        for numbers in self.hostile.batches(4):  # of names few cells are shown
            await self.show(self.hostile.asking(numbers, 0))
        for numbers in self.hostile.batches(14):
            for kind in (1, 2):
                await self.show(self.hostile.asking(numbers, kind))
        for numbers in self.hostile.batches(10):
            self.app.chat.begin(fetch_older=None, seam=self.hostile.lines("seam", numbers[:5]) + "\n" + self.hostile.lines("seam", numbers[5:]))
            self.hostile.seq += 1
            self.app.chat.prompt.post_message(Paste(self.hostile.lines("paste", numbers)))
            await self.show(view(user(1, "x"), seq=self.hostile.seq))
            self.app.chat.prompt.put("")
        for numbers in self.hostile.batches(22):
            await self._screens(numbers)

    async def _screens(self, numbers: Sequence[int]) -> None:
        def at(place: str, number: int) -> str:
            return self.hostile.lines(place, [number])

        preview = self.hostile.lines("preview", numbers)
        choices = [Choice(value=number, label=at("label", number), detail=at("detail", number), preview=preview) for number in numbers]
        parts = [Part(heading=at("heading", number), lines=((at("term", number), at("mean", number)),)) for number in numbers]
        screens = [PickerScreen(self.app.palette, "Chats", choices)]
        screens += [SheetScreen(self.app.palette, "Session", some) for some in (parts[:11], parts[11:])]
        for screen in screens:
            self.app.push_screen(screen)
            await self.drawn(screen)
            self.app.pop_screen()


def main(act: str) -> None:
    texts = hostile_texts()
    hostile = Hostile([""] * len(texts) if "--clean" in sys.argv else texts)
    thread = HarnessThread()
    conversation: FakeConversation = thread.call(FakeConversation, view(seq=0))
    made = opened(thread, conversation, seam=hostile.lines("seam", range(4)))

    async def start() -> Opened:
        return made

    place = Place(directory=hostile.lines("dir", range(0, 400, 10)), branch=hostile.lines("br", [4]))
    notices = [Notice(tone="warn", text=hostile.lines("early", range(20)))]
    app = PidurableApp(start, clock=SystemClock(), place=place, palette=DARK, notices=notices)
    stage = Stage(app, thread, conversation, hostile)

    async def play() -> None:
        while app.view is None:
            await asyncio.sleep(0.002)
        await (stage.transcript() if act == "transcript" else stage.around())
        app.exit()

    app.call_later(lambda: app.run_worker(play()))
    app.run()
    thread.close()
    if app.problem is not None:
        raise app.problem


if __name__ == "__main__":
    main(sys.argv[1])
