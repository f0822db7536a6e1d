"""The shelf of old stores in `sessions/_stores`: how each was made, and the phases in which they were left (rule PR-23).

    python -m tests.support.old_stores VERSION

writes the stores of the current code under that version; it is run once for each release that changed what is stored, and what it wrote
is never touched again. Every store is what a killed process leaves, with its log moved into its file and without its lock and reserve.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from pi_durable_tui.harness.conversation import Conversation
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.ports import TextDelta, Tool, ToolContext, ToolResult
from pi_durable_tui.harness.settings import Compaction, Retry, Settings
from pi_durable_tui.records.messages import Text
from pi_durable_tui.storage.jsonl import open_jsonl
from pi_durable_tui.storage.kind import STORE_KINDS, StoreKind
from pi_durable_tui.storage.port import Storage
from tests.support.harness_rig import Rig
from tests.support.scripted_model import Hold, Pause, ScriptedModel, Step, call, fail, say

SHELF = Path(__file__).parents[2] / "sessions/_stores"
SETTINGS = Settings(compaction=Compaction(reserve_tokens=500, keep_tokens=200, background_tokens=500), retry=Retry(base_delay_ms=60_000, max_delay_ms=60_000))


class Arguments(msgspec.Struct, frozen=True):
    """What is done."""

    what: str = ""


class OldRig(Rig):
    """A rig over a store of either kind."""

    kind: StoreKind = "sqlite"

    async def _inner(self) -> Storage:
        if self.kind == "jsonl":
            return await open_jsonl(self.path / "session.jsonl", clock=self.clock, inline=True)
        return await Rig._inner(self)


class Obliging(ScriptedModel):
    """Says that it is done, whatever it is asked."""

    def _script(self, request: object) -> list[Step]:
        return list(say("It is finished."))


def tools(effects: list[str]) -> tuple[Tool, ...]:
    """`act` must not run twice; it never ends by itself when it is told to wait."""

    async def act(arguments: Arguments, context: ToolContext) -> ToolResult:
        effects.append(arguments.what)
        context.output(f"{arguments.what} began\n")
        if arguments.what == "wait":
            await asyncio.Event().wait()
        return ToolResult(content=(Text(text=f"{arguments.what} is done"),))

    return (Tool(name="act", description="acts", arguments=Arguments, execute=act, title=lambda given: f"act {given.what}"),)


def rig_at(path: Path, kind: StoreKind, effects: list[str]) -> OldRig:
    """A rig over the store in a folder."""
    rig = OldRig(path, backend="sqlite", settings=SETTINGS, tools=tools(effects))
    rig.kind = kind
    return rig


async def _chat(rig: OldRig, *scripts: tuple[Step, ...], approval: str = "all") -> Conversation:
    chat = await rig.start(say("The first answer."), *scripts, agent=Agent(model="test/model", approval=approval, cwd="work"))  # type: ignore[arg-type]
    await chat.submit("the first question")
    await rig.run_out(chat)
    return chat


async def stream(rig: OldRig) -> None:
    chat = await _chat(rig, (TextDelta("Half of "), Pause(200), TextDelta("an answer"), Pause(200), Hold()))
    await chat.submit("the second question")
    await rig.until(lambda: rig.clock.next_wake_ms() is None and len(rig.model.sent[-1]) == 2, jump=True)


async def tool(rig: OldRig) -> None:
    chat = await _chat(rig, call(("act", {"what": "now"}), ("act", {"what": "wait"}), text="I act."))
    await chat.submit("act twice")
    await rig.settle()
    rig.clock.advance(2_000)
    await rig.settle()


async def approval(rig: OldRig) -> None:
    chat = await _chat(rig, call(("act", {"what": "asked"})), approval="ask")
    await chat.submit("act if you may")
    await rig.settle()


async def queue(rig: OldRig) -> None:
    chat = await _chat(rig, (TextDelta("Working."), Hold()))
    await chat.submit("work")
    await rig.settle()
    await chat.submit("then this", mode="followUp")
    await chat.submit("mind that", mode="steer")
    await chat.save_draft("not sent yet", 3)


async def compaction(rig: OldRig) -> None:
    chat = await _chat(rig, *[say(f"answer {number} " + "a" * 500, usage=None) for number in range(3)], (TextDelta("The gist so"), Hold()))
    for number in range(3):
        await chat.submit(f"question {number} " + "q" * 500)
        await rig.run_out(chat)
    await chat.compact("what matters")
    await rig.settle()


async def sleep(rig: OldRig) -> None:
    chat = await _chat(rig, fail("overloaded", message="503"))
    await chat.submit("the second question")
    await rig.settle()


PHASES: dict[str, Callable[[OldRig], Awaitable[None]]] = {each.__name__: each for each in (stream, tool, approval, queue, compaction, sleep)}


async def leave(path: Path, kind: StoreKind, phase: str) -> Path:
    """Leave a store in a phase, as a kill does; the store."""
    rig = rig_at(path, kind, [])
    await PHASES[phase](rig)
    await rig.kill()
    return path / f"session.{kind}"


def main(version: str) -> None:
    for kind in STORE_KINDS:
        for phase in PHASES:
            target = SHELF / f"{version}-{phase}" / f"session.{kind}"
            with tempfile.TemporaryDirectory() as folder:
                store = asyncio.run(leave(Path(folder), kind, phase))
                target.parent.mkdir(parents=True, exist_ok=True)
                (shutil.copytree if store.is_dir() else shutil.copyfile)(store, target)  # fails when it is there: what was released stays


if __name__ == "__main__":
    main(sys.argv[1])
