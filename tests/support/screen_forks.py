"""Apps on terminals of their own that start at once: a warmed process that forks a child for each (see `journey_forks` for runs without one).

    python -m tests.support.screen_forks

A JSON line on stdin starts the app: `{"tty": "…", "arguments": […], "cwd": "…", "environ": {…}}`, answered by `{"pid": n}`; `{"poll": pid}` is answered
by `{"code": n}`, None while it runs. Its model is `Obliging`: it does what the prompt names, and never ends by itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import termios
import time
from asyncio import new_event_loop
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pi_durable_tui.clock import SystemClock
from pi_durable_tui.harness.ports import Finished, ModelEvent, ModelInfo, ModelRequest, TextDelta, ToolCallDelta
from pi_durable_tui.records.messages import Text, UserMessage
from tests.support.cli_runs import ROOT
from tests.support.fork_server import serve
from tests.support.journey_terminal import Terminal

MODEL = "playback/obliging"
STREAMING = "These words come in."
COMMAND = "sleep 340.1618"
# Without joined emoji: the emulator loses what follows a zero-width joiner.
TOLD = (
    """# Told

日本語のテキスト 👩 e\u0301 🇩🇪 and a word: """
    + "x" * 130
    + """

1. one
2. two

| a | b |
|---|---|
| 日本 | 2 |

```python
print("the end")
```"""
)


class Obliging:
    """A model (ModelGateway): "tell" makes it say TOLD, "stream" stop in the middle of an answer, all else call for a command."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        said = [message for message in request.messages if isinstance(message, UserMessage)][-1]
        prompt = "".join(part.text for part in said.content if isinstance(part, Text))
        if "tell" in prompt:
            for word in TOLD.split(" "):
                yield TextDelta(word + " ")
                await SystemClock().sleep_ms(5)
            yield Finished("stop")
        elif "stream" in prompt:
            yield TextDelta(STREAMING)
            await SystemClock().sleep_ms(10_000_000)
        else:
            yield ToolCallDelta(0, "c1", "bash", json.dumps({"command": COMMAND}))
            yield Finished("toolUse")

    async def info(self, model: str) -> ModelInfo:
        return ModelInfo(context_window_tokens=100_000)

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


class ForkedProcess:
    """The part of `subprocess.Popen` that a terminal needs."""

    def __init__(self, forks: ScreenForks, pid: int) -> None:
        self._forks = forks
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._forks.ask({"poll": self.pid})["code"]
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float) -> int | None:
        late_s = time.monotonic() + timeout
        while self.poll() is None and time.monotonic() < late_s:
            time.sleep(0.01)
        return self.returncode


class ForkedTerminal(Terminal):
    """A terminal whose program is a fork."""

    def __init__(self, forks: ScreenForks, arguments: Sequence[str], *, cwd: Path, environ: Mapping[str, str], columns: int = 100, rows: int = 32) -> None:
        self._forks = forks
        super().__init__(["--model", MODEL, *arguments], cwd=cwd, environ=environ, columns=columns, rows=rows)

    def start(self, command: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> Any:
        tty = os.ttyname(self._slave)
        started = self._forks.ask({"tty": tty, "arguments": list(command), "cwd": str(cwd), "environ": {"TERM": "xterm-256color", **environ}})
        return ForkedProcess(self._forks, started["pid"])


class ScreenForks:
    """The warmed process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextlib.contextmanager
def screen_forks(environ: Mapping[str, str]) -> Iterator[ScreenForks]:
    """A warmed process, ended at the end."""
    command = [sys.executable, "-m", "tests.support.screen_forks"]
    process = subprocess.Popen(command, cwd=ROOT, env={**environ, "PYTHONUTF8": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield ScreenForks(process)
    finally:
        process.kill()
        process.communicate()


def _warm() -> None:
    """Load all that an app loads, and run nothing."""
    from importlib import import_module  # noqa: PLC0415 - the client needs none of it

    names = ("cli.main", "cli.terminal", "cli.chat", "cli.project.app_workspace", "cli.screen.desk", "tui.app", "tui.bridge", "tui.actions.acts")
    for name in (*(f"pi_durable_tui.{name}" for name in names), "textual.drivers.linux_driver", "textual.drivers._writer_thread", "markdown_it"):
        import_module(name)
    chat: Any = import_module("pi_durable_tui.cli.chat")
    chat.all_models = lambda _setup: Obliging()
    new_event_loop().close()


def _child(job: Mapping[str, Any]) -> int:
    os.setsid()
    tty = os.open(job["tty"], os.O_RDWR)
    fcntl.ioctl(tty, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(tty, number)
    os.close(tty)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.clear()
    os.environ.update(job["environ"])
    os.chdir(job["cwd"])
    from pi_durable_tui.cli import main  # noqa: PLC0415 - loaded by _warm

    return main.run(job["arguments"])


if __name__ == "__main__":
    _warm()
    serve(_child)
