"""A process that has loaded everything forks one child for each job, so that what starts whole programs again and again is quick.

A line of JSON in, one out: a job -> `{"pid": …}`; `{"wait": pid}` or `{"poll": pid}` -> `{"code": …}`, None while it runs.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any


def serve(child: Callable[[dict[str, Any]], int]) -> None:
    """Answer lines until stdin ends. `child` runs in the fork; what it returns is the exit code; 99 where it raised."""
    for line in sys.stdin:
        job = json.loads(line)
        answer: dict[str, int | None]
        if "wait" in job or "poll" in job:
            pid, status = os.waitpid(job["wait"], 0) if "wait" in job else os.waitpid(job["poll"], os.WNOHANG)
            answer = {"code": os.waitstatus_to_exitcode(status) if pid else None}
        else:
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                code = 99
                try:
                    code = child(job)
                finally:  # whatever it raised, a second server must not go on from here
                    os._exit(code)
            answer = {"pid": pid}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
