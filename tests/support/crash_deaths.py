"""Lives of the core scenario that end by the real death of a process: `python -m tests.support.crash_deaths`.

It forks a child for each line on stdin, `[folder, backend, commit, moment]`, which lives in that folder until the crash and then is gone by
`os._exit`: nothing unwinds, no buffer is written, no file is closed. It answers with a line, the child's exit status.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.controlled_storage import Moment
from tests.support.crash_scenario import History
from tests.support.harness_world import Backend

ROOT = Path(__file__).parents[2]
DEAD = 9


def died(path: Path, backend: Backend, points: Sequence[tuple[int, Moment]]) -> list[Path]:
    """Let a process die at each of these points; the folders of the stores that they left."""
    folders = [path / f"{commit}-{moment}-died" for commit, moment in points]
    jobs = [json.dumps([str(folder), backend, *point]) for folder, point in zip(folders, points, strict=True)]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.crash_deaths"], cwd=ROOT, env=environ, input="\n".join(jobs), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(DEAD)] * len(points), done.stderr
    return folders


def _die() -> None:
    os._exit(DEAD)


def _serve() -> None:
    for line in sys.stdin:
        folder, backend, commit, moment = json.loads(line)
        pid = os.fork()
        if pid == 0:
            History(Path(folder), backend, die=_die).live((commit, moment))
            os._exit(0)  # it was never killed
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
