"""Runs of the command line that start at once: a warmed process that forks a child per run.

    python -m tests.support.journey_forks

It has imported the whole command line and runs nothing itself. A JSON line on stdin starts a run:
`{"arguments": […], "cwd": "…", "environ": {…}, "folder": "…", "terminal": "…", "model": "…"}`, answered by `{"pid": n}`; `{"wait": pid}` waits for its
end and is answered by `{"code": n}` (minus the signal). With a terminal (the path of one) the run has it for everything. In `folder` a run leaves
`stdout`, `stderr` and

    acknowledged    the seq of every commit, once whoever committed was told
    painted         the seq of the newest commit in each frame, before the frame is written
    requests        what was asked of the model, a line each: "valid", or what a provider would refuse
    received        the number of each piece of an answer that came, and when (monotonic milliseconds)
    effects         what commands did

The model of such a run is `Worker`: it asks for a command and a file, then for another command, then it answers. Or it is `Counter`: numbers, one
after another.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from pi_durable_tui.cli import chat, log, main, terminal  # noqa: F401 - warmed
from pi_durable_tui.clock import SystemClock
from pi_durable_tui.harness.ports import Finished, ModelEvent, ModelInfo, ModelRequest, TextDelta, ToolCallDelta, UsageReport
from pi_durable_tui.records.messages import ToolResultMessage, Usage
from pi_durable_tui.tui.app import PidurableApp
from tests.support.fork_server import serve
from tests.support.strict_provider import violations

MODEL = "playback/worker"
ANSWER = "All is done."
COMMANDS = ("c1", "c3")
"""The ids of the calls that run a command."""

NUMBERS = 400
GAP_MS = 5
"""How many numbers the counter says, and how fast."""


class Worker:
    """A model that answers by what it is asked, so that it goes on sensibly after any kill (ModelGateway)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clock = SystemClock()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        _append(self._folder / "requests", "; ".join(violations(request.messages)) or "valid")
        for event in self._answer(sum(isinstance(message, ToolResultMessage) for message in request.messages)):
            await self._clock.sleep_ms(8)
            yield event

    async def info(self, model: str) -> ModelInfo:
        return ModelInfo(context_window_tokens=100_000)

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...

    def _answer(self, results: int) -> list[ModelEvent]:
        words = [TextDelta(f"n{number:03} ") for number in range(10)]
        used = UsageReport(Usage(input_tokens=100, output_tokens=10))
        match results:
            case 0:
                return [*words, _command(0, "c1"), _write(1, "c2"), used, Finished("toolUse")]
            case 2:
                return [*words, _command(0, "c3"), used, Finished("toolUse")]
            case _:
                return [TextDelta(ANSWER), used, Finished("stop")]


class Counter(Worker):
    """A model that says numbers, each as a piece of its own: "n0000 ", "n0001 " …"""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        del request
        for number in range(NUMBERS):
            await self._clock.sleep_ms(GAP_MS)
            _append(self._folder / "received", f"{number} {self._clock.monotonic_ms():.1f}")
            yield TextDelta(f"n{number:04} ")
        yield UsageReport(Usage(input_tokens=100, output_tokens=NUMBERS))
        yield Finished("stop")


class Caller(Worker):
    """A model that makes the one call that stands in the file `call.json`, as `[name, arguments]`, and then answers."""

    def _answer(self, results: int) -> list[ModelEvent]:
        used = UsageReport(Usage(input_tokens=100, output_tokens=10))
        if results:
            return [TextDelta(ANSWER), used, Finished("stop")]
        name, arguments = json.loads((self._folder / "call.json").read_text())
        return [ToolCallDelta(0, "c1", name, json.dumps(arguments)), used, Finished("toolUse")]


MODELS = {"worker": Worker, "counter": Counter, "caller": Caller}


def _command(key: int, call_id: str) -> ToolCallDelta:
    return ToolCallDelta(key, call_id, "bash", json.dumps({"command": f"echo {call_id} start >> ../effects; sleep 0.05; echo {call_id} end >> ../effects"}))


def _write(key: int, call_id: str) -> ToolCallDelta:
    return ToolCallDelta(key, call_id, "write", json.dumps({"path": "notes.txt", "content": "written by c2\n"}))


def _append(path: Path, line: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def _watch_commits(folder: Path, model: Worker) -> None:
    """From now on every commit of this process is told in `acknowledged`, and each that is painted in `painted`; its model is `model`."""
    opened = chat.open_harness

    async def open_harness(*arguments: Any, **options: Any) -> Any:
        harness = await opened(*arguments, **options)
        harness.session.subscribe(lambda commit: _append(folder / "acknowledged", str(commit.seq)))
        return harness

    chat.open_harness = open_harness  # pyright: ignore[reportPrivateImportUsage]
    chat.all_models = lambda _setup: model  # type: ignore[assignment,return-value]
    write = LinuxDriver.write

    def write_told(driver: LinuxDriver, data: str) -> None:
        app = driver._app
        if isinstance(app, PidurableApp) and app.view is not None:
            _append(folder / "painted", str(app.view.seq))
        write(driver, data)

    LinuxDriver.write = write_told


def _child(job: dict[str, Any]) -> int:
    folder = Path(job["folder"])
    os.setsid()
    if "terminal" in job:
        handle = os.open(job["terminal"], os.O_RDWR)  # the first terminal that a leader of a session opens is its own
        for number in (0, 1, 2):
            os.dup2(handle, number)
    else:
        for number, name in ((1, "stdout"), (2, "stderr")):
            handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(handle, number)
            os.close(handle)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
    os.environ.clear()
    os.environ.update(job["environ"])
    os.chdir(job["cwd"])
    _watch_commits(folder, MODELS[job.get("model", "worker")](folder))
    try:
        return main.run(job["arguments"])
    except BaseException:  # noqa: BLE001 - the test that reads stderr says what it was
        traceback.print_exc()
        return 99
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    asyncio.new_event_loop().close()  # loads what a loop needs
    serve(_child)
