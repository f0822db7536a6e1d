"""A tool call whose process ends in the middle: facts FA-29 to FA-42, FB-22, FB-25, and rules TO-1 to TO-9."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from pi_durable_tui.harness.extensions.hooks import Blocked, HookedCall, Hooks
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.ports import Reconciled, Replay, Tool, ToolContext, ToolResult
from pi_durable_tui.harness.settings import Progress, Settings
from pi_durable_tui.harness.tool.decide import rerun
from pi_durable_tui.records.entry import Entry
from pi_durable_tui.records.json import Json
from pi_durable_tui.records.messages import Text, ToolResultMessage
from pi_durable_tui.records.submission import Done
from pi_durable_tui.records.task import Completed, Failed, Problem, Waiting
from tests.support.harness_rig import Backend, Rig
from tests.support.scripted_model import call, say, texts

TOOL_ROWS = (
    "SELECT id, kind, status, record ->> '$.restarts' AS restarts, record ->> '$.state.checkpoint.phase' AS phase, "
    "record ->> '$.state.checkpoint.replay' AS replay FROM tasks ORDER BY id;"
)
INTERRUPTED = "<harness>\n[error] Tool append was interrupted and may have partially run\n</harness>"


class Line(msgspec.Struct):
    """What to append."""

    text: str = "hello"


@dataclass
class Notes:
    """A tool `append` that adds a line to notes.txt, says "working", and then hangs as long as `hangs`."""

    file: Path
    replay: Replay = "unsafe"
    hangs: bool = True
    effect: Literal["before", "after"] = "before"
    started: asyncio.Event = field(default_factory=asyncio.Event)
    hooked: list[str] = field(default_factory=list)
    block_hook: asyncio.Event | None = None

    def tool(self) -> Tool:
        """As the harness sees it."""
        return Tool(
            name="append",
            description="Appends a line.",
            arguments=Line,
            execute=self.execute,
            title=lambda line: f"append {line.text}",
            replay=self.replay,
            sequential=True,
            prepare=self.prepare if self.replay == "reconcile" else None,
            reconcile=self.reconcile if self.replay == "reconcile" else None,
        )

    async def execute(self, line: Line, context: ToolContext) -> ToolResult:
        """Append, say so, hang."""
        if self.effect == "before":
            self.append(line)
        context.output("working\n")
        self.started.set()
        if self.hangs:
            await asyncio.Event().wait()
        if self.effect == "after":
            self.append(line)
        return ToolResult(content=(Text(text="appended"),))

    def append(self, line: Line) -> None:
        """The side effect."""
        self.file.write_text((self.file.read_text() if self.file.exists() else "") + line.text + "\n")

    async def prepare(self, line: Line, _context: ToolContext) -> Json:
        """The file before and as it shall be."""
        before = self.file.read_text() if self.file.exists() else ""
        return {"before": before, "after": before + line.text + "\n"}

    async def reconcile(self, _line: Line, context: ToolContext) -> Reconciled:
        """Compare the file with both."""
        assert isinstance(context.prepared, dict)
        now = self.file.read_text() if self.file.exists() else ""
        if now == context.prepared["after"]:
            return Reconciled(verdict="done", result=ToolResult(content=(Text(text="appended"),)))
        return Reconciled(verdict="not_started" if now == context.prepared["before"] else "in_doubt")

    async def hook(self, called: HookedCall) -> Blocked | None:
        """A hook that notes each call, and hangs if asked to."""
        self.hooked.append(called.name)
        if self.block_hook is not None:
            await self.block_hook.wait()
        return None

    def lines(self) -> list[str]:
        """The lines of the file."""
        return self.file.read_text().splitlines() if self.file.exists() else []


def rig_with(tmp_path: Path, notes: Notes, backend: Backend = "memory", settings: Settings | None = None) -> Rig:
    rig = Rig(tmp_path, backend, settings=settings or Settings())
    rig.tools = (notes.tool(),)
    rig.extensions = (Extension(name="hooks", hooks=Hooks(before_tool=notes.hook)),)
    return rig


async def killed_in_tool(rig: Rig, notes: Notes, *, after_ms: float = 1_200, calls: int = 1) -> int:
    """Run the tool until it hangs, let `after_ms` pass, kill; returns the chat's id."""
    chat = await rig.start(call(*[("append", {"text": "hello"})] * calls))
    await chat.submit("write it down")
    await rig.until(notes.started.is_set)
    await rig.settle()
    rig.clock.advance(after_ms)
    await rig.settle()
    await rig.kill()
    return chat.id


async def resumed(rig: Rig, chat_id: int, *scripts: Any) -> Entry:
    """Open, run to the end, and return the first tool result."""
    harness = await rig.open(*scripts)
    await harness.resume()
    chat = await harness.conversation(chat_id)
    await rig.run_out(chat)
    return next(entry for entry in await rig.entries(chat_id) if entry.kind == "pi.tool-result")


def in_shell(path: Path) -> list[dict[str, Any]]:
    done = subprocess.run(["sqlite3", "-json", str(path), TOOL_ROWS], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.rule("FA-29", "FA-37", "FA-38", "FA-43", "FB-15", "TO-1")
async def test_rows_while_a_tool_runs_and_after_a_kill(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes.txt")
    rig = rig_with(tmp_path, notes, "sqlite")
    chat = await rig.start(call(("append", {"text": "hello"})))
    await chat.submit("write it down")
    await rig.until(notes.started.is_set)
    generation, tool = await rig.tasks()

    running = [
        {"id": generation.id, "kind": "pi.generation", "status": "waiting", "restarts": None, "phase": "tools", "replay": None},
        {"id": tool.id, "kind": "pi.tool", "status": "running", "restarts": None, "phase": "execute", "replay": "unsafe"},
    ]
    assert in_shell(rig.file) == running
    assert tool.checkpoint == {"phase": "execute", "arguments": {"text": "hello"}, "replay": "unsafe", "title": "append hello"}
    await rig.kill()

    await rig.open()
    assert in_shell(rig.file) == [running[0], {**running[1], "status": "pending", "restarts": 1}]
    assert isinstance((await rig.tasks())[0].state, Waiting)
    await rig.close()


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
@pytest.mark.rule("FA-30", "FA-31", "FA-33", "FA-34", "FA-35", "FA-36", "FB-25", "TO-2", "CASE-A1", "CASE-A5")
async def test_unsafe_tool_killed_after_its_intent_is_not_run_again_and_the_model_hears_of_it(tmp_path: Path, backend: Backend) -> None:
    notes = Notes(tmp_path / "notes.txt")
    rig = rig_with(tmp_path, notes, backend)
    chat_id = await killed_in_tool(rig, notes)

    result = await resumed(rig, chat_id, say("I see"))
    tool = (await rig.tasks("pi.tool"))[0]

    assert notes.lines() == ["hello"]
    assert notes.hooked == ["append"]  # the phase `call` was not repeated
    assert result.message == ToolResultMessage(tool_call_id="c1", tool_name="append", content=(Text(text="working\n"), Text(text=INTERRUPTED)), is_error=True)
    assert (result.data or {})["diagnostics"] == [
        {"level": "error", "code": "interrupted", "message": "Tool append was interrupted and may have partially run"}
    ]
    assert tool.outcome == Failed(problem=Problem(reason="interrupted", message="Tool append was interrupted and may have partially run"))
    assert texts(rig.model.requests[1]) == [("user", "write it down"), ("assistant", "<ToolCall>"), ("toolResult", "working\n" + INTERRUPTED)]
    await rig.close()


@pytest.mark.rule("FA-40", "TO-2")
async def test_safe_tool_runs_again(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes.txt", replay="safe")
    rig = rig_with(tmp_path, notes)
    chat_id = await killed_in_tool(rig, notes)
    notes.hangs = False

    result = await resumed(rig, chat_id, say("good"))

    assert notes.lines() == ["hello", "hello"]
    assert isinstance(result.message, ToolResultMessage)
    assert result.message.text == "appended"


@pytest.mark.rule("FA-31", "FA-32")
@pytest.mark.parametrize("stored", ["safe", "unsafe"])
@pytest.mark.parametrize("current", ["safe", "unsafe", None])
async def test_only_stored_and_current_safe_together_run_again(tmp_path: Path, stored: Replay, current: Replay | None) -> None:
    notes = Notes(tmp_path / "notes.txt", replay=stored)
    rig = rig_with(tmp_path, notes)
    chat_id = await killed_in_tool(rig, notes)
    notes.hangs = False
    rig.tools = (replace(notes.tool(), replay=current),) if current is not None else ()

    result = await resumed(rig, chat_id, say("on"))

    is_run_again = (stored, current) == ("safe", "safe")
    assert len(notes.lines()) == (2 if is_run_again else 1)
    assert isinstance(result.message, ToolResultMessage)
    assert result.message.is_error is not is_run_again


@pytest.mark.rule("FA-31", "FA-32", "TO-2", "TO-8")
def test_replay_table() -> None:
    policies: list[Replay | None] = ["safe", "unsafe", "reconcile", None]

    table = {(stored, current): rerun(stored, current) for stored in policies if stored is not None for current in policies}

    assert {pair: verdict for pair, verdict in table.items() if verdict != "interrupted"} == {
        ("safe", "safe"): "run",
        ("reconcile", "reconcile"): "ask_world",
    }


@pytest.mark.rule("FA-39", "TO-4")
@pytest.mark.parametrize(
    ("persist_within_ms", "killed_after_ms", "stored"), [(1_000, 200, ""), (1_000, 1_200, "working\n"), (0, 0, "working\n"), (0, 200, "working\n")]
)
async def test_running_output_is_stored_within_the_set_time(tmp_path: Path, persist_within_ms: int, killed_after_ms: int, stored: str) -> None:
    notes = Notes(tmp_path / "notes.txt")
    rig = rig_with(tmp_path, notes, settings=Settings(progress=Progress(persist_within_ms=persist_within_ms)))
    chat_id = await killed_in_tool(rig, notes, after_ms=killed_after_ms)

    await rig.open()
    (slot,) = (await rig.live(chat_id)).tools

    assert slot.output == stored


@pytest.mark.rule("FB-41")
async def test_chatty_tool_is_stored_at_most_at_the_output_interval(tmp_path: Path) -> None:
    rig = Rig(tmp_path, settings=Settings(progress=Progress(persist_within_ms=0)))

    async def chatter(_line: Line, context: ToolContext) -> ToolResult:
        for n in range(100):
            context.output(f"{n}\n")
            await rig.clock.sleep_ms(10)
        return ToolResult()

    rig.tools = (Tool(name="chatter", description="", arguments=Line, execute=chatter, title=lambda _: "chatter"),)
    chat = await rig.start(call(("chatter", {})), say("ok"))
    await chat.submit("x")
    await rig.settle()
    times: list[float] = []
    rig.harness.session.subscribe(lambda _commit: times.append(rig.clock.monotonic_ms()))
    while rig.clock.monotonic_ms() < 950:
        rig.clock.advance(10)
        await rig.settle()

    assert times == [100.0 * n for n in range(1, 10)]


@pytest.mark.rule("FA-41", "TO-3")
async def test_kill_before_the_intent_repeats_the_whole_call_phase(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes.txt", hangs=False, block_hook=asyncio.Event())
    rig = rig_with(tmp_path, notes)
    chat = await rig.start(call(("append", {"text": "hello"})))
    await chat.submit("x")
    await rig.until(lambda: notes.hooked == ["append"])
    await rig.settle()
    await rig.kill()
    notes.block_hook = None

    await resumed(rig, chat.id, say("done"))

    assert notes.hooked == ["append", "append"]
    assert notes.lines() == ["hello"]


@pytest.mark.rule("FA-42", "FB-24")
async def test_one_call_is_stored_in_four_steps(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes.txt", hangs=False)
    rig = rig_with(tmp_path, notes)
    chat = await rig.start(call(("append", {"text": "hello"})), say("done"))
    await chat.submit("x")
    await rig.run_out(chat)

    rows = [task for batch in rig.storage.batches for task in batch.tasks if task.kind == "pi.tool"]

    assert [(task.status, (task.checkpoint or {}).get("phase")) for task in rows] == [
        ("pending", "call"),
        ("running", "call"),
        ("running", "execute"),
        ("terminal", None),
    ]
    assert isinstance(rows[-1].outcome, Completed)


@pytest.mark.rule("FA-42")
@pytest.mark.parametrize("moment", ["before", "stored"])
@pytest.mark.parametrize("step", [1, 2, 3, 4])
async def test_kill_at_each_step_of_a_call_runs_it_at_most_once_and_ends_the_run(tmp_path: Path, step: int, moment: Literal["before", "stored"]) -> None:
    notes = Notes(tmp_path / "notes.txt", hangs=False)
    dry = rig_with(tmp_path, notes)
    chat = await dry.start(call(("append", {"text": "hello"})), say("done"))
    await chat.submit("x")
    await dry.run_out(chat)
    commits = [n for n, batch in enumerate(dry.storage.batches, start=1) if any(task.kind == "pi.tool" for task in batch.tasks)]
    notes.file.unlink()

    rig = rig_with(tmp_path, notes)
    chat = await rig.start(call(("append", {"text": "hello"})))
    rig.storage.crash_at(commits[step - 1], moment)
    placed = await chat.submit("x")
    await rig.until(rig.storage.crashed.is_set)
    await rig.kill()
    repeats = (step, moment) == (1, "before")  # the answer itself was not stored: it is asked for again
    scripts = [call(("append", {"text": "hello"})), say("done")] if repeats else [say("done")]
    await resumed(rig, chat.id, *scripts)

    is_run = (step, moment) != (3, "stored")  # the intent stands, the effect had not begun: never run again by itself
    assert notes.lines() == (["hello"] if is_run else [])
    assert isinstance((await (await rig.harness.conversation(chat.id)).settled(placed.id)).state, Done)


@pytest.mark.rule("FB-22", "GE-5")
async def test_sequential_round_goes_on_with_the_remaining_calls_after_a_kill(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes.txt", hangs=False)
    rig = rig_with(tmp_path, notes)
    chat = await rig.start(call(*[("append", {"text": str(n)}) for n in (1, 2, 3)]))
    await chat.submit("x")
    await rig.until(lambda: notes.lines() == ["1"])
    notes.hangs = True
    await rig.until(lambda: notes.lines() == ["1", "2"])
    await rig.settle()
    rig.clock.advance(1_000)
    await rig.settle()
    await rig.kill()
    notes.hangs = False

    await resumed(rig, chat.id, say("done"))

    assert notes.lines() == ["1", "2", "3"]
    results = [text for role, text in texts(rig.model.requests[-1]) if role == "toolResult"]
    assert results == ["appended", "working\n" + INTERRUPTED, "appended"]


@pytest.mark.rule("TO-8")
@pytest.mark.parametrize(
    ("effect", "spoiled", "expected"),
    [("before", False, ["hello"]), ("after", False, ["hello"]), ("after", True, ["somebody else"])],
    ids=["done", "not started", "in doubt"],
)
async def test_reconciling_tool_asks_the_world_instead_of_guessing(
    tmp_path: Path, effect: Literal["before", "after"], spoiled: bool, expected: list[str]
) -> None:
    notes = Notes(tmp_path / "notes.txt", replay="reconcile", effect=effect)
    rig = rig_with(tmp_path, notes)
    chat_id = await killed_in_tool(rig, notes)
    notes.hangs = False
    if spoiled:
        notes.file.write_text("somebody else\n")

    result = await resumed(rig, chat_id, say("done"))

    assert notes.lines() == expected
    assert isinstance(result.message, ToolResultMessage)
    codes = [remark["code"] for remark in (result.data or {})["diagnostics"]]  # type: ignore[index,union-attr]
    assert (codes, result.message.is_error) == {
        (True, False): (["reconciled"], False),
        (False, False): ([], False),
        (False, True): (["interrupted"], True),
    }[effect == "before", spoiled]


@pytest.mark.rule("TO-2", "TO-3", "TO-8", "PR-6")
async def test_a_tool_that_cannot_look_what_became_of_its_call_leaves_it_in_doubt(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes.txt", replay="reconcile")
    rig = rig_with(tmp_path, notes)
    chat_id = await killed_in_tool(rig, notes)

    async def broken(_line: Line, _context: ToolContext) -> Reconciled:
        raise PermissionError("notes.txt cannot be read")

    rig.tools = (replace(notes.tool(), reconcile=broken),)
    result = await resumed(rig, chat_id, say("done"))

    assert isinstance(result.message, ToolResultMessage)
    assert result.message.text.endswith("[error] Tool append was interrupted and may have partially run\n</harness>")
    assert notes.lines() == ["hello"]
    (task,) = await rig.tasks("pi.tool")
    assert isinstance(task.outcome, Failed)
    assert [(report.kind, report.reason, report.message) for report in rig.reports] == [
        ("hook_failed", "reconcile", "PermissionError: notes.txt cannot be read"),
    ]


@pytest.mark.rule("FB-37")
async def test_a_hook_after_a_round_sees_the_results_of_calls_that_were_cut_off_too(tmp_path: Path) -> None:
    notes, seen = Notes(tmp_path / "notes.txt"), list[str]()
    rig = rig_with(tmp_path, notes)
    chat_id = await killed_in_tool(rig, notes, calls=2)
    notes.hangs = False

    async def after(_conversation_id: int, results: Sequence[Entry]) -> None:
        seen.extend(entry.message.tool_call_id for entry in results if isinstance(entry.message, ToolResultMessage))

    rig.extensions = (Extension(name="after", hooks=Hooks(after_tools=after)),)
    await resumed(rig, chat_id, say("done"))
    assert seen == ["c1", "c2"]


@pytest.mark.rule("TO-9")
async def test_effect_does_not_start_without_room_for_its_outcome(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes.txt", hangs=False)
    rig = rig_with(tmp_path, notes)

    async def fill_the_disk(_called: HookedCall) -> None:
        rig.room = False

    rig.extensions = (Extension(name="full", hooks=Hooks(before_tool=fill_the_disk)),)
    chat = await rig.start(call(("append", {"text": "hello"})), say("ok"))
    await chat.submit("x")
    await rig.until(lambda: any(report.kind == "storage_refused" for report in rig.reports))
    rig.room = True
    await rig.run_out(chat)

    result = next(entry for entry in await rig.entries(chat.id) if entry.kind == "pi.tool-result")
    assert notes.lines() == []
    assert (result.data or {})["diagnostics"][0]["code"] == "no_space"  # type: ignore[index,call-overload]
