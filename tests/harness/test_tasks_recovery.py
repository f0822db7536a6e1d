"""Tasks of every status over a crash and a read-only opening: facts FA-12 to FA-14, FA-19, FA-28, and rules TK."""

from __future__ import annotations

import asyncio
import hashlib
import math
from pathlib import Path
from typing import Any

import pytest

from pi_durable_tui.clock import ManualClock
from pi_durable_tui.entropy import SeededEntropy
from pi_durable_tui.errors import ReadOnlySession, SessionClosed
from pi_durable_tui.harness.extensions.registry import Extension
from pi_durable_tui.harness.extensions.task_definition import TaskDefinition, Wait
from pi_durable_tui.harness.harness import Harness
from pi_durable_tui.harness.live import Agent
from pi_durable_tui.harness.services import Report
from pi_durable_tui.harness.settings import Settings
from pi_durable_tui.harness.tasks.runtime import TaskRuntime
from pi_durable_tui.records.task import Aborted, Completed, Faulted, Pending, Sleeping, Task
from pi_durable_tui.session.transaction import Transaction
from pi_durable_tui.storage.sqlite import open_sqlite
from tests.support.harness_rig import Backend, Folder, Rig
from tests.support.scripted_model import Hold, ScriptedModel


def kinds(**phases: Any) -> tuple[Extension, ...]:
    """An extension with one task kind for each keyword: a dict of phases, or one phase called `go`."""
    definitions = tuple(TaskDefinition(kind=kind, phases=given if isinstance(given, dict) else {"go": given}) for kind, given in phases.items())
    return (Extension(name="kinds", tasks=definitions),)


async def forever(_runtime: TaskRuntime) -> None:
    await asyncio.Event().wait()


async def sleepy(runtime: TaskRuntime) -> None:
    await runtime.sleep_until(runtime.services.clock.now_ms() + 60_000, {"phase": "woken"})


async def ended(runtime: TaskRuntime) -> None:
    await runtime.end(Completed(value="done"))


async def start(rig: Rig, *names: str) -> dict[str, int]:
    harness = await rig.open()
    conversation = await harness.create_conversation(Agent())
    return {name: await harness.start_task(conversation.id, name, {}, {"phase": "go"}) for name in names}


async def by_id(rig: Rig) -> dict[int, Task]:
    return {task.id: task for task in await rig.tasks()}


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
@pytest.mark.rule("FA-12", "FB-23", "TK-10")
async def test_opening_after_a_kill_touches_only_the_running_task(tmp_path: Path, backend: Backend) -> None:
    async def waits(runtime: TaskRuntime) -> None:
        await runtime.wait((ids["running"],), {"phase": "woken"})

    ids: dict[str, int] = {}
    rig = Rig(tmp_path, backend, extensions=kinds(running=forever, sleeping=sleepy, waiting=waits))
    ids |= await start(rig, "running", "sleeping")
    conversation_id = (await rig.tasks())[0].conversation_id
    ids["waiting"] = await rig.harness.start_task(conversation_id, "waiting", {}, {"phase": "go"})
    await rig.settle()

    async def add_pending(transaction: Transaction) -> int:
        task = Task(
            id=transaction.new_id(),
            kind="of an extension not installed",
            conversation_id=conversation_id,
            input={},
            state=Pending(checkpoint={"phase": "go"}),
            created_at_ms=transaction.now_ms,
        )
        transaction.put_task(task)
        return task.id

    ids["pending"] = await rig.harness.session.commit(add_pending)
    before = await by_id(rig)
    await rig.kill()

    await rig.open()
    after = await by_id(rig)
    changed = {task_id for task_id in before if before[task_id] != after[task_id]}
    assert {before[ids[name]].status for name in ids} == {"running", "sleeping", "waiting", "pending"}
    assert changed == {ids["running"]}
    assert (after[ids["running"]].state, after[ids["running"]].restarts) == (Pending(checkpoint={"phase": "go"}), 1)
    await rig.close()


@pytest.mark.rule("FA-13", "FA-14", "ST-11", "OB-5", "TK-13")
async def test_read_only_opening_changes_nothing_and_refuses_to_work(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "sqlite", extensions=kinds(running=forever))
    await start(rig, "running")
    await rig.settle()
    conversation_id = (await rig.tasks())[0].conversation_id
    await rig.kill()
    before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.iterdir()}

    clock = ManualClock()
    storage = await open_sqlite(rig.file, clock=clock, read_only=True, inline=True)
    harness = await Harness.open(storage, models=ScriptedModel(clock), clock=clock, entropy=SeededEntropy(1), environment=lambda _id, agent: Folder(agent.cwd))
    chat = await harness.conversation(conversation_id)
    (info,) = (await harness.inspect()).tasks

    assert info.task.status == "running"
    assert (await chat.view()).tasks == (info.task,)
    for refused in (chat.submit("x"), harness.resume(), harness.create_conversation(Agent()), chat.save_draft("x", 1), chat.set_agent(model="m")):
        with pytest.raises(ReadOnlySession):
            await refused
    await harness.close()
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.iterdir()} == before


@pytest.mark.rule("FA-19", "TK-1")
async def test_step_cut_off_between_two_effects_runs_again_from_its_start(tmp_path: Path) -> None:
    effects: list[str] = []
    hold = Hold()

    async def two_effects(runtime: TaskRuntime) -> None:
        effects.append("first")
        await hold.event.wait()
        effects.append("second")
        await runtime.end(Completed())

    rig = Rig(tmp_path, extensions=kinds(pair=two_effects))
    await start(rig, "pair")
    await rig.until(lambda: effects == ["first"])
    await rig.kill()
    hold = Hold()
    hold.event.set()

    await (await rig.open()).resume()
    await rig.until(lambda: len(effects) == 3)

    assert effects == ["first", "first", "second"]


@pytest.mark.rule("FA-28", "TK-5")
async def test_sleeping_task_holds_no_handler_and_keeps_its_time_over_a_kill(tmp_path: Path) -> None:
    woken: list[int] = []

    async def wake(runtime: TaskRuntime) -> None:
        woken.append(runtime.services.clock.now_ms())
        await runtime.end(Completed())

    rig = Rig(tmp_path, extensions=kinds(sleeper={"go": sleepy, "woken": wake}))
    start_ms = rig.clock.now_ms()
    ids = await start(rig, "sleeper")
    await rig.settle()
    (info,) = (await rig.harness.inspect()).tasks
    assert info.task.state == Sleeping(checkpoint={"phase": "woken"}, until=start_ms + 60_000)
    assert info.reason == f"sleeping until {start_ms + 60_000}"
    await rig.kill()

    harness = await rig.open()
    assert await by_id(rig) == {ids["sleeper"]: info.task}
    await harness.resume()
    await rig.settle()
    rig.clock.advance(59_999)
    await rig.settle()
    assert woken == []
    rig.clock.advance(1)
    await rig.settle()
    assert woken == [start_ms + 60_000]


@pytest.mark.rule("TK-5", "PR-18")
async def test_due_sleeper_wakes_at_once_when_the_session_is_opened_late(tmp_path: Path) -> None:
    rig = Rig(tmp_path, extensions=kinds(sleeper={"go": sleepy, "woken": ended}))
    ids = await start(rig, "sleeper")
    await rig.settle()
    await rig.close()
    rig.clock.advance(3_600_000)

    await (await rig.open()).resume()
    await rig.settle()

    assert (await by_id(rig))[ids["sleeper"]].outcome == Completed(value="done")


@pytest.mark.rule("TK-2", "FB-24")
async def test_handler_that_returns_without_progress_ends_faulted(tmp_path: Path) -> None:
    async def idle(_runtime: TaskRuntime) -> None:
        return None

    rig = Rig(tmp_path, extensions=kinds(lazy=idle))
    ids = await start(rig, "lazy")
    await rig.settle()

    message = "phase 'go' returned without progress"
    assert (await by_id(rig))[ids["lazy"]].outcome == Faulted(message=message)
    assert [(report.kind, report.reason, report.message) for report in rig.reports] == [("task_faulted", "fault", message)]


@pytest.mark.rule("TK-3")
async def test_uncaught_error_ends_the_task_and_the_harness_goes_on(tmp_path: Path) -> None:
    async def broken(_runtime: TaskRuntime) -> None:
        raise ValueError("no such number")

    rig = Rig(tmp_path, extensions=kinds(broken=broken, fine=ended))
    ids = await start(rig, "broken", "fine")
    await rig.settle()
    tasks = await by_id(rig)

    assert tasks[ids["broken"]].outcome == Faulted(message="ValueError: no such number")
    assert tasks[ids["fine"]].outcome == Completed(value="done")


@pytest.mark.rule("TK-7")
async def test_two_tasks_run_together_and_one_task_never_twice(tmp_path: Path) -> None:
    inside: list[int] = []
    most: dict[str, int] = {"together": 0, "of one": 0}

    async def step(runtime: TaskRuntime) -> None:
        inside.append(runtime.task_id)
        most["together"] = max(most["together"], len(inside))
        most["of one"] = max(most["of one"], inside.count(runtime.task_id))
        await asyncio.sleep(0)
        await runtime.memo("m", 1)
        inside.remove(runtime.task_id)
        n = int(str(runtime.checkpoint.get("n", 0)))
        await (runtime.advance({"phase": "go", "n": n + 1}) if n < 5 else runtime.end(Completed()))

    rig = Rig(tmp_path, extensions=kinds(step=step))
    harness = await rig.open()
    conversation = await harness.create_conversation(Agent())
    for _ in range(3):
        await harness.start_task(conversation.id, "step", {}, {"phase": "go"})
    await rig.settle()

    assert [task.status for task in await rig.tasks()] == ["terminal"] * 3
    assert most == {"together": 3, "of one": 1}


@pytest.mark.rule("TK-12")
@pytest.mark.parametrize(("limit", "runs"), [(1, 1), (2, 2), (5, 5), (math.inf, 7)])
async def test_task_is_not_run_again_at_the_restart_limit(tmp_path: Path, limit: float, runs: int) -> None:
    entered: list[int] = []

    async def doomed(runtime: TaskRuntime) -> None:
        entered.append(runtime.task_id)
        await asyncio.Event().wait()

    rig = Rig(tmp_path, extensions=kinds(doomed=doomed), settings=Settings(restart_limit=limit))
    ids = await start(rig, "doomed")
    await rig.settle()
    for _ in range(6):
        await rig.kill()
        await (await rig.open()).resume()
        await rig.settle()

    outcome = (await by_id(rig))[ids["doomed"]].outcome
    assert len(entered) == runs
    if limit == math.inf:
        assert outcome is None
    else:
        assert outcome == Faulted(message=f"it was cut off {runs} times in a row", detail={"reason": "restart_limit"})
        assert [(report.kind, report.reason) for report in rig.reports] == [("task_faulted", "restart_limit")]


@pytest.mark.rule("TK-11", "TK-12")
async def test_progress_sets_the_count_of_restarts_back(tmp_path: Path) -> None:
    gates = {"first": Hold(), "second": Hold()}

    async def two_steps(runtime: TaskRuntime) -> None:
        await gates[str(runtime.checkpoint["step"])].event.wait()
        if runtime.checkpoint["step"] == "first":
            await runtime.advance({"phase": "go", "step": "second"})
        else:
            await runtime.end(Completed(value="both"))

    rig = Rig(tmp_path, extensions=kinds(steps=two_steps))
    harness = await rig.open()
    conversation = await harness.create_conversation(Agent())
    task_id = await harness.start_task(conversation.id, "steps", {}, {"phase": "go", "step": "first"})

    async def cut_off(times: int) -> None:
        for _ in range(times):
            await rig.settle()
            await rig.kill()
            await (await rig.open()).resume()
        await rig.settle()

    await cut_off(4)
    assert (await by_id(rig))[task_id].restarts == 4
    gates["first"].event.set()
    await rig.settle()
    assert (await by_id(rig))[task_id].restarts is None
    await cut_off(4)
    gates["second"].event.set()
    await rig.settle()

    assert (await by_id(rig))[task_id].outcome == Completed(value="both")


@pytest.mark.rule("TK-8")
async def test_task_without_a_fitting_definition_is_blocked_until_one_is_installed(tmp_path: Path) -> None:
    rig = Rig(tmp_path, extensions=kinds(later=forever))
    ids = await start(rig, "later")
    await rig.settle()
    await rig.close()
    rig.extensions = ()
    harness = await rig.open()
    await harness.resume()
    await rig.settle()

    (info,) = (await harness.inspect()).tasks
    assert info.reason == "blocked: no definition of later for version 1 is installed"
    await harness.create_conversation(Agent())
    harness.install(kinds(other=ended)[0])
    await rig.settle()
    assert [(report.kind, report.reason, report.message, report.task_id) for report in rig.reports] == [
        ("task_blocked", "no_definition", f"Task {info.task.id} is {info.reason}.", info.task.id)  # once
    ]
    harness.install(kinds(later=ended)[0])
    await rig.settle()
    assert (await by_id(rig))[ids["later"]].outcome == Completed(value="done")


@pytest.mark.rule("TK-6", "FB-26")
async def test_fail_fast_aborts_the_others_and_resumes_when_all_have_ended(tmp_path: Path) -> None:
    async def parent(runtime: TaskRuntime) -> None:
        async def write(transaction: Transaction, _task: Task) -> Any:
            children = [runtime.child(transaction, kind, {}, Pending(checkpoint={"phase": "go"})) for kind in ("slow", "bad")]
            return Wait({"phase": "joined"}, tuple(child.id for child in children), "failFast")

        await runtime.commit(write)

    async def bad(_runtime: TaskRuntime) -> None:
        raise ValueError("bad")

    rig = Rig(tmp_path, extensions=kinds(parent={"go": parent, "joined": ended}, slow=forever, bad=bad))
    ids = await start(rig, "parent")
    await rig.settle()
    tasks = await by_id(rig)

    assert tasks[ids["parent"]].outcome == Completed(value="done")
    assert {task.kind: type(task.outcome) for task in tasks.values()} == {"parent": Completed, "slow": Aborted, "bad": Faulted}


@pytest.mark.rule("TK-6", "TK-15", "FB-26")
async def test_fail_fast_also_ends_the_work_below_the_others(tmp_path: Path) -> None:
    async def parent(runtime: TaskRuntime) -> None:
        async def write(transaction: Transaction, _task: Task) -> Any:
            children = [runtime.child(transaction, kind, {}, Pending(checkpoint={"phase": "go"})) for kind in ("middle", "bad")]
            return Wait({"phase": "joined"}, tuple(child.id for child in children), "failFast")

        await runtime.commit(write)

    async def middle(runtime: TaskRuntime) -> None:
        async def write(transaction: Transaction, _task: Task) -> Any:
            return Wait({"phase": "never"}, (runtime.child(transaction, "slow", {}, Pending(checkpoint={"phase": "go"})).id,))

        await runtime.commit(write)

    async def bad(runtime: TaskRuntime) -> None:
        await runtime.services.clock.sleep_ms(10)
        raise ValueError("bad")

    rig = Rig(tmp_path, extensions=kinds(parent={"go": parent, "joined": ended}, middle=middle, slow=forever, bad=bad))
    await start(rig, "parent")
    await rig.settle()
    rig.clock.advance(10)
    await rig.settle()

    assert {task.kind: type(task.outcome) for task in await rig.tasks()} == {"parent": Completed, "middle": Aborted, "slow": Aborted, "bad": Faulted}


@pytest.mark.rule("FB-43", "PR-22")
async def test_handler_left_behind_by_a_close_can_write_nothing(tmp_path: Path) -> None:
    wrote: list[str] = []

    async def stubborn(runtime: TaskRuntime) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            try:
                await runtime.end(Completed(value="too late"))
                wrote.append("yes")
            except BaseException as error:
                wrote.append(type(error).__name__)
                raise

    rig = Rig(tmp_path, extensions=kinds(stubborn=stubborn))
    ids = await start(rig, "stubborn")
    await rig.settle()
    await rig.close()

    await rig.open()
    assert wrote == ["Fenced"]
    assert (await by_id(rig))[ids["stubborn"]].state == Pending(checkpoint={"phase": "go"})


@pytest.mark.rule("SE-7")
async def test_close_does_not_wait_for_ever_for_a_handler_that_ignores_it(tmp_path: Path) -> None:
    async def deaf(_runtime: TaskRuntime) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if released:
                    raise

    released: list[bool] = []
    rig = Rig(tmp_path, extensions=kinds(deaf=deaf))
    await start(rig, "deaf")
    await rig.settle()
    closing = asyncio.ensure_future(rig.harness.close())
    await rig.settle()
    assert not closing.done()
    rig.clock.advance(5_000)
    await rig.until(closing.done)

    released.append(True)
    assert closing.exception() is None
    assert isinstance(rig.reports, list)
    assert all(isinstance(report, Report) for report in rig.reports)


@pytest.mark.rule("SE-7", "SE-8")
@pytest.mark.parametrize("again", [False, True])
async def test_a_close_whose_caller_gives_up_the_wait_closes_all_the_same(tmp_path: Path, again: bool) -> None:
    rig = Rig(tmp_path, extensions=kinds(waits=forever))
    ids = await start(rig, "waits")
    await rig.settle()
    harness = rig.harness
    closing = asyncio.ensure_future(harness.close())
    await asyncio.sleep(0)
    closing.cancel()
    await rig.settle()
    if again:
        await harness.close()
    assert rig.model.is_closed
    with pytest.raises(SessionClosed):
        await harness.create_conversation(Agent())
    await rig.open()
    assert (await by_id(rig))[ids["waits"]].state == Pending(checkpoint={"phase": "go"})
    await rig.close()


@pytest.mark.rule("SE-7", "TK-10")
async def test_a_handler_may_close_the_session_it_works_in(tmp_path: Path) -> None:
    async def leaves(_runtime: TaskRuntime) -> None:
        await rig.harness.close()

    rig = Rig(tmp_path, extensions=kinds(leaves=leaves))
    ids = await start(rig, "leaves")
    await rig.until(lambda: rig.model.is_closed)
    await rig.harness.close()
    await rig.open()
    task = (await by_id(rig))[ids["leaves"]]
    assert (task.state, task.restarts) == (Pending(checkpoint={"phase": "go"}), None)
    await rig.close()


@pytest.mark.rule("SE-7", "ST-12")
async def test_a_gateway_that_fails_to_close_keeps_no_session_open(tmp_path: Path) -> None:
    class Broken(ScriptedModel):
        async def close(self) -> None:
            raise OSError("no")

    rig = Rig(tmp_path, "sqlite")
    rig.model = Broken(rig.clock)
    await rig.open()
    with pytest.raises(OSError, match="no"):
        await rig.harness.close()
    await rig.open()  # nobody holds it any more
