"""Example 13: waiting for children with failFast: the first failure stops the others.

With `allSettled` a task waits until all have ended, however they end. With `failFast` the first outcome that is not `completed` marks the
others for abort; the waiting task goes on once they have stopped, and decides what that means.

    python -m tests.examples.e13_fail_fast

It prints:

    allSettled: fetch completed, check failed
    failFast: fetch aborted, check failed
"""

from __future__ import annotations

import asyncio

from pi_durable_tui.library import Completed, Extension, Failed, Move, Pending, Problem, Task, TaskDefinition, TaskRuntime, Transaction, Wait, to_json
from tests.examples.parts import AGENT, open_harness

CHILDREN = ("fetch", "check")
FETCH_MS = 200


async def build(runtime: TaskRuntime) -> None:
    """Start both children and wait for them with the policy that was asked for."""
    policy = "failFast" if runtime.task.input["policy"] == "failFast" else "allSettled"

    async def write(transaction: Transaction, _task: Task) -> Move:
        ids = [runtime.child(transaction, f"example.{name}", {}, Pending(checkpoint={"phase": "go"})).id for name in CHILDREN]
        return Wait({"phase": "judge", "children": [*ids]}, tuple(ids), policy)

    await runtime.commit(write)


async def fetch(runtime: TaskRuntime) -> None:
    """Takes a while; a failing brother may stop it."""
    await runtime.services.clock.sleep_ms(FETCH_MS)
    await runtime.end(Completed())


async def check(runtime: TaskRuntime) -> None:
    """Fails at once."""
    await runtime.end(Failed(problem=Problem(reason="example", message="it does not fit")))


async def judge(runtime: TaskRuntime) -> None:
    """See how the children have ended."""
    ids = runtime.checkpoint["children"]
    assert isinstance(ids, list)  # as `build` has stored it
    said: list[str] = []
    for name, task_id in zip(CHILDREN, ids, strict=True):
        task = await runtime.services.session.storage.task(int(str(task_id)))
        outcome = to_json(task.outcome) if task is not None and task.outcome is not None else None
        said.append(f"{name} {outcome['type'] if isinstance(outcome, dict) else 'lives'}")
    print(f"{runtime.task.input['policy']}: {', '.join(said)}")
    await runtime.end(Completed())


PHASES = {"build": {"go": build, "judge": judge}, "fetch": {"go": fetch}, "check": {"go": check}}
EXTENSION = Extension(name="example", tasks=tuple(TaskDefinition(kind=f"example.{name}", phases=phases) for name, phases in PHASES.items()))


async def main() -> None:
    """The same work under both policies."""
    harness = await open_harness(extensions=(EXTENSION,))
    conversation = await harness.create_conversation(AGENT)
    for policy in ("allSettled", "failFast"):
        task_id = await harness.start_task(conversation.id, "example.build", {"policy": policy}, {"phase": "go"})
        await harness.ended(task_id)
    await harness.close()


if __name__ == "__main__":
    asyncio.run(main())
