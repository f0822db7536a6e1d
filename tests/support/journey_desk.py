"""A person's machine for journeys: a copy of a small repository, folders of its own, and a scripted model on loopback that outlives kills."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.cli_runs import ROOT, Desk, new_desk
from tests.support.journey_terminal import Terminal, read_on
from tests.support.model_server import Step, call, finish, usage
from tests.support.patience import PATIENCE_S, RUN_S

MODEL = "openai/scripted"
REPOSITORY = ROOT / "sessions/02-read-edit-test/workspace"
SETTINGS = {"retry": {"base_delay_ms": 300, "max_delay_ms": 300}}
"""A short wait before a new attempt, so that a journey is short too."""


@dataclass(slots=True)
class Journey:
    """See the module. Its programs end with it.

    Attributes:
        desk: Folders and environment.
        log: What the model server was asked.
    """

    desk: Desk
    log: Path
    base_url: str
    _opened: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def work(self) -> Path:
        """The repository."""
        return self.desk.work

    @property
    def environ(self) -> dict[str, str]:
        """What the program is given: a key that opens nothing, and the way to the scripted model."""
        return self.desk.environ(
            OPENAI_API_KEY="dummy",
            OPENAI_BASE_URL=self.base_url,
            OPENAI_API_BASE=self.base_url,
            NO_PROXY="127.0.0.1",
            no_proxy="127.0.0.1",
            PIDURABLE_MODEL=MODEL,
        )

    def start(self, *arguments: str, columns: int = 100, rows: int = 32, command: Sequence[str] | None = None, ready: str = "Ask for work") -> Terminal:
        """Start the app in a terminal of its own; returns when `ready` stands on the screen."""
        full = [*(command or (sys.executable, "-P", "-m", "pi_durable_tui.cli.main")), *arguments]
        made = Terminal(full, cwd=self.work, environ=self.environ, columns=columns, rows=rows)
        self._opened.callback(made.close)
        made.wait_for(ready)
        return made

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, without a terminal."""
        command = [sys.executable, "-P", "-m", "pi_durable_tui.cli.main", *arguments]
        return subprocess.run(command, cwd=self.work, env=self.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_S, check=False)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """What the model server logged."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The bodies of the requests to the model, in order."""
        return [event["body"] for event in self.events("request")]

    @property
    def refused(self) -> list[dict[str, Any]]:
        """What the strict model refused, or was asked beyond its script."""
        return [event for event in self.events("end") if event["how"] in {"refused", "http"}]

    def close(self) -> None:
        """End everything that was started."""
        self._opened.close()


@contextlib.contextmanager
def journey(root: Path, *script: Sequence[Step]) -> Iterator[Journey]:
    """A journey over a copy of the small repository, with a strict model that plays `script`."""
    desk = new_desk(root)
    shutil.copytree(REPOSITORY, desk.work, dirs_exist_ok=True)
    (root / "config").mkdir()
    (root / "config/settings.json").write_text(json.dumps(SETTINGS))
    (root / "script.json").write_text(json.dumps(script))
    log = root / "model.log"
    arguments = ["--script", str(root / "script.json"), "--log", str(log), "--strict"]
    server = subprocess.Popen([sys.executable, "-m", "tests.support.model_server", *arguments], cwd=ROOT, env=desk.environ(), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        made = Journey(desk=desk, log=log, base_url=f"http://127.0.0.1:{int(server.stdout.readline())}/v1")
        try:
            yield made
        finally:
            made.close()
    finally:
        server.kill()
        server.communicate()


# ---------------------------------------------------------------------------------------------------------------- scripts


def calls(*wanted: tuple[str, dict[str, Any]], first: int = 1, text: str = "") -> list[Step]:
    """An answer that calls tools; ids are call_1, call_2 …"""
    pieces = [call(index, f"call_{first + index}", name, json.dumps(arguments)) for index, (name, arguments) in enumerate(wanted)]
    return [*([{"text": text}] if text else []), *pieces, finish("tool_calls"), usage(100, 10)]


def says(text: str) -> list[Step]:
    """A whole answer."""
    return [{"text": text}, finish(), usage(100, 10)]


def numbered(count: int, *, delay_ms: float) -> list[Step]:
    """A stream of numbered words."""
    return [{"words": " ".join(f"n{number:03}" for number in range(count)), "delay_ms": delay_ms}]


# -------------------------------------------------------------------------------------------------------------- processes


def processes(mark: str) -> list[int]:
    """The living processes whose command line holds `mark`."""
    found: list[int] = []
    for item in Path("/proc").iterdir():
        if item.name.isdigit() and int(item.name) != os.getpid():
            with contextlib.suppress(OSError):
                line = (item / "cmdline").read_bytes().replace(b"\0", b" ")
                state = (item / "stat").read_text().rpartition(")")[2].split()[0]
                if mark.encode() in line and state not in "ZX":
                    found.append(int(item.name))
    return found


def wait_until(condition: Callable[[], bool], *, what: str, within_s: float = PATIENCE_S) -> float:
    """Ask again and again until the condition holds, while what programs write is read; the seconds that it took."""
    started_s = time.monotonic()
    while not condition():
        read_on()
        assert time.monotonic() - started_s < within_s, f"not seen within {within_s} s: {what}"
        time.sleep(0.01)
    return time.monotonic() - started_s
