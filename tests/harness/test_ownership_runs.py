"""Work below work, as it runs, ends, is stopped and is cut off: rules TK-6, TK-14 to TK-16, and facts FB-23, FB-26."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.extensions.task_definition import End, Move, TaskDefinition
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.conversation import Conversation
from pi_durable_tui.records.messages import Problem
from pi_durable_tui.records.task import Aborted, Completed, Failed, Faulted, Pending, Task, WaitPolicy
from pi_durable_tui.session.transaction import Transaction
from tests.support.controlled_storage import Moment
from tests.support.harness_rig import Backend, Rig

GO = Pending(checkpoint={"phase": "go"})


@dataclass(slots=True)
class Family:
    """Task kinds named by what they do; `gates` are what the waiting ones wait for."""

    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    entered: list[str] = field(default_factory=list)

    def gate(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    async def worker(self, runtime: TaskRuntime) -> None:
        """Works until its gate opens; ends as its input says."""
        name = str(runtime.task.input["name"])
        self.entered.append(name)
        await self.gate(name).wait()
        is_bad = bool(runtime.task.input.get("fails"))
        await runtime.end(Failed(problem=Problem(reason="test", message=name)) if is_bad else Completed(value=name))

    async def leaver(self, runtime: TaskRuntime) -> None:
        """Starts a child and ends at once, with the child still at work."""

        async def write(transaction: Transaction, task: Task) -> Move:
            self.start(runtime, transaction, task)
            return End(Completed(value="left"))

        await runtime.commit(write)

    async def owner(self, runtime: TaskRuntime) -> None:
        """Starts work in a conversation of its own and ends at once."""

        async def write(transaction: Transaction, task: Task) -> Move:
            conversation = Conversation(id=transaction.new_id(), created_at_ms=transaction.now_ms, owner=task.id)
            transaction.insert_conversation(conversation)
            worker = Task(
                id=transaction.new_id(),
                kind="worker",
                conversation_id=conversation.id,
                input={"name": "inside"},
                state=GO,
                created_at_ms=transaction.now_ms,
            )
            transaction.put_task(worker)
            return End(Completed(value="owned"))

        await runtime.commit(write)

    async def waiter(self, runtime: TaskRuntime) -> None:
        """Starts its children in one commit; in a later one, once its gate is open, it waits for them."""
        children: list[int] = []

        async def begin(transaction: Transaction, task: Task) -> None:
            children.extend(self.start(runtime, transaction, task))

        await runtime.commit(begin)
        self.entered.append("waiter")
        await self.gate("waiter").wait()
        await runtime.wait(tuple(children), {"phase": "joined"}, self.policy(runtime.task))

    async def joined(self, runtime: TaskRuntime) -> None:
        self.entered.append("joined")
        await runtime.end(Completed(value="joined"))

    def start(self, runtime: TaskRuntime, transaction: Transaction, task: Task) -> list[int]:
        wanted: Any = task.input["children"]
        return [runtime.child(transaction, child.get("kind", "worker"), child, GO, background=child.get("background", False)).id for child in wanted]

    def policy(self, task: Task) -> WaitPolicy:
        return "failFast" if task.input.get("policy") == "failFast" else "allSettled"

    def extensions(self) -> tuple[Extension, ...]:
        phases = {"worker": {"go": self.worker}, "leaver": {"go": self.leaver}, "owner": {"go": self.owner}}
        phases |= {"waiter": {"go": self.waiter, "joined": self.joined}}
        return (Extension(name="family", tasks=tuple(TaskDefinition(kind=kind, phases=given) for kind, given in phases.items())),)


async def begin(tmp_path: Path, family: Family, kind: str, *children: dict[str, Any], backend: Backend = "memory", **more: Any) -> tuple[Rig, int, int]:
    """A conversation with one task of that kind at its top; the rig, the conversation's id, the task's id."""
    rig = Rig(tmp_path, backend, extensions=family.extensions())
    harness = await rig.open()
    conversation = await harness.create_conversation(Agent())
    task_id = await harness.start_task(conversation.id, kind, {"name": kind, "children": list(children), **more}, {"phase": "go"})
    await rig.settle()
    return rig, conversation.id, task_id


async def statuses(rig: Rig) -> dict[str, str]:
    return {str(task.input.get("name")): task.status for task in await rig.tasks()}


async def outcomes(rig: Rig) -> dict[str, Any]:
    return {str(task.input.get("name")): task.outcome for task in await rig.tasks()}


# --------------------------------------------------------------------------------------------------------- ending


@pytest.mark.rule("TK-14")
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
@pytest.mark.parametrize("end", ["nothing", "close", "kill"])
async def test_task_that_has_ended_is_completing_until_the_work_below_it_has(tmp_path: Path, backend: Backend, end: str) -> None:
    family = Family()
    rig, _, _ = await begin(tmp_path, family, "leaver", {"name": "child"}, backend=backend)
    assert await statuses(rig) == {"leaver": "completing", "child": "running"}

    if end != "nothing":
        await (rig.kill() if end == "kill" else rig.close())
        await (await rig.open()).resume()
        await rig.settle()
        assert await statuses(rig) == {"leaver": "completing", "child": "running"}
        assert family.entered == ["child", "child"]
    family.gate("child").set()
    await rig.settle()

    assert await outcomes(rig) == {"leaver": Completed(value="left"), "child": Completed(value="child")}
    assert await statuses(rig) == {"leaver": "terminal", "child": "terminal"}
    await rig.close()


@pytest.mark.rule("TK-14")
async def test_work_in_an_owned_conversation_counts_as_work_below(tmp_path: Path) -> None:
    family = Family()
    rig, conversation_id, _ = await begin(tmp_path, family, "owner")
    chat = await rig.harness.conversation(conversation_id)
    idle = asyncio.ensure_future(chat.idle())
    await rig.settle()
    assert await statuses(rig) == {"owner": "completing", "inside": "running"}
    assert not idle.done()
    graph = {node.kind: (node.owner, node.status, node.conversations) for node in rig.harness.task_graph()}
    owner, inside = await rig.tasks()
    assert graph == {"owner": (None, "completing", (inside.conversation_id,)), "worker": (owner.id, "running", ())}

    family.gate("inside").set()
    await rig.until(idle.done)

    assert await statuses(rig) == {"owner": "terminal", "inside": "terminal"}


@pytest.mark.rule("TK-14")
async def test_three_generations_end_from_below(tmp_path: Path) -> None:
    family = Family()
    rig, _, _ = await begin(tmp_path, family, "leaver", {"kind": "leaver", "name": "middle", "children": [{"name": "lowest"}]})
    assert await statuses(rig) == {"leaver": "completing", "middle": "completing", "lowest": "running"}

    family.gate("lowest").set()
    await rig.settle()

    ends = [str(task.input["name"]) for batch in rig.storage.batches for task in batch.tasks if not task.is_live]
    assert ends == ["lowest", "middle", "leaver"]


# -------------------------------------------------------------------------------------------------- stopping

TREE = {"kind": "waiter", "name": "middle", "children": [{"name": "lowest"}]}


@pytest.mark.rule("TK-15")
async def test_stopping_ends_the_lowest_first(tmp_path: Path) -> None:
    family = Family()
    family.gate("waiter").set()
    rig, conversation_id, _ = await begin(tmp_path, family, "waiter", TREE)

    await (await rig.harness.conversation(conversation_id)).abort()

    ends = [str(task.input["name"]) for batch in rig.storage.batches for task in batch.tasks if not task.is_live]
    assert ends == ["lowest", "middle", "waiter"]
    assert await outcomes(rig) == dict.fromkeys(("lowest", "middle", "waiter"), Aborted())


@pytest.mark.rule("TK-15", "PR-22")
@pytest.mark.parametrize("moment", ["before", "stored"])
@pytest.mark.parametrize("commit", range(1, 5))
async def test_crash_at_any_commit_of_stopping_a_tree_stops_all_of_it_or_nothing(tmp_path: Path, commit: int, moment: Moment) -> None:
    family = Family()
    family.gate("waiter").set()
    rig, conversation_id, _ = await begin(tmp_path, family, "waiter", TREE)
    entered = list(family.entered)
    rig.storage.crash_at(len(rig.storage.batches) + commit, moment)
    aborting = asyncio.ensure_future((await rig.harness.conversation(conversation_id)).abort())
    await rig.settle()
    assert rig.storage.crashed.is_set()
    assert not aborting.done()
    await rig.kill()

    await (await rig.open()).resume()
    await rig.settle()

    if (commit, moment) == (1, "before"):  # the marks were not stored: nothing was stopped
        assert family.entered == [*entered, "lowest"]
        assert set((await statuses(rig)).values()) == {"running", "waiting"}
    else:
        assert family.entered == entered  # nothing that was marked ran again
        assert await outcomes(rig) == dict.fromkeys(("lowest", "middle", "waiter"), Aborted())


@pytest.mark.rule("TK-16")
async def test_stopping_and_idling_pass_over_background_work(tmp_path: Path) -> None:
    family = Family()
    rig, conversation_id, _ = await begin(tmp_path, family, "worker")
    await rig.harness.start_task(conversation_id, "worker", {"name": "beside"}, {"phase": "go"}, background=True)
    await rig.settle()

    await (await rig.harness.conversation(conversation_id)).abort()

    assert await statuses(rig) == {"worker": "terminal", "beside": "running"}
    family.gate("beside").set()
    await rig.settle()
    assert await outcomes(rig) == {"worker": Aborted(), "beside": Completed(value="beside")}


@pytest.mark.rule("TK-16", "TK-17")
async def test_stopping_with_the_background_stops_all_of_it(tmp_path: Path) -> None:
    family = Family()
    rig, conversation_id, _ = await begin(tmp_path, family, "waiter", {"name": "below", "background": True})
    await rig.harness.start_task(conversation_id, "worker", {"name": "beside"}, {"phase": "go"}, background=True)
    await rig.settle()

    stopping = asyncio.ensure_future((await rig.harness.conversation(conversation_id)).abort(background=True))
    await rig.until(stopping.done)

    assert await outcomes(rig) == dict.fromkeys(("waiter", "below", "beside"), Aborted())


@pytest.mark.rule("TK-14", "TK-16")
@pytest.mark.parametrize("kind", ["leaver", "waiter"])
async def test_background_child_holds_up_neither_stopping_nor_idling(tmp_path: Path, kind: str) -> None:
    family = Family()
    rig, conversation_id, _ = await begin(tmp_path, family, kind, {"name": "beside", "background": True})
    chat = await rig.harness.conversation(conversation_id)

    stopping = asyncio.ensure_future(chat.abort())
    await rig.until(stopping.done)

    assert (await statuses(rig))["beside"] == "running"
    family.gate("beside").set()
    await rig.settle()
    assert (await outcomes(rig))["beside"] == Completed(value="beside")
    assert set((await statuses(rig)).values()) == {"terminal"}
    assert isinstance((await outcomes(rig))[kind], Aborted if kind == "waiter" else Completed)


@pytest.mark.rule("TK-14", "TK-15", "TK-16", "TK-17")
@pytest.mark.parametrize("end", ["nothing", "close", "kill"])
async def test_background_work_below_a_child_that_has_ended_does_not_hold_up_stopping_its_owner(tmp_path: Path, end: str) -> None:
    family = Family()
    middle = {"kind": "leaver", "name": "middle", "children": [{"name": "beside", "background": True}]}
    rig, conversation_id, _ = await begin(tmp_path, family, "waiter", middle)
    family.gate("waiter").set()
    await rig.settle()
    assert await statuses(rig) == {"waiter": "waiting", "middle": "completing", "beside": "running"}

    stopping = asyncio.ensure_future((await rig.harness.conversation(conversation_id)).abort())
    await rig.until(stopping.done)
    assert await statuses(rig) == {"waiter": "completing", "middle": "completing", "beside": "running"}
    if end != "nothing":
        await (rig.kill() if end == "kill" else rig.close())
        await (await rig.open()).resume()
        await rig.settle()

    family.gate("beside").set()
    await rig.settle()
    assert await outcomes(rig) == {"waiter": Aborted(), "middle": Completed(value="left"), "beside": Completed(value="beside")}
    await rig.close()


@pytest.mark.rule("TK-3", "TK-14")
async def test_owner_that_broke_is_completing_until_the_work_below_it_has_ended(tmp_path: Path) -> None:
    family = Family()

    async def broken(runtime: TaskRuntime) -> None:
        async def write(transaction: Transaction, task: Task) -> None:
            family.start(runtime, transaction, task)

        await runtime.commit(write)
        raise ValueError("broken")

    rig = Rig(tmp_path, extensions=(*family.extensions(), Extension(name="broken", tasks=(TaskDefinition(kind="broken", phases={"go": broken}),))))
    harness = await rig.open()
    conversation = await harness.create_conversation(Agent())
    await harness.start_task(conversation.id, "broken", {"name": "owner", "children": [{"name": "child"}]}, {"phase": "go"})
    await rig.settle()
    assert await statuses(rig) == {"owner": "completing", "child": "running"}
    assert [report.kind for report in rig.reports] == ["task_faulted"]

    family.gate("child").set()
    await rig.settle()

    assert await outcomes(rig) == {"owner": Faulted(message="ValueError: broken"), "child": Completed(value="child")}


# ---------------------------------------------------------------------------------------------------------- waiting


@pytest.mark.rule("TK-6", "FB-26")
@pytest.mark.parametrize(("policy", "slow"), [("allSettled", Completed(value="slow")), ("failFast", Aborted())])
async def test_a_failing_child_stops_its_brothers_only_under_fail_fast(tmp_path: Path, policy: str, slow: Any) -> None:
    family = Family()
    family.gate("waiter").set()
    children = [{"name": "slow"}, {"name": "bad", "fails": True}, {"name": "quick"}]
    rig, _, _ = await begin(tmp_path, family, "waiter", *children, policy=policy)
    family.gate("quick").set()
    await rig.settle()
    family.gate("bad").set()
    await rig.settle()
    assert ("joined" in family.entered) == (policy == "failFast")
    family.gate("slow").set()
    await rig.settle()

    assert (await outcomes(rig))["slow"] == slow
    assert (await outcomes(rig))["quick"] == Completed(value="quick")
    assert (await outcomes(rig))["waiter"] == Completed(value="joined")
    assert family.entered.count("joined") == 1


@pytest.mark.rule("TK-6", "FB-23", "FB-26")
@pytest.mark.parametrize("end", ["nothing", "kill"])
async def test_a_child_that_failed_before_it_was_waited_for_counts_too(tmp_path: Path, end: str) -> None:
    family = Family()
    rig, _, _ = await begin(tmp_path, family, "waiter", {"name": "slow"}, {"name": "bad", "fails": True}, policy="failFast")
    family.gate("bad").set()
    await rig.settle()
    family.gate("waiter").set()
    if end == "kill":
        rig.storage.crash_at(len(rig.storage.batches) + 1, "stored")
        await rig.settle()
        await rig.kill()
        await (await rig.open()).resume()
    await rig.settle()

    assert await outcomes(rig) == {
        "waiter": Completed(value="joined"),
        "slow": Aborted(),
        "bad": Failed(problem=Problem(reason="test", message="bad")),
    }


@pytest.mark.rule("TK-6")
async def test_waiting_for_what_has_ended_already_goes_on_at_once(tmp_path: Path) -> None:
    family = Family()
    family.gate("child").set()
    rig, _, _ = await begin(tmp_path, family, "waiter", {"name": "child"})
    assert await statuses(rig) == {"waiter": "running", "child": "terminal"}

    family.gate("waiter").set()
    await rig.settle()

    assert (await outcomes(rig))["waiter"] == Completed(value="joined")
