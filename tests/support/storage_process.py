"""Starts `storage_child` as a real process, and makes sure that it ends."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def child(path: Path, verb: str, *, cwd: Path = ROOT) -> Iterator[subprocess.Popen[str]]:
    """A running child; killed when the test is done with it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.storage_child", str(path), verb],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    """The next line that the child says."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def ask(process: subprocess.Popen[str]) -> str:
    """The child's answer to an empty line."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return line(process)


def kill(process: subprocess.Popen[str]) -> list[str]:
    """The child is dead by SIGKILL; what it had said before and nobody had read."""
    assert process.stdout is not None
    process.kill()
    rest = process.stdout.read()  # not `communicate`, which passes over what `readline` had read ahead
    process.wait()
    return rest.splitlines()
