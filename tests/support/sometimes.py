"""What must have happened somewhere in the tests, or they have proved nothing (proof.md, rig 6): "sometimes" assertions.

A test that comes to such a moment says so with `happened`. Where the environment names a folder in PIDURABLE_TEST_SOMETIMES, each process
keeps what it saw there, and `python -m tests.support.sometimes FOLDER` fails with what nobody saw. Without that variable nothing is kept.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

_FOLDER = os.environ.get("PIDURABLE_TEST_SOMETIMES")  # read here: a test itself runs with none of our variables

WANTED = (
    "a crash between intent and effect",
    "a crash between effect and result",
    "an uncertain commit that was stored",
    "an uncertain commit that was not stored",
    "a torn marker",
    *(f"the restart limit of kind: {kind}" for kind in ("own", "generation", "tool", "subagent", "compaction")),
    "a second crash while opening",
    "a memo raced for",
    "a steering input placed after a crash",
    "a lock taken over",
    "a stale compaction",
)


@functools.cache  # once is enough
def happened(moment: str) -> None:
    """Say that a moment of `WANTED` has come."""
    if moment not in WANTED:
        raise AssertionError(f"nobody waits for this to happen: {moment!r}")
    if _FOLDER is not None:
        with (Path(_FOLDER) / f"seen-{os.getpid()}").open("a", encoding="utf-8") as file:
            file.write(f"{moment}\n")


def missing(folder: Path) -> list[str]:
    """What of `WANTED` nobody saw."""
    seen = {line for path in folder.glob("seen-*") for line in path.read_text(encoding="utf-8").splitlines()}
    return [moment for moment in WANTED if moment not in seen]


def main(folder: Path) -> int:
    """The exit status: 0 when all of it has happened."""
    never = missing(folder)
    lines = [*(f"this never happened in any test: {moment}" for moment in never), f"{len(WANTED) - len(never)} of {len(WANTED)} moments have come"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if never else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
