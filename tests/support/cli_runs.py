"""The command line as a real process: an empty home, folders of its own, no keys, nothing to connect to."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.patience import RUN_S

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Desk:
    """A person's machine: a directory to work in, data and settings elsewhere, all below `root`."""

    root: Path

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def data(self) -> Path:
        return self.root / "data"

    def environ(self, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONPATH": str(ROOT),
            "PIDURABLE_DATA_DIR": str(self.data),
            "PIDURABLE_CONFIG_DIR": str(self.root / "config"),
            # Whatever tries to reach the network is sent where nobody listens.
            "HTTPS_PROXY": "http://127.0.0.1:1",
            "HTTP_PROXY": "http://127.0.0.1:1",
            **more,
        }

    def start(self, *arguments: str, stdin: int | None = subprocess.DEVNULL, cwd: Path | None = None, **environ: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "pi_durable_tui.cli.main", *arguments],
            cwd=cwd or self.work,
            env=self.environ(**environ),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments: str, given: bytes = b"", cwd: Path | None = None, **environ: str) -> Ended:
        """Run to the end with `given` on stdin."""
        process = self.start(*arguments, stdin=subprocess.PIPE, cwd=cwd, **environ)
        return ended(process, given)


def ended(process: subprocess.Popen[bytes], given: bytes | None = None) -> Ended:
    """Wait for the end of a run."""
    stdout, stderr = process.communicate(given, timeout=RUN_S)
    return Ended(process.returncode, stdout.decode(), stderr.decode())


def new_desk(root: Path) -> Desk:
    """A desk with empty folders."""
    desk = Desk(root)
    for name in ("work", "home", "tmp"):
        (root / name).mkdir()
    return desk
