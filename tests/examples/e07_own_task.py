"""Example 07: a task kind of our own: phases, a checkpoint after each, and children.

A task is a state machine whose state is stored. A phase does one step and then says in one commit where the task goes on, and with what.
Nothing is kept in variables between two phases: a killed process goes on from the newest checkpoint.

    python -m tests.examples.e07_own_task

It prints:

    collect: waits for 3 children
    square 1
    square 2
    square 3
    add: 1 + 4 + 9
    the whole is 14
"""

from __future__ import annotations

import asyncio

from pi_durable_tui.library import Completed, Extension, Move, Pending, Task, TaskDefinition, TaskRuntime, Transaction, Wait
from tests.examples.parts import AGENT, open_harness


async def collect(runtime: TaskRuntime) -> None:
    """Start the children and wait for them: the children and the wait are one commit."""
    wanted = int(str(runtime.task.input["count"]))

    async def write(transaction: Transaction, _task: Task) -> Move:
        start = Pending(checkpoint={"phase": "square"})
        children = [runtime.child(transaction, "example.square", {"n": n}, start).id for n in range(1, wanted + 1)]
        return Wait({"phase": "add", "children": [*children]}, tuple(children))

    await runtime.commit(write)
    print(f"collect: waits for {wanted} children")


async def square(runtime: TaskRuntime) -> None:
    """A child: its outcome is its value."""
    n = int(str(runtime.task.input["n"]))
    print(f"square {n}")
    await runtime.end(Completed(value=n * n))


async def add(runtime: TaskRuntime) -> None:
    """Entered when all children have ended, in whatever process that is."""
    ids = runtime.checkpoint["children"]
    assert isinstance(ids, list)  # as `collect` has stored it
    tasks = [await runtime.services.session.storage.task(int(str(task_id))) for task_id in ids]
    values = [task.outcome.value for task in tasks if task is not None and isinstance(task.outcome, Completed)]
    print("add:", " + ".join(str(value) for value in values))
    await runtime.end(Completed(value=sum(int(str(value)) for value in values)))


EXTENSION = Extension(
    name="example",
    tasks=(
        TaskDefinition(kind="example.sum", phases={"collect": collect, "add": add}),
        TaskDefinition(kind="example.square", phases={"square": square}),
    ),
)


async def main() -> None:
    """Start the task and wait for its end."""
    harness = await open_harness(extensions=(EXTENSION,))
    conversation = await harness.create_conversation(AGENT)
    task_id = await harness.start_task(conversation.id, "example.sum", {"count": 3}, {"phase": "collect"})
    outcome = await harness.ended(task_id)
    assert isinstance(outcome, Completed)  # nothing went wrong
    print("the whole is", outcome.value)
    await harness.close()


if __name__ == "__main__":
    asyncio.run(main())
