"""Agents that run one command each and start at once: a warmed process that forks a child per command.

    python -m tests.support.command_agents

A JSON line on stdin starts one: `{"root": "…", "command": "…", "mark": "…"}`, answered by `{"pid": n}`; the agent runs the command with
the tool bash in `root/work`, with LC_MARK=mark in its environment. `{"wait": pid}` waits for its end and is answered by `{"code": n}`.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from tests.support.fork_server import serve
from tests.support.tools_calls import Workplace


def _child(job: dict[str, Any]) -> int:
    work = Workplace(Path(job["root"]), variables={**os.environ, "LC_MARK": job["mark"]})
    asyncio.run(work.call("bash", command=job["command"], timeout_s=300))
    return 0


if __name__ == "__main__":
    serve(_child)
