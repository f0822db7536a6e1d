"""Example 08: a task that counts to five, is stopped in the middle, and goes on where it was.

Without a file it closes itself after the second number, is killed after the fourth, and goes on each time:

    python -m tests.examples.e08_memo_and_recovery

Run it on a session file, and again on the same file to go on:

    python -m tests.examples.e08_memo_and_recovery session.sqlite --close-at 2
    python -m tests.examples.e08_memo_and_recovery session.sqlite

With `--close-at N` the harness is closed after `tick N` was printed and before the next step is stored; with `--kill-at N` the
process kills itself there, as `kill -9` would. Either way no tick is printed twice: the memo is written before the print.

It prints:

    tick 1
    tick 2
    (closed)
    tick 3
    tick 4
    (killed)
    tick 5
    counted to 5
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

from pi_durable_tui.library import (
    Agent,
    Clock,
    Completed,
    Extension,
    Harness,
    ModelEvent,
    ModelFailed,
    ModelInfo,
    ModelRequest,
    Storage,
    SystemClock,
    SystemEntropy,
    TaskDefinition,
    TaskRuntime,
    open_sqlite,
)

LAST = 5
STEP_MS = 50


@dataclass
class Counter:
    """The task kind `example.counter` and what a test wants to know of it."""

    clock: Clock
    stop_at: int | None = None
    printed: list[str] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def extension(self) -> Extension:
        """The bundle to install."""
        return Extension(name="counter", tasks=(TaskDefinition(kind="example.counter", phases={"count": self.count}),))

    async def count(self, runtime: TaskRuntime) -> None:
        """One step: print the number once, then store the next one and sleep."""
        n = int(str(runtime.checkpoint["n"]))
        self.steps.append(n)
        if runtime.recall(f"printed-{n}") is None:
            await runtime.memo(f"printed-{n}", True)
            self.say(f"tick {n}")
        if n == self.stop_at:
            self.stopped.set()
            await asyncio.Event().wait()  # here the process ends
        if n == LAST:
            await runtime.end(Completed(value=f"counted to {LAST}"))
        else:
            await runtime.sleep_until(self.clock.now_ms() + STEP_MS, {"phase": "count", "n": n + 1})

    def say(self, line: str) -> None:
        """Print a line and remember it."""
        self.printed.append(line)
        print(line, flush=True)


class NoModel:
    """A gateway for programs without a model."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Refuse."""
        yield ModelFailed(reason="no_model", message=f"there is no model {request.model}", retryable=False)

    async def info(self, model: str) -> ModelInfo:
        """Nothing is known of any model."""
        del model
        return ModelInfo()

    async def warm_up(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True)
class Here:
    """The environment of an agent without tools."""

    cwd: str = "."


async def open_harness(storage: Storage, counter: Counter) -> Harness:
    """A harness that knows the counter."""
    return await Harness.open(
        storage,
        models=NoModel(),
        clock=counter.clock,
        entropy=SystemEntropy(),
        environment=lambda _conversation_id, agent: Here(agent.cwd),
        extensions=(counter.extension(),),
    )


async def begin_or_go_on(harness: Harness) -> int:
    """Start the counter in a new store, or go on with the one that is there; returns the task's id."""
    tasks = (await harness.session.storage.tasks(kind="example.counter")).items
    if tasks:
        await harness.resume()
        return tasks[0].id
    conversation = await harness.create_conversation(Agent())
    return await harness.start_task(conversation.id, "example.counter", {}, {"phase": "count", "n": 1})


async def main(path: Path, *, close_at: int | None, kill_at: int | None) -> None:
    """Count, from wherever the file says."""
    counter = Counter(SystemClock(), close_at or kill_at)
    harness = await open_harness(await open_sqlite(path, clock=counter.clock), counter)
    task_id = await begin_or_go_on(harness)
    ended = asyncio.create_task(harness.ended(task_id))
    stopped = asyncio.create_task(counter.stopped.wait())
    await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if counter.stopped.is_set() and kill_at is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    if ended.done():
        outcome = ended.result()
        print(outcome.value if isinstance(outcome, Completed) else outcome, flush=True)
    for wait in (ended, stopped):
        wait.cancel()
    await harness.close()


def show_all(path: Path) -> None:
    """Three lives of one counter."""
    for options, end in ((["--close-at", "2"], "(closed)"), (["--kill-at", "4"], "(killed)"), ([], "")):
        subprocess.run([sys.executable, "-m", "tests.examples.e08_memo_and_recovery", str(path), *options], check=False)
        if end:
            print(end, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("path", type=Path, nargs="?")
    parser.add_argument("--close-at", type=int)
    parser.add_argument("--kill-at", type=int)
    given = parser.parse_args()
    if given.path is not None:
        asyncio.run(main(given.path, close_at=given.close_at, kill_at=given.kill_at))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            show_all(Path(temporary) / "session.sqlite")
