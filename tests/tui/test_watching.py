"""The app of `pidurable watch` beside a real harness that works on the same files, of both kinds (OB-6, OB-4, TU-7)."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from textual.pilot import Pilot

from pi_durable_tui.cli.watching.followed import followed
from pi_durable_tui.clock import ManualClock, SystemClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.errors import NotFound, PidurableError
from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.observation.following import follow_tasks
from pi_durable_tui.harness.ports import TextDelta
from pi_durable_tui.storage.conversion import open_store
from pi_durable_tui.tools.subagent import subagent_tools
from pi_durable_tui.tui.palette import DARK
from pi_durable_tui.tui.watching.app import WatchApp, Watched
from tests.support.harness_rig import Folder
from tests.support.patience import PATIENCE_S
from tests.support.scripted_model import Hold, ScriptedModel, call, say
from tests.support.tui_conversation import HarnessThread
from tests.support.tui_rig import PLACE
from tests.support.tui_whole import SHELL

OWNER = "pid 4711 on desk"
WORK = {"name": "reader", "prompt": "read it all"}


@dataclass
class Watching:
    """A harness that owns a store, and the app that only reads it.

    Attributes:
        owner: What the app is told about who runs it.
    """

    folder: Path
    kind: Literal["sqlite", "jsonl"]
    approval: Any
    thread: HarnessThread = field(default_factory=HarnessThread)
    model: ScriptedModel = field(default_factory=lambda: ScriptedModel(ManualClock()))
    owner: str = OWNER

    async def open(self, *, read_only: bool) -> Harness:
        clock = SystemClock()
        storage = await open_store(self.kind, self.folder / f"session.{self.kind}", clock=clock, read_only=read_only)
        tools = () if read_only else (SHELL, *subagent_tools())
        return await Harness.open(
            storage, models=self.model, clock=clock, entropy=SeededEntropy(1), tools=tools, environment=lambda _id, _agent: Folder(str(self.folder))
        )

    async def begin(self) -> None:
        self.harness = await self.open(read_only=False)
        self.chat: Conversation = await self.harness.create_conversation(Agent(model="test/model", approval=self.approval, cwd=str(self.folder)))
        self.reader = await self.open(read_only=True)

    async def end(self) -> None:
        await self.reader.close()
        await self.harness.close()

    async def start(self) -> Watched:
        """What the app calls."""
        open_conversation = functools.partial(followed, self.reader, clock=SystemClock())

        async def owner() -> str:
            return self.owner

        return await self.there(self._watched(open_conversation, owner))

    async def _watched(self, open_conversation: Any, owner: Any) -> Watched:
        return Watched(
            loop=self.thread.loop,
            conversation=await open_conversation(self.chat.id),
            open_conversation=open_conversation,
            owner=owner,
            tasks=functools.partial(follow_tasks, self.reader.session, clock=SystemClock()),
            window_tokens=self.reader.overview.window_tokens,
        )

    async def there(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of work on the thread of both."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.thread.loop))

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.rglob("*"))


@dataclass
class Shown:
    app: WatchApp
    pilot: Pilot[None]

    def screen(self) -> str:
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    async def until(self, *words: str, gone: str = "") -> str:
        """The screen once all words are on it, and `gone` is not."""
        late_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < late_s:
            await self.pilot.pause(0.01)
            shown = self.screen()
            if all(word in shown for word in words) and not (gone and gone in shown):
                return shown
        raise AssertionError(f"{words} did not appear, or {gone!r} stayed:\n{shown}")


@asynccontextmanager
async def watching(folder: Path, *script: Any, kind: Any = "sqlite", approval: Any = "all") -> AsyncIterator[tuple[Watching, Shown]]:
    made = Watching(folder, kind, approval)
    made.model.then(*script)
    try:
        await made.there(made.begin())
        app = WatchApp(made.start, clock=SystemClock(), place=PLACE, palette=DARK)
        async with app.run_test(size=(100, 30)) as pilot:
            yield made, Shown(app, pilot)
        await made.there(made.end())
    finally:
        made.thread.close()


@pytest.mark.rule("OB-6", "ST-11", "TU-3", "TU-4")
@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
async def test_what_another_writes_is_shown_as_it_is_committed_and_can_be_scrolled_and_searched(tmp_path: Path, kind: Any) -> None:
    long = "\n\n".join(f"paragraph {number}" for number in range(40))
    async with watching(tmp_path, say(long), (TextDelta("half an answer"), Hold()), kind=kind) as (made, shown):
        await shown.until(f"Read-only · {OWNER} runs it · q leaves, t takes over once it is gone")
        await made.there(made.chat.submit("first"))
        screen = await shown.until("paragraph 39")
        assert "Ask for work" not in screen
        await made.there(made.chat.submit("second"))
        await shown.until("half an answer", "Answering")
        await made.there(made.chat.submit("third"))
        screen = await shown.until("queued, follow-up  third")
        assert "takes it back" not in screen, "nothing can be taken back from here"
        before = set(made.files())
        await shown.pilot.press("ctrl+home")
        await shown.until("❯ first", gone="half an answer")
        await shown.pilot.press("ctrl+f")
        await shown.until("⌕")
        await shown.pilot.press(*"paragraph 17")
        await shown.until("paragraph 17", "1 in what is loaded")
        await shown.pilot.press("escape", "ctrl+end")
        await shown.until("half an answer")
        await made.there(made.chat.abort())
        await shown.until("Stopped", gone="Answering")
        assert set(made.files()) <= before


@pytest.mark.rule("OB-6", "OB-4", "TU-7", "TU-19")
async def test_a_question_is_seen_but_not_asked_here_and_tasks_and_subagents_can_be_looked_at_but_not_stopped(tmp_path: Path) -> None:
    script = (call(("subagent", WORK)), call(("bash", {"command": "make all"}), text="I will build it"))
    async with watching(tmp_path, *script, approval="ask") as (made, shown):
        await made.there(made.chat.submit("go"))
        screen = await shown.until("◆ reader  waiting for your answer")
        assert "Run this command?" not in screen
        await shown.pilot.press("y", "n", "a", "enter", "x")
        await shown.pilot.press("alt+s")
        await shown.until("Watching subagent reader", "goes back", "❯ read it all", "make all")
        await shown.pilot.press("escape")
        await shown.until("❯ go", f"{OWNER} runs it")
        await shown.pilot.press("ctrl+t")
        await shown.until("subagent reader", "Enter opens · Ctrl+T hides", "question about bash")
        await shown.pilot.press("x", "delete")
        await shown.pilot.press("down", "down", "enter")
        await shown.until("Watching subagent reader")
        view = await made.there(made.chat.view())
        assert [slot.status for slot in view.live.tools] == ["running"], "nothing that was pressed did anything"


@pytest.mark.rule("OB-6")
async def test_it_is_taken_over_only_once_nobody_runs_it(tmp_path: Path) -> None:
    async with watching(tmp_path, say("done")) as (made, shown):
        await shown.until(OWNER)
        await shown.pilot.press("t")
        await shown.until(f"{OWNER} runs it still, and a session has one writer.")
        assert not shown.app.takes_over
        made.owner = ""
        await shown.until("no program runs it · t takes over, q leaves")
        await shown.pilot.press("t")
        await shown.pilot.pause()
        assert shown.app.takes_over


@pytest.mark.rule("OB-6")
@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+d"])
async def test_it_is_left_by_each_of_the_usual_keys(tmp_path: Path, key: str) -> None:
    async with watching(tmp_path) as (_made, shown):
        await shown.until(OWNER)
        await shown.pilot.press(key)
        await shown.pilot.pause()
        assert (shown.app.return_code, shown.app.takes_over) == (0, False)


async def test_what_cannot_be_opened_ends_the_app_with_its_exit_code() -> None:
    async def start() -> Watched:
        raise NotFound("chat 9.9", where="here")

    app = WatchApp(start, clock=SystemClock(), place=PLACE, palette=DARK)
    async with app.run_test() as pilot:
        await pilot.pause()
    assert isinstance(app.problem, PidurableError)
    assert app.return_code == app.problem.exit_code
