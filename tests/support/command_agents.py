"""Agents that run one command each and start at once: a warmed process that forks a child per command.

    python -m tests.support.command_agents

A JSON line on stdin starts one: `{"root": "…", "command": "…", "mark": "…"}`, answered by `{"pid": n}`; the agent runs the command with
the tool bash in `root/work`, with LC_MARK=mark in its environment. `{"wait": pid}` waits for its end and is answered by `{"code": n}`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.support.tools_calls import Workplace


def _child(job: dict[str, Any]) -> None:
    work = Workplace(Path(job["root"]), variables={**os.environ, "LC_MARK": job["mark"]})
    asyncio.run(work.call("bash", command=job["command"], timeout_s=300))


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        if "wait" in job:
            answer = {"code": os.waitstatus_to_exitcode(os.waitpid(job["wait"], 0)[1])}
        else:
            pid = os.fork()
            if pid == 0:
                try:
                    _child(job)
                finally:
                    os._exit(0)
            answer = {"pid": pid}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
