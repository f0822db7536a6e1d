"""Commands that bash leaves running: their output on disk, looking after them, and their end, with real processes (rule TO-10)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.records.entry import NOTICE
from pi_durable_tui.records.messages import Text, ToolResultMessage, UserMessage
from pi_durable_tui.tools.bash import bash_tool
from pi_durable_tui.tools.commands.segments import KEPT_SEGMENTS, SEGMENT_BYTES, SegmentWriter, read_output, segments
from pi_durable_tui.tools.environment import LocalEnvironment
from pi_durable_tui.tools.work.commands import commands_tool
from tests.support.harness_rig import Rig
from tests.support.patience import PATIENCE_S
from tests.support.scripted_model import Hold, call, say

ROOT = Path(__file__).parents[2]
FLOOD_CALLS = int(os.environ.get("PIDURABLE_TEST_FLOOD_CALLS", "8"))


def create(path: Path) -> int:
    path.parent.mkdir(exist_ok=True)
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)


# --------------------------------------------------------------------------------------------------------------- on disk


@pytest.mark.rule("TO-10", "CASE-D4")
def test_the_output_lies_in_pieces_of_which_the_newest_are_kept(tmp_path: Path):
    writer = SegmentWriter(tmp_path / "out", create)
    line = b"0123456789abcde\n"
    for _ in range(30):
        writer.add(line * 62_500)
    kept = segments(tmp_path / "out")
    assert [offset for offset, _ in kept] == [number * SEGMENT_BYTES for number in range(10, 30)]
    assert len(kept) == KEPT_SEGMENTS
    assert [path.stat().st_size for _, path in kept] == [SEGMENT_BYTES] * KEPT_SEGMENTS
    assert writer.total_bytes == 30 * SEGMENT_BYTES


@pytest.mark.rule("TO-10")
@pytest.mark.parametrize(
    ("offset", "start", "data"),
    [
        (None, 2_999_990, b"fghijklmno"),
        (0, 0, b"abcdefghij"),
        (999_998, 999_998, None),
        (2_999_995, 2_999_995, b"klmno"),
        (9_000_000, 3_000_000, b""),
    ],
)
def test_a_part_of_the_output_is_read_by_its_offset(tmp_path: Path, offset: int | None, start: int, data: bytes | None):
    writer = SegmentWriter(tmp_path / "out", create)
    text = (b"abcdefghijklmno" * 200_000)[:3_000_000]
    for begin in range(0, len(text), 700_001):
        writer.add(text[begin : begin + 700_001])
    writer.close()
    piece = read_output(tmp_path / "out", offset=offset, limit_bytes=10)
    assert (piece.data, piece.start, piece.total) == (data if data is not None else text[start : start + 10], start, 3_000_000)


def test_no_output_is_an_empty_part(tmp_path: Path):
    piece = read_output(tmp_path / "none", offset=5, limit_bytes=10)
    assert (piece.data, piece.start, piece.total) == (b"", 0, 0)


@pytest.mark.rule("TO-10", "ST-18")
def test_a_disk_that_is_full_ends_the_keeping_and_not_the_command(tmp_path: Path):
    def full(_path: Path) -> int:
        raise OSError(28, "No space left on device")

    writer = SegmentWriter(tmp_path / "out", full)
    writer.add(b"x" * 10)
    writer.add(b"y" * 10)
    assert (writer.total_bytes, writer.problem) == (20, "No space left on device")


# ----------------------------------------------------------------------------------------------------------- by the model


class Place:
    """A harness with bash and commands over a folder, on the manual clock, with real processes."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "work"
        self.folder.mkdir(exist_ok=True)
        self.environment = LocalEnvironment(str(self.folder), root / "state", SystemClock())
        self.rig = Rig(root, "sqlite", tools=(bash_tool(), commands_tool()), place=lambda _conversation, _agent: self.environment)

    async def start(self, *scripts: Any) -> Any:
        return await self.rig.start(*scripts, agent=Agent(model="test/model", approval="all", cwd=str(self.folder)))

    async def run_out(self, chat: Any) -> None:
        """Processes take real time, so the clock moves along until nothing is left to do."""
        idle = asyncio.ensure_future(chat.idle())
        await self.until(idle.done)
        await idle

    async def until(self, holds: Callable[[], bool | Awaitable[bool]]) -> None:
        for _ in range(3_000):
            held = holds()
            if held if isinstance(held, bool) else await held:
                return
            self.rig.clock.advance(10)
            await asyncio.sleep(0.01)
        raise AssertionError("what was waited for did not happen")

    async def results(self, chat: Any) -> list[str]:
        return [entry.message.text for entry in await self.rig.entries(chat.id) if isinstance(entry.message, ToolResultMessage)]

    async def notices(self, chat: Any) -> list[str]:
        entries = [entry.message for entry in await self.rig.entries(chat.id) if entry.kind == NOTICE]
        return [part.text for message in entries if isinstance(message, UserMessage) for part in message.content if isinstance(part, Text)]

    async def number(self) -> int:
        return (await self.rig.tasks("pi.background"))[0].id


@pytest.mark.slow
@pytest.mark.rule("TO-10", "CASE-D1")
async def test_a_server_runs_on_is_looked_at_and_is_stopped(tmp_path: Path):
    place = Place(tmp_path)
    command = "echo $$ > pid; echo listening; cd /; sleep 300"
    chat = await place.start(call(("bash", {"command": command, "background": True})), say("It runs."))
    await chat.submit("start it")
    await place.run_out(chat)
    await place.until(lambda: (place.folder / "pid").exists() and (place.folder / "pid").read_text() != "")
    process = psutil.Process(int((place.folder / "pid").read_text()))
    number = await place.number()
    await place.until(lambda: read_output(place.environment.background_folder(number), offset=0, limit_bytes=99).total == 10)

    look = [("commands", {"action": "list"}), ("commands", {"action": "output", "number": number}), ("commands", {"action": "output", "number": 99})]
    place.rig.model.then(call(*look), call(("commands", {"action": "stop", "number": number})), say("Stopped."))
    await chat.submit("look and stop it")
    await place.run_out(chat)
    await place.until(lambda: not process.is_running())

    results = await place.results(chat)
    assert results[0] == f"It goes on in the background as number {number}. A message will tell of its end."
    listed, missing, read = sorted(results[1:4])
    assert listed.startswith(f"{number} bash {command}: has been running for ")
    assert missing == "There is no command number 99 in the background of this conversation."
    assert read.startswith("listening\n[bytes 0 to 10 of 10; has been running for ")
    assert read.endswith("; offset 10 goes on from here]")
    assert results[4] == f"Command {number} is being stopped."
    await place.until(lambda: not place.rig.harness.task_graph())
    assert (await place.notices(chat))[0].endswith("[It was stopped.]")
    assert place.environment.directory() == str(place.folder)  # its cd is its own
    await place.rig.close()


@pytest.mark.slow
@pytest.mark.rule("TO-10")
@pytest.mark.parametrize(
    ("command", "end"),
    [
        ("echo done", "done\n[exit code 0]"),
        ("echo oh; exit 3", "oh\n[exit code 3]"),
        ("kill -KILL $$", "(no output)\n[ended by signal SIGKILL]"),
        ("sleep 300 & echo left", "left\n[exit code 0]\n[1 process was left in the background, now ended.]"),
    ],
)
async def test_the_end_is_told_with_the_output(tmp_path: Path, command: str, end: str):
    place = Place(tmp_path)
    chat = await place.start(call(("bash", {"command": command, "background": True})), say("It runs."), say("I saw."))
    await chat.submit("start it")
    await place.until(lambda: len(place.rig.model.requests) == 3)
    await place.run_out(chat)
    number = await place.number()
    assert await place.notices(chat) == [f"[Number {number} in the background has ended: bash {command}]\n{end}"]
    await place.rig.close()


@pytest.mark.slow
@pytest.mark.rule("TO-10", "CASE-D4")
async def test_a_flood_in_the_background_is_bounded_on_disk_in_the_store_and_in_what_is_told(tmp_path: Path):
    place = Place(tmp_path)
    chat = await place.start(call(("bash", {"command": "head -c 30M /dev/zero | tr '\\0' a | fold -w 99", "background": True})), say("Runs."), say("Seen."))
    await chat.submit("start it")
    await place.until(lambda: len(place.rig.model.requests) == 3)
    await place.run_out(chat)
    number = await place.number()
    kept = segments(place.environment.background_folder(number))
    assert (len(kept), max(path.stat().st_size for _, path in kept)) == (KEPT_SEGMENTS, SEGMENT_BYTES)
    assert {path.stat().st_mode & 0o777 for _, path in kept} == {0o600}
    (notice,) = await place.notices(chat)
    assert len(notice) < 6_000
    assert "The output was 31.8 MB. Its newest part is in " in notice
    await place.rig.close()
    assert (tmp_path / "session.sqlite").stat().st_size < 2_000_000


@pytest.mark.slow
@pytest.mark.rule("TO-10")
async def test_waiting_ends_with_the_command(tmp_path: Path):
    place = Place(tmp_path)
    os.mkfifo(place.folder / "go")
    hold = Hold()
    chat = await place.start(call(("bash", {"command": "read x < go; exit 4", "background": True})), (hold, *say("")))
    await chat.submit("start it")
    await place.until(lambda: len(place.rig.model.requests) == 2)
    number = await place.number()
    await chat.abort()
    place.rig.model.then(call(("commands", {"action": "wait", "number": number})), say("It ended."), say("Told."))
    await chat.submit("wait for it")
    await place.until(lambda: len(place.rig.model.requests) == 3)
    await asyncio.to_thread((place.folder / "go").write_text, "now\n")
    await place.run_out(chat)
    assert (await place.results(chat))[-1] == f"{number} bash read x < go; exit 4: has ended (exit code 4)"
    assert len(await place.notices(chat)) == 1
    await place.rig.close()


@pytest.mark.slow
@pytest.mark.rule("CASE-D3", "SE-7", "SA-11")
@pytest.mark.parametrize("background", [False, True])
async def test_leaving_ends_what_runs_before_it_returns(tmp_path: Path, background: bool):
    place = Place(tmp_path)
    os.mkfifo(place.folder / "ready")
    command = "trap '' TERM; (sleep 300 | cat) & setsid sleep 300 & echo $! $$ > pids; echo > ready; wait"
    chat = await place.start(call(("bash", {"command": command, "background": background})), say("It runs."))
    await chat.submit("start it")
    await asyncio.to_thread((place.folder / "ready").read_text)
    processes = [psutil.Process(int(pid)) for pid in (place.folder / "pids").read_text().split()]
    await place.rig.close()
    assert [process.pid for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.slow
@pytest.mark.rule("CASE-D4")
async def test_many_large_outputs_leave_a_small_session_and_a_bounded_folder(tmp_path: Path):
    """PIDURABLE_TEST_FLOOD_CALLS says how many calls of a megabyte (8 unless set; the case says 200)."""
    place = Place(tmp_path)
    calls = [("bash", {"command": f"yes {number} | head -c 1M"}) for number in range(FLOOD_CALLS)]
    chat = await place.start(*(call(each, ids=[f"c{number}"]) for number, each in enumerate(calls)), say("Done."))
    await chat.submit("flood")
    await place.run_out(chat)
    results = await place.results(chat)
    assert len(results) == FLOOD_CALLS
    assert max(len(result) for result in results) < 60_000
    await place.rig.close()
    kept = sum(path.stat().st_size for path in (tmp_path / "state/outputs").iterdir())
    assert kept <= 200_000_000
    assert (tmp_path / "session.sqlite").stat().st_size < 1_000_000 + 150_000 * FLOOD_CALLS
    harness = await place.rig.open()
    again = await harness.conversation(chat.id)
    assert len((await again.view()).entries) == 2 * FLOOD_CALLS + 2
    await place.rig.close()


AGENT = """
import asyncio, sys
from pathlib import Path
from tests.tools.test_background_commands import Place, call, say
async def main():
    place = Place(Path(sys.argv[1]))
    chat = await place.start(call(("bash", {"command": sys.argv[2], "background": True})), say("It runs."))
    await chat.submit("start it")
    await place.until(lambda: False)
asyncio.run(main())
"""


def agent_of(root: Path, command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", AGENT, str(root), command], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.slow
@pytest.mark.rule("TO-10", "PR-7")
async def test_it_dies_with_the_agent_and_the_next_process_tells_once(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    os.mkfifo(work / "ready")
    command = "(trap '' TERM; setsid sleep 300 & echo $! $$ > pids; echo > ready; wait; echo late > effects)"
    agent = agent_of(tmp_path, command)
    await asyncio.to_thread((work / "ready").read_text)
    processes = [psutil.Process(int(pid)) for pid in (work / "pids").read_text().split()]
    agent.kill()
    agent.wait()
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    place = Place(tmp_path)
    for _ in range(2):
        harness = await place.rig.open()
        await harness.resume()
        await place.until(lambda harness=harness: not harness.task_graph())
        (chat,) = await harness.chats()
        (notice,) = await place.notices(await harness.conversation(chat.conversation_id))
        assert "[The program was killed, and this ended with it." in notice
        await place.rig.kill()
    assert not (work / "effects").exists()
