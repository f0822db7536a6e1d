"""Tasks that were stored by older or newer code, and code of extensions that breaks while the scheduler asks it (TK-3, TK-8)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.extensions.task_definition import Ending, TaskDefinition, Wait
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.task import Aborted, Completed, Faulted, Orphaned, Pending, Task
from pi_durable_tui.session.transaction import Transaction
from tests.support.harness_rig import Rig
from tests.support.scripted_model import Hold


async def forever(_runtime: TaskRuntime) -> None:
    await Hold().event.wait()


async def told(runtime: TaskRuntime) -> None:
    await runtime.end(Completed(value=runtime.checkpoint))


def code(version: int, phase: Any = told, **more: Any) -> tuple[Extension, ...]:
    """What is installed: the kind `work` in some version, and the kind `other` beside it."""
    definitions = (TaskDefinition(kind="work", version=version, phases={"go": phase}, **more), TaskDefinition(kind="other", phases={"go": told}))
    return (Extension(name="kinds", tasks=definitions),)


async def left_by(rig: Rig, version: int) -> tuple[int, int]:
    """A task that code of that version began; the ids of the conversation and of the task."""
    rig.extensions = code(version, forever)
    chat = await rig.start()
    task_id = await rig.harness.start_task(chat.id, "work", {}, {"phase": "go", "n": 1})
    await rig.settle()
    await rig.close()
    return chat.id, task_id


async def go_on(rig: Rig, extensions: tuple[Extension, ...]) -> None:
    rig.extensions = extensions
    await (await rig.open()).resume()
    await rig.settle()


def cancelled(_checkpoint: Any, _version: int) -> Any:
    raise asyncio.CancelledError


async def work(rig: Rig) -> Task:
    (task,) = await rig.tasks("work")
    return task


async def assert_goes_on(rig: Rig, chat_id: int) -> None:
    """Other work of the session is done."""
    task_id = await rig.harness.start_task(chat_id, "other", {}, {"phase": "go"})
    await rig.settle()
    ended = await rig.harness.session.storage.task(task_id)
    assert ended is not None
    assert ended.outcome == Completed(value={"phase": "go"})


@pytest.mark.rule("TK-8")
async def test_a_task_of_older_code_goes_on_from_its_checkpoint_as_the_newer_code_reads_it(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await left_by(rig, 1)
    await go_on(rig, code(3, migrate=lambda checkpoint, version: {**checkpoint, "from": version}))
    task = await work(rig)
    assert (task.version, task.outcome) == (3, Completed(value={"phase": "go", "n": 1, "from": 1}))


@pytest.mark.rule("TK-8")
@pytest.mark.parametrize(("stored", "installed"), [(1, 2), (2, 1)])
async def test_a_task_that_the_code_cannot_read_is_left_alone_until_it_is_stopped(tmp_path: Path, stored: int, installed: int) -> None:
    rig = Rig(tmp_path)
    chat_id, task_id = await left_by(rig, stored)
    before = (await rig.open(), await work(rig))[1]
    await rig.close()
    await go_on(rig, code(installed))
    assert await work(rig) == before
    assert (await rig.harness.inspect()).tasks[0].reason == f"blocked: no definition of work for version {stored} is installed"
    await (await rig.harness.conversation(chat_id)).abort_task(task_id)
    assert (await work(rig)).outcome == Orphaned()
    await assert_goes_on(rig, chat_id)


def children(*kinds: str) -> Any:
    """A handler that begins a task of each kind and waits for all of them."""

    async def begin(runtime: TaskRuntime) -> None:
        async def write(transaction: Transaction, _task: Task) -> Wait:
            begun = [runtime.child(transaction, kind, {}, Pending(checkpoint={"phase": "go"})) for kind in kinds]
            return Wait({"phase": "joined"}, tuple(child.id for child in begun))

        await runtime.commit(write)

    return begin


@pytest.mark.rule("TK-8", "TK-14")
async def test_a_task_that_another_begins_is_of_the_version_that_is_installed(tmp_path: Path) -> None:
    kinds = (
        TaskDefinition(kind="parent", phases={"go": children("work"), "joined": told}),
        TaskDefinition(kind="work", version=3, phases={"go": told}),
    )
    rig = Rig(tmp_path, extensions=(Extension(name="kinds", tasks=kinds),))
    chat = await rig.start()
    await rig.harness.start_task(chat.id, "parent", {}, {"phase": "go"})
    await rig.settle()
    assert [(task.kind, task.version, task.status) for task in await rig.tasks()] == [("parent", 1, "terminal"), ("work", 3, "terminal")]
    await rig.close()


@pytest.mark.rule("TK-8", "EX-1")
async def test_a_handler_of_older_code_begins_more_of_its_kind_as_it_knows_it(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def old(runtime: TaskRuntime) -> None:
        if runtime.task.owner is None:
            await gate.wait()
            await children("work")(runtime)
        else:
            await runtime.end(Completed(value="old"))

    rig = Rig(tmp_path, extensions=code(1, old))
    chat = await rig.start()
    await rig.harness.start_task(chat.id, "work", {}, {"phase": "go"})
    await rig.settle()
    newer = TaskDefinition(kind="work", version=2, phases={"go": told, "joined": told}, migrate=lambda checkpoint, version: {**checkpoint, "from": version})
    rig.harness.install(Extension(name="kinds", tasks=(newer,)))
    gate.set()
    await rig.settle()
    assert [(task.version, task.outcome) for task in await rig.tasks("work")] == [
        (2, Completed(value={"phase": "joined", "from": 1})),
        (2, Completed(value={"phase": "go", "from": 1})),
    ]
    await rig.close()


@pytest.mark.rule("TK-3", "TK-8")
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda checkpoint, _version: checkpoint["missing"], "KeyError: 'missing'"),
        (lambda _checkpoint, _version: {"phase": float("nan")}, "which is not JSON"),
        (lambda checkpoint, _version: [checkpoint], "The migration of work to version 2 gave a list, which is no checkpoint."),
        (cancelled, "CancelledError"),
    ],
)
async def test_a_migration_that_breaks_ends_its_own_task_only(tmp_path: Path, made: Any, said: str) -> None:
    rig = Rig(tmp_path)
    chat_id, _task_id = await left_by(rig, 1)
    await go_on(rig, code(2, migrate=made))
    outcome = (await work(rig)).outcome
    assert isinstance(outcome, Faulted)
    assert outcome.message.startswith("its checkpoint could not be migrated: ")
    assert said in outcome.message
    assert [(report.kind, report.message) for report in rig.reports] == [("task_faulted", outcome.message)]
    await assert_goes_on(rig, chat_id)


@pytest.mark.rule("TK-8", "TK-15")
async def test_a_task_of_older_code_that_is_stopped_is_ended_with_its_checkpoint_as_the_newer_code_reads_it(tmp_path: Path) -> None:
    async def ended(_transaction: Transaction, task: Task, _ending: Ending) -> Aborted:
        return Aborted(value=task.checkpoint)

    rig = Rig(tmp_path)
    chat_id, task_id = await left_by(rig, 1)
    rig.extensions = code(2, forever, migrate=lambda checkpoint, version: {**checkpoint, "from": version}, on_ending=ended)
    await rig.open()
    assert await (await rig.harness.conversation(chat_id)).abort_task(task_id)
    assert (await work(rig)).outcome == Aborted(value={"phase": "go", "n": 1, "from": 1})
    await rig.close()


@pytest.mark.rule("TK-3", "TK-15")
async def test_a_definition_that_breaks_when_its_task_is_stopped_cannot_keep_it_alive(tmp_path: Path) -> None:
    async def broken(transaction: Transaction, task: Task, _ending: Ending) -> Aborted:
        transaction.put_task(Task(id=transaction.new_id(), kind="other", conversation_id=1, input={}, state=Pending(checkpoint={}), created_at_ms=0))
        raise ValueError(f"no end for {task.kind}")

    rig = Rig(tmp_path, extensions=code(1, forever, on_ending=broken))
    chat = await rig.start()
    task_id = await rig.harness.start_task(chat.id, "work", {}, {"phase": "go"})
    await rig.settle()
    assert await chat.abort_task(task_id)
    await rig.settle()
    message = "aborted; then its definition could not end it: ValueError: no end for work"
    assert (await work(rig)).outcome == Faulted(message=message)
    assert await rig.tasks("other") == []  # what it had begun to write was given up
    assert [(report.kind, report.message) for report in rig.reports] == [("task_faulted", message)]
    await assert_goes_on(rig, chat.id)
    await rig.close()


@pytest.mark.rule("TK-3")
async def test_a_definition_that_breaks_when_its_handler_broke_ends_with_both_errors(tmp_path: Path) -> None:
    async def wrong(_runtime: TaskRuntime) -> None:
        raise KeyError("in the handler")

    async def broken(_transaction: Transaction, _task: Task, _ending: Ending) -> Aborted:
        raise ValueError("in the ending")

    rig = Rig(tmp_path, extensions=code(1, wrong, on_ending=broken))
    chat = await rig.start()
    await rig.harness.start_task(chat.id, "work", {}, {"phase": "go"})
    await rig.settle()
    outcome = (await work(rig)).outcome
    assert outcome == Faulted(message="KeyError: 'in the handler'; then its definition could not end it: ValueError: in the ending")
    await assert_goes_on(rig, chat.id)
